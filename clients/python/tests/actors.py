"""Clients of several kinds, told the same: who plays the scenarios.

An actor is made for each scenario, with the servers. `acquire` blocks; what came of it is a word of
the scenarios. `state` is what the client itself says, without asking anybody.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, Protocol

from conftest import binary

import quorate
import quorate.aio


class Actor(Protocol):
    """What a scenario needs of a client. `within` is nothing if it is not to wait."""

    def __init__(self, servers: Sequence[str]) -> None: ...
    def acquire(self, name: str, pool: str, units: int, within: float | None) -> str: ...
    def id(self, name: str) -> str: ...
    def state(self, name: str) -> str: ...
    def release(self, name: str) -> str: ...
    def close(self) -> None: ...


def word(error: quorate.QuorateError) -> str:
    """What the scenarios call it."""
    words: list[tuple[type[quorate.QuorateError], str]] = [
        (quorate.TooLarge, "too-large"),
        (quorate.UnknownPool, "unknown-pool"),
        (quorate.Timeout, "timeout"),
        (quorate.Unreachable, "unreachable"),
    ]
    return next((word for kind, word in words if isinstance(error, kind)), str(error))


def _ended(acknowledged: bool, lost: bool) -> str:
    if lost:
        return "lost"
    return "released" if acknowledged else "unacknowledged"


class Threads:
    """The client for Python, for programs with threads."""

    def __init__(self, servers: Sequence[str]) -> None:
        self._client = quorate.connect(servers)
        self._grants: dict[str, quorate.Grant] = {}

    def acquire(self, name: str, pool: str, units: int, within: float | None) -> str:
        try:
            if within is None:
                grant = self._client.pool(pool).try_acquire(units)
                if grant is None:
                    return "timeout"
            else:
                grant = self._client.pool(pool).acquire(units, timeout=within)
        except quorate.QuorateError as error:
            return word(error)
        self._grants[name] = grant
        return "granted"

    def id(self, name: str) -> str:
        return self._grants[name].id

    def state(self, name: str) -> str:
        return "lost" if self._grants[name].lost.is_set() else "held"

    def release(self, name: str) -> str:
        lost = self._grants[name].lost.is_set()
        return _ended(self._grants[name].release(), lost)

    def close(self) -> None:
        for grant in self._grants.values():
            grant.release()


class Tasks:
    """The client for Python, for asyncio, in a loop of its own."""

    def __init__(self, servers: Sequence[str]) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self._client = quorate.aio.Client(servers)
        self._grants: dict[str, quorate.aio.Grant] = {}

    def _wait(self, what: Coroutine[Any, Any, str]) -> str:
        return asyncio.run_coroutine_threadsafe(what, self._loop).result()

    def acquire(self, name: str, pool: str, units: int, within: float | None) -> str:
        async def perform() -> str:
            try:
                if within is None:
                    grant = await self._client.pool(pool).try_acquire(units)
                    if grant is None:
                        return "timeout"
                else:
                    grant = await self._client.pool(pool).acquire(units, timeout=within)
            except quorate.QuorateError as error:
                return word(error)
            self._grants[name] = grant
            return "granted"

        return self._wait(perform())

    def id(self, name: str) -> str:
        return self._grants[name].id

    def state(self, name: str) -> str:
        async def look() -> str:
            try:
                self._grants[name].check()
            except quorate.GrantLost:
                return "lost"
            return "held"

        return self._wait(look())

    def release(self, name: str) -> str:
        lost = self.state(name) == "lost"

        async def perform() -> str:
            return _ended(await self._grants[name].release(), lost)

        return self._wait(perform())

    def close(self) -> None:
        for name in self._grants:
            self.release(name)
        self._loop.call_soon_threadsafe(self._loop.stop)


def rust_program() -> Path:
    """The example `actor` of the client for Rust, beside the daemon."""
    named = os.environ.get("QUORATE_ACTOR")
    return Path(named) if named else Path(binary()).parent / "examples" / "actor"


class Rust:
    """The client for Rust, in a process that is told by lines."""

    def __init__(self, servers: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            [rust_program(), *servers], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._answers: dict[int, str] = {}
        self._grants: dict[str, tuple[int, str]] = {}
        self._news = threading.Condition()
        self._orders = 0
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            number, _, outcome = line.strip().partition(" ")
            with self._news:
                self._answers[int(number)] = outcome
                self._news.notify_all()

    def _ask(self, order: str) -> tuple[int, str]:
        with self._news:
            self._orders += 1
            number = self._orders
            assert self._process.stdin is not None
            self._process.stdin.write(f"{number} {order}\n")
            self._process.stdin.flush()
            assert self._news.wait_for(lambda: number in self._answers, timeout=120), order
            return number, self._answers.pop(number)

    def acquire(self, name: str, pool: str, units: int, within: float | None) -> str:
        order = f"try {pool} {units}"
        if within is not None:
            order = f"acquire {pool} {units} {int(within * 1000)}"
        number, outcome = self._ask(order)
        outcome, _, claim = outcome.partition(" ")
        if outcome == "granted":
            self._grants[name] = (number, claim)
        return outcome

    def id(self, name: str) -> str:
        return self._grants[name][1]

    def state(self, name: str) -> str:
        return self._ask(f"state {self._grants[name][0]}")[1]

    def release(self, name: str) -> str:
        return self._ask(f"release {self._grants[name][0]}")[1]

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


class Curl:
    """docs/http.md by curl: four calls, and a deadline that is counted from before each."""

    def __init__(self, servers: Sequence[str]) -> None:
        self._servers = list(servers)
        self._paths: dict[str, str] = {}
        self._deadlines: dict[str, float] = {}
        self._ends: dict[str, threading.Event] = {}

    def _curl(self, method: str, path: str, body: Any, most: float) -> tuple[int, Any]:
        """The answer of the node that is asked now; 0 if there was none, and then it is another's
        turn."""
        server = self._servers[0]
        words = ["curl", "--silent", "--max-time", f"{most:.3f}", "--request", method]
        words += ["--write-out", "\n%{http_code}", f"http://{server}{path}"]
        if body is not None:
            words += ["--header", "content-type: application/json", "--data", json.dumps(body)]
        said = subprocess.run(words, capture_output=True, text=True).stdout
        text, _, status = said.rpartition("\n")
        code = int(status or 0)
        if code == 0 or code >= 500:
            if self._servers[0] == server:
                self._servers.append(self._servers.pop(0))
            return 0, {}
        return code, json.loads(text or "{}")

    def acquire(self, name: str, pool: str, units: int, within: float | None) -> str:
        path = f"/v1/pools/{pool}/claims/{os.urandom(16).hex()}"
        give_up = time.monotonic() + (0.5 if within is None else within)
        met, failures = False, 0
        while (left := give_up - time.monotonic()) > 0:
            sent, wait = time.monotonic(), min(left, 10.0)
            query = f"{path}?wait={int(wait * 1000)}ms"
            status, answer = self._curl("PUT", query, {"units": units}, wait + 2)
            met = met or status > 0
            failures = 0 if status else failures + 1
            if status == 200 and answer["state"] == "granted":
                self._paths[name] = path
                return self._hold(name, sent, answer)
            if answer.get("type") in ("impossible", "unknown-pool"):
                return {"impossible": "too-large"}.get(answer["type"], "unknown-pool")
            if not met and failures > 2 * len(self._servers):
                return "unreachable"
            if status == 0:
                time.sleep(0.02)
        self._repeat("DELETE", path)
        return "timeout"

    def _hold(self, name: str, sent: float, answer: Any) -> str:
        self._deadlines[name] = sent + answer["expires_in_ms"] / 1000
        self._ends[name] = threading.Event()
        words = (name, self._paths[name], answer)
        threading.Thread(target=self._renew, args=words, daemon=True).start()
        return "granted"

    def _renew(self, name: str, path: str, answer: Any) -> None:
        lease = answer["expires_in_ms"] / 1000
        shown = [{"unit": unit["unit"], "fence": unit["fence"]} for unit in answer["units"]]
        pause = lease / 3
        while not self._ends[name].wait(pause) and self.state(name) == "held":
            sent = time.monotonic()
            status, answer = self._curl("POST", f"{path}/renew", {"units": shown}, lease / 4)
            if status == 200 and answer["state"] == "granted" and self.state(name) == "held":
                self._deadlines[name] = sent + answer["expires_in_ms"] / 1000
            elif status in (409, 410):
                self._deadlines[name] = 0.0
            pause = lease / 3 if status else 0.02

    def _repeat(self, method: str, path: str) -> int:
        for _ in range(2 * len(self._servers)):
            status, _ = self._curl(method, path, None, 2)
            if status:
                return status
        return 0

    def id(self, name: str) -> str:
        return self._paths[name].rpartition("/")[2]

    def state(self, name: str) -> str:
        return "held" if time.monotonic() < self._deadlines[name] else "lost"

    def release(self, name: str) -> str:
        lost = self.state(name) == "lost"
        self._ends[name].set()
        self._deadlines[name] = 0.0
        return _ended(self._repeat("DELETE", self._paths[name]) > 0, lost)

    def close(self) -> None:
        for name, over in self._ends.items():
            if not over.is_set():
                self.release(name)


ACTORS: dict[str, Callable[[Sequence[str]], Actor]] = {
    "threads": Threads,
    "asyncio": Tasks,
    "rust": Rust,
    "curl": Curl,
}
