"""Clients of `cargo xtask campaign --beside`: one workload through an adapter for each system.

others.py live ORDERS     threads that claim, hold and give back until standard input ends
others.py leader ORDERS   the number of the node that leads, if it is known

Adapters are as people write them, and all are given the benefit of a deadline of their own: a
holder stops when its lease must be over, whatever it was told. Ours and Redis's count it from
before the request was sent, etcd's from the answer, as its own client library does.
"""

import base64
import json
import os
import random
import socket
import sys
import threading
import time
import urllib.request

from client import Diary, Wire, now


class Quorate:
    """Plain HTTP, as everywhere in the campaign."""

    def __init__(self, orders, number):
        self.wire, self.pool = Wire(orders), orders["pools"][0]["name"]
        self.nodes, self.node = len(orders["servers"]), number % len(orders["servers"])

    def ask(self, method, name, what="", body=None, timeout=2.5):
        path = f"/v1/pools/{self.pool}/claims/{name}{what}"
        status, said = self.wire.ask(self.node, method, path, body, timeout=timeout)
        if status in (0, 429, 503, 504):
            self.node = (self.node + 1) % self.nodes
        return status, said

    def acquire(self, name):
        sent = now()
        status, said = self.ask("PUT", name, "?wait=1500ms", {"units": 1})
        if status == 200 and said.get("state") == "granted":
            self.shown = [{"unit": u["unit"], "fence": u["fence"]} for u in said.get("units") or []]
            return sent + said["expires_in_ms"] * 1_000_000
        return "over" if status in (409, 410) else None

    def renew(self, name):
        sent = now()
        body = {"units": self.shown} if self.shown else None
        status, said = self.ask("POST", name, "/renew", body, timeout=1.0)
        if status == 200 and said.get("state") == "granted":
            return sent + said["expires_in_ms"] * 1_000_000
        return "over" if status == 410 else None

    def release(self, name):
        for _ in range(2 * self.nodes):
            if 200 <= self.ask("DELETE", name, timeout=1.0)[0] < 500:
                return


class Etcd:
    """etcd's own lock service (/v3/lock), with a lease that is kept alive from the start."""

    def __init__(self, orders, number):
        self.servers, self.node = orders["servers"], number % len(orders["servers"])
        self.ttl, self.session, self.deadline = int(orders["lease"]), None, 0

    def ask(self, path, body, timeout=1.0):
        url = f"http://{self.servers[self.node]}:2379/v3/{path}"
        try:
            with urllib.request.urlopen(url, json.dumps(body).encode(), timeout=timeout) as answer:
                return json.loads(answer.read())
        except (OSError, ValueError):
            self.node = (self.node + 1) % len(self.servers)
            return None

    def keep_alive(self):
        said = self.ask("lease/keepalive", {"ID": self.session})
        if said is None:
            return None
        left = int(said.get("result", {}).get("TTL", 0))
        if left <= 0:
            self.session = None
            return "over"
        self.deadline = now() + left * 1_000_000_000
        return self.deadline

    def acquire(self, name):
        if self.session is not None and self.deadline <= now():
            self.session = None
        if self.session is None:
            said = self.ask("lease/grant", {"TTL": self.ttl})
            if said is None:
                return None
            self.session, self.deadline = said["ID"], now() + int(said["TTL"]) * 1_000_000_000
        body = {"name": base64.b64encode(b"camp").decode(), "lease": self.session}
        done = threading.Event()

        def keep():
            while not done.wait(self.ttl / 3) and self.session is not None:
                self.keep_alive()

        keeper = threading.Thread(target=keep)
        keeper.start()
        said = self.ask("lock/lock", body, timeout=10.0)
        done.set()
        keeper.join()
        if said is None or "key" not in said:
            # A server that sees its caller gone deletes the key, perhaps only when the same lease
            # has the lock by another call: so never another call with it.
            if self.session is not None:
                self.ask("lease/revoke", {"ID": self.session})
                self.session = None
            return None
        self.key = said["key"]
        return self.deadline if self.session is not None else None

    def renew(self, name):
        return self.keep_alive()

    def release(self, name):
        for _ in range(6):
            if self.ask("lock/unlock", {"key": self.key}) is not None:
                return


