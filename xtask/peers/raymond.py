"""Raymond's k-mutual exclusion (1989) in SimPy: what `cargo xtask peers --lab` compares its simulation with.

A process asks all others, enters with n-k permissions, and those that it did not answer get theirs when it
leaves. Thinking and using are exponential, a message takes a millisecond. Prints messages and entries as JSON.
"""

import json
import random
import sys

import simpy

NODES, UNITS, SECONDS, SEED = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
HOP, THINK, USE = 0.001, 0.020, 0.020

env = simpy.Environment()
chance = random.Random(SEED)
count = {"messages": 0, "entries": 0}


class Process:
    def __init__(self, me):
        self.me, self.clock, self.highest = me, 0, 0
        self.requesting = self.using = False
        self.permissions = 0
        self.deferred = []
        self.enough = None

    def send(self, to, *message):
        count["messages"] += 1
        env.timeout(HOP).callbacks.append(lambda _: all_of_them[to].hear(self.me, *message))

    def hear(self, sender, kind, clock):
        if kind == "request":
            self.highest = max(self.highest, clock)
            mine = (self.clock, self.me) < (clock, sender)
            if self.using or (self.requesting and mine):
                self.deferred.append((sender, clock))
            else:
                self.send(sender, "reply", clock)
        elif self.requesting and clock == self.clock:
            self.permissions += 1
            if self.permissions >= NODES - UNITS and not self.enough.triggered:
                self.enough.succeed()

    def live(self):
        while True:
            yield env.timeout(chance.expovariate(1 / THINK))
            self.clock = self.highest = self.highest + 1
            self.permissions, self.requesting, self.enough = 0, True, env.event()
            for other in range(NODES):
                if other != self.me:
                    self.send(other, "request", self.clock)
            yield self.enough
            self.requesting, self.using = False, True
            count["entries"] += 1
            yield env.timeout(chance.expovariate(1 / USE))
            self.using = False
            deferred, self.deferred = self.deferred, []
            for other, clock in deferred:
                self.send(other, "reply", clock)


all_of_them = [Process(me) for me in range(NODES)]
for one in all_of_them:
    env.process(one.live())
env.run(until=SECONDS)
print(json.dumps(count))
