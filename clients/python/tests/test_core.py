"""The machine by itself, with a clock of the test's own."""

from __future__ import annotations

import json
from typing import Any

import pytest

from quorate.core import Claim, Guide, Line, Phase, Request
from quorate.errors import GrantLost, Timeout, TooLarge, Unreachable


def granted(span: float) -> dict[str, Any]:
    units = [{"unit": 3, "fence": 1 << 60, "name": "h100-3"}]
    return {"state": "granted", "units": units, "expires_in_ms": span * 1000}


def asked(claim: Claim, now: float) -> Request:
    request = claim.poll(now)
    assert request is not None
    return request


def held(servers: int = 1, lease: float = 9.0) -> Claim:
    claim = Claim("p", 1, servers=servers, now=0.0)
    claim.answered(asked(claim, 1.0), 3.0, 200, granted(lease))
    assert claim.phase is Phase.HELD
    return claim


def test_a_deadline_counts_from_before_the_request() -> None:
    claim = held()
    assert claim.deadline == 10.0
    assert claim.units[0].fence == 1 << 60
    # A third of the lease later it is renewed, and shows what it has.
    assert claim.due() == 4.0 and claim.poll(3.9) is None
    renewal = asked(claim, 4.0)
    assert json.loads(renewal.body or b"") == {"units": [{"unit": 3, "fence": 1 << 60}]}
    claim.answered(renewal, 5.0, 200, granted(9.0))
    assert claim.deadline == 13.0


def test_a_deadline_that_has_passed_is_final() -> None:
    claim = held()
    renewal = asked(claim, 4.0)
    claim.answered(renewal, 10.0, 200, granted(9.0))
    assert claim.phase is Phase.OVER and isinstance(claim.error, GrantLost)


def test_a_grant_that_ended_on_its_way_is_none() -> None:
    claim = Claim("p", 1, servers=1, now=0.0)
    claim.answered(asked(claim, 0.0), 9.5, 200, granted(9.0))
    assert isinstance(claim.error, GrantLost)


def test_what_nobody_answers_is_asked_of_the_next_node() -> None:
    claim = held(servers=3)
    tried = set()
    now = 4.0
    for _ in range(3):
        request = asked(claim, now)
        tried.add(request.server)
        claim.failed(request, now, "refused")
        assert claim.phase is Phase.HELD
        due = claim.due()
        assert due is not None
        now = max(now, due)
    assert tried == {0, 1, 2}


@pytest.mark.parametrize(("status", "lost"), [(410, True), (409, True), (504, False), (503, False)])
def test_only_a_definite_answer_ends_a_grant(status: int, lost: bool) -> None:
    claim = held(servers=2)
    claim.answered(asked(claim, 4.0), 4.1, status, {"detail": "because"})
    assert (claim.phase is Phase.OVER) == lost
    assert not lost or "because" in str(claim.error)


def test_whoever_waited_long_enough_cancels() -> None:
    claim = Claim("p", 1, servers=1, now=0.0, timeout=5.0)
    first = asked(claim, 0.0)
    assert first.path.endswith("?wait=5000ms")
    claim.answered(first, 5.0, 202, {"state": "waiting"})
    assert isinstance(claim.error, Timeout)
    end = asked(claim, 5.0)
    assert end.method == "DELETE"
    claim.answered(end, 5.1, 200, {})
    assert claim.phase is Phase.OVER and claim.settled


def test_a_release_is_repeated_elsewhere_and_given_up_in_time() -> None:
    claim = held(servers=2)
    claim.release(4.0)
    first = asked(claim, 4.0)
    claim.failed(first, 4.0, "refused")
    second = asked(claim, 4.0)
    assert (first.method, first.server) != (second.method, second.server)
    claim.failed(second, 20.0, "refused")
    assert claim.phase is Phase.OVER and not claim.settled


def test_refusals_have_names() -> None:
    claim = Claim("p", [Line(9)], servers=1, now=0.0)
    request = asked(claim, 0.0)
    assert json.loads(request.body or b"")["lines"] == [{"units": 9, "where": {}}]
    claim.answered(request, 0.1, 422, {"type": "impossible", "detail": "9 of 4"})
    assert isinstance(claim.error, TooLarge)
    claim = Claim("p", 1, servers=1, now=0.0)
    for now in (0.0, 1.0):
        claim.failed(asked(claim, now), now, "refused")
    assert isinstance(claim.error, Unreachable)


def test_claims_begin_where_their_pool_is_decided() -> None:
    guide = Guide()

    def claim(server: int | None, said: dict[str, str]) -> int:
        it = Claim("p", 1, servers=9, now=0.0, guide=guide)
        request = asked(it, 0.0)
        assert server in (None, request.server)
        it.answered(request, 1.0, 200, granted(9.0) | said)
        assert it.phase is Phase.HELD
        return request.server

    def anywhere() -> bool:
        claims = [Claim("p", 1, servers=9, now=0.0, guide=guide) for _ in range(99)]
        return len({asked(claim, 0.0).server for claim in claims}) > 1

    # Who is where shows in answers, and who decides too.
    other = claim(None, {"node": "n1", "decides": "n7"})
    guide.heard("q", (other + 1) % 9, {"node": "n7"})
    there = (other + 1) % 9
    for _ in range(20):
        assert claim(there, {"node": "n7"}) == there
    # It does not answer: it is asked elsewhere, and the next claim does not begin there.
    it = Claim("p", 1, servers=9, now=0.0, guide=guide)
    request = asked(it, 0.0)
    it.failed(request, 1.0, "refused")
    assert asked(it, 1.0).server == (there + 1) % 9
    assert anywhere()
    # Another decides now.
    guide.heard("p", 3, {"node": "n3", "decides": "n5"})
    guide.heard("p", 5, {"node": "n5"})
    assert claim(5, {"node": "n5"}) == 5
    # And then nobody alone.
    guide.heard("p", 3, {"node": "n3"})
    assert anywhere()
