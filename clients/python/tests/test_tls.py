"""Certificates and tokens, against a real node that has them."""

from __future__ import annotations

import asyncio
import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import binary, until

import quorate
from quorate import aio

FILE = """
cluster = "c"
epoch = 1
node = "a"
data_dir = "data"
listen = {{ clients = "127.0.0.1:{clients}", peers = "127.0.0.1:{peers}" }}
tls = {{ ca = "ca.crt", cert = "node-a.crt", key = "node-a.key" }}

[[members]]
name = "a"
peers = "127.0.0.1:{peers}"

[[pools]]
name = "p"
units = 2
lease = "3s"

[[certificates]]
name = "ann"
may = ["see", "claim"]
pools = ["*"]

"""


class Node:
    """One node, with an authority of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.run("cert new-ca c")
        self.run("cert node a --address 127.0.0.1")
        self.run("cert client ann")
        self.run("cert client bob")
        self.run("cert new-ca c --dir other")
        entry = self.run("token new ci --may see,claim --secret-file ci.token")
        self.token = (folder / "ci.token").read_text().strip()
        with socket.socket() as one, socket.socket() as other:
            one.bind(("127.0.0.1", 0))
            other.bind(("127.0.0.1", 0))
            clients, peers = one.getsockname()[1], other.getsockname()[1]
        file = FILE.format(clients=clients, peers=peers)
        (folder / "a.toml").write_text(file + entry)
        self.run("init --config a.toml")
        command = [binary(), "serve", "--config", "a.toml"]
        self._process = subprocess.Popen(command, cwd=folder, stderr=subprocess.DEVNULL)
        self.server = f"https://127.0.0.1:{clients}"
        until(lambda: self._listens(clients))

    def run(self, words: str) -> str:
        command = [binary(), *words.split()]
        return subprocess.run(
            command, cwd=self.folder, check=True, capture_output=True, text=True
        ).stdout

    def _listens(self, port: int) -> bool:
        assert self._process.poll() is None, "it ended"
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    def trust(self, ca: str = "ca.crt", shown: str | None = None) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.folder / ca)
        if shown:
            context.load_cert_chain(self.folder / f"{shown}.crt", self.folder / f"{shown}.key")
        return context

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    node = Node(tmp_path_factory.mktemp("node"))
    yield node
    node.stop()


def test_a_token_over_tls(node: Node) -> None:
    client = quorate.connect([node.server], token=node.token, tls=node.trust())
    with client.pool("p").acquire(2, timeout=60) as grant:
        grant.check()
        assert len(grant.units) == 2


def test_a_certificate_instead_of_a_token(node: Node) -> None:
    client = quorate.connect([node.server], tls=node.trust(shown="client-ann"))
    with client.pool("p").acquire(1, timeout=60) as grant:
        # Renewed, on the same credentials.
        first = grant.remaining
        until(lambda: grant.remaining < first)
        until(lambda: grant.remaining >= first - 0.5)
        grant.check()


def test_both_with_asyncio(node: Node) -> None:
    async def work(token: str | None, tls: ssl.SSLContext) -> int:
        client = aio.Client([node.server], token=token, tls=tls)
        async with client.pool("p").acquire(1, timeout=60) as grant:
            return len(grant.units)

    assert asyncio.run(work(node.token, node.trust())) == 1
    assert asyncio.run(work(None, node.trust(shown="client-ann"))) == 1


@pytest.mark.parametrize("shown", [None, "client-bob", "node-a"])
def test_who_is_not_known_is_told_so(node: Node, shown: str | None) -> None:
    client = quorate.connect([node.server], tls=node.trust(shown=shown))
    with pytest.raises(quorate.QuorateError, match="token, or a certificate"):
        client.pool("p").acquire(1, timeout=5)


def test_a_node_of_another_authority_is_not_trusted(node: Node) -> None:
    client = quorate.connect([node.server], token=node.token, tls=node.trust("other/ca.crt"))
    with pytest.raises(quorate.QuorateError, match=r"(?i)certificate verify failed"):
        client.pool("p").acquire(1, timeout=2)
