"""How long the gateway's word about groups is taken."""

import asyncio

import pytest

from chatd.primitives.domain.ids import OwnerId
from chatd.users.clients.groups import FRESH_S, RETRY_S, STALE_S, USERS_MAX, CachedGroups
from chatd.users.domain.groups import GroupsUnavailable
from parley.clock import FakeClock
from support.chatd.users.fixed_users import KnownGroups

ANN = OwnerId("ann")
BOB = OwnerId("bob")


class Cache:
    """A cache, what it asks, and its time."""

    def __init__(self) -> None:
        self.source = KnownGroups({ANN: ("a", "b"), BOB: ("b",)})
        self.clock = FakeClock()
        self.groups = CachedGroups(self.source, self.clock)

    async def asks(self, *user_ids: OwnerId) -> int:
        """Return how often the source is asked for these."""
        before = self.source.asked
        for user_id in user_ids:
            await self.groups.of(user_id)
        return self.source.asked - before


async def test_an_answer_is_used_for_a_minute() -> None:
    cache = Cache()
    assert await cache.groups.of(ANN) == ("a", "b")
    cache.source.groups[ANN] = ("c",)
    cache.clock.advance(FRESH_S)
    assert await cache.groups.of(ANN) == ("a", "b")
    cache.clock.advance(0.1)
    assert (await cache.groups.of(ANN), cache.source.asked) == (("c",), 2)


async def test_who_changed_is_asked_for_again() -> None:
    cache = Cache()
    await cache.asks(ANN, BOB)
    cache.groups.forget(ANN)
    assert (await cache.asks(BOB), await cache.asks(ANN)) == (0, 1)
    cache.groups.forget_group("a")
    assert (await cache.asks(BOB), await cache.asks(ANN)) == (0, 1)
    cache.groups.forget_group("b")
    assert await cache.asks(ANN, BOB) == 2
    cache.clock.advance(0.1)
    cache.groups.mark_stale()
    assert await cache.asks(ANN, BOB, ANN, BOB) == 2


async def test_an_old_answer_is_better_than_none_for_ten_minutes() -> None:
    cache = Cache()
    await cache.asks(ANN)
    cache.source.is_available = False
    cache.clock.advance(1)
    cache.groups.mark_stale()
    assert await cache.groups.of(ANN) == ("a", "b")
    cache.clock.advance(STALE_S - 1)
    assert await cache.groups.of(ANN) == ("a", "b")
    cache.clock.advance(0.1)
    with pytest.raises(GroupsUnavailable):
        await cache.groups.of(ANN)


async def test_an_answer_that_is_known_to_be_wrong_is_never_used() -> None:
    cache = Cache()
    await cache.asks(ANN)
    cache.source.is_available = False
    cache.groups.forget(ANN)
    with pytest.raises(GroupsUnavailable):
        await cache.groups.of(ANN)


async def test_nobody_waits_for_a_second_failure_right_after_the_first() -> None:
    cache = Cache()
    cache.source.is_available = False
    for user_id in (ANN, BOB, ANN):
        with pytest.raises(GroupsUnavailable):
            await cache.groups.of(user_id)
    assert cache.source.asked == 1
    cache.source.is_available = True
    cache.clock.advance(RETRY_S)
    assert (await cache.groups.of(BOB), cache.source.asked) == (("b",), 2)


async def test_an_answer_that_a_change_overtook_is_not_kept() -> None:
    class Slow(KnownGroups):
        async def of(self, user_id: OwnerId) -> tuple[str, ...]:
            found = await super().of(user_id)
            asked.set()
            await answer.wait()
            return found

    asked, answer = asyncio.Event(), asyncio.Event()
    source = Slow({ANN: ("a",)})
    groups = CachedGroups(source, FakeClock())
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        one = tasks.create_task(groups.of(ANN))
        other = tasks.create_task(groups.of(BOB))
        await asked.wait()
        groups.forget(ANN)
        answer.set()
    assert (one.result(), other.result()) == (("a",), ())
    source.groups[ANN] = ()
    assert await groups.of(ANN) == ()


async def test_many_requests_at_once_ask_once() -> None:
    cache = Cache()
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        asking = [tasks.create_task(cache.groups.of(ANN)) for _ in range(20)]
    assert {each.result() for each in asking} == {("a", "b")}
    assert cache.source.asked == 1


async def test_those_who_were_not_asked_for_longest_are_forgotten() -> None:
    cache = Cache()
    await cache.asks(ANN, BOB)
    await cache.asks(ANN, *(OwnerId(f"user {number}") for number in range(USERS_MAX - 1)))
    assert (await cache.asks(ANN), await cache.asks(BOB)) == (0, 1)
