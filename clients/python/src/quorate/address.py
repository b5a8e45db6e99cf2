"""Which cluster."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

LOCAL = "127.0.0.1:7420"


@dataclass(frozen=True)
class Server:
    """A node."""

    host: str
    port: int
    tls: bool

    @property
    def authority(self) -> str:
        """As in the header `Host`."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def parse(servers: str | Iterable[str] | None) -> list[Server]:
    """`HOST:PORT` or URLs, in a list or with commas; else $QUORATE_SERVER, or the dev node."""
    if servers is None:
        servers = os.environ.get("QUORATE_SERVER") or LOCAL
    names = servers.split(",") if isinstance(servers, str) else list(servers)
    found = [_one(name.strip()) for name in names if name.strip()]
    if not found:
        raise ValueError("name at least one server, as HOST:PORT")
    return found


def _one(name: str) -> Server:
    parts = urlsplit(name if "//" in name else f"http://{name}")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{name!r} is no server: write HOST:PORT or http://HOST:PORT")
    return Server(parts.hostname, parts.port or 7420, parts.scheme == "https")


def token() -> str | None:
    """The token of the environment."""
    return os.environ.get("QUORATE_TOKEN") or None


def who() -> str:
    """Whom others see waiting or holding."""
    user = os.environ.get("USER") or os.environ.get("LOGNAME")
    host = socket.gethostname()
    process = f"{os.path.basename(sys.argv[0] or 'python')} {os.getpid()}"
    return f"{user}@{host} ({process})" if user else f"{host} ({process})"
