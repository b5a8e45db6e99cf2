"""A claim from the first request to the last, without sockets, threads or a clock of its own.

A driver asks :meth:`Claim.poll` what to send, says what came of it (:meth:`Claim.answered`,
:meth:`Claim.failed`), and calls again at :meth:`Claim.due` at the latest. Being late costs grants,
not safety: whatever is called first after a deadline finds that it has passed.

* A deadline is a reading of the clock from *before* the request was sent, plus the span in the
  answer to that very request. One that has passed is final.
* A claim keeps its id through every repetition and every node.
* A broken connection ends nothing: the same is asked of the next node.
"""

from __future__ import annotations

import enum
import json
import os
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote

from .errors import GrantLost, QuorateError, Refused, Timeout, TooLarge, UnknownPool, Unreachable

WAIT: Final = 20.0
"""How long one request waits for the grant, in seconds."""
PATIENCE: Final = 5.0
"""How long an answer may take beyond that, and how long a release is repeated."""
SHORTLY: Final = 1.0
"""How long it is told that nothing is used of what was lost."""
POOLS: Final = 4096
"""Of how many pools a client remembers who decides."""
TRIED: Final = 0.5
"""How long somebody waits who does not want to wait: a node passes on what another decides."""


def clock() -> float:
    """Seconds that go on while the machine sleeps, where there is such a clock."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


def new_id() -> str:
    """A name that nobody else uses."""
    return os.urandom(16).hex()


@dataclass(frozen=True)
class Line:
    """So many units that have all of these labels."""

    units: int
    where: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Unit:
    """One unit of a grant."""

    number: int
    name: str
    fence: int
    labels: Mapping[str, str]


@dataclass(frozen=True)
class Request:
    """What to send; `sent` is the clock before it was, and `timeout` how long to wait."""

    server: int
    method: str
    path: str
    body: bytes | None
    timeout: float
    sent: float


class Phase(enum.Enum):
    """Where a claim is."""

    WAITING = "waiting"
    HELD = "held"
    ENDING = "ending"
    OVER = "over"


class Guide:
    """Where claims of a client begin: at the node that decides over their pool, if nodes said
    which that is, and it is known which server of the list it is. A hint: whoever does not answer
    there is asked elsewhere, as anywhere, and forgotten.
    """

    def __init__(self) -> None:
        self._servers: dict[str, int] = {}
        self._decides: dict[str, str] = {}

    def first(self, pool: str, servers: int) -> int:
        """The server to ask first."""
        known = self._servers.get(self._decides.get(pool, ""))
        # Not all clients of a cluster at one node.
        return random.randrange(servers) if known is None else known

    def heard(self, pool: str, server: int, body: Mapping[str, Any]) -> None:
        """A server answered about a claim of the pool."""
        node, decides = body.get("node"), body.get("decides")
        if isinstance(node, str):
            self._servers[node] = server
            if isinstance(decides, str):
                if len(self._decides) >= POOLS:
                    self._decides.clear()
                self._decides[pool] = decides
            elif self._decides.get(pool) != node:
                # Nobody alone decides any more, or it is this one, and random will do.
                self._decides.pop(pool, None)

    def silent(self, server: int) -> None:
        """A server does not answer."""
        for node in [node for node, known in list(self._servers.items()) if known == server]:
            self._servers.pop(node, None)


class Claim:
    """The machine. See the module."""

    def __init__(
        self,
        pool: str,
        want: int | Sequence[Line],
        *,
        servers: int,
        now: float,
        client: str = "",
        reason: str = "",
        timeout: float | None = None,
        only_try: bool = False,
        claim_id: str | None = None,
        guide: Guide | None = None,
    ) -> None:
        self.id = claim_id or new_id()
        self.pool = pool
        self.phase = Phase.WAITING
        self.units: tuple[Unit, ...] = ()
        self.deadline = now
        """Until when the units may be used."""
        self.error: QuorateError | None = None
        """Why it is over, if its client did not end it."""
        self.settled = False
        """Whether a node acknowledged the end."""
        body: dict[str, Any] = {"client": client, "reason": reason}
        if isinstance(want, int):
            body["units"] = want
        else:
            lines = [{"units": line.units, "where": dict(line.where)} for line in want]
            body["lines"] = lines
        self._body = json.dumps(body).encode()
        self._servers = servers
        self._guide = guide or Guide()
        self._server = self._guide.first(pool, servers)
        self._give_up = None if timeout is None else now + timeout
        self._only_try = only_try
        self._lease = 0.0
        self._next = now
        self._flying: Request | None = None
        self._failures = 0
        self._met, self._nobody = False, ""
        self._told = False
        self._forget = now
        self._path = f"/v1/pools/{quote(pool, safe='')}/claims/{self.id}"

    # What the driver asks.

    def due(self) -> float | None:
        """When to call `poll` at the latest; nothing if it is over."""
        if self.phase is Phase.OVER:
            return None
        times = [] if self._flying else [self._next]
        if self.phase is Phase.HELD:
            times.append(self.deadline)
        if self.phase is Phase.WAITING and self._give_up is not None:
            times.append(self._give_up)
        if self.phase is Phase.ENDING:
            times.append(self._forget)
        return min(times) if times else self._next

    def poll(self, now: float) -> Request | None:
        """What to send now, if anything."""
        self._pass(now)
        if self.phase is Phase.OVER or self._flying or now < self._next:
            return None
        self._flying = self._request(now)
        return self._flying

    def answered(self, request: Request, now: float, status: int, body: Mapping[str, Any]) -> None:
        """A node answered a request."""
        if not self._lands(request, now):
            return
        self._met, self._nobody = True, ""
        self._guide.heard(self.pool, request.server, body)
        if self.phase is Phase.WAITING and request.method == "PUT":
            self._claimed(request, now, status, body)
        elif self.phase is Phase.HELD and request.method == "POST":
            self._renewed(request, now, status, body)
        elif self.phase is Phase.ENDING and request.method == "DELETE":
            if status < 500:
                self.phase, self.settled = Phase.OVER, True
            else:
                self._again(now, elsewhere=True)

    def failed(self, request: Request, now: float, why: str) -> None:
        """Nobody answered it, or not in time."""
        self._guide.silent(request.server)
        if self._lands(request, now):
            self._again(now, elsewhere=True)
            self._silence(why)

    def release(self, now: float) -> None:
        """Its client no longer wants it, and uses nothing of it."""
        if self.phase in (Phase.WAITING, Phase.HELD):
            self._end(now)
        elif isinstance(self.error, GrantLost) and not self._told:
            # What was revoked returns when its client says that it has stopped.
            self._end(now)
            self._told, self._forget = True, now + SHORTLY

    # What follows from it.

    def _lands(self, request: Request, now: float) -> bool:
        own = self._flying is request
        if own:
            self._flying = None
        self._pass(now)
        return own and self.phase is not Phase.OVER

    def _pass(self, now: float) -> None:
        if self.phase is Phase.HELD and now >= self.deadline:
            self._lose("the lease ended without a renewal")
        if self.phase is Phase.WAITING and self._give_up is not None and now >= self._give_up:
            who = f": no node answers ({self._nobody})" if self._nobody else ""
            self.error = Timeout(f"the units of {self.pool} were not granted in time{who}")
            self._end(now)
        if self.phase is Phase.ENDING and now >= self._forget:
            self.phase = Phase.OVER

    def _request(self, now: float) -> Request:
        if self.phase is Phase.WAITING:
            left = WAIT if self._give_up is None else min(WAIT, max(0.0, self._give_up - now))
            wait = TRIED if self._only_try else left
            path = f"{self._path}?wait={int(wait * 1000)}ms"
            body, timeout = self._body, wait + PATIENCE
            return Request(self._server, "PUT", path, body, timeout, now)
        if self.phase is Phase.HELD:
            shown = [{"unit": unit.number, "fence": unit.fence} for unit in self.units]
            body = json.dumps({"units": shown}).encode()
            timeout = min(self._lease / 3, max(0.05, self.deadline - now))
            return Request(self._server, "POST", f"{self._path}/renew", body, timeout, now)
        timeout = max(0.05, self._forget - now)
        return Request(self._server, "DELETE", self._path, None, min(timeout, 2.0), now)

    def _claimed(self, request: Request, now: float, status: int, body: Mapping[str, Any]) -> None:
        detail = str(body.get("detail") or f"HTTP status {status}")
        if status == 200 and body.get("state") == "granted":
            self._take(request, now, body)
        elif status == 202:
            self._failures = 0
            if self._only_try:
                self.error = Timeout(f"the units of {self.pool} are not free now")
                return self._end(now)
            self._next = now
        elif status in (429, 503, 504) or status >= 500:
            self._again(now, elsewhere=True)
        else:
            kinds = {"impossible": TooLarge, "unknown-pool": UnknownPool}
            self._fail(kinds.get(str(body.get("type")), Refused)(detail))

    def _renewed(self, request: Request, now: float, status: int, body: Mapping[str, Any]) -> None:
        if status == 200 and body.get("state") == "granted":
            self._take(request, now, body)
        elif status in (409, 410):
            self._lose(str(body.get("detail") or "it is over"))
        else:
            self._again(now, elsewhere=status != 504 or self._failures > 0)

    def _take(self, request: Request, now: float, body: Mapping[str, Any]) -> None:
        span = float(body.get("expires_in_ms") or 0) / 1000
        deadline = request.sent + span
        if deadline <= now:
            if self.phase is Phase.WAITING:
                self._fail(GrantLost("the grant had ended when it arrived"))
            return
        self.units = tuple(
            Unit(
                int(unit["unit"]),
                str(unit.get("name") or unit["unit"]),
                int(unit["fence"]),
                dict(unit.get("labels") or {}),
            )
            for unit in body.get("units") or ()
        )
        self._lease = max(self._lease, span)
        self.deadline = max(self.deadline, deadline)
        self.phase, self._failures = Phase.HELD, 0
        self._next = request.sent + span / 3

    def _again(self, now: float, *, elsewhere: bool) -> None:
        if elsewhere:
            self._server = (self._server + 1) % self._servers
        self._failures += 1
        # The first round over all nodes at once, then slower.
        slow = self._failures >= self._servers
        pause = min(1.0, 0.05 * 2 ** min(self._failures, 6)) if slow else 0.0
        self._next = now + pause

    def _silence(self, why: str) -> None:
        # Whoever never met a node has a wrong address; others wait for theirs to come back.
        self._nobody = why
        if self.phase is Phase.WAITING and not self._met and self._failures >= 2 * self._servers:
            hint = "start one with `quorate dev`, or name other servers"
            self._fail(Unreachable(f"no node answers ({why}): {hint}"))

    def _end(self, now: float) -> None:
        self.phase, self._next, self._failures = Phase.ENDING, now, 0
        self._flying = None
        self._forget = now + PATIENCE

    def _lose(self, why: str) -> None:
        self._fail(GrantLost(f"lost: {why}"))

    def _fail(self, error: QuorateError) -> None:
        self.phase, self.error, self._flying = Phase.OVER, error, None
