"""asyncio, against a real cluster."""

from __future__ import annotations

import asyncio

import pytest
from conftest import Cluster, until

import quorate
from quorate import aio


@pytest.fixture
def client(cluster: Cluster) -> aio.Client:
    return aio.Client(cluster.servers, name="tester")


def test_units_are_held_and_given_back(cluster: Cluster, client: aio.Client) -> None:
    async def work() -> None:
        pool = client.pool("p")
        async with pool.acquire(3, reason="a test") as grant:
            assert len(grant.units) == 3
            assert cluster.held("p") == 3
            assert await pool.try_acquire(2) is None
            grant.check()
        assert cluster.held("p") == 0
        other = await pool.acquire(1)
        assert await other.release() and await other.release()

    asyncio.run(work())


def test_never_more_than_there_are(client: aio.Client) -> None:
    used, most = 0, 0

    async def work(units: int) -> None:
        nonlocal used, most
        for _ in range(5):
            async with client.pool("p").acquire(units, timeout=60):
                used += units
                most = max(most, used)
                await asyncio.sleep(0.01)
                used -= units

    async def all_of_them() -> None:
        await asyncio.gather(*(work(units) for units in (1, 2, 3, 4, 1)))

    asyncio.run(all_of_them())
    assert used == 0 and 0 < most <= 4


def test_who_waits_can_be_cancelled_or_times_out(cluster: Cluster, client: aio.Client) -> None:
    async def work() -> None:
        pool = client.pool("p")
        async with pool.acquire(4):
            with pytest.raises(quorate.Timeout):
                await pool.acquire(1, timeout=0.3)

            async def wait() -> None:
                await pool.acquire(1)

            waits = asyncio.create_task(wait())
            while not cluster.waiting("p"):
                await asyncio.sleep(0.02)
            waits.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waits
            assert cluster.waiting("p") == []

    asyncio.run(work())


def test_a_loss_stops_the_block(cluster: Cluster, client: aio.Client) -> None:
    async def work() -> None:
        reached = False
        with pytest.raises(quorate.GrantLost, match="not today"):
            async with client.pool("short").acquire() as grant:
                cluster.ask("POST", f"short/claims/{grant.id}/revoke", {"reason": "not today"})
                await asyncio.sleep(60)
                reached = True
        assert not reached
        await asyncio.sleep(0)  # And only the block: this task goes on.

    asyncio.run(work())
    until(lambda: cluster.held("short") == 0)


def test_a_lease_is_renewed_and_functions_are_limited(cluster: Cluster, client: aio.Client) -> None:
    @client.pool("short").limit(2)
    async def work(x: int) -> int:
        await asyncio.sleep(2.5)
        return x + cluster.held("short")

    async def run() -> int:
        return await work(40)

    assert asyncio.run(run()) == 42


def test_refusals_have_names(client: aio.Client) -> None:
    async def work() -> None:
        with pytest.raises(quorate.TooLarge):
            await client.pool("p").acquire(5)
        with pytest.raises(quorate.UnknownPool):
            await client.pool("nothing").acquire()

    asyncio.run(work())
