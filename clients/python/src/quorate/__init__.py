"""Share k units of anything among n machines.

>>> import quorate
>>> pool = quorate.connect().pool("gpus")          # doctest: +SKIP
>>> with pool.acquire(2, timeout=600) as grant:    # doctest: +SKIP
...     train(grant.units)
"""

from __future__ import annotations

import ssl
from collections.abc import Iterable

from . import aio
from .core import Line, Unit
from .errors import (
    GrantLost,
    QuorateError,
    Refused,
    Timeout,
    TooLarge,
    UnknownPool,
    Unreachable,
)
from .sync import Client, Grant, Pool

__version__ = "0.1.0"
__all__ = [
    "Client",
    "Grant",
    "GrantLost",
    "Line",
    "Pool",
    "QuorateError",
    "Refused",
    "Timeout",
    "TooLarge",
    "Unit",
    "UnknownPool",
    "Unreachable",
    "aio",
    "connect",
]


def connect(
    servers: str | Iterable[str] | None = None,
    *,
    name: str | None = None,
    token: str | None = None,
    tls: ssl.SSLContext | None = None,
) -> Client:
    """A client of these nodes; without them $QUORATE_SERVER, or the local `quorate dev`."""
    return Client(servers, name=name, token=token, tls=tls)
