"""Schedules over gRPC and in PostgreSQL: one process sends each run, once."""

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from chatd.chats.domain.commands import FailTurn
from chatd.chats.domain.transitions import fence_of
from chatd.chats.rpc.owner_calls import OwnerCalls
from chatd.content.domain.messages import ErrorKind, TurnError
from chatd.errors import ERRORS
from chatd.primitives.domain.ids import ChatId
from chatd.schedules.domain.runs import DEFECT
from chatd.schedules.domain.schedule import RUNS_KEPT, SCHEDULES_MAX, Schedule
from chatd.schedules.engine.running import (
    OPEN_S,
    RARELY_S,
    SENT_AT_ONCE_MAX,
    ScheduleRuns,
)
from chatd.schedules.rpc.sending import ChatSender
from chatd.schedules.store.due_runs import DueRun, PostgresDueRuns
from parley.api.chat.v1 import chat_pb2, schedule_pb2
from parley.api.chat.v1 import chat_service_pb2 as chats_api
from parley.api.chat.v1 import schedule_service_pb2 as api
from parley.clock import FakeClock
from parley.postgres import DatabaseUnavailable, Pool
from support.chatd.chats.chat_people import ANN_ID
from support.chatd.chats.served_chats import ServedChats

ABSENT = "00000000-0000-0000-0000-00000000dead"
STATE, OUTCOME = schedule_pb2.ScheduleState, schedule_pb2.ScheduleRunOutcome
# A run is due now, or was so many seconds ago.
MAKE_DUE = """
    UPDATE chat.schedules SET claimed_until = NULL,
        next_run_at = date_trunc('second', clock_timestamp()) - make_interval(secs => $2)
    WHERE id = $1
"""
END_CLAIMS = "UPDATE chat.schedules SET claimed_until = clock_timestamp() - interval '1 second'"
END_CLAIM = f"{END_CLAIMS} WHERE id = $1"
SET_ZONE = "UPDATE chat.schedules SET time_zone = $2 WHERE id = $1"
COUNT_MESSAGES = "SELECT count(*) FROM chat.chat_messages WHERE role = 'user'"
SUSPEND = "INSERT INTO chat.suspended_users VALUES ($1, false, now())"


class Crash(BaseException):
    """A process ends here."""


@dataclass
class CrashingSender:
    """Sends as the real one, and ends its process before or after it."""

    real: ChatSender
    is_sending: bool
    sent: list[str] = field(default_factory=list)

    async def send(self, schedule: Schedule, request_id: str) -> ChatId:
        if self.is_sending:
            await self.real.send(schedule, request_id)
            self.sent.append(request_id)
        raise Crash


@dataclass
class DefectiveSender:
    """Sends as the real one, except the messages of one schedule."""

    real: ChatSender
    schedule_id: str
    error: Exception

    async def send(self, schedule: Schedule, request_id: str) -> ChatId:
        if schedule.id == self.schedule_id:
            raise self.error
        return await self.real.send(schedule, request_id)


@dataclass
class MeetingSender:
    """Sends as the real one, when so many messages are being sent at once."""

    real: ChatSender
    meeting: asyncio.Barrier

    async def send(self, schedule: Schedule, request_id: str) -> ChatId:
        await self.meeting.wait()
        return await self.real.send(schedule, request_id)


class ChangedRuns(PostgresDueRuns):
    """Runs whose schedules are changed as soon as they are claimed."""

    def __init__(self, pool: Pool, change: str) -> None:
        super().__init__(pool)
        self._change = change

    async def claim(self, claim_for: timedelta) -> DueRun | None:
        found = await super().claim(claim_for)
        await self._pool.execute(self._change)
        return found


class AwayRuns(PostgresDueRuns):
    """A database that does not answer."""

    async def claim(self, claim_for: timedelta) -> DueRun | None:
        raise DatabaseUnavailable("away")