class Redis:
    """A client that asks Sentinel who is the primary, and speaks to that."""

    def __init__(self, orders, number):
        self.servers, self.lease = orders["servers"], int(orders["lease"] * 1000)
        self.units, self.socket = orders["pools"][0]["units"], None

    def command(self, to, *words):
        text = b"*%d\r\n" % len(words)
        for word in words:
            word = str(word).encode()
            text += b"$%d\r\n%s\r\n" % (len(word), word)
        to.sendall(text)
        return self.answer(to)

    def line(self, to):
        got = b""
        while not got.endswith(b"\r\n"):
            more = to.recv(1)
            if not more:
                raise OSError("hung up")
            got += more
        return got[:-2]

    def answer(self, to):
        line = self.line(to)
        kind, rest = line[:1], line[1:]
        if kind == b"-":
            raise OSError(rest.decode())
        if kind == b":":
            return int(rest)
        if kind == b"$":
            if int(rest) < 0:
                return None
            got = b""
            while len(got) < int(rest) + 2:
                got += to.recv(int(rest) + 2 - len(got))
            return got[:-2].decode()
        if kind == b"*":
            return [self.answer(to) for _ in range(max(0, int(rest)))]
        return rest.decode()

    def primary(self):
        for server in random.sample(self.servers, len(self.servers)):
            try:
                with socket.create_connection((server, 26379), timeout=0.5) as sentinel:
                    said = self.command(sentinel, "SENTINEL", "get-master-addr-by-name", "camp")
                    if said:
                        return said[0]
            except OSError:
                pass
        return None

    def do(self, *words):
        """None if nobody knows what came of it."""
        try:
            if self.socket is None:
                server = self.primary()
                if server is None:
                    return None
                self.socket = socket.create_connection((server, 6379), timeout=1.0)
            return self.command(self.socket, *words)
        except OSError:
            if self.socket is not None:
                self.socket.close()
            self.socket = None
            return None

    RENEW = (
        "if redis.call('get',KEYS[1])==ARGV[1] then "
        "return redis.call('pexpire',KEYS[1],ARGV[2]) end return 0"
    )
    RELEASE = "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) end"

    def acquire(self, name):
        until = time.monotonic() + 1.5
        while time.monotonic() < until:
            sent = now()
            if self.do("SET", "camp", name, "NX", "PX", self.lease) == "OK":
                return sent + self.lease * 1_000_000
            time.sleep(0.01)
        return None

    def renew(self, name):
        sent = now()
        said = self.do("EVAL", self.RENEW, 1, "camp", name, self.lease)
        if said == 1:
            return sent + self.lease * 1_000_000
        return None if said is None else "over"

    def release(self, name):
        for _ in range(3):
            if self.do("EVAL", self.RELEASE + " return 1", 1, "camp", name) is not None:
                return


class Semaphore(Redis):
    """A sorted set of holders by the time of their deadline, in scripts that look at the server's
    clock: better than most that are published, which trust clients' clocks."""

    NOW = (
        "local t=redis.call('time'); local now=t[1]*1000+math.floor(t[2]/1000); "
        "redis.call('zremrangebyscore',KEYS[1],'-inf',now); "
    )
    TAKE = (
        NOW + "if redis.call('zscore',KEYS[1],ARGV[1]) or "
        "redis.call('zcard',KEYS[1])<tonumber(ARGV[3]) then "
        "redis.call('zadd',KEYS[1],now+ARGV[2],ARGV[1]); return 1 end return 0"
    )
    KEEP = (
        NOW + "if redis.call('zscore',KEYS[1],ARGV[1]) then "
        "redis.call('zadd',KEYS[1],now+ARGV[2],ARGV[1]); return 1 end return 0"
    )

    def acquire(self, name):
        until = time.monotonic() + 1.5
        while time.monotonic() < until:
            sent = now()
            if self.do("EVAL", self.TAKE, 1, "camp", name, self.lease, self.units) == 1:
                return sent + self.lease * 1_000_000
            time.sleep(0.01)
        return None

    def renew(self, name):
        sent = now()
        said = self.do("EVAL", self.KEEP, 1, "camp", name, self.lease)
        if said == 1:
            return sent + self.lease * 1_000_000
        return None if said is None else "over"

    def release(self, name):
        for _ in range(3):
            if self.do("ZREM", "camp", name) is not None:
                return


SYSTEMS = {"quorate": Quorate, "etcd": Etcd, "redis-lock": Redis, "redis-semaphore": Semaphore}


def work(orders, number, stop):
    """Short holds, and every fourth longer than a lease, with renewals."""
    adapter = SYSTEMS[orders["system"]](orders, number)
    diary = Diary(orders["log"], f"{orders['by']}.{number}")
    dice = random.Random(orders["seed"] * 1000 + number)
    lease = orders["lease"]
    while not stop.is_set():
        name = os.urandom(16).hex()
        said = {"pool": "camp", "claim": name}
        diary.write("claimed", units=1, **said)
        deadline = None
        while deadline is None and not stop.is_set():
            deadline = adapter.acquire(name)
        if not isinstance(deadline, int) or deadline <= now():
            diary.write("abandoned", **said)
            continue
        diary.write("granted", deadline=deadline, shares=[[0, 0]], **said)
        span = lease * 1.3 if dice.random() < 0.25 else 0.05 * dice.random()
        until, renew = now() + int(span * 1e9), now() + int(lease / 3 * 1e9)
        while now() < min(until, deadline):
            if now() < renew:
                time.sleep(max(0.0, (min(until, renew, deadline) - now()) / 1e9))
                continue
            longer = adapter.renew(name)
            renew = now() + int((lease / 3 if isinstance(longer, int) else 0.05) * 1e9)
            if longer == "over":
                break
            if isinstance(longer, int):
                deadline = max(deadline, longer)
                diary.write("extended", deadline=deadline, **said)
        diary.write("stopped", told=False, **said)
        adapter.release(name)


def live(orders):
    stop = threading.Event()
    threads = [
        threading.Thread(target=work, args=(orders, number, stop), daemon=True)
        for number in range(orders["threads"])
    ]
    for thread in threads:
        thread.start()
    sys.stdin.buffer.read()
    stop.set()
    for thread in threads:
        thread.join(5.0)


def leader(orders):
    servers = orders["servers"]
    if orders["system"].startswith("redis"):
        print(servers.index(Redis(orders, 0).primary()))
        return
    for number in range(len(servers)):
        etcd = Etcd(orders, number)
        said = etcd.ask("maintenance/status", {})
        if said and said.get("leader", "0") != "0" and said["leader"] == said["header"]["member_id"]:
            print(number)
            return


with open(sys.argv[2]) as file:
    {"live": live, "leader": leader}[sys.argv[1]](json.load(file))
