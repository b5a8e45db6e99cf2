"""Who is no client of `cargo xtask campaign`: an onlooker and strangers.

onlooker.py look ORDERS     asks every node whether it can grant, and whether it does
onlooker.py strange ORDERS  strangers at a node's doors: slow, noisy, wrong, far too many; and one
                            who makes pools, uses and changes them

ORDERS is a file with one object. What is written down is as in client.py.
"""

import json
import os
import random
import socket
import sys
import threading
import time

from client import PORT, Client, Diary, Wire, now


def look(orders):
    """Asks each node whether it can grant one unit of a pool that nobody else uses, claims it
    there, and asks again: by `/readyz`, by what `quorate status` and `quorate why` show, and by
    the metrics."""
    stop = threading.Event()
    threads = [
        threading.Thread(target=probe, args=(orders, node, stop))
        for node in range(len(orders["servers"]))
    ]
    for thread in threads:
        thread.start()
    sys.stdin.buffer.read()
    stop.set()
    for thread in threads:
        thread.join()


def probe(orders, node, stop):
    wire = Wire(orders)
    diary = Diary(orders["log"], f"probe.{node}")
    pool = orders["probe"]
    while not stop.is_set():
        name = os.urandom(16).hex()
        asked = now()
        before, _ = wire.ask(node, "GET", f"/readyz/pools/{pool}", timeout=1.0)
        metric = counted(wire, node, pool)
        body = {"units": 1, "client": diary.by, "reason": "probe"}
        path = f"/v1/pools/{pool}/claims/{name}"
        sent = now()
        status, said = wire.ask(node, "PUT", f"{path}?wait=1500ms", body, timeout=2.5)
        took = now() - sent
        granted = status == 200 and said.get("state") == "granted"
        ends = sent + said.get("expires_in_ms", 0) * 1_000_000
        after, shown = wire.ask(node, "GET", f"/readyz/pools/{pool}", timeout=1.0)
        known = status_of(wire, node, pool)
        if granted and now() >= ends:
            known.pop("held", None)  # It need not be shown any more.
        if status == 202:
            known["why"] = reason(wire, node, path)
        diary.write(
            "probe", node=node, asked=asked, before=before, status=status, granted=granted,
            took=took, after=after, hindrance=(shown.get("hindrance") or {}).get("kind", ""),
            metric=metric, **known,
        )
        for other in [node, *range(len(orders["servers"]))]:
            if 200 <= wire.ask(other, "DELETE", path, timeout=1.0)[0] < 500:
                break
        stop.wait(0.25)


def counted(wire, node, pool):
    """What the metrics say of the largest claim that can be granted; nothing if nobody says."""
    status, text = wire.ask(node, "GET", "/metrics", timeout=1.0, plain=True)
    if status != 200:
        return None
    for line in text.splitlines():
        if line.startswith("quorate_pool_grants_up_to_units{") and f'pool="{pool}"' in line:
            return int(float(line.rsplit(" ", 1)[1]))
    return None


def status_of(wire, node, pool):
    """What `quorate status` shows: if all nodes answered, the largest claim and what is held."""
    status, shown = wire.ask(node, "GET", f"/v1/pools/{pool}", timeout=2.0)
    if status != 200 or shown.get("silent"):
        return {}
    largest = (shown.get("grants") or {}).get("largest")
    known = {"largest": largest, "held": shown.get("held")}
    return {name: value for name, value in known.items() if value is not None}


def reason(wire, node, path):
    """How many things `quorate why` names that a claim waits for; nothing if it is not known."""
    status, said = wire.ask(node, "GET", f"{path}/why", timeout=2.0)
    why = said.get("why")
    if status != 202 or why is None or why.get("silent"):
        return None
    named = [why.get("hindrance"), why.get("grace_ms"), *why["holders"], *why["ahead"]]
    return sum(thing is not None for thing in named)


