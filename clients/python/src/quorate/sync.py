"""The client for programs with threads.

A grant is renewed by a thread of its own until it is released or lost. Nothing here kills a
program that goes on after a loss: ask `grant.check()` before what must not happen twice, or let
`quorate run` supervise a process.
"""

from __future__ import annotations

import functools
import http.client
import json
import os
import ssl
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

from . import address
from .core import Claim, Guide, Line, Phase, Request, Unit, clock
from .errors import GrantLost, QuorateError

P = ParamSpec("P")
T = TypeVar("T")


def lines(units: int | Sequence[Line], where: Mapping[str, str] | None) -> int | Sequence[Line]:
    """What is wanted, as the core has it."""
    if where is None:
        return units
    if not isinstance(units, int):
        raise TypeError("say labels in each Line, or in where, not in both")
    return [Line(units, where)]


class _Wire:
    """Connections of one thread, kept open: one per node."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._open: dict[int, http.client.HTTPConnection] = {}
        self._process = os.getpid()

    def send(self, request: Request) -> tuple[int, dict[str, Any]]:
        if self._process != os.getpid():
            # The parent goes on using those.
            self._open, self._process = {}, os.getpid()
        kept = request.server in self._open
        try:
            return self._once(request)
        except (http.client.HTTPException, ConnectionError):
            self.drop(request.server)
            if not kept:
                raise
        except OSError:
            self.drop(request.server)
            raise
        # A node may hang up on whoever has said nothing for long; requests can be repeated.
        try:
            return self._once(request)
        except (http.client.HTTPException, OSError):
            self.drop(request.server)
            raise

    def _once(self, request: Request) -> tuple[int, dict[str, Any]]:
        server = self._client.servers[request.server]
        connection = self._open.get(request.server)
        if connection is None:
            if server.tls:
                connection = http.client.HTTPSConnection(
                    server.host, server.port, timeout=request.timeout, context=self._client.tls
                )
            else:
                connection = http.client.HTTPConnection(
                    server.host, server.port, timeout=request.timeout
                )
            self._open[request.server] = connection
        connection.timeout = request.timeout
        if connection.sock is not None:
            connection.sock.settimeout(request.timeout)
        connection.request(
            request.method, request.path, body=request.body, headers=self._client.headers
        )
        answer = connection.getresponse()
        text = answer.read()
        try:
            body = json.loads(text)
        except ValueError:
            body = {"detail": text.decode(errors="replace")[:500]}
        return answer.status, body if isinstance(body, dict) else {}

    def drop(self, server: int) -> None:
        connection = self._open.pop(server, None)
        if connection is not None:
            connection.close()


def _step(claim: Claim, wire: _Wire, request: Request) -> None:
    try:
        status, body = wire.send(request)
    except (http.client.HTTPException, OSError) as error:
        claim.failed(request, clock(), str(error) or type(error).__name__)
    else:
        claim.answered(request, clock(), status, body)


class Client:
    """A cluster."""

    def __init__(
        self,
        servers: str | Iterable[str] | None = None,
        *,
        name: str | None = None,
        token: str | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.servers = address.parse(servers)
        self.guide = Guide()
        self.name = address.who() if name is None else name
        self.tls = tls
        self.headers = {"content-type": "application/json"}
        token = token or address.token()
        if token:
            self.headers["authorization"] = f"Bearer {token}"

    def pool(self, name: str) -> Pool:
        """A pool of the cluster."""
        return Pool(self, name)


class Pool:
    """Units that are shared."""

    def __init__(self, client: Client, name: str) -> None:
        self._client = client
        self.name = name

    def acquire(
        self,
        units: int | Sequence[Line] = 1,
        *,
        where: Mapping[str, str] | None = None,
        timeout: float | None = None,
        reason: str = "",
    ) -> Grant:
        """Waits until all of the units are granted; for `with`.

        Raises `Timeout` after `timeout` seconds, and cancels the claim if it is interrupted.
        """
        return self._acquire(lines(units, where), timeout, reason, only_try=False)

    def try_acquire(
        self,
        units: int | Sequence[Line] = 1,
        *,
        where: Mapping[str, str] | None = None,
        reason: str = "",
    ) -> Grant | None:
        """The units if they are free now, or nothing."""
        try:
            return self._acquire(lines(units, where), None, reason, only_try=True)
        except TimeoutError:
            return None

    def limit(
        self,
        units: int | Sequence[Line] = 1,
        *,
        where: Mapping[str, str] | None = None,
        timeout: float | None = None,
        reason: str = "",
    ) -> Callable[[Callable[P, T]], Callable[P, T]]:
        """A decorator: the function runs while it has the units."""

        def around(function: Callable[P, T]) -> Callable[P, T]:
            why = reason or function.__qualname__

            @functools.wraps(function)
            def limited(*args: P.args, **kwargs: P.kwargs) -> T:
                with self.acquire(units, where=where, timeout=timeout, reason=why):
                    return function(*args, **kwargs)

            return limited

        return around

    def _acquire(
        self, want: int | Sequence[Line], timeout: float | None, reason: str, *, only_try: bool
    ) -> Grant:
        client, wire = self._client, _Wire(self._client)
        claim = Claim(
            self.name,
            want,
            servers=len(client.servers),
            now=clock(),
            client=client.name,
            reason=reason,
            timeout=timeout,
            only_try=only_try,
            guide=client.guide,
        )
        try:
            _run(claim, wire)
        except BaseException:
            claim.release(clock())
            _run(claim, wire)
            raise
        if claim.phase is not Phase.HELD:
            error = claim.error or QuorateError("it ended before it was granted")
            if isinstance(error, TimeoutError) and not claim.settled:
                error.args = (f"{error}; no node acknowledged that claim {claim.id} is cancelled",)
            raise error
        return Grant(claim, wire)


def _run(claim: Claim, wire: _Wire) -> None:
    """Until it is granted or over."""
    while claim.phase in (Phase.WAITING, Phase.ENDING):
        request = claim.poll(clock())
        if request is not None:
            _step(claim, wire, request)
        elif (due := claim.due()) is not None:
            time.sleep(max(0.0, min(due - clock(), 1.0)))


class Lost(threading.Event):
    """Set when the units may be somebody else's: also if nobody had time to set it."""

    def __init__(self, claim: Claim) -> None:
        super().__init__()
        self._claim = claim

    def is_set(self) -> bool:
        ended = self._claim.phase is Phase.HELD and clock() >= self._claim.deadline
        return super().is_set() or ended


