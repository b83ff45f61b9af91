"""Spending held against limits, at admission and before each call."""

from datetime import timedelta

import pytest

from chatd.primitives.domain.ids import ChatId, Owner, OwnerId
from chatd.spend.domain.limits import (
    EVERYONE,
    LimitPeriod,
    SpendLimit,
    SpendStatus,
    Subject,
    SubjectKind,
    UsageLimitReached,
    limit_error,
)
from chatd.spend.engine.enforcement import LimitedSpending
from parley.clock import FakeClock
from parley.clock.fake import EPOCH
from support.chatd.turns.in_memory_money import InMemorySpending
from support.chatd.users.fixed_users import KnownGroups

ANN = Owner(OwnerId("ann"), "member")
CHAT = ChatId("c")
DAILY = SpendLimit(EVERYONE, 10, LimitPeriod.DAY)
OF_GROUP = SpendLimit(Subject(SubjectKind.GROUP, "g"), 20, LimitPeriod.WEEK)
TOMORROW = EPOCH + timedelta(days=1)


async def test_nothing_is_asked_while_there_are_no_limits() -> None:
    store = InMemorySpending()
    spending = LimitedSpending(store, KnownGroups(), FakeClock())
    for _ in range(3):
        await spending.admit(ANN.id, ("g",))
        await spending.remember_groups(CHAT, ("g",))
        assert await spending.refusal(CHAT, ANN) is None
    assert store.asked == ["limits"]


async def test_a_user_at_their_limit_is_refused_until_the_period_ends() -> None:
    store = InMemorySpending([DAILY], [(ANN.id, EPOCH, 10)])
    clock = FakeClock()
    spending = LimitedSpending(store, KnownGroups(), clock)
    with pytest.raises(UsageLimitReached) as refused:
        await spending.admit(ANN.id, ())
    error = refused.value
    assert (error.spent_micros, error.limit_micros, error.resets_at) == (10, 10, TOMORROW)
    assert error.retry_after_s == (TOMORROW - clock.now()).total_seconds()
    assert await spending.refusal(CHAT, ANN) == limit_error(SpendStatus(DAILY, 10, TOMORROW))
    clock.advance(86400)
    await spending.admit(ANN.id, ())
    assert await spending.refusal(CHAT, ANN) is None


async def test_one_question_is_asked_for_each_admission_and_each_call() -> None:
    store = InMemorySpending([DAILY])
    spending = LimitedSpending(store, KnownGroups(), FakeClock())
    await spending.admit(ANN.id, ())
    await spending.refusal(CHAT, ANN)
    assert store.asked == ["limits", "spent", "spent"]


async def test_a_call_is_held_against_the_groups_of_this_moment() -> None:
    store = InMemorySpending([], [(ANN.id, EPOCH, 20)])
    groups = KnownGroups({ANN.id: ("g",)})
    spending = LimitedSpending(store, groups, FakeClock())
    await spending.admit(ANN.id, ())
    await spending.remember_groups(CHAT, ())
    assert await spending.refusal(CHAT, ANN) is None
    store.known.append(OF_GROUP)
    spending.forget()
    spend_status = SpendStatus(OF_GROUP, 20, EPOCH + timedelta(days=4))
    assert await spending.refusal(CHAT, ANN) == limit_error(spend_status)
    groups.groups.clear()
    assert await spending.refusal(CHAT, ANN) is None


async def test_while_nobody_tells_groups_a_call_is_held_against_those_of_the_admission() -> None:
    store = InMemorySpending([DAILY, OF_GROUP], [(ANN.id, EPOCH, 15)])
    groups = KnownGroups()
    groups.is_available = False
    spending = LimitedSpending(store, groups, FakeClock())
    await spending.admit(ANN.id, ("g",))
    assert await spending.refusal(CHAT, ANN) is not None
    await spending.remember_groups(CHAT, ("g",))
    assert await spending.refusal(CHAT, ANN) is None
    store.spent.append((ANN.id, EPOCH, 5))
    spend_status = SpendStatus(OF_GROUP, 20, EPOCH + timedelta(days=4))
    assert await spending.refusal(CHAT, ANN) == limit_error(spend_status)


async def test_groups_are_stored_again_only_when_they_change() -> None:
    store = InMemorySpending([OF_GROUP])
    spending = LimitedSpending(store, KnownGroups(), FakeClock())
    for groups in (("g",), ("g",), ("h",)):
        await spending.remember_groups(CHAT, groups)
    assert store.asked == ["limits", "remember", "remember"]


async def test_a_changed_limit_holds_from_the_next_question_on() -> None:
    store = InMemorySpending([], [(ANN.id, EPOCH, 10)])
    spending = LimitedSpending(store, KnownGroups(), FakeClock())
    assert await spending.refusal(CHAT, ANN) is None
    store.known.append(DAILY)
    assert await spending.refusal(CHAT, ANN) is None
    spending.forget()
    assert await spending.refusal(CHAT, ANN) is not None


async def test_limits_that_change_while_they_are_read_are_read_again() -> None:
    class Changing(InMemorySpending):
        async def limits(self) -> tuple[SpendLimit, ...]:
            found = await super().limits()
            if not self.known:
                self.known.append(DAILY)
                spending.forget()
            return found

    store = Changing([], [(ANN.id, EPOCH, 10)])
    spending = LimitedSpending(store, KnownGroups(), FakeClock())
    assert await spending.refusal(CHAT, ANN) is None
    assert await spending.refusal(CHAT, ANN) is not None


async def test_without_a_limit_a_user_stands_in_the_present_month() -> None:
    store = InMemorySpending([], [(ANN.id, EPOCH, 3), (ANN.id, EPOCH - timedelta(days=1), 4)])
    spending = LimitedSpending(store, KnownGroups(), FakeClock())
    spend_status = await spending.spend_status(ANN.id, ())
    assert spend_status == SpendStatus(None, 3, EPOCH + timedelta(days=31))
