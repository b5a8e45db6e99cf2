"""Clients of `cargo xtask campaign`: plain HTTP, and no code of ours but the client for Python
where that is what is tried.

client.py live ORDERS     threads that claim and hold until standard input ends, and then once more
client.py all ORDERS      claims all units of every pool once, and says how long that took
client.py hold LOG BY N MILLIS   the job of `quorate run`

ORDERS is a file with one object. All write down what they do and are told, one object a line, with
the clock that all processes of a machine share. A deadline is counted from before the request was
sent. What a client does on purpose wrong (`bug`) is for the campaign to find.
"""

import http.client
import json
import os
import random
import socket
import ssl
import subprocess
import sys
import threading
import time

PORT = 7420
WAIT = 1.5  # seconds that one request waits for a grant


def now():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class Diary:
    """One line at a time, whole even if we are killed."""

    def __init__(self, path, by):
        self.file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        self.by = by

    def write(self, what, at=None, **more):
        line = {"at": at or now(), "by": self.by, "what": what, **more}
        os.write(self.file, (json.dumps(line, separators=(",", ":")) + "\n").encode())


class Wire:
    """A connection to each node, kept open."""

    def __init__(self, orders):
        self.servers = orders["servers"]
        with open(orders["token"]) as file:
            self.token = file.read().strip()
        self.ca, self.seen, self.context = orders["ca"], None, None
        self.open = {}

    def trust(self):
        # The authority may be replaced while we live.
        changed = os.stat(self.ca).st_mtime_ns
        if changed != self.seen:
            self.seen, self.context = changed, ssl.create_default_context(cafile=self.ca)
        return self.context

    def ask(self, node, method, path, body=None, timeout=3.0, plain=False):
        """Status and body, as an object or as plain text; status 0 if nobody answered."""
        try:
            connection = self.open.get(node)
            if connection is None:
                connection = http.client.HTTPSConnection(
                    self.servers[node], PORT, timeout=timeout, context=self.trust()
                )
                self.open[node] = connection
            if connection.sock is not None:
                connection.sock.settimeout(timeout)
            text = None if body is None else json.dumps(body)
            headers = {"authorization": "Bearer " + self.token}
            if text is not None:
                headers["content-type"] = "application/json"
            connection.request(method, path, body=text, headers=headers)
            answer = connection.getresponse()
            said = answer.read()
            if plain:
                return answer.status, said.decode(errors="replace")
            try:
                said = json.loads(said)
            except ValueError:
                said = {}
            return answer.status, said if isinstance(said, dict) else {}
        except (OSError, http.client.HTTPException, ValueError):
            self.hang_up(node)
            return (0, "") if plain else (0, {})

    def hang_up(self, node):
        connection = self.open.pop(node, None)
        if connection is not None:
            connection.close()


class Held:
    """What a claim was granted."""

    def __init__(self, name, units, deadline, node):
        self.name, self.units, self.deadline, self.node = name, units, deadline, node
        self.stands = deadline is None
        # Whether it was asked for at one node only, so that there are no other grants of its name.
        self.single = True