@dataclass
class Process:
    """The schedules of one process."""

    served: ServedChats

    @property
    def sender(self) -> ChatSender:
        return ChatSender(self.served.chat_servicer, OwnerCalls(ERRORS))

    def runs(self, sender: Any = None) -> ScheduleRuns:
        return ScheduleRuns(PostgresDueRuns(self.served.pool), sender or self.sender, FakeClock())

    async def round(self, sender: Any = None) -> None:
        async with asyncio.timeout(20):
            await self.runs(sender).make_round()

    async def made(self, **given: Any) -> Any:
        """Make a schedule of Ann."""
        fields: dict[str, Any] = {"text": "Look.", "cron": "0 0 1 1 *", **given}
        schedule = schedule_pb2.Schedule(**fields)
        request = api.CreateScheduleRequest(request_id=self.served.ann.fresh(), schedule=schedule)
        return (await self.served.ann.ask(request)).schedule

    async def refused(self, **given: Any) -> Any:
        fields: dict[str, Any] = {"text": "Look.", "cron": "0 0 1 1 *", **given}
        schedule = schedule_pb2.Schedule(**fields)
        request = api.CreateScheduleRequest(request_id=self.served.ann.fresh(), schedule=schedule)
        return await self.served.ann.refusal(request)

    async def due(self, schedule_id: str, late_s: float = 1.0) -> None:
        await self.served.pool.execute(MAKE_DUE, schedule_id, late_s)

    async def read(self, schedule_id: str) -> Any:
        request = api.GetScheduleRequest(schedule_id=schedule_id)
        return (await self.served.ann.ask(request)).schedule

    async def outcomes(self, schedule_id: str) -> list[str]:
        request = api.ListScheduleRunsRequest(schedule_id=schedule_id)
        runs = (await self.served.ann.ask(request)).runs
        return [OUTCOME.Name(run.outcome).removeprefix("SCHEDULE_RUN_OUTCOME_") for run in runs]

    async def fail(self, chat_id: str, message: str) -> None:
        """End the turn of a chat with an error."""
        state = await self.served.state(chat_id)
        command = FailTurn(fence_of(state), TurnError(message, ErrorKind.OVERLOADED))
        await self.served.stores.chats.apply(ChatId(chat_id), command)

    async def messages(self) -> int:
        count: int = await self.served.pool.fetchval(COUNT_MESSAGES)
        return count


@pytest.fixture
def process(served: ServedChats) -> Process:
    return Process(served)


async def test_a_schedule_is_kept_with_all_that_it_says(
    served: ServedChats, process: Process
) -> None:
    given = schedule_pb2.Schedule(
        name="Report",
        text="Report.",
        cron="30 9 * * mon-fri",
        time_zone="Europe/Berlin",
        model_id="m",
        reasoning_effort=chat_pb2.REASONING_EFFORT_HIGH,
        mode=chat_pb2.CHAT_MODE_PLAN,
        unattended=True,
        missed_runs=schedule_pb2.MISSED_RUNS_RUN_ONCE,
        ends_at=Timestamp(seconds=4_000_000_000),
        runs_max=7,
    )
    request = api.CreateScheduleRequest(request_id="r", schedule=given)
    made = (await served.ann.ask(request)).schedule
    # The fake clock stands at the beginning of 2026, a Thursday.
    given.next_run_at.FromJsonString("2026-01-01T08:30:00Z")
    given.id, given.state, given.etag = made.id, schedule_pb2.SCHEDULE_STATE_ACTIVE, "1"
    given.created_at.CopyFrom(made.created_at)
    assert made == given
    assert (await served.ann.ask(request)).schedule == made
    listed = await served.ann.ask(api.ListSchedulesRequest())
    assert list(listed.schedules) == [made]
    other = api.CreateScheduleRequest(request_id="r", schedule=schedule_pb2.Schedule(text="x"))
    assert (await served.ann.refusal(other)).reason == "REQUEST_ID_REUSED"


async def test_others_neither_see_nor_change_it(served: ServedChats, process: Process) -> None:
    made = await process.made()
    assert not (await served.bob.ask(api.ListSchedulesRequest())).schedules
    for request in (
        api.GetScheduleRequest(schedule_id=made.id),
        api.ListScheduleRunsRequest(schedule_id=made.id),
        api.PauseScheduleRequest(request_id="p", schedule_id=made.id),
        api.ResumeScheduleRequest(request_id="p", schedule_id=made.id),
        api.DeleteScheduleRequest(request_id="p", schedule_id=made.id),
    ):
        assert (await served.bob.refusal(request)).reason == "RESOURCE_NOT_FOUND"
    assert await process.read(made.id) == made


