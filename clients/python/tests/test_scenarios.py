"""clients/scenarios.json: the same story with every client, through proxies that spoil it.

All of them are played at once, each in pools of its own; the tests below only ask how they ended.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from actors import ACTORS, Actor, Threads, rust_program
from conftest import Cluster, until
from proxy import Proxy

FILE = Path(__file__).resolve().parents[2] / "scenarios.json"
AT_ONCE = 12


def book() -> dict[str, Any]:
    return dict(json.loads(FILE.read_text()))


def toml(pools: list[dict[str, Any]]) -> str:
    """A pool of each kind for everybody who plays."""
    text = ""
    for pool in pools:
        pattern = f'pattern = "{pool["name"]}-*"\n'
        rest = [f"{field} = {json.dumps(value)}\n" for field, value in pool.items()]
        text += "[[pools]]\n" + pattern + "".join(rest[1:])
    return text


class Play:
    """One scenario, with one actor."""

    def __init__(self, cluster: Cluster, kind: str, number: int, scenario: dict[str, Any]) -> None:
        self.cluster, self.scenario = cluster, scenario
        self.kind, self.run = kind, f"{kind}-{number}"
        self.ways = [Proxy(server) for server in cluster.servers]
        self.other = Threads(cluster.servers)
        self.actor: Actor | None = None
        self.begun: dict[str, Future[str]] = {}
        self.aside = ThreadPoolExecutor(4)

    def perform(self) -> None:
        try:
            for number, step in enumerate(self.scenario["steps"]):
                getattr(self, f"do_{step['do']}")(step, f"step {number + 1}: {json.dumps(step)}")
        finally:
            for way in self.ways:
                way.heal()
            if self.actor is not None:
                self.actor.close()
            self.other.close()
            self.aside.shutdown()

    def client(self) -> Actor:
        if self.actor is None:
            self.actor = ACTORS[self.kind]([way.address for way in self.ways])
        return self.actor

    def pool(self, step: dict[str, Any]) -> str:
        return f"{step['pool']}-{self.run}"

    def do_acquire(self, step: dict[str, Any], said: str) -> None:
        self.do_start(step, said)
        self.do_finish(step, said)

    def do_start(self, step: dict[str, Any], _said: str) -> None:
        within = None if step.get("try") else step["within"]
        words = (step["as"], self.pool(step), step["units"], within)
        self.begun[step["as"]] = self.aside.submit(self.client().acquire, *words)

    def do_finish(self, step: dict[str, Any], said: str) -> None:
        outcome = self.begun.pop(step["as"]).result(timeout=120)
        assert outcome == step["outcome"], f"{said}: {outcome}"

    def do_release(self, step: dict[str, Any], said: str) -> None:
        outcome = self.client().release(step["as"])
        assert outcome == step["outcome"], f"{said}: {outcome}"

    def do_state(self, step: dict[str, Any], said: str) -> None:
        state = self.client().state(step["as"])
        assert state == step["is"], f"{said}: {state}"

    def do_until(self, step: dict[str, Any], _said: str) -> None:
        until(lambda: self.client().state(step["as"]) == step["is"])

    def do_other(self, step: dict[str, Any], said: str) -> None:
        if "release" in step:
            outcome, wanted = self.other.release(step["release"]), "released"
        else:
            words = (step["acquire"], self.pool(step), step["units"], 60)
            outcome, wanted = self.other.acquire(*words), "granted"
        assert outcome == wanted, f"{said}: {outcome}"

    def do_pass(self, step: dict[str, Any], _said: str) -> None:
        time.sleep(step["seconds"])

    def do_revoke(self, step: dict[str, Any], _said: str) -> None:
        claim = self.client().id(step["as"])
        path = f"{self.pool(step)}/claims/{claim}/revoke"
        self.cluster.ask("POST", path, {"reason": "the scenario wants it"})

    def do_books(self, step: dict[str, Any], said: str) -> None:
        give_up, wanted = time.monotonic() + 60, (step["held"], step["waiting"])
        while True:
            pool = self.pool(step)
            shown = (self.cluster.held(pool), len(self.cluster.waiting(pool)))
            if shown == wanted:
                return
            assert time.monotonic() < give_up, f"{said}: {shown}"
            time.sleep(0.02)

    def do_fault(self, step: dict[str, Any], _said: str) -> None:
        # Whoever makes a connection for each request has used the last one.
        ways = [max(self.ways, key=lambda way: way.last)] if "ways" in step else self.ways
        for way in ways:
            if step["kind"] == "delay":
                way.delay(step["ms"] / 1000)
            else:
                getattr(way, step["kind"])()


Plays = dict[tuple[str, str], "Future[None]"]


@pytest.fixture(scope="module")
def plays(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plays]:
    cluster = Cluster(tmp_path_factory.mktemp("scenarios"), toml(book()["pools"]))
    begun: Plays = {}
    with ThreadPoolExecutor(AT_ONCE) as stage:
        # The long ones of all actors first.
        scenarios = sorted(enumerate(book()["scenarios"]), key=lambda it: -len(it[1]["steps"]))
        for number, scenario in scenarios:
            for kind in KINDS:
                play = Play(cluster, kind, number, scenario)
                begun[kind, scenario["name"]] = stage.submit(play.perform)
        yield begun
    cluster.stop()


def kinds() -> list[str]:
    """Those that are on this machine. Whoever names the program for Rust wants it to be there."""
    missing = set()
    if "QUORATE_ACTOR" not in os.environ and not rust_program().exists():
        missing.add("rust")
    if shutil.which("curl") is None:
        missing.add("curl")
    return [kind for kind in ACTORS if kind not in missing]


KINDS = kinds()


@pytest.mark.parametrize("name", [scenario["name"] for scenario in book()["scenarios"]])
@pytest.mark.parametrize("kind", ACTORS)
def test_scenario(plays: Plays, kind: str, name: str) -> None:
    if kind not in KINDS:
        pytest.skip("cargo build -p quorate-client --examples, and curl")
    plays[kind, name].result(timeout=300)