_alive: weakref.WeakSet[Grant] = weakref.WeakSet()


class Grant:
    """Units that may be used: until `deadline`, which moves on while it is renewed."""

    def __init__(self, claim: Claim, wire: _Wire) -> None:
        self._claim, self._wire = claim, wire
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._left = False
        self.lost = Lost(claim)
        """Set when the units may be somebody else's."""
        self._process = os.getpid()
        name = f"quorate {claim.pool}"
        self._thread = threading.Thread(target=self._renew, name=name, daemon=True)
        _alive.add(self)
        self._thread.start()

    @property
    def id(self) -> str:
        """The claim's name, for `quorate why` and the like."""
        return self._claim.id

    @property
    def units(self) -> list[str]:
        """The units by name, or by number where they have none."""
        return [unit.name for unit in self._claim.units]

    @property
    def fences(self) -> dict[str, int]:
        """A fence per unit: what is protected refuses smaller ones than the largest it has seen."""
        return {unit.name: unit.fence for unit in self._claim.units}

    @property
    def labels(self) -> dict[str, dict[str, str]]:
        """What is known of each unit."""
        return {unit.name: dict(unit.labels) for unit in self._claim.units}

    @property
    def details(self) -> tuple[Unit, ...]:
        """All of it."""
        return self._claim.units

    @property
    def remaining(self) -> float:
        """For how many seconds the units may be used if nothing more is heard."""
        return 0.0 if self.lost.is_set() else max(0.0, self._claim.deadline - clock())

    def check(self) -> None:
        """Raises `GrantLost` if the units may be somebody else's."""
        if self._process != os.getpid():
            raise GrantLost("a grant belongs to the process that claimed it")
        if self.lost.is_set():
            raise self._claim.error or GrantLost("lost: the lease ended without a renewal")

    def release(self) -> bool:
        """Gives the units back; says whether a node acknowledged it. Repeating is harmless."""
        if self._process != os.getpid():
            return False
        with self._lock:
            self._left = True
            self._claim.release(clock())
        self._wake.set()
        self._thread.join()
        self._claim.release(clock())
        _run(self._claim, self._wire)
        _alive.discard(self)
        return self._claim.settled

    def __enter__(self) -> Grant:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process != os.getpid():
            return
        lost = self.lost.is_set()
        self.release()
        if lost and kind is None:
            raise self._claim.error or GrantLost("lost: the lease ended without a renewal")

    def _renew(self) -> None:
        while True:
            with self._lock:
                request, due = self._claim.poll(clock()), self._claim.due()
                if self._claim.phase is Phase.OVER:
                    if not self._left:
                        self.lost.set()
                    return
            if request is not None:
                self._perform(request)
            elif due is not None:
                self._wake.wait(max(0.0, min(due - clock(), 1.0)))
                self._wake.clear()

    def _perform(self, request: Request) -> None:
        try:
            status, body = self._wire.send(request)
        except (http.client.HTTPException, OSError) as error:
            with self._lock:
                self._claim.failed(request, clock(), str(error) or type(error).__name__)
        else:
            with self._lock:
                self._claim.answered(request, clock(), status, body)


def _forked() -> None:
    """A child has no grants: its parent renews and releases them."""
    for grant in list(_alive):
        grant.lost = Lost(grant._claim)
        grant.lost.set()
    _alive.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