async def test_bad_times_and_ids_are_refused_with_their_field(process: Process) -> None:
    past, future = Timestamp(seconds=1), Timestamp(seconds=4_000_000_000)
    for given, wanted in (
        ({"cron": ""}, "schedule.at"),
        ({"at": future}, "schedule.at"),
        ({"cron": "", "at": past}, "schedule.at"),
        ({"cron": "", "at": future, "time_zone": "UTC"}, "schedule.time_zone"),
        ({"cron": "every day"}, "schedule.cron"),
        ({"cron": "0 0 30 2 *"}, "schedule.cron"),
        ({"cron": "*/4 * * * *"}, "schedule.cron"),
        ({"time_zone": "Mars/Base"}, "schedule.time_zone"),
        ({"time_zone": "../etc/passwd"}, "schedule.time_zone"),
        ({"ends_at": past}, "schedule.ends_at"),
        ({"text": " \n"}, "schedule.text"),
        ({"text": "a\0b"}, "schedule.text"),
        ({"name": "a\0b"}, "schedule.name"),
        ({"model_id": "a\0b"}, "schedule.model_id"),
        ({"chat_id": ABSENT, "unattended": True}, "schedule.unattended"),
    ):
        problem = await process.refused(**given)
        assert (problem.reason, problem.metadata["field"]) == ("INVALID_REQUEST", wanted)
    assert (await process.refused(chat_id=ABSENT)).reason == "CHAT_NOT_FOUND"
    assert (await process.refused(workspace_id=ABSENT)).reason == "UNKNOWN_ID"


async def test_a_user_has_a_bounded_number_of_schedules(process: Process) -> None:
    for _ in range(SCHEDULES_MAX):
        await process.made()
    problem = await process.refused()
    assert problem.reason == "TOO_MANY_SCHEDULES"


async def test_a_run_makes_a_chat_and_is_recorded_until_its_turn_ends(
    served: ServedChats, process: Process
) -> None:
    made = await process.made(name="Report", unattended=True)
    await process.round()
    assert served.created == []
    await process.due(made.id)
    await process.round()
    started = await process.read(made.id)
    assert started.last_run.outcome == schedule_pb2.SCHEDULE_RUN_OUTCOME_STARTED
    assert started.runs_count == 1
    assert started.next_run_at.ToDatetime() > started.last_run.planned_at.ToDatetime()
    request = chats_api.GetChatRequest(chat_id=started.last_run.chat_id)
    chat = (await served.ann.ask(request)).chat
    assert (chat.title, dict(chat.labels)) == ("Report", {"schedule": made.id})
    assert served.created[0].is_unattended
    await process.round()
    assert await process.outcomes(made.id) == ["STARTED"]
    await served.finish(chat.id)
    await process.round()
    assert await process.outcomes(made.id) == ["COMPLETED"]


async def test_runs_go_into_one_chat_and_wait_there_while_it_is_busy(
    served: ServedChats, process: Process
) -> None:
    chat = await served.ann.create()
    made = await process.made(chat_id=chat.id)
    await process.due(made.id)
    await process.round()
    assert (await served.state(chat.id)).queue_length == 1
    assert (await process.read(made.id)).last_run.chat_id == chat.id
    await served.finish(chat.id)
    await process.round()
    assert await process.outcomes(made.id) == ["STARTED"]
    await served.finish(chat.id)
    await process.round()
    assert await process.outcomes(made.id) == ["COMPLETED"]


async def test_many_processes_send_each_run_once(served: ServedChats, process: Process) -> None:
    schedules = [await process.made() for _ in range(6)]
    for each in schedules:
        await process.due(each.id)
    async with asyncio.TaskGroup() as tasks:
        for _ in range(5):
            tasks.create_task(process.round())
    assert len(served.created) == await process.messages() == 6
    for each in schedules:
        assert (await process.read(each.id)).runs_count == 1


