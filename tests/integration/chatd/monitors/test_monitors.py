"""Monitors over gRPC and in PostgreSQL: one process at a time looks, and the chat is woken once."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest

from chatd.chats.domain.commands import FinishInterruption, Interrupt
from chatd.chats.domain.errors import FenceLost
from chatd.chats.domain.owner_calls import CallPostponed, CallRefused
from chatd.chats.domain.transitions import fence_of
from chatd.chats.rpc.owner_calls import OwnerCalls
from chatd.errors import ERRORS
from chatd.monitors.domain.monitor import (
    CANCELLED,
    DEFECT,
    INTERRUPTED,
    OPEN_MAX,
    OWNER_OPEN_MAX,
    PER_DAY_MAX,
    Look,
    Monitor,
    MonitorCause,
    MonitorRefused,
)
from chatd.monitors.engine.waking import EVERY_S, RARELY_S, MonitorRounds
from chatd.monitors.rpc.actions import OwnerActions
from chatd.monitors.store.monitors import PostgresMonitors
from chatd.primitives.domain.ids import ChatId, MessageId, Owner, OwnerClaim
from parley.api.chat.v1 import chat_service_pb2 as chats_api
from parley.api.chat.v1 import monitor_pb2
from parley.api.chat.v1 import monitor_service_pb2 as api
from parley.clock import FakeClock
from support.chatd.chats.chat_people import ANN_ID, BOB_ID
from support.chatd.chats.served_chats import ServedChats

END_CLAIMS = "UPDATE chat.monitors SET claimed_until = NULL"
COUNT_MESSAGES = "SELECT count(*) FROM chat.chat_messages WHERE role = 'user' AND chat_id = $1"
SELECT_WAIT_S = """
    SELECT extract(epoch FROM claimed_until - clock_timestamp())::float8 FROM chat.monitors
