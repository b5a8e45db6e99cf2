"""Threads, against a real cluster."""

from __future__ import annotations

import os
import socket
import threading
import time

import pytest
from conftest import Cluster, until
from proxy import Proxy

import quorate


@pytest.fixture
def client(cluster: Cluster) -> quorate.Client:
    return quorate.connect(cluster.servers, name="tester")


def test_units_are_held_and_given_back(cluster: Cluster, client: quorate.Client) -> None:
    pool = client.pool("p")
    with pool.acquire(3, reason="a test") as grant:
        assert len(grant.units) == 3 and set(grant.fences) == set(grant.units)
        assert cluster.held("p") == 3
        holder = cluster.ask("GET", "p/holders")["holders"][0]
        assert (holder["client"], holder["reason"], holder["id"]) == ("tester", "a test", grant.id)
        assert pool.try_acquire(2) is None
        grant.check()
        assert 0 < grant.remaining <= 20
    assert cluster.held("p") == 0
    again = pool.try_acquire(3)
    assert again is not None
    for unit, fence in again.fences.items():
        assert fence > grant.fences.get(unit, 0)
    assert again.release() and again.release()


def test_never_more_than_there_are(client: quorate.Client) -> None:
    pool, lock = client.pool("p"), threading.Lock()
    used, most = 0, 0

    def work(units: int) -> None:
        nonlocal used, most
        for _ in range(5):
            with pool.acquire(units, timeout=60):
                with lock:
                    used += units
                    most = max(most, used)
                with lock:
                    used -= units

    threads = [threading.Thread(target=work, args=(units,)) for units in (1, 2, 3, 4, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert used == 0 and 0 < most <= 4


def test_who_waited_long_enough_leaves_nothing(cluster: Cluster, client: quorate.Client) -> None:
    pool = client.pool("p")
    with pool.acquire(4):
        with pytest.raises(quorate.Timeout, match="not granted in time"):
            pool.acquire(1, timeout=0.3)
        assert cluster.waiting("p") == []
        with pytest.raises(TimeoutError):
            pool.acquire(1, timeout=0)


def test_a_decorated_function_runs_with_units(cluster: Cluster, client: quorate.Client) -> None:
    @client.pool("p").limit(2)
    def work(x: int) -> int:
        return x + cluster.held("p")

    assert work(40) == 42


def test_refusals_have_names(cluster: Cluster, client: quorate.Client) -> None:
    with pytest.raises(quorate.TooLarge, match="at most 4"):
        client.pool("p").acquire(5)
    with pytest.raises(quorate.UnknownPool):
        client.pool("nothing").acquire()
    with socket.create_server(("127.0.0.1", 0)) as gone:
        address = f"127.0.0.1:{gone.getsockname()[1]}"
    with pytest.raises(quorate.Unreachable, match="quorate dev"):
        quorate.connect(address).pool("p").acquire()
    with pytest.raises(ValueError, match="HOST:PORT"):
        quorate.connect("ftp://somewhere")


def test_units_by_labels_and_in_bundles(client: quorate.Client) -> None:
    pool = client.pool("gpus")
    with pool.acquire(1, where={"gpu": "h100"}) as grant:
        assert grant.units == ["h"] and grant.labels == {"h": {"gpu": "h100"}}
    bundle = [quorate.Line(1, {"gpu": "a100"}), quorate.Line(1, {"kind": "nic"})]
    with pool.acquire(bundle) as grant:
        assert sorted(grant.units) == ["a", "n"]


def test_a_lease_is_renewed_and_a_revoked_one_is_lost(
    cluster: Cluster, client: quorate.Client
) -> None:
    with client.pool("short").acquire(2) as grant:
        time.sleep(3.2)  # Three leases.
        grant.check()
    grant = client.pool("short").acquire(2)
    cluster.ask("POST", f"short/claims/{grant.id}/revoke", {"reason": "not today"})
    assert grant.lost.wait(60)
    with pytest.raises(quorate.GrantLost, match="not today"):
        grant.check()
    with pytest.raises(quorate.GrantLost), grant:
        pass
    until(lambda: cluster.held("short") == 0)


def test_a_grant_outlives_its_node(cluster: Cluster) -> None:
    ways = [Proxy(server) for server in cluster.servers]
    client = quorate.connect([way.address for way in ways])
    with client.pool("table").acquire(2) as grant:
        first = [way for way in ways if way.taken]
        assert len(first) == 1
        first[0].refuse()
        time.sleep(7)  # Two leases.
        grant.check()
        assert cluster.held("table") == 2
    assert cluster.held("table") == 0


def test_without_any_node_a_grant_is_lost_in_time(cluster: Cluster) -> None:
    way = Proxy(cluster.servers[0])
    grant = quorate.connect(way.address).pool("short").acquire()
    way.refuse()
    until(grant.lost.is_set)
    with pytest.raises(quorate.GrantLost):
        grant.check()
    assert grant.remaining == 0
    assert not grant.release()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_child_has_no_grants(cluster: Cluster, client: quorate.Client) -> None:
    with client.pool("p").acquire(1) as grant:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                grant.check()
            except quorate.GrantLost:
                code = 0 if not grant.release() else 2
            os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        grant.check()
        assert cluster.held("p") == 1
