"""Users with slow push services and many events leave room for others."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import httpx2
import pytest

from chatd.chats.domain.chat import ChatState, Message, Status
from chatd.content.domain.messages import ErrorKind, TurnError
from chatd.primitives.domain.ids import ChatId, MessageId, OwnerId
from chatd.push.clients.push_services import PushServices
from chatd.push.clients.vapid import VapidKey
from chatd.push.domain.delivery import Answer, Result
from chatd.push.domain.notification import (
    TEST,
    ChatEvent,
    ChatFacts,
    Notification,
    NotificationKind,
)
from chatd.push.domain.subscription import PushAddress, PushTarget, PushTestedTooOften
from chatd.push.engine.cached_targets import CachedTargets
from chatd.push.engine.delivery import CONNECTIONS_OF_OWNER_MAX, TEST_S, PushDelivery
from chatd.push.engine.outbox import PushOutbox
from chatd.push.engine.waiting import EVENTS_MAX, OF_OWNER_MAX, Waiting, WaitingEvents
from parley.clock import FakeClock, SystemClock
from parley.egress import GuardedAnswer, SendFailed
from support.net.push_service import Browser

ANN, BOB = OwnerId("ann"), OwnerId("bob")


@dataclass(slots=True)
class SlowForAnn:
    """Twenty devices of Ann, whose push service does not answer, and one of Bob's."""

    changed: asyncio.Event = field(default_factory=asyncio.Event)
    may_answer: asyncio.Event = field(default_factory=asyncio.Event)
    sent: list[tuple[OwnerId, str]] = field(default_factory=list)
    recorded: int = 0
    under_way: int = 0
    under_way_max: int = 0

    async def targets(self, owner_id: OwnerId) -> tuple[PushTarget, ...]:
        """Return the devices of a user."""
        count = 20 if owner_id == ANN else 1
        address = PushAddress("https://push.example.com/1", b"", b"")
        return tuple(PushTarget(f"{owner_id}-{each}", owner_id, address) for each in range(count))

    async def facts(self, chat_id: ChatId) -> ChatFacts | None:
        """Return a chat whose turn failed; its id begins with its owner."""
        owner_id = OwnerId(chat_id.partition("-")[0])
        return ChatFacts(owner_id, "title", True, False, Status.ERROR, 7, 0)

    async def last_answer(self, chat_id: ChatId) -> Message | None:
        """Return no answer."""
        return None

    async def send(self, target: PushTarget, notification: Notification) -> Answer:
        """Accept those of Bob at once, and those of Ann when they may be answered."""
        if target.owner_id == ANN:
            self.under_way += 1
            self.under_way_max = max(self.under_way, self.under_way_max)
            await self.may_answer.wait()
            self.under_way -= 1
        self.sent.append((target.owner_id, notification.kind.value))
        return Answer(Result.SENT)

    async def record(self, target: PushTarget, problem: str) -> None:
        """Count the deliveries that have ended."""
        self.recorded += 1
        self.changed.set()

    async def delete_ended(self, target: PushTarget) -> None:
        """Keep nothing."""

    async def until_recorded(self, count: int) -> None:
        """Wait until so many deliveries have ended."""
        while self.recorded < count:
            self.changed.clear()
            await self.changed.wait()


def failed_chat(chat_id: str) -> ChatState:
    error = TurnError("It is down.", ErrorKind.OVERLOADED)
    return ChatState(ChatId(chat_id), Status.ERROR, 9, 7, 0, MessageId(5), last_error=error)


