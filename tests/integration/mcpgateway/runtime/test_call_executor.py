"""Calls through the desk: a real journal, a scripted server, a clock that tests move."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from mcpgateway.client.call import CallEnd, CallRecord, CallRequest, Outcome, Progress
from mcpgateway.client.content import BlobPart, TextPart, ToolAnswer
from mcpgateway.runtime.call_executor import RENEW_S, CallExecutor, JournaledCall
from mcpgateway.runtime.journal import Journal
from mcpgateway.runtime.running_call import PreparedCall
from mcpgateway.servers.domain import Limits, Reason
from mcpgateway.servers.errors import ExecutionIdReused, StaleOwner, TooManyCalls, UpstreamFailed
from parley.clock import FakeClock
from parley.postgres import Database
from support.host.supervised import supervision
from support.mcpgateway.scripted_upstream import ScriptedCall, ScriptedUpstream
from support.mcpgateway.values import a_server, a_target, an_order

ANSWER = ToolAnswer(False, (TextPart("hello"),))
DONE = CallEnd(Outcome.SUCCEEDED, (TextPart("hello"),), original_bytes=5)
OTHER_GATEWAY = "01900000-0000-7000-8000-0000000000bb"


@dataclass(frozen=True, slots=True)
class Fixture:
    """A desk and what it works with."""

    executor: CallExecutor
    journal: Journal
    upstream: ScriptedUpstream
    clock: FakeClock

    async def start(self, call_request: CallRequest | None = None) -> JournaledCall:
        return await self.executor.start(call_request or an_order(), PreparedCall(a_target()))

    async def events(self, record: CallRecord) -> list[Progress | CallEnd | None]:
        return [
            news if isinstance(news, Progress) else news.end
            async for news in self.executor.follow(record)
        ]


@pytest.fixture
async def fixture(journal: Journal) -> AsyncIterator[Fixture]:
    upstream, clock = ScriptedUpstream(), FakeClock()
    async with CallExecutor.open(journal, upstream, supervision(clock)) as executor:
        yield Fixture(executor, journal, upstream, clock)


async def test_a_call_is_made_and_its_end_is_journaled(fixture: Fixture) -> None:
    fixture.upstream.calls.append(ScriptedCall(ANSWER))

    async with asyncio.timeout(5):
        opened = await fixture.start()
        events = await fixture.events(opened.record)

    assert (opened.is_attached, events) == (False, [DONE])
    assert (await fixture.journal.read("call-1")).end == DONE


async def test_a_call_is_journaled_before_the_server_hears_of_it(
    fixture: Fixture, database: Database
) -> None:
    async with asyncio.timeout(5):
        async with database.pool.acquire() as connection, connection.transaction():
            await connection.execute("LOCK TABLE mcp.calls IN EXCLUSIVE MODE")
            fixture.upstream.calls.append(ScriptedCall(ANSWER))
            async with asyncio.TaskGroup() as tasks:
                starting = tasks.create_task(fixture.start())
                await until_blocked(database)
                called_meanwhile = list(fixture.upstream.called)
                await connection.execute("ROLLBACK")
                await connection.execute("BEGIN")
        await fixture.events(starting.result().record)

    assert called_meanwhile == []
    assert fixture.upstream.called == [("echo", b"{}")]


async def test_the_same_execution_id_attaches_to_the_stored_outcome(fixture: Fixture) -> None:
    fixture.upstream.calls.append(ScriptedCall(ANSWER))

    async with asyncio.timeout(5):
        await fixture.events((await fixture.start()).record)
        attached = await fixture.executor.attach(an_order())
        started_again = await fixture.start()

    assert attached is not None
    assert attached == started_again
    assert (attached.is_attached, attached.record.end) == (True, DONE)
    assert len(fixture.upstream.called) == 1


async def test_two_requests_at_once_make_one_call(fixture: Fixture) -> None:
    released = asyncio.Event()
    progress = Progress(1, 2, "half")
    fixture.upstream.calls.append(ScriptedCall(ANSWER, [progress], released))

    async with asyncio.timeout(5):
        async with asyncio.TaskGroup() as tasks:
            starts = [tasks.create_task(fixture.start()) for _ in range(2)]
        opened = [start.result() for start in starts]
        async with asyncio.TaskGroup() as tasks:
            follows = [tasks.create_task(fixture.events(each.record)) for each in opened]
            released.set()

    assert [each.is_attached for each in opened] == [False, True]
    assert [follow.result() for follow in follows] == [[progress, DONE]] * 2
    assert len(fixture.upstream.called) == 1


async def test_another_content_under_the_same_id_is_refused(fixture: Fixture) -> None:
    fixture.upstream.calls.append(ScriptedCall(ANSWER))
    await fixture.start()

    with pytest.raises(ExecutionIdReused):
        await fixture.executor.attach(an_order(arguments_json=b'{"a":1}'))


async def test_an_older_owner_starts_nothing(fixture: Fixture) -> None:
    await fixture.journal.find(an_order("other", owner_epoch=2).key)

    with pytest.raises(StaleOwner):
        await fixture.start(an_order(owner_epoch=1))

    assert fixture.upstream.called == []
    assert await fixture.journal.find(an_order(owner_epoch=2).key) is None


async def test_closing_the_request_leaves_the_call_running(fixture: Fixture) -> None:
    released = asyncio.Event()
    fixture.upstream.calls.append(ScriptedCall(ANSWER, released=released))

    async with asyncio.timeout(5):
        opened = await fixture.start()
        async with asyncio.TaskGroup() as tasks:
            following = tasks.create_task(fixture.events(opened.record))
            await fixture.clock.until_sleeping()
            following.cancel()
        released.set()
        events = await fixture.events(opened.record)

    assert events == [DONE]


async def test_a_cancelled_call_tells_the_server_and_may_have_taken_effect(
    fixture: Fixture,
) -> None:
    fixture.upstream.calls.append(ScriptedCall(ANSWER, released=asyncio.Event()))

    async with asyncio.timeout(5):
        opened = await fixture.start()
        await fixture.clock.until_sleeping()
        fixture.executor.cancel("call-1")
        (end,) = await fixture.events(opened.record)

    assert end == CallEnd(
        Outcome.CANCELLED, reason=Reason.CANCELLED, message="cancelled; it may have taken effect"
    )
    assert fixture.upstream.cancelled == ["echo"]


async def test_a_cancellation_asked_of_another_replica_arrives_with_the_next_renewal(
    fixture: Fixture, database: Database
) -> None:
    fixture.upstream.calls.append(ScriptedCall(ANSWER, released=asyncio.Event()))
    elsewhere = await Journal.open(database, OTHER_GATEWAY)

    async with asyncio.timeout(5):
        opened = await fixture.start()
        await elsewhere.cancel(an_order().key)
        await fixture.executor.reconcile()
        (end,) = await fixture.events(opened.record)

    assert isinstance(end, CallEnd)
    assert end.outcome is Outcome.CANCELLED


async def test_silence_ends_a_call_and_progress_puts_that_off(fixture: Fixture) -> None:
    call_request = an_order(idle_s=10.0, limit_s=100.0)
    notes = asyncio.Queue[Progress]()
    upstream = TalkingUpstream(notes)
    async with (
        asyncio.timeout(5),
        CallExecutor.open(fixture.journal, upstream, supervision(fixture.clock)) as executor,
    ):
        opened = await executor.start(call_request, PreparedCall(a_target()))
        assert await fixture.clock.until_sleeping() == 10
        fixture.clock.advance(9)
        notes.put_nowait(Progress(1, None, ""))
        await upstream.told.wait()
        fixture.clock.advance(1)
        assert await fixture.clock.until_sleeping() == 9
        fixture.clock.advance(9)
        end = [news async for news in executor.follow(opened.record)][-1]

    assert isinstance(end, CallRecord)
    assert end.end == CallEnd(
        Outcome.TIMED_OUT,
        reason=Reason.IDLE_TIMEOUT,
        message="the tool was silent for 10 s; it may have taken effect",
    )


async def test_the_hard_limit_ends_a_call_that_keeps_talking(fixture: Fixture) -> None:
    fixture.upstream.calls.append(ScriptedCall(ANSWER, released=asyncio.Event()))

    async with asyncio.timeout(5):
        opened = await fixture.start(an_order(idle_s=100.0, limit_s=30.0))
        assert await fixture.clock.until_sleeping() == 30
        fixture.clock.advance(30)
        (end,) = await fixture.events(opened.record)

    assert end == CallEnd(
        Outcome.TIMED_OUT,
        reason=Reason.CALL_TIMEOUT,
        message="the tool did not finish for 30 s; it may have taken effect",
    )


@pytest.mark.parametrize(
    ("failure", "outcome", "message"),
    [
        (
            UpstreamFailed(Reason.SESSION_LOST, "gone", may_have_executed=True),
            Outcome.UNKNOWN,
            "gone; the tool may have run",
        ),
        (UpstreamFailed(Reason.CONNECT_FAILED, "refused"), Outcome.FAILED, "refused"),
        (UpstreamFailed(Reason.RATE_LIMITED, "slow", retry_after_ms=7), Outcome.FAILED, "slow"),
    ],
)
async def test_a_failure_is_a_result_and_an_unknown_effect_is_unknown(
    fixture: Fixture, failure: UpstreamFailed, outcome: Outcome, message: str
) -> None:
    fixture.upstream.calls.append(ScriptedCall(failure))

    async with asyncio.timeout(5):
        (end,) = await fixture.events((await fixture.start()).record)

    assert end == CallEnd(
        outcome,
        reason=failure.reason,
        message=message,
        may_have_executed=failure.may_have_executed,
        retry_after_ms=failure.retry_after_ms,
    )


async def test_an_obstacle_is_journaled_and_nothing_is_called(fixture: Fixture) -> None:
    blocking_error = UpstreamFailed(Reason.CONNECT_FAILED, "refused")

    async with asyncio.timeout(5):
        opened = await fixture.executor.start(an_order(), PreparedCall(a_target(), blocking_error))
        (end,) = await fixture.events(opened.record)

    assert end == CallEnd(
        Outcome.FAILED,
        reason=Reason.CONNECT_FAILED,
        message="refused",
        may_have_executed=False,
    )
    assert fixture.upstream.called == []


async def test_a_result_beyond_the_limit_is_not_kept(fixture: Fixture) -> None:
    blob = BlobPart("image", "image/png", b"x" * 2000)
    fixture.upstream.calls.append(ScriptedCall(ToolAnswer(False, (blob,))))
    target = a_target(a_server(limits=Limits(result_bytes_max=1024)))

    async with asyncio.timeout(5):
        opened = await fixture.executor.start(an_order(), PreparedCall(target))
        (end,) = await fixture.events(opened.record)

    assert end == CallEnd(
        Outcome.FAILED,
        reason=Reason.RESULT_TOO_LARGE,
        message="the result exceeds 1024 bytes and was not kept",
        original_bytes=2000,
    )


async def test_calls_at_once_are_limited_per_user(fixture: Fixture) -> None:
    fixture.upstream.calls += [
        ScriptedCall(ANSWER, released=asyncio.Event()),
        ScriptedCall(ANSWER),
    ]
    target = a_target(a_server(limits=Limits(calls_per_user_max=1)))
    await fixture.executor.start(an_order("one"), PreparedCall(target))

    async def refused() -> None:
        with pytest.raises(TooManyCalls):
            await fixture.executor.start(an_order("two"), PreparedCall(target))

    async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(refused())
        while not waiting.done():
            # It waits for a short time, in case the other call ends.
            fixture.clock.advance(0.1)
            await asyncio.wait({waiting}, timeout=0.02)
    assert not (
        await fixture.executor.start(an_order("three", user_id="bob"), PreparedCall(target))
    ).is_attached


async def test_what_another_process_runs_is_followed_through_the_journal(
    fixture: Fixture, database: Database
) -> None:
    elsewhere = await Journal.open(database, OTHER_GATEWAY)
    record, _ = await elsewhere.begin(an_order())

    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        following = tasks.create_task(fixture.events(record))
        await fixture.clock.until_sleeping()
        await elsewhere.finish("call-1", DONE)
        fixture.clock.advance(1)

    assert following.result() == [DONE]


async def test_a_call_lost_between_journal_and_desk_never_left(fixture: Fixture) -> None:
    record, _ = await fixture.journal.begin(an_order())

    async with asyncio.timeout(5):
        await fixture.executor.reconcile()
        (end,) = await fixture.events(await fixture.journal.read(record.key.execution_id))

    assert end == CallEnd(
        Outcome.FAILED,
        reason=Reason.GATEWAY_LOST,
        message="the call was lost before it was sent",
        may_have_executed=False,
    )


async def test_a_process_that_stops_leaves_its_calls_as_unknown(journal: Journal) -> None:
    upstream = ScriptedUpstream(calls=[ScriptedCall(ANSWER, released=asyncio.Event())])
    clock = FakeClock()

    async with (
        asyncio.timeout(5),
        CallExecutor.open(journal, upstream, supervision(clock)) as executor,
    ):
        await executor.start(an_order(), PreparedCall(a_target()))
        await clock.until_sleeping()

    assert (await journal.read("call-1")).end == replace(
        CallEnd(Outcome.UNKNOWN, reason=Reason.GATEWAY_LOST),
        message="this process stopped during the call; the tool may have run",
    )


class TalkingUpstream(ScriptedUpstream):
    """Passes on the progress a test gives it, and never answers."""

    def __init__(self, notes: "asyncio.Queue[Progress]") -> None:
        super().__init__()
        self._notes = notes
        self.told = asyncio.Event()

    async def call_tool(
        self, target: Any, tool: Any, arguments_json: Any, on_progress: Any, ask: Any
    ) -> ToolAnswer:
        while True:
            on_progress(await self._notes.get())
            self.told.set()


async def until_blocked(database: Database) -> None:
    """Wait until some statement waits for a lock."""
    waiting = 0
    while not waiting:
        waiting = await database.pool.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted")


async def test_a_failed_look_for_dead_processes_does_not_end_the_lease(fixture: Fixture) -> None:
    looked: list[None] = []

    async def fail() -> None:
        looked.append(None)
        raise PermissionError("the directory")

    async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
        renewing = tasks.create_task(fixture.executor.renew_lease(fail))
        for _ in range(2):
            await fixture.clock.until_sleeping_for(RENEW_S)
            fixture.clock.advance(RENEW_S)
        await fixture.clock.until_sleeping_for(RENEW_S)
        renewing.cancel()

    assert len(looked) == 3
