"""Look-ups of push services: on threads of their own, one at a time for each user."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from queue import SimpleQueue

import httpx2
import pytest

from chatd.primitives.domain.ids import OwnerId
from chatd.push.clients.names import KNOWN_S, LOOK_UPS_MAX, OWNER, PushNames, looked_up
from parley.clock import FakeClock
from parley.egress import AddressBlocked

ANN, BOB = OwnerId("ann"), OwnerId("bob")
WITHIN_S = 30.0
ENDLESS = """
import asyncio, threading
from chatd.push.clients.names import OWNER, PushNames
from parley.clock import SystemClock

async def main():
    began = asyncio.Event()
    loop = asyncio.get_running_loop()

    def look_up(host, port):
        loop.call_soon_threadsafe(began.set)
        threading.Event().wait()

    OWNER.set("ann")
    async with asyncio.TaskGroup() as tasks:
        looking = tasks.create_task(PushNames(look_up, SystemClock()).addresses("slow.test", 443))
        await began.wait()
        looking.cancel()

asyncio.run(main())
"""


@dataclass(slots=True)
class NameServer:
    """Answers each look-up of a name that begins with `slow` when the test says so."""

    loop: asyncio.AbstractEventLoop
    answers: SimpleQueue[tuple[str, ...]] = field(default_factory=SimpleQueue)
    asked: list[str] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def look_up(self, host: str, port: int) -> tuple[str, ...]:
        """Return an address; runs on a thread."""
        self.asked.append(host)
        self.loop.call_soon_threadsafe(self.changed.set)
        return self.answers.get() if host.startswith("slow") else ("192.0.2.1",)

    async def until_asked(self, count: int) -> None:
        """Wait until so many names were looked up."""
        while len(self.asked) < count:
            self.changed.clear()
            await self.changed.wait()


@dataclass(frozen=True, slots=True)
class Stage:
    """Names, and the server that answers for them."""

    names: PushNames
    server: NameServer
    clock: FakeClock

    async def addresses(self, owner_id: OwnerId, host: str) -> tuple[str, ...]:
        """Look a name up for a device of a user."""
        OWNER.set(owner_id)
        return await self.names.addresses(host, 443)


@asynccontextmanager
async def staged(wait_s_max: float = WITHIN_S) -> AsyncIterator[Stage]:
    server = NameServer(asyncio.get_running_loop())
    async with asyncio.timeout(WITHIN_S):
        clock = FakeClock()
        yield Stage(PushNames(server.look_up, clock, wait_s_max=wait_s_max), server, clock)


async def test_a_user_has_one_name_looked_up_at_a_time() -> None:
    async with staged() as stage, asyncio.TaskGroup() as tasks:
        slow = [tasks.create_task(stage.addresses(ANN, f"slow{each}.test")) for each in range(3)]
        await stage.server.until_asked(1)
        assert await tasks.create_task(stage.addresses(BOB, "bob.test")) == ("192.0.2.1",)
        assert stage.server.asked == ["slow0.test", "bob.test"]
        for _ in slow:
            stage.server.answers.put(("192.0.2.2",))
        await asyncio.wait(slow)
    assert [each.result() for each in slow] == [("192.0.2.2",)] * 3
    assert stage.server.asked == ["slow0.test", "bob.test", "slow1.test", "slow2.test"]


async def test_a_look_up_counts_until_its_thread_ends() -> None:
    async with staged(wait_s_max=0.1) as stage, asyncio.TaskGroup() as tasks:
        given_up = tasks.create_task(stage.addresses(ANN, "slow.test"))
        await stage.server.until_asked(1)
        given_up.cancel()
        with pytest.raises(httpx2.PoolTimeout):
            await stage.addresses(ANN, "push.example.com")
        stage.server.answers.put(())
        found: tuple[str, ...] = ()
        while not found:
            with suppress(httpx2.PoolTimeout):
                found = await stage.addresses(ANN, "push.example.com")
    assert found == ("192.0.2.1",)


async def test_a_known_host_is_reached_while_slow_look_ups_hold_all_threads() -> None:
    async with staged(wait_s_max=0.1) as stage, asyncio.TaskGroup() as tasks:
        await stage.addresses(BOB, "push.example.com")
        for each in range(LOOK_UPS_MAX):
            tasks.create_task(stage.addresses(OwnerId(f"slow{each}"), f"slow{each}.test"))
        await stage.server.until_asked(1 + LOOK_UPS_MAX)
        for owner_id in (ANN, BOB):
            assert await stage.addresses(owner_id, "push.example.com") == ("192.0.2.1",)
        with pytest.raises(httpx2.PoolTimeout):
            await stage.addresses(BOB, "other.example.com")
        stage.clock.advance(KNOWN_S)
        with pytest.raises(httpx2.PoolTimeout):
            await stage.addresses(BOB, "push.example.com")
        for _ in range(LOOK_UPS_MAX):
            stage.server.answers.put(("192.0.2.2",))


async def test_a_known_host_is_looked_up_again_each_time() -> None:
    async with staged() as stage:
        for _ in range(2):
            await stage.addresses(BOB, "push.example.com")
    assert stage.server.asked == ["push.example.com"] * 2


async def test_an_address_is_not_looked_up_and_an_unknown_name_is_blocked() -> None:
    async with staged() as stage:
        assert await stage.addresses(ANN, "::1") == ("::1",)
        stage.server.answers.put(())
        with pytest.raises(AddressBlocked, match="cannot be resolved"):
            await stage.addresses(ANN, "slow.test")
    assert stage.server.asked == ["slow.test"]


def test_a_look_up_without_end_does_not_hold_up_the_end_of_the_process() -> None:
    ended = subprocess.run([sys.executable, "-c", ENDLESS], timeout=WITHIN_S, check=False)
    assert ended.returncode == 0


def test_a_name_that_is_none_has_no_addresses() -> None:
    assert looked_up("a..b", 443) == ()