async def test_a_user_with_slow_devices_has_few_places_and_connections() -> None:
    clock, slow = FakeClock(), SlowForAnn()
    delivery = PushDelivery(slow, slow, clock=clock, clean=str)
    outbox = PushOutbox(slow, CachedTargets(slow, clock), delivery, clock=clock, clean=str)
    tested = (await slow.targets(ANN))[:3]
    async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
        running = tasks.create_task(outbox.run())
        for number in range(12):
            outbox.failed(failed_chat(f"ann-{number}"))
        for target in tested:
            tasks.create_task(delivery.test(target, TEST))
        outbox.failed(failed_chat("bob-1"))
        await slow.until_recorded(1)
        assert slow.sent == [(BOB, "failed")]
        assert (slow.under_way, slow.under_way_max) == (CONNECTIONS_OF_OWNER_MAX,) * 2
        slow.may_answer.set()
        await slow.until_recorded(1 + 12 * 20 + 3)
        running.cancel()
    assert slow.under_way_max == CONNECTIONS_OF_OWNER_MAX
    counts = {each.values: each.count for each in delivery.durations.series}
    assert counts == {("failed", "sent"): 1 + 12 * 20, ("test", "sent"): 3}


def event(owner_id: OwnerId, number: int) -> Waiting:
    chat_id = ChatId(f"{owner_id}-{number}")
    return Waiting(ChatEvent(NotificationKind.FAILED, chat_id, 7, "", owner_id), 0.0)


def test_too_many_events_cost_the_user_with_the_most_the_oldest() -> None:
    events = WaitingEvents()
    events.put(event(BOB, 0))
    for number in range(EVENTS_MAX - 1):
        events.put(event(ANN, number))
        assert events.pop_surplus() is None
    events.put(event(BOB, 1))
    assert events.pop_surplus() == event(ANN, 0)
    assert events.get(ChatId("bob-0")) == event(BOB, 0)
    assert events.pop_surplus() is None


def test_an_event_whose_user_has_no_place_left_is_neither_due_nor_waited_for() -> None:
    events = WaitingEvents()
    for number in range(OF_OWNER_MAX + 1):
        events.put(event(ANN, number))
    for number in range(OF_OWNER_MAX):
        assert events.next_due(0.0) == event(ANN, number)
        events.begin(event(ANN, number))
    assert (events.next_due(0.0), events.next_due_s()) == (None, None)
    events.put(replace(event(BOB, 0), due_s=6.0))
    assert (events.next_due(0.0), events.next_due_s()) == (None, 6.0)
    events.end(event(ANN, 0))
    assert (events.next_due(0.0), events.next_due_s()) == (event(ANN, OF_OWNER_MAX), 0.0)


class FullPool:
    """A sender that has no connection left."""

    async def send(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        content: bytes | None = None,
        *,
        reads_body: bool = True,
    ) -> GuardedAnswer:
        """Wait for one in vain."""
        raise SendFailed("PoolTimeout") from httpx2.PoolTimeout("")


@pytest.fixture
def key() -> VapidKey:
    return VapidKey.generate()


async def test_a_device_whose_notification_was_not_tried_is_not_left_alone(key: VapidKey) -> None:
    async def of_installation() -> VapidKey:
        return key

    slow, browser = SlowForAnn(), Browser()
    services = PushServices(
        FullPool(), of_installation, contact="", clock=SystemClock(), token_bytes=bytes
    )
    delivery = PushDelivery(services, slow, clock=FakeClock(), clean=str)
    address = PushAddress("https://push.example.com/1", browser.public_key, browser.auth)
    target = PushTarget("d", ANN, address)
    for _ in range(2):
        answer = await delivery.deliver(target, TEST)
        assert answer is not None
        assert answer.result is Result.BUSY


async def test_a_device_is_tested_once_in_five_seconds() -> None:
    clock, slow = FakeClock(), SlowForAnn()
    delivery = PushDelivery(slow, slow, clock=clock, clean=str)
    (target,) = await slow.targets(BOB)
    await delivery.test(target, TEST)
    with pytest.raises(PushTestedTooOften, match="at most once in 5 s"):
        await delivery.test(target, TEST)
    await delivery.test(replace(target, id="other"), TEST)
    clock.advance(TEST_S)
    await delivery.test(target, TEST)
    assert slow.recorded == 3