"""
SELECT_STATES = "SELECT state FROM chat.monitors"
SUSPEND = "INSERT INTO chat.suspended_users VALUES ($1, false, now())"
EXPIRE = "UPDATE chat.monitors SET expires_at = now() - interval '1 second'"
END_LONG_AGO = "UPDATE chat.monitors SET state = 'ended', created_at = now() - interval '8 days'"
END_ALL = "UPDATE chat.monitors SET state = 'ended'"
MATCHED = Look(9, MonitorCause.MATCHED, "ready")


def id_of(number: int) -> str:
    return f"00000000-0000-0000-0000-{number:012d}"


class Crash(BaseException):
    """A process ends here."""


@dataclass
class Actions:
    """Wakes as the real actions, and looks as a test says."""

    real: OwnerActions
    looks: list[Look | Exception] = field(default_factory=list)
    looked: list[int] = field(default_factory=list)
    holding: asyncio.Event | None = None
    crashes: bool = False
    meanwhile: Callable[[], Awaitable[object]] | None = None

    async def look(self, monitor: Monitor) -> Look:
        self.looked.append(monitor.cursor)
        if self.holding is not None:
            await self.holding.wait()
        look = self.looks.pop(0)
        if isinstance(look, Exception):
            raise look
        return look

    async def wake(self, monitor: Monitor, text: str, request_id: str) -> None:
        if self.meanwhile is not None:
            await self.meanwhile()
        await self.real.wake(monitor, text, request_id)
        if self.crashes:
            raise Crash


@dataclass
class Process:
    """The monitors of one process, and a chat of Ann."""

    served: ServedChats
    chat_id: str
    actions: Actions
    made: int = 0

    @property
    def store(self) -> PostgresMonitors:
        return PostgresMonitors(self.served.pool)

    async def add(self, **given: Any) -> Monitor:
        now = await self.served.pool.fetchval("SELECT now()")
        self.made += 1
        monitor = Monitor(
            id=id_of(self.made),
            chat_id=ChatId(self.chat_id),
            owner=Owner(ANN_ID, "member"),
            process_id="p1",
            command="npm run dev",
            pattern="ready",
            note="",
            cursor=0,
            created_at=now,
            expires_at=now + timedelta(hours=1),
        )
        monitor = replace(monitor, **given)
        await self.store.add(monitor, await self.claim(monitor.chat_id))
        return monitor

    async def claim(self, chat_id: ChatId) -> OwnerClaim:
        state = await self.served.state(chat_id)
        return OwnerClaim(chat_id, state.owner_epoch, state.turn_id)

    async def round(self) -> None:
        await self.served.pool.execute(END_CLAIMS)
        await self.rounds(FakeClock()).make_round()

    def rounds(self, clock: FakeClock) -> MonitorRounds:
        return MonitorRounds(self.store, self.actions, clock)

    async def list(self) -> Any:
        request = api.ListMonitorsRequest(chat_id=self.chat_id)
        return (await self.served.ann.ask(request)).monitors

    async def cancel(self, monitor_id: str) -> Any:
        request = api.CancelMonitorRequest(
            request_id=self.served.ann.fresh(), chat_id=self.chat_id, monitor_id=monitor_id
        )
        return (await self.served.ann.ask(request)).monitor

    async def is_due(self) -> bool:
        return any(each.state == monitor_pb2.MONITOR_STATE_DUE for each in await self.list())

    async def messages(self) -> int:
        count: int = await self.served.pool.fetchval(COUNT_MESSAGES, self.chat_id)
        return count


@pytest.fixture
async def process(served: ServedChats) -> Process:
    chat = await served.ann.create()
    await served.finish(chat.id)
    no_processes: Any = None
    actions = OwnerActions(served.chat_servicer, no_processes, OwnerCalls(ERRORS))
    return Process(served, chat.id, Actions(actions))


async def test_a_chat_is_woken_once_when_the_line_is_printed(process: Process) -> None:
    monitor = await process.add()
    process.actions.looks = [Look(5), MATCHED]
    await process.round()
    assert await process.messages() == 1
    await process.round()
    assert process.actions.looked == [0, 5]
    (due,) = await process.list()
    assert (due.id, due.state, due.detail) == (monitor.id, monitor_pb2.MONITOR_STATE_DUE, "ready")
    for _ in range(3):
        await process.round()
    assert await process.messages() == 2
    (woken,) = await process.list()
    assert (woken.state, woken.cause) == (
        monitor_pb2.MONITOR_STATE_WOKEN,
        monitor_pb2.MONITOR_CAUSE_MATCHED,
    )


async def test_a_chat_that_runs_is_woken_when_it_is_at_rest(
    served: ServedChats, process: Process
) -> None:
    await process.add()
    await served.ann.send(process.chat_id)
    process.actions.looks = [MATCHED]
    for _ in range(2):
        await process.round()
    assert await process.messages() == 2
    await served.finish(process.chat_id)
    await process.round()
    assert await process.messages() == 3


async def test_a_chat_that_was_used_since_the_claim_is_woken_later(
    served: ServedChats, process: Process
) -> None:
    await process.add()
    process.actions.looks = [MATCHED]
    await process.round()
    await served.pool.execute(END_CLAIMS)
    (claimed,) = await process.store.claim(timedelta(seconds=60), 1)
    assert await process.store.is_current(claimed.monitor, claimed.chat)
    await served.ann.send(process.chat_id)
    assert not await process.store.is_current(claimed.monitor, claimed.chat)
    await served.finish(process.chat_id)
    assert not await process.store.is_current(claimed.monitor, claimed.chat)
    await process.round()
    assert await process.messages() == 3


async def test_many_processes_wake_a_chat_once(process: Process) -> None:
    await process.add()
    process.actions.looks = [MATCHED] * 5
    for _ in range(2):
        async with asyncio.TaskGroup() as tasks:
            for _ in range(5):
                tasks.create_task(process.round())
    assert await process.messages() == 2


async def test_a_process_that_ends_after_the_message_wakes_the_chat_once(
    served: ServedChats, process: Process
) -> None:
    await process.add()
    process.actions.looks = [MATCHED]
    await process.round()
    process.actions.crashes = True
    with pytest.raises(BaseExceptionGroup):
        await process.round()
    assert await process.messages() == 2
    await served.finish(process.chat_id)
    process.actions.crashes = False
    await process.round()
    assert await process.messages() == 2
    assert await served.pool.fetchval(SELECT_STATES) == "woken"


async def test_an_interruption_ends_it(served: ServedChats, process: Process) -> None:
    await process.add()
    await served.ann.send(process.chat_id)
    chats, chat_id = served.stores.chats, ChatId(process.chat_id)
    await chats.apply(chat_id, Interrupt(MessageId(0), None))
    await chats.apply(chat_id, FinishInterruption(fence_of(await served.state(chat_id)), ()))
    await process.round()
    (over,) = await process.list()
    assert (over.state, over.reason) == (monitor_pb2.MONITOR_STATE_ENDED, INTERRUPTED)
    assert process.actions.looked == []


async def test_a_compaction_does_not_end_it(served: ServedChats, process: Process) -> None:
    await process.add()
    await served.compact(process.chat_id)
    process.actions.looks = [MATCHED]
    await process.round()
    assert await served.pool.fetchval(SELECT_STATES) == "due"


async def test_archiving_ends_it_and_deleting_the_chat_deletes_it(
    served: ServedChats, process: Process
) -> None:
    await process.add()
    archiving = chats_api.SetArchivedRequest(request_id="a", chat_id=process.chat_id, archived=True)
    await served.ann.ask(archiving)
    await process.round()
    assert await served.pool.fetchval(SELECT_STATES) == "ended"
    await served.ann.ask(chats_api.DeleteChatRequest(request_id="d", chat_id=process.chat_id))
    assert await served.pool.fetchval("SELECT count(*) FROM chat.monitors") == 0


async def test_its_owner_cancels_it_also_when_it_is_due(process: Process) -> None:
    monitor = await process.add()
    process.actions.looks = [MATCHED]
    await process.round()
    cancelled = await process.cancel(monitor.id)
    assert (cancelled.state, cancelled.reason) == (monitor_pb2.MONITOR_STATE_ENDED, CANCELLED)
    assert (await process.cancel(monitor.id)) == cancelled
    await process.round()
    assert await process.messages() == 1


async def test_only_the_owner_sees_and_cancels_the_monitors_of_a_root_chat(
    served: ServedChats, process: Process
) -> None:
    monitor = await process.add()
    cancelling = api.CancelMonitorRequest(
        request_id="c", chat_id=process.chat_id, monitor_id=monitor.id
    )
    for request in (api.ListMonitorsRequest(chat_id=process.chat_id), cancelling):
        assert (await served.bob.refusal(request)).reason == "CHAT_NOT_FOUND"
    cancelling.monitor_id = id_of(0)
    assert (await served.ann.refusal(cancelling)).reason == "RESOURCE_NOT_FOUND"
    child_id = await served.add_child(process.chat_id)
    with pytest.raises(MonitorRefused, match="no agent"):
        await process.add(chat_id=ChatId(child_id))


async def test_a_chat_has_some_monitors_at_a_time_and_some_more_a_day(
    served: ServedChats, process: Process
) -> None:
    first = await process.add()
    for _ in range(OPEN_MAX - 1):
        await process.add()
    # A repeated call adds nothing.
    await process.store.add(first, await process.claim(first.chat_id))
    assert await process.store.has(first.chat_id, first.owner.id, first.id)
    assert not await process.store.has(first.chat_id, BOB_ID, first.id)
    with pytest.raises(MonitorRefused, match="not over"):
        await process.add()
    for _ in range(PER_DAY_MAX // OPEN_MAX - 1):
        await served.pool.execute(END_ALL)
        for _ in range(OPEN_MAX):
            await process.add()
    await served.pool.execute(END_ALL)
    with pytest.raises(MonitorRefused, match="within a day"):
        await process.add()
    await served.pool.execute(END_LONG_AGO)
    await process.add()
    assert len(await process.list()) == 1


async def test_an_owner_that_was_replaced_and_a_turn_that_is_over_add_no_monitor(
    process: Process,
) -> None:
    first = await process.add()
    claim = await process.claim(first.chat_id)
    replaced = replace(claim, owner_epoch=claim.owner_epoch - 1)
    over = replace(claim, turn_id=MessageId(claim.turn_id + 1))
    for ended in (replaced, over):
        with pytest.raises(FenceLost):
            await process.store.add(replace(first, id=id_of(99)), ended)
    stored = await process.store.of_chat(first.chat_id, ANN_ID)
    assert [each.id for each in stored] == [first.id]


async def test_a_user_has_some_monitors_at_a_time_in_all_chats(
    served: ServedChats, process: Process
) -> None:
    for _ in range(OWNER_OPEN_MAX // OPEN_MAX):
        chat = await served.ann.create()
        for _ in range(OPEN_MAX):
            await process.add(chat_id=ChatId(chat.id))
    with pytest.raises(MonitorRefused, match="of this user"):
        await process.add()
    theirs = await served.bob.create()
    await process.add(chat_id=ChatId(theirs.id), owner=Owner(BOB_ID, "member"))
    await served.pool.execute(END_ALL)
    await process.add()


async def test_a_user_with_many_monitors_does_not_take_all_places(
    served: ServedChats, process: Process
) -> None:
    for _ in range(4):
        await process.add()
    theirs = await served.bob.create()
    last = await process.add(chat_id=ChatId(theirs.id), owner=Owner(BOB_ID, "member"))
    claimed = await process.store.claim(timedelta(seconds=60), 2)
    assert last.id in {each.monitor.id for each in claimed}
    assert len(claimed) == 2


async def test_a_process_that_cannot_be_watched_wakes_the_chat(process: Process) -> None:
    await process.add()
    process.actions.looks = [CallRefused("There is no such process.")]
    await process.round()
    await process.round()
    (woken,) = await process.list()
    assert (woken.cause, woken.detail) == (
        monitor_pb2.MONITOR_CAUSE_LOST,
        "There is no such process.",
    )
    assert await process.messages() == 2


async def test_a_node_that_is_away_is_asked_again_until_the_time_is_over(
    served: ServedChats, process: Process
) -> None:
    await process.add()
    process.actions.looks = [CallPostponed("No node.")] * 2
    await process.round()
    assert await served.pool.fetchval(SELECT_WAIT_S) > 5
    assert await served.pool.fetchval(SELECT_STATES) == "waiting"
    await served.pool.execute(EXPIRE)
    await process.round()
    (due,) = await process.list()
    assert due.cause == monitor_pb2.MONITOR_CAUSE_TIMED_OUT


async def test_one_that_fails_unexpectedly_ends_and_others_go_on(process: Process) -> None:
    await process.add()
    await process.add()
    process.actions.looks = [LookupError(), MATCHED]
    await process.round()
    states = {each.state: each.reason for each in await process.list()}
    assert states == {monitor_pb2.MONITOR_STATE_ENDED: DEFECT, monitor_pb2.MONITOR_STATE_DUE: ""}


async def test_nothing_is_done_for_a_suspended_owner(served: ServedChats, process: Process) -> None:
    await process.add()
    await served.pool.execute(SUSPEND, ANN_ID)
    await process.round()
    assert process.actions.looked == []


async def test_the_loop_looks_often_while_there_are_monitors(process: Process) -> None:
    clock = FakeClock()
    async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
        running = tasks.create_task(process.rounds(clock).run())
        assert await clock.until_sleeping() == RARELY_S
        await process.add()
        process.actions.looks = [MATCHED]
        clock.advance(RARELY_S)
        assert await clock.until_sleeping() == EVERY_S
        while not await process.is_due():
            pass
        running.cancel()


async def test_a_look_that_takes_long_does_not_hold_up_the_others(process: Process) -> None:
    clock = FakeClock()
    process.actions.holding = held = asyncio.Event()
    await process.add()
    process.actions.looks = [MATCHED]
    async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
        running = tasks.create_task(process.rounds(clock).run())
        assert await clock.until_sleeping() == EVERY_S
        while not process.actions.looked:
            await process.list()
        process.actions.holding = None
        process.actions.looks = [MATCHED]
        await process.add()
        clock.advance(EVERY_S)
        while not await process.is_due():
            pass
        assert not held.is_set()
        running.cancel()
