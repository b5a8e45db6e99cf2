"""A real cluster for the tests: `quorate dev`, of $QUORATE_BIN or built in this repository."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

POOLS = """
[[pools]]
name = "p"
units = 4
lease = "20s"
[[pools]]
name = "short"
units = 2
lease = "1s"
[[pools]]
name = "table"
units = 2
protocol = "table"
lease = "3s"
[[pools]]
name = "gpus"
units = [
  { name = "a", labels = { gpu = "a100" } },
  { name = "h", labels = { gpu = "h100" } },
  { name = "n", labels = { kind = "nic" } },
]
"""


def binary() -> str:
    named = os.environ.get("QUORATE_BIN")
    if named:
        return named
    target = Path(__file__).resolve().parents[3] / "target"
    for profile in ("debug", "release"):
        if (target / profile / "quorate").exists():
            return str(target / profile / "quorate")
    found = shutil.which("quorate")
    if found is None:
        pytest.fail("no quorate: `cargo build -p quorate`, or say $QUORATE_BIN")
    return found


class Cluster:
    """Three nodes in a process."""

    def __init__(self, folder: Path, text: str = POOLS) -> None:
        pools = folder / "pools.toml"
        pools.write_text(text)
        command = [binary(), "dev", "--port", "0", "--pools", str(pools)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.servers: list[str] = []
        while len(self.servers) < 3:
            line = self._process.stdout.readline()
            assert line, "it ended"
            if "http://" in line:
                self.servers.append(line.split("http://")[1].strip())

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            f"http://{self.servers[0]}/v1/pools/{path}", data=data, method=method
        )
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)

    def held(self, pool: str) -> int:
        return int(self.ask("GET", pool)["held"])

    def waiting(self, pool: str) -> list[Any]:
        return list(self.ask("GET", f"{pool}/queue")["waiting"])

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    yield cluster
    cluster.stop()


def until(good: Callable[[], bool]) -> None:
    """For as long as any sane machine needs."""
    give_up = time.monotonic() + 60
    while not good():
        assert time.monotonic() < give_up
        time.sleep(0.02)
