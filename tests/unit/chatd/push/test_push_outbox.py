"""The outbox and its cache with devices in memory."""

import asyncio
from dataclasses import dataclass, field, replace

from chatd.chats.domain.chat import ChatState, Message, Status
from chatd.content.domain.messages import ErrorKind, TurnError
from chatd.primitives.domain.ids import ChatId, MessageId, Owner, OwnerId
from chatd.push.domain.delivery import Answer, Result
from chatd.push.domain.notification import ChatFacts, Notification
from chatd.push.domain.subscription import PushAddress, PushTarget
from chatd.push.engine.cached_targets import EXPIRES_S, CachedTargets
from chatd.push.engine.delivery import PushDelivery
from chatd.push.engine.outbox import PushOutbox
from chatd.push.engine.waiting import EVENTS_MAX
from chatd.turns.domain.turn import Ending, TurnEnded
from parley.clock import FakeClock

ANN = Owner(OwnerId("ann"), "member")
TARGET = PushTarget("d", ANN.id, PushAddress("https://push.example.com/1", b"", b""))


@dataclass(slots=True)
class Devices:
    """The devices of every user, and what is sent to them."""

    targets_of: tuple[PushTarget, ...] = ()
    reads: int = 0
    asked: int = 0
    sent: list[Notification] = field(default_factory=list)
    broken: frozenset[str] = frozenset()
    recorded: int = 0
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    began: asyncio.Event = field(default_factory=asyncio.Event)
    may_end: asyncio.Event = field(default_factory=asyncio.Event)

    async def targets(self, owner_id: OwnerId) -> tuple[PushTarget, ...]:
        """Return them as they were when the read began."""
        self.reads += 1
        found = self.targets_of
        self.began.set()
        await self.may_end.wait()
        return found

    async def facts(self, chat_id: ChatId) -> ChatFacts | None:
        """Return a chat whose turn failed."""
        self.asked += 1
        return ChatFacts(ANN.id, "title", True, False, Status.ERROR, 7, 0)

    async def last_answer(self, chat_id: ChatId) -> Message | None:
        """Return no answer."""
        return None

    async def send(self, target: PushTarget, notification: Notification) -> Answer:
        """Accept everything, except for devices that are broken."""
        if target.id in self.broken:
            raise UnicodeError("label empty or too long")
        self.sent.append(notification)
        return Answer(Result.SENT)

    async def record(self, target: PushTarget, problem: str) -> None:
        """Count the deliveries that have ended."""
        self.recorded += 1
        self.changed.set()

    async def until_recorded(self, count: int) -> None:
        """Wait until so many deliveries have ended."""
        while self.recorded < count:
            self.changed.clear()
            await self.changed.wait()

    async def delete_ended(self, target: PushTarget) -> None:
        """Keep nothing."""


def failed(number: int) -> ChatState:
    error = TurnError("It is down.", ErrorKind.OVERLOADED)
    chat_id = ChatId(f"chat-{number}")
    return ChatState(chat_id, Status.ERROR, 9, 7, 0, MessageId(5), last_error=error)


def outbox_of(devices: Devices, clock: FakeClock) -> tuple[PushOutbox, PushDelivery]:
    delivery = PushDelivery(devices, devices, clock=clock, clean=str)
    targets = CachedTargets(devices, clock)
    return PushOutbox(devices, targets, delivery, clock=clock, clean=str), delivery


async def test_a_read_under_way_does_not_restore_devices_that_changed() -> None:
    clock, devices = FakeClock(), Devices((TARGET,))
    cached = CachedTargets(devices, clock)
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        reading = tasks.create_task(cached.of(ANN.id))
        await devices.began.wait()
        devices.targets_of = ()
        cached.forget(ANN.id)
        devices.may_end.set()
    assert reading.result() == (TARGET,)
    assert await cached.of(ANN.id) == ()
    assert await cached.of(ANN.id) == ()
    assert devices.reads == 2
    clock.advance(EXPIRES_S)
    assert await cached.of(ANN.id) == ()
    assert devices.reads == 3


async def test_a_user_without_devices_costs_one_read_and_no_chat_is_looked_at() -> None:
    clock, devices = FakeClock(), Devices()
    devices.may_end.set()
    outbox, _ = outbox_of(devices, clock)
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        running = tasks.create_task(outbox.run())
        for number in range(3):
            outbox.ended(TurnEnded(Ending.FAILED, ANN, failed(number), ""))
            await clock.until_sleeping_for(60.0)
        running.cancel()
    assert (devices.reads, devices.asked, devices.sent) == (1, 0, [])


async def test_a_flood_keeps_the_newest_chats_and_counts_the_others() -> None:
    clock, devices = FakeClock(), Devices((TARGET,))
    devices.may_end.set()
    outbox, delivery = outbox_of(devices, clock)
    for number in range(EVENTS_MAX + 2):
        outbox.failed(failed(number))
    async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
        running = tasks.create_task(outbox.run())
        await devices.until_recorded(EVENTS_MAX)
        running.cancel()
    counts = {each.values: each.count for each in delivery.durations.series}
    assert counts == {("failed", "queue_full"): 2, ("failed", "sent"): EVENTS_MAX}
    assert len(devices.sent) == EVENTS_MAX


async def test_an_unexpected_error_of_one_device_keeps_no_other_from_being_told() -> None:
    clock = FakeClock()
    targets = tuple(replace(TARGET, id=each) for each in ("a", "b", "c"))
    devices = Devices(targets, broken=frozenset({"b"}))
    devices.may_end.set()
    outbox, delivery = outbox_of(devices, clock)
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        running = tasks.create_task(outbox.run())
        outbox.failed(failed(1))
        await devices.until_recorded(2)
        running.cancel()
    counts = {each.values: each.count for each in delivery.durations.series}
    assert counts == {("failed", "error"): 1, ("failed", "sent"): 2}