class Client:
    def __init__(self, orders, number, stop):
        self.orders, self.stop = orders, stop
        self.number = number
        self.dice = random.Random(orders["seed"] * 1000 + number)
        self.wire = Wire(orders)
        self.nodes = len(orders["servers"])
        self.node = (number + orders["seed"]) % self.nodes
        self.lease = orders["lease"]
        self.bug = orders.get("bug")
        self.diary = Diary(orders["log"], f"{orders['by']}.{number}")

    def pool(self):
        pool = self.dice.choice(self.orders["pools"])
        many = pool.get("many", 0)
        name = f"{pool['name']}{self.dice.randrange(many)}" if many else pool["name"]
        return name, pool["units"]

    def path(self, pool, name):
        return f"/v1/pools/{pool}/claims/{name}"

    def elsewhere(self):
        self.node = (self.node + 1) % self.nodes

    # One claim, from the first request to the last.

    def claim(
        self, pool, want, *, patience=None, wanders=False, repeats=False, vanish=None, stands=False
    ):
        name = os.urandom(16).hex()
        units = want if isinstance(want, int) else sum(line["units"] for line in want)
        body = {"client": self.diary.by, "reason": "campaign"}
        body.update({"units": want} if isinstance(want, int) else {"lines": want})
        if stands:
            body["standing"] = True
        self.diary.write("claimed", pool=pool, claim=name, units=units, stands=stands)
        began, tries, failures, places = time.monotonic(), 0, 0, set()
        while True:
            wait = 0.25 if wanders else WAIT
            if repeats and self.dice.random() < 0.5:
                # Somewhere, without waiting; whoever grants it there has told us.
                wait = 0.0
            if patience is not None:
                wait = max(0.0, min(wait, began + patience - time.monotonic()))
            tries += 1
            places.add(self.node)
            sent = now()
            why = "&why=true" if self.dice.random() < 0.1 else ""
            path = f"{self.path(pool, name)}?wait={int(wait * 1000)}ms{why}"
            if vanish is not None and self.dice.random() < vanish:
                self.ask_and_leave(path, body)
                self.diary.write("abandoned", pool=pool, claim=name)
                return None
            status, said = self.wire.ask(self.node, "PUT", path, body, timeout=wait + 2.0)
            if status == 200 and said.get("state") == "granted":
                held = self.take(pool, name, sent, said, stands)
                if held is None:
                    return None
                if repeats:
                    self.repeat(pool, held, body)
                held.single = len(places) == 1 and not repeats
                return held
            if status == 202:
                failures = 0
                if "why" in said:
                    holders = [holder["id"] for holder in said["why"].get("holders", [])]
                    self.diary.write("why", pool=pool, claim=name, asked=sent, holders=holders)
                if wanders or repeats:
                    self.elsewhere()
            elif status in (0, 429, 503, 504):
                failures += 1
                self.elsewhere()
                if failures >= self.nodes:
                    time.sleep(min(0.5, 0.05 * failures))
            else:
                self.refused(pool, name, status, said, tries)
                return None
            if patience is not None and time.monotonic() - began >= patience:
                return self.cancel(pool, name)

    def refused(self, pool, name, status, said, tries):
        kind, detail = said.get("type", ""), said.get("detail", "")
        self.diary.write(
            "refused", pool=pool, claim=name, status=status, kind=kind, detail=detail, tries=tries,
            node=self.node,
        )

    def ask_and_leave(self, path, body):
        """Says it and hangs up before the answer."""
        try:
            raw = socket.create_connection((self.wire.servers[self.node], PORT), timeout=1.0)
            with self.wire.trust().wrap_socket(
                raw, server_hostname=self.wire.servers[self.node]
            ) as wire:
                text = json.dumps(body)
                wire.sendall(
                    f"PUT {path} HTTP/1.1\r\nhost: node\r\nauthorization: Bearer "
                    f"{self.wire.token}\r\ncontent-type: application/json\r\n"
                    f"content-length: {len(text)}\r\n\r\n{text}".encode()
                )
        except OSError:
            pass

    def take(self, pool, name, sent, said, stands=False):
        shares = [[unit["unit"], unit["fence"]] for unit in said.get("units") or []]
        if not shares:
            shares = [[unit, 0] for unit in range(said.get("count") or said.get("asked") or 1)]
        if self.bug == "wrong-units":
            most = max(unit["units"] for unit in self.orders["pools"])
            shares = [[(unit + 1) % most, fence] for unit, fence in shares]
        if self.bug == "one-more":
            most = max(unit["units"] for unit in self.orders["pools"])
            more = next((unit for unit in range(most) if unit not in dict(shares)), None)
            shares += [] if more is None else [[more, shares[0][1]]]
        if stands:
            # Whatever is said of a lease: there is none.
            self.diary.write("granted", pool=pool, claim=name, shares=shares)
            return Held(name, said.get("units") or [], None, self.node)
        deadline = sent + said.get("expires_in_ms", 0) * 1_000_000
        if deadline <= now():
            self.diary.write("abandoned", pool=pool, claim=name)
            return None
        self.diary.write(
            "granted", pool=pool, claim=name, deadline=deadline, shares=shares,
            node=said.get("node", ""),
        )
        return Held(name, said.get("units") or [], deadline, self.node)

    def repeat(self, pool, held, body):
        """The same claim once more, everywhere: it stays one claim, or the copies are others'."""
        for node in range(self.nodes):
            if node == held.node or self.dice.random() < 0.5:
                continue
            sent = now()
            path = f"{self.path(pool, held.name)}?wait=0ms"
            status, said = self.wire.ask(node, "PUT", path, body, timeout=1.0)
            if status != 200 or said.get("state") != "granted":
                continue
            if (said.get("units") or []) == held.units:
                continue
            # Where another node decides since, the same units of the same claim are told anew with
            # a fence of its term (charter spec S9), and the node of before still shows the old one.
            numbers = [unit["unit"] for unit in said.get("units") or []]
            known = [unit["unit"] for unit in held.units]
            if self.orders.get("moves") and numbers == known:
                continue
            # Another grant under the same name (docs/claims.md): it is ours as well, and is
            # judged as a claim of its own.
            name = f"{held.name}:{node}"
            asked = said.get("asked", 1)
            self.diary.write("claimed", pool=pool, claim=name, units=asked)
            copy = self.take(pool, name, sent, said)
            if copy is not None:
                self.diary.write("stopped", pool=pool, claim=name, told=False)

    def hold(self, pool, held, span, *, wanders=False):
        """Uses it for so long; renews before a third of the lease is over."""
        until = now() + int(span * 1e9)
        pause = self.lease / (8 if wanders else 3)
        renew = now() + int(pause * 1e9)
        if self.bug == "no-renewal":
            self.diary.write("extended", pool=pool, claim=held.name, deadline=until)
            time.sleep(span)
            return True
        while now() < min(until, held.deadline):
            if now() < renew:
                left = min(until, renew, held.deadline) - now()
                time.sleep(max(0.0, left / 1e9))
                continue
            if wanders:
                held.node = (held.node + 1) % self.nodes
            sent = now()
            shown = [{"unit": unit["unit"], "fence": unit["fence"]} for unit in held.units]
            path = f"{self.path(pool, held.name)}/renew"
            left = max(0.05, (held.deadline - now()) / 1e9)
            body = {"units": shown} if shown else None
            status, said = self.wire.ask(
                held.node, "POST", path, body, timeout=min(left, self.lease / 3)
            )
            if status == 200 and said.get("state") == "granted":
                deadline = sent + said.get("expires_in_ms", 0) * 1_000_000
                held.deadline = max(held.deadline, deadline)
                self.diary.write("extended", pool=pool, claim=held.name, deadline=deadline)
                renew = sent + int(pause * 1e9)
            elif status == 410 or (status == 409 and held.single):
                self.diary.write(
                    "stopped", pool=pool, claim=held.name, told=True, node=held.node,
                    status=status, detail=said.get("detail", ""), deadline=held.deadline,
                )
                return False
            else:
                # Where a holder is known at its own node only, nobody else can renew it. A node
                # that has another grant under this id (docs/claims.md) says 409.
                if self.orders.get("wanders", True):
                    held.node = (held.node + 1) % self.nodes
                renew = now() + 40_000_000
        if now() >= held.deadline:
            self.diary.write("late", pool=pool, claim=held.name)
        return True

    def release(self, pool, held):
        if self.bug == "releases-first":
            self.wire.ask(held.node, "DELETE", self.path(pool, held.name))
            time.sleep(0.3)
            self.diary.write("stopped", pool=pool, claim=held.name, told=False)
            return
        self.diary.write("stopped", pool=pool, claim=held.name, told=False)
        self.end(pool, held.name, held.node)

    def stand(self, pool, held, span):
        """Has it and says nothing, as a machine that restarts; somebody asks now and then whether
        it is shown. Given back by its id alone, at any node."""
        until = now() + int(span * 1e9)
        while now() < until:
            left = (until - now()) / 1e9
            time.sleep(max(0.0, min(left, self.lease * (0.2 + 0.4 * self.dice.random()))))
            self.look_for(pool, held.name)
        self.diary.write("stopped", pool=pool, claim=held.name, told=False)
        self.end_surely(pool, held.name)

    def look_for(self, pool, name):
        """Whether it is among the holders, if all nodes answered."""
        sent, node = now(), self.dice.randrange(self.nodes)
        status, said = self.wire.ask(node, "GET", f"/v1/pools/{pool}/holders", timeout=2.0)
        if status == 200 and not said.get("silent"):
            there = any(holder["id"] == name for holder in said.get("holders", []))
            self.diary.write("shown", pool=pool, claim=name, asked=sent, node=node, there=there)

    def end_surely(self, pool, name):
        """No lease ends it, so it is said until it is acknowledged: on the disks of a quorum."""
        self.node = self.dice.randrange(self.nodes)
        while self.end(pool, name, self.node, timeout=7.0) is None:
            self.elsewhere()
            time.sleep(0.1)

    def inherit(self):
        """What clients left that were killed while they held without a lease, or asked to."""
        folder = os.path.dirname(self.orders["log"])
        for by in self.orders.get("dead", []):
            left = {}
            try:
                with open(os.path.join(folder, f"history-{by}.jsonl"), errors="replace") as file:
                    lines = file.readlines()
            except OSError:
                continue
            for line in lines:
                try:
                    line = json.loads(line)
                except ValueError:
                    continue
                claim = line.get("pool", ""), line.get("claim", "")
                if line["what"] == "claimed" and line.get("stands"):
                    left[claim] = "asked"
                elif claim in left and line["what"] == "granted":
                    left[claim] = "held"
                elif claim in left and line["what"] in ("stopped", "cancelled", "abandoned"):
                    left[claim] = "over"
                elif claim in left and line["what"] == "ended":
                    del left[claim]
            for (pool, claim), state in left.items():
                if state == "held":
                    time.sleep(self.lease * self.dice.random())
                    self.look_for(pool, claim)
                    self.diary.write("stopped", pool=pool, claim=claim, told=False)
                elif state == "asked":
                    self.diary.write("abandoned", pool=pool, claim=claim)
                self.end_surely(pool, claim)

    def cancel(self, pool, name):
        said = self.end(pool, name, self.node)
        if said is not None and said.get("state") == "cancelled" and not said.get("unheard"):
            self.diary.write("cancelled", pool=pool, claim=name)
            if self.bug == "uses-cancelled":
                # As if the grant had come first.
                end = now() + int(self.lease * 1e9)
                self.diary.write("granted", pool=pool, claim=name, deadline=end, shares=[[0, 1]])
        else:
            self.diary.write("abandoned", pool=pool, claim=name)

    def end(self, pool, name, node, timeout=2.0):
        """Until somebody acknowledges it, or the lease must be over."""
        for _ in range(self.nodes * 2):
            status, said = self.wire.ask(node, "DELETE", self.path(pool, name), timeout=timeout)
            if 200 <= status < 300:
                self.diary.write(
                    "ended", pool=pool, claim=name, unheard=said.get("unheard") or []
                )
                return said
            self.diary.write(
                "not ended", pool=pool, claim=name, node=node, status=status,
                detail=said.get("detail", ""),
            )
            if status not in (0, 429, 503, 504):
                return None
            node = (node + 1) % self.nodes
            time.sleep(0.05)
        return None

    # Manners.

    def one(self, manner):
        pool, k = self.pool()
        draw = self.dice.random
        if manner == "labels":
            kinds = [
                [{"where": {"kind": "big"}, "units": 1}],
                [{"where": {"kind": "small"}, "units": 1}],
                [{"where": {"kind": "big"}, "units": 1}, {"where": {"kind": "small"}, "units": 1}],
                [{"where": {"zone": "east"}, "units": 1}, {"units": 1}],
            ]
            held = self.claim(pool, self.dice.choice(kinds), patience=4 * self.lease)
            return self.use(pool, held, draw() * 0.1)
        if manner == "long":
            held = self.claim(pool, self.dice.randint(1, max(1, k // 2)))
            return self.use(pool, held, self.lease * (1 + 1.5 * draw()))
        if manner == "wander":
            held = self.claim(pool, self.dice.randint(1, max(1, k // 2)), wanders=True)
            return self.use(pool, held, self.lease * 1.5 * draw(), wanders=True)
        if manner == "repeats":
            held = self.claim(pool, 1, repeats=True)
            return self.use(pool, held, draw() * 0.1)
        if manner == "fickle":
            patience = self.lease * draw()
            held = self.claim(pool, self.dice.randint(1, k), patience=patience, vanish=0.15)
            if held is not None and draw() < 0.2:
                # Uses it for a moment, and is never heard of again.
                time.sleep(0.05 * draw())
                self.diary.write("stopped", pool=pool, claim=held.name, told=False)
                return None
            return self.use(pool, held, draw() * 0.1)
        if manner == "standing":
            # Longer than any lease, more often than not.
            held = self.claim(pool, self.dice.randint(1, max(1, k // 2)), stands=True)
            if held is not None:
                self.stand(pool, held, self.lease * 2.5 * draw())
            return None
        if manner == "crowd":
            units = k if self.number == 0 else 1
            return self.use(pool, self.claim(pool, units), 0.01 + draw() * 0.05)
        if manner == "sizes":
            return self.use(pool, self.claim(pool, self.dice.randint(1, k)), draw() * 0.08)
        return self.use(pool, self.claim(pool, 1), draw() * 0.04)

    def use(self, pool, held, span, **how):
        if held is not None and self.hold(pool, held, span, **how):
            self.release(pool, held)

    def operate(self):
        """Drains a unit and brings it back; gives it other labels where it has any."""
        pool, k = self.pool()
        unit = self.dice.randrange(k)
        path = f"/v1/pools/{pool}/units/{unit}"
        if self.orders.get("labelled") and self.dice.random() < 0.5:
            labels = {"labels": {"kind": self.dice.choice(["big", "small"]), "zone": "east"}}
            self.wire.ask(self.node, "PUT", f"{path}/labels", labels)
            time.sleep(0.1)
            self.until_done("DELETE", f"{path}/labels")
        else:
            self.wire.ask(self.node, "PUT", f"{path}/drain")
            time.sleep(0.1 + 0.2 * self.dice.random())
            self.until_done("DELETE", f"{path}/drain")
        self.elsewhere()

    def until_done(self, method, path):
        while True:
            status, _ = self.wire.ask(self.node, method, path)
            if 200 <= status < 300:
                return
            self.elsewhere()
            time.sleep(0.1)

    def job(self, units, millis):
        """`quorate run` with ourselves as the job; its exit code."""
        pool, _ = self.pool()
        servers = ",".join(f"https://{server}" for server in self.orders["servers"])
        words = [self.orders["program"], "run", pool, "-n", str(units), "--server", servers]
        words += ["--ca", self.orders["ca"], "--token-file", self.orders["token"], "--"]
        words += [sys.executable, "-S", "-E", os.path.abspath(__file__), "hold"]
        words += [self.orders["log"], self.diary.by, str(units), str(millis)]
        with open(self.orders["log"] + ".err", "ab") as file:
            return subprocess.run(
                words, stdin=subprocess.DEVNULL, stdout=file, stderr=file, check=False
            ).returncode

    def packaged(self, units, span):
        """The client for Python, as a program would use it."""
        import quorate

        pool, _ = self.pool()
        client = quorate.Client(
            [f"https://{server}" for server in self.orders["servers"]],
            name=self.diary.by, token=self.wire.token, tls=self.wire.trust(),
        )
        try:
            grant = client.pool(pool).acquire(units, reason="campaign")
        except quorate.QuorateError as error:
            self.diary.write("gave up", pool=pool, detail=str(error))
            return False
        shares = [[unit.number, unit.fence] for unit in grant.details]
        shares = shares or [[unit, 0] for unit in range(units)]
        self.diary.write("claimed", pool=pool, claim=grant.id, units=units)
        self.diary.write("granted", pool=pool, claim=grant.id, shares=shares)
        until = time.monotonic() + span
        while time.monotonic() < until and not grant.lost.is_set():
            at = now()
            if not grant.lost.is_set():
                self.diary.write("using", at=at, pool=pool, claim=grant.id)
            time.sleep(0.02)
        lost = grant.lost.is_set()
        if not lost:
            self.diary.write("stopped", pool=pool, claim=grant.id, told=False)
        grant.release()
        return not lost

    def live(self):
        manner = self.orders["manner"]
        if manner == "standing" and self.number == 0:
            self.inherit()
        while not self.stop.is_set():
            if manner == "jobs":
                units = self.dice.randint(1, max(1, self.orders["pools"][0]["units"] // 2))
                long = self.dice.random() < 0.3
                millis = int(self.lease * 2000) if long else self.dice.randint(10, 200)
                code = self.job(units, millis)
                if code not in (0, 123):
                    self.diary.write("gave up", code=code)
                    time.sleep(0.1)
            elif manner == "package":
                long = self.dice.random() < 0.3
                self.packaged(1, self.lease * 2 if long else 0.1 * self.dice.random())
            elif manner == "drains" and self.number == 0:
                self.operate()
            else:
                self.one(manner)
        self.last()

    def last(self):
        """Served once more, however long it takes."""
        began = now()
        while True:
            if self.orders["manner"] == "jobs":
                served = self.job(1, 0) == 0
            elif self.orders["manner"] == "package":
                served = self.packaged(1, 0.0)
            else:
                pool, _ = self.pool()
                held = self.claim(pool, 1)
                served = held is not None
                if served:
                    self.release(pool, held)
            if served:
                return self.diary.write("served", waited=now() - began)
            time.sleep(0.1)


def live(orders):
    stop = threading.Event()
    clients = [Client(orders, number, stop) for number in range(orders["threads"])]
    threads = [threading.Thread(target=client.live) for client in clients]
    for thread in threads:
        thread.start()
    sys.stdin.buffer.read()
    stop.set()
    for thread in threads:
        thread.join()


def claim_all(orders):
    """All units of each pool at once, which says that none is lost."""
    stop = threading.Event()
    client = Client({**orders, "seed": 1, "lease": 1.0}, 0, stop)
    for pool in orders["pools"]:
        name = pool["name"] + ("0" if pool.get("many") else "")
        most = pool.get("claim_max", pool["units"])
        began = now()
        while True:
            held = client.claim(name, most)
            if held is not None:
                break
        client.release(name, held)
        client.diary.write("all", pool=name, units=most, waited=now() - began)


def hold(log, by, count, millis):
    """The job: says that it runs for as long as it does."""
    import signal

    diary = Diary(log, by)
    of = os.environ.get
    units, fences = of("QUORATE_UNITS", ""), of("QUORATE_FENCES", "")
    shares = [[int(u), int(f)] for u, f in zip(units.split(","), fences.split(",")) if u.isdigit()]
    shares = shares or [[unit, 0] for unit in range(int(count))]
    pool, name = of("QUORATE_POOL", ""), of("QUORATE_CLAIM", "")
    said = {"pool": pool, "claim": name}

    def stopped(*_):
        diary.write("stopped", told=False, **said)
        os._exit(0)

    signal.signal(signal.SIGTERM, stopped)
    diary.write("claimed", units=len(shares), **said)
    diary.write("granted", shares=shares, **said)
    until = time.monotonic() + int(millis) / 1000
    while time.monotonic() < until:
        diary.write("using", **said)
        time.sleep(0.02)
    stopped()


def main(words):
    if words[0] == "hold":
        return hold(*words[1:])
    with open(words[1]) as file:
        orders = json.load(file)
    {"live": live, "all": claim_all}[words[0]](orders)


if __name__ == "__main__":
    main(sys.argv[1:])