@pytest.mark.parametrize("is_sending", [False, True])
@pytest.mark.parametrize("is_in_chat", [False, True])
async def test_a_process_that_ends_before_or_after_sending_leaves_one_run(
    served: ServedChats, process: Process, is_sending: bool, is_in_chat: bool
) -> None:
    chat_id = (await served.ann.create()).id if is_in_chat else ""
    if chat_id:
        await served.finish(chat_id)
    before = await process.messages()
    made = await process.made(chat_id=chat_id)
    await process.due(made.id)
    crashing = CrashingSender(process.sender, is_sending)
    with pytest.raises(BaseExceptionGroup):
        await process.round(crashing)
    assert len(crashing.sent) == int(is_sending)
    assert await process.outcomes(made.id) == ["SENDING"]
    await process.round()
    assert await process.outcomes(made.id) == ["SENDING"]  # The claim of the dead process holds.
    await served.pool.execute(END_CLAIMS)
    await process.round()
    assert await process.outcomes(made.id) == ["STARTED"]
    assert await process.messages() == before + 1
    assert (await process.read(made.id)).runs_count == 1


async def test_a_run_that_fails_unexpectedly_is_recorded_and_others_go_on(
    served: ServedChats, process: Process
) -> None:
    broken, zoneless, sound = [await process.made() for _ in range(3)]
    await served.pool.execute(SET_ZONE, zoneless.id, "Europe/Nowhere")
    for late_s, each in ((9.0, broken), (8.0, zoneless), (1.0, sound)):
        await process.due(each.id, late_s=late_s)
    await process.round(DefectiveSender(process.sender, broken.id, LookupError()))
    failed, halted = await process.read(broken.id), await process.read(zoneless.id)
    assert (failed.state, failed.failures_count) == (schedule_pb2.SCHEDULE_STATE_ACTIVE, 1)
    assert failed.next_run_at.ToDatetime() > failed.last_run.planned_at.ToDatetime()
    assert failed.last_run.error == DEFECT
    assert (halted.state, halted.pause_reason) == (schedule_pb2.SCHEDULE_STATE_PAUSED, DEFECT)
    assert await process.outcomes(sound.id) == ["STARTED"]


async def test_a_run_whose_claim_expired_comes_after_those_that_became_due_before(
    process: Process,
) -> None:
    stuck, waiting = await process.made(), await process.made()
    await process.due(stuck.id, late_s=90.0)
    await process.due(waiting.id, late_s=60.0)
    await process.served.pool.execute(END_CLAIM, stuck.id)
    store, claim_for = PostgresDueRuns(process.served.pool), timedelta(seconds=60)
    claimed = [await store.claim(claim_for) for _ in range(2)]
    assert [each and each.schedule.id for each in claimed] == [waiting.id, stuck.id]


async def test_an_outage_while_sending_leaves_a_run_to_be_sent_later_and_others_go_on(
    process: Process,
) -> None:
    waiting, sound = await process.made(), await process.made()
    for each in (waiting, sound):
        await process.due(each.id)
    outage = DatabaseUnavailable("away")
    await process.round(DefectiveSender(process.sender, waiting.id, outage))
    assert await process.outcomes(waiting.id) == ["SENDING"]
    assert await process.outcomes(sound.id) == ["STARTED"]


async def test_runs_are_sent_at_once_so_that_a_slow_one_holds_up_no_other(
    process: Process,
) -> None:
    schedules = [await process.made() for _ in range(SENT_AT_ONCE_MAX)]
    for each in schedules:
        await process.due(each.id)
    await process.round(MeetingSender(process.sender, asyncio.Barrier(SENT_AT_ONCE_MAX)))
    for each in schedules:
        assert await process.outcomes(each.id) == ["STARTED"]


@pytest.mark.parametrize(
    "change", ["UPDATE chat.schedules SET state = 'paused'", "DELETE FROM chat.schedules"]
)
async def test_a_run_whose_schedule_was_paused_or_deleted_meanwhile_is_not_sent(
    process: Process, change: str
) -> None:
    await process.due((await process.made()).id)
    store = ChangedRuns(process.served.pool, change)
    await ScheduleRuns(store, process.sender, FakeClock()).make_round()
    assert process.served.created == []


async def test_the_loop_goes_on_after_an_outage(process: Process) -> None:
    clock = FakeClock()
    runs = ScheduleRuns(AwayRuns(process.served.pool), process.sender, clock)
    async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
        running = tasks.create_task(runs.run())
        assert await clock.until_sleeping() == RARELY_S
        running.cancel()


