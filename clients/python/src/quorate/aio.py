"""The client for asyncio.

On a loss the task that entered `async with` is cancelled, and `GrantLost` is raised where the
block ends.
"""

from __future__ import annotations

import asyncio
import functools
import json
import ssl
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

from . import address
from .core import Claim, Guide, Line, Phase, Request, Unit, clock
from .errors import GrantLost, QuorateError
from .sync import lines

P = ParamSpec("P")
T = TypeVar("T")
_HEAD_MAX = 64 * 1024
_BODY_MAX = 16 * 1024 * 1024


class _Wire:
    """Connections of one claim, kept open: one per node."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._open: dict[int, tuple[asyncio.StreamReader, asyncio.StreamWriter]] = {}

    async def send(self, request: Request) -> tuple[int, dict[str, Any]]:
        async with asyncio.timeout(request.timeout) if _HAS_TIMEOUT else _Timeout(request.timeout):
            kept = request.server in self._open
            try:
                return await self._once(request)
            except (OSError, EOFError, ValueError):
                self.drop(request.server)
                if not kept:
                    raise
            except BaseException:
                self.drop(request.server)
                raise
            # A node may hang up on whoever has said nothing for long; requests can be repeated.
            try:
                return await self._once(request)
            except BaseException:
                self.drop(request.server)
                raise

    async def _once(self, request: Request) -> tuple[int, dict[str, Any]]:
        server = self._client.servers[request.server]
        if request.server not in self._open:
            tls = (self._client.tls or ssl.create_default_context()) if server.tls else None
            self._open[request.server] = await asyncio.open_connection(
                server.host, server.port, ssl=tls, limit=_HEAD_MAX
            )
        reader, writer = self._open[request.server]
        body = request.body or b""
        headers = {"host": server.authority, **self._client.headers}
        headers["content-length"] = str(len(body))
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        writer.write(f"{request.method} {request.path} HTTP/1.1\r\n{head}\r\n".encode() + body)
        await writer.drain()
        status, keep, text = await _answer(reader)
        if not keep:
            self.drop(request.server)
        try:
            parsed = json.loads(text)
        except ValueError:
            parsed = {"detail": text.decode(errors="replace")[:500]}
        return status, parsed if isinstance(parsed, dict) else {}

    def drop(self, server: int) -> None:
        kept = self._open.pop(server, None)
        if kept is not None:
            kept[1].close()

    def close(self) -> None:
        for server in list(self._open):
            self.drop(server)


_HAS_TIMEOUT = hasattr(asyncio, "timeout")


class _Timeout:
    """`asyncio.timeout` for Python 3.10."""

    def __init__(self, seconds: float) -> None:
        self._seconds, self._over = seconds, False

    async def __aenter__(self) -> None:
        task = asyncio.current_task()
        assert task is not None

        def end() -> None:
            self._over = True
            task.cancel()

        self._handle = asyncio.get_running_loop().call_later(self._seconds, end)

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._handle.cancel()
        if self._over and kind is asyncio.CancelledError:
            raise TimeoutError


async def _answer(reader: asyncio.StreamReader) -> tuple[int, bool, bytes]:
    """Status, whether the connection stays open, and the body."""
    first, *rest = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    version, code, *_ = first.split(" ")
    fields = dict(line.lower().split(":", 1) for line in rest if ":" in line)
    keep = version == "HTTP/1.1" and fields.get("connection", "").strip() != "close"
    if fields.get("transfer-encoding", "").strip() == "chunked":
        body = b""
        while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
            body += await reader.readexactly(size)
            await reader.readexactly(2)
            if len(body) > _BODY_MAX:
                raise ValueError("the answer is too long")
        await reader.readuntil(b"\r\n")
        return int(code), keep, body
    length = int(fields.get("content-length", "0"))
    if length > _BODY_MAX:
        raise ValueError("the answer is too long")
    return int(code), keep, await reader.readexactly(length)


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
    ) -> Acquiring:
        """For `async with` or `await`: waits until all of the units are granted."""
        return Acquiring(self._client, self.name, lines(units, where), timeout, reason, False)

    async def try_acquire(
        self,
        units: int | Sequence[Line] = 1,
        *,
        where: Mapping[str, str] | None = None,
        reason: str = "",
    ) -> Grant | None:
        """The units if they are free now, or nothing."""
        want = lines(units, where)
        try:
            return await Acquiring(self._client, self.name, want, None, reason, True)
        except TimeoutError:
            return None

    def limit(
        self,
        units: int | Sequence[Line] = 1,
        *,
        where: Mapping[str, str] | None = None,
        timeout: float | None = None,
        reason: str = "",
    ) -> Callable[[Callable[P, Awaitable[T]]], Callable[P, Awaitable[T]]]:
        """A decorator: the coroutine runs while it has the units."""

        def around(function: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
            why = reason or function.__qualname__

            @functools.wraps(function)
            async def limited(*args: P.args, **kwargs: P.kwargs) -> T:
                async with self.acquire(units, where=where, timeout=timeout, reason=why):
                    return await function(*args, **kwargs)

            return limited

        return around


class Acquiring:
    """A grant to be."""

    def __init__(
        self,
        client: Client,
        pool: str,
        want: int | Sequence[Line],
        timeout: float | None,
        reason: str,
        only_try: bool,
    ) -> None:
        self._asked = (client, pool, want, timeout, reason, only_try)
        self._grant: Grant | None = None

    def __await__(self) -> Generator[Any, None, Grant]:
        return self._acquire().__await__()

    async def _acquire(self) -> Grant:
        client, pool, want, timeout, reason, only_try = self._asked
        wire = _Wire(client)
        claim = Claim(
            pool,
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
            await _run(claim, wire)
        except BaseException:
            claim.release(clock())
            await asyncio.shield(_run(claim, wire))
            wire.close()
            raise
        if claim.phase is not Phase.HELD:
            wire.close()
            error = claim.error or QuorateError("it ended before it was granted")
            if isinstance(error, TimeoutError) and not claim.settled:
                error.args = (f"{error}; no node acknowledged that claim {claim.id} is cancelled",)
            raise error
        return Grant(claim, wire)

    async def __aenter__(self) -> Grant:
        self._grant = await self._acquire()
        self._grant._guard()
        return self._grant

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        grant = self._grant
        assert grant is not None
        lost = grant.lost.is_set()
        ours = grant._unguard()
        await grant.release()
        if lost and (kind is None or (ours and kind is asyncio.CancelledError)):
            raise grant._claim.error or GrantLost("lost: the lease ended without a renewal")


async def _run(claim: Claim, wire: _Wire) -> None:
    """Until it is granted or over."""
    while claim.phase in (Phase.WAITING, Phase.ENDING):
        await _step(claim, wire)


async def _step(claim: Claim, wire: _Wire) -> None:
    request = claim.poll(clock())
    if request is None:
        due = claim.due()
        if due is not None:
            await asyncio.sleep(max(0.0, min(due - clock(), 1.0)))
        return
    try:
        status, body = await wire.send(request)
    except (OSError, EOFError, ValueError) as error:
        claim.failed(request, clock(), str(error) or type(error).__name__)
    else:
        claim.answered(request, clock(), status, body)


class Grant:
    """Units that may be used: until `deadline`, which moves on while it is renewed."""

    def __init__(self, claim: Claim, wire: _Wire) -> None:
        self._claim, self._wire = claim, wire
        self.lost = asyncio.Event()
        """Set when the units may be somebody else's."""
        self._user: asyncio.Task[Any] | None = None
        self._stopped_user = False
        self._task = asyncio.create_task(self._renew(), name=f"quorate {claim.pool}")

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
        if self.lost.is_set() or (
            self._claim.phase is Phase.HELD and clock() >= self._claim.deadline
        ):
            raise self._claim.error or GrantLost("lost: the lease ended without a renewal")

    async def release(self) -> bool:
        """Gives the units back; says whether a node acknowledged it. Repeating is harmless."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self._claim.release(clock())
        await _run(self._claim, self._wire)
        self._wire.close()
        return self._claim.settled

    def _guard(self) -> None:
        self._user = asyncio.current_task()

    def _unguard(self) -> bool:
        self._user = None
        if self._stopped_user and (task := asyncio.current_task()) and hasattr(task, "uncancel"):
            task.uncancel()
        return self._stopped_user

    async def _renew(self) -> None:
        while self._claim.phase is Phase.HELD:
            await _step(self._claim, self._wire)
        self.lost.set()
        if self._user is not None:
            self._stopped_user = True
            self._user.cancel()