def make_pools(orders, wire, dice):
    """Pools that nobody had, each claimed at once at some other node, and changed meanwhile."""
    number, units = 0, orders["pools"][0]["units"]
    lease = int(orders["lease"] * 1000)
    client = Client({**orders, "bug": None}, 0, threading.Event())
    while True:
        pool, node = f"made-{orders['seed']}-{number}", dice.choice(orders["nodes"])
        definition = f'units = {units}\nlease = "{lease}ms"\nretry = "200ms"\n'
        status, _ = wire.ask(node, "PUT", f"/v1/pools/{pool}", {"definition": definition})
        if not 200 <= status < 300:
            # Perhaps it is made, and perhaps not: another name.
            number += 1
            time.sleep(0.2)
            continue
        client.diary.write("made", pool=pool)
        for turn in range(6):
            client.node = dice.choice(orders["nodes"])
            held = client.claim(pool, dice.randint(1, units), patience=2 * orders["lease"])
            if turn in (1, 3):
                # While it is held. Whether it was changed may remain unknown: both are right.
                change = f'lease = "{lease * (2 if turn == 1 else 1)}ms"\n'
                node = dice.choice(orders["nodes"])
                wire.ask(node, "PATCH", f"/v1/pools/{pool}", {"definition": change})
            client.use(pool, held, 0.05 * dice.random())
        number += 1
        time.sleep(0.2)


def strange(orders):
    """Until we are killed."""
    wire = Wire(orders)
    kind, servers = orders["kind"], [orders["servers"][node] for node in orders["nodes"]]
    dice = random.Random(orders["seed"])
    crowd = []

    def connect(server, port=PORT):
        try:
            return socket.create_connection((server, port), timeout=1.0)
        except OSError:
            time.sleep(0.05)
            return None

    if kind == "makes":
        make_pools(orders, wire, dice)
    while True:
        server = dice.choice(servers)
        if kind in ("silent", "slow"):
            if len(crowd) < 200:
                crowd.append(connect(server))
            elif kind == "slow":
                for one in crowd:
                    try:
                        if one is not None:
                            one.send(b"\x16")
                    except OSError:
                        pass
                crowd = crowd[20:]
            else:
                crowd = crowd[20:]
                time.sleep(0.1)
        elif kind == "noise":
            one = connect(server, dice.choice([7420, 7520]))
            if one is not None:
                try:
                    first = dice.choice([b"", b"\x16\x03\x01", b"GET / HTTP/1.1\r\n", b"QRTE"])
                    one.sendall(first + dice.randbytes(dice.randint(1, 4000)))
                    one.close()
                except OSError:
                    pass
        elif kind == "handshakes":
            one = connect(server)
            if one is not None:
                try:
                    wire.trust().wrap_socket(one, server_hostname=server).close()
                except OSError:
                    pass
        elif kind == "tokens":
            wire.token = "wrong-" + dice.randbytes(12).hex()
            node = dice.choice(orders["nodes"])
            wire.ask(node, "GET", "/v1/pools", timeout=1.0)
        elif kind == "claims":
            node, name = dice.choice(orders["nodes"]), dice.randbytes(16).hex()
            path = f"/v1/pools/{orders['flood']}/claims/{name}?wait=0ms"
            wire.ask(node, "PUT", path, {"units": 1}, timeout=1.0)
        elif kind == "nonsense":
            node, name = dice.choice(orders["nodes"]), dice.randbytes(3).hex()
            path = dice.choice(["/v1/pools/%00/claims/x", f"/v1/pools/{name}/claims/{name}"])
            body = dice.choice([{"units": -1}, {"units": 10**30}, {"lines": 7}, {"x": [[[]]] * 9}])
            wire.ask(node, dice.choice(["PUT", "POST", "DELETE"]), path, body, timeout=1.0)


def main(words):
    with open(words[1]) as file:
        orders = json.load(file)
    {"look": look, "strange": strange}[words[0]](orders)


if __name__ == "__main__":
    main(sys.argv[1:])