async def test_missed_runs_are_skipped_or_made_up_for_once(
    served: ServedChats, process: Process
) -> None:
    skipped = await process.made()
    caught_up = await process.made(missed_runs=schedule_pb2.MISSED_RUNS_RUN_ONCE)
    for each in (skipped, caught_up):
        await process.due(each.id, late_s=7 * 3600)
    await process.round()
    await process.round()
    assert await process.outcomes(skipped.id) == ["MISSED"]
    assert await process.outcomes(caught_up.id) == ["STARTED"]
    assert len(served.created) == 1


async def test_failing_turns_pause_the_schedule_with_the_reason(
    served: ServedChats, process: Process
) -> None:
    made = await process.made()
    for number in range(3):
        await process.due(made.id, late_s=10.0 - number)
        await process.round()
        chat_id = (await process.read(made.id)).last_run.chat_id
        await process.fail(chat_id, "The provider is away.")
        await process.round()
    read = await process.read(made.id)
    assert read.state == schedule_pb2.SCHEDULE_STATE_PAUSED
    expected = "3 runs failed one after the other: The provider is away."
    assert (read.pause_reason, read.HasField("next_run_at")) == (expected, False)
    resuming = api.ResumeScheduleRequest(request_id="x", schedule_id=made.id)
    again = (await served.ann.ask(resuming)).schedule
    assert (again.state, again.pause_reason) == (schedule_pb2.SCHEDULE_STATE_ACTIVE, "")
    assert again.failures_count == 0


async def test_a_chat_that_is_gone_pauses_the_schedule_at_once(
    served: ServedChats, process: Process
) -> None:
    chat = await served.ann.create()
    await served.finish(chat.id)
    made = await process.made(chat_id=chat.id)
    deleting = chats_api.DeleteChatRequest(request_id="d", chat_id=chat.id)
    await served.ann.ask(deleting)
    await process.due(made.id)
    await process.round()
    read = await process.read(made.id)
    assert read.state == schedule_pb2.SCHEDULE_STATE_PAUSED
    assert read.pause_reason == read.last_run.error != ""
    assert await process.outcomes(made.id) == ["FAILED"]


async def test_nothing_runs_while_its_owner_is_suspended_or_it_is_paused(
    served: ServedChats, process: Process
) -> None:
    halted, made = await process.made(), await process.made()
    pausing = api.PauseScheduleRequest(request_id="p", schedule_id=halted.id)
    shown = (await served.ann.ask(pausing)).schedule
    assert (shown.state, shown.HasField("next_run_at")) == (
        schedule_pb2.SCHEDULE_STATE_PAUSED,
        False,
    )
    for each in (halted, made):
        await process.due(each.id)
    await served.pool.execute(SUSPEND, ANN_ID)
    await process.round()
    assert served.created == []
    await served.pool.execute("DELETE FROM chat.suspended_users")
    await process.round()
    assert len(served.created) == 1
    assert await process.outcomes(halted.id) == []


async def test_it_ends_with_its_last_run_and_is_deleted_with_its_runs(
    served: ServedChats, process: Process
) -> None:
    made = await process.made(runs_max=1)
    await process.due(made.id)
    await process.round()
    assert (await process.read(made.id)).state == schedule_pb2.SCHEDULE_STATE_ENDED
    resuming = api.ResumeScheduleRequest(request_id="x", schedule_id=made.id)
    assert (await served.ann.refusal(resuming)).reason == "SCHEDULE_ENDED"
    await served.ann.ask(api.DeleteScheduleRequest(request_id="d", schedule_id=made.id))
    assert await served.pool.fetchval("SELECT count(*) FROM chat.schedule_runs") == 0
    await process.round()


async def test_only_the_newest_runs_are_kept(served: ServedChats, process: Process) -> None:
    made = await process.made()
    for number in range(RUNS_KEPT + 2):
        await process.due(made.id, late_s=4000.0 - number)
        await process.round()
    assert await process.outcomes(made.id) == ["MISSED"] * RUNS_KEPT


async def test_the_loop_sends_a_run_when_it_is_due(served: ServedChats, process: Process) -> None:
    made = await process.made()
    await process.due(made.id)
    clock = FakeClock()
    runs = ScheduleRuns(PostgresDueRuns(served.pool), process.sender, clock)
    async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
        running = tasks.create_task(runs.run())
        assert await clock.until_sleeping() == OPEN_S
        running.cancel()
    assert await process.outcomes(made.id) == ["STARTED"]
