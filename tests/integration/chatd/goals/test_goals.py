"""Goals over gRPC and in PostgreSQL: one process at a time works on each, and sends once."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest

from chatd.chats.domain.commands import FailTurn, FinishInterruption, Interrupt
from chatd.chats.domain.owner_calls import CallPostponed, CallRefused
from chatd.chats.domain.transitions import fence_of
from chatd.chats.rpc.owner_calls import OwnerCalls
from chatd.content.domain.messages import ErrorKind, TurnError
from chatd.errors import ERRORS
from chatd.goals.domain.goal import DEFECT, INTERRUPTED, CheckResult, Goal, RestingChat, Verdict
from chatd.goals.engine.pursuit import EVERY_S, GoalPursuit
from chatd.goals.rpc.actions import OwnerActions
from chatd.goals.store.goals import PostgresGoals
from chatd.primitives.domain.ids import ChatId, MessageId
from parley.api.chat.v1 import chat_service_pb2 as chats_api
from parley.api.chat.v1 import goal_pb2
from parley.api.chat.v1 import goal_service_pb2 as api
from parley.clock import FakeClock
from support.chatd.chats.chat_people import ANN_ID
from support.chatd.chats.served_chats import ServedChats

END_CLAIMS = "UPDATE chat.goals SET claimed_until = clock_timestamp() - interval '1 second'"
COUNT_MESSAGES = """
    SELECT count(*) FROM chat.chat_messages WHERE role = 'user' AND chat_id = $1
"""
SELECT_WAIT_S = """
    SELECT extract(epoch FROM claimed_until - clock_timestamp())::float8 FROM chat.goals
"""
SET_LONG_AGO = "UPDATE chat.goals SET created_at = created_at - interval '1 hour'"
ADD_MONITOR = """
    INSERT INTO chat.monitors (id, chat_id, owner_id, owner_role, process_id, command, pattern,
        note, cursor, state, cause, detail, reason, created_at, expires_at)
    VALUES (gen_random_uuid(), $1, $2, 'member', 'p1', 'npm run dev', '', '', 0, $3, 'exited',
        '', '', now(), now() + interval '1 hour')
"""
SUSPEND = "INSERT INTO chat.suspended_users VALUES ($1, false, now())"


class Crash(BaseException):
    """A process ends here."""


@dataclass
class Checks:
    """Sends as the real actions, and checks as a test says."""

    real: OwnerActions
    results: list[CheckResult | Exception | None] = field(default_factory=list)
    checked: list[str] = field(default_factory=list)
    crashes: bool = False
    meanwhile: Callable[[], Awaitable[object]] | None = None

    async def send(self, goal: Goal, text: str, request_id: str) -> None:
        await self.real.send(goal, text, request_id)
        if self.crashes:
            raise Crash

    async def check(self, goal: Goal, request_id: str) -> CheckResult | None:
        self.checked.append(request_id)
        if self.meanwhile is not None:
            await self.meanwhile()
        result = self.results.pop(0)
        if isinstance(result, Exception):
            raise result
        return result


@dataclass
class Verdicts:
    """Judges as a test says."""

    verdicts: list[Verdict | Exception] = field(default_factory=list)

    async def judge(self, goal: Goal, chat: RestingChat) -> Verdict:
        verdict = self.verdicts.pop(0)
        if isinstance(verdict, Exception):
            raise verdict
        return verdict


@dataclass
class Process:
    """The goals of one process, and a chat of Ann."""

    served: ServedChats
    chat_id: str
    checks: Checks
    judge: Verdicts = field(default_factory=Verdicts)

    async def set(self, **given: Any) -> Any:
        fields: dict[str, Any] = {"text": "Mend it.", "check_command": "make test", **given}
        goal = goal_pb2.Goal(**fields)
        request = api.SetGoalRequest(
            request_id=self.served.ann.fresh(), chat_id=self.chat_id, goal=goal
        )
        return (await self.served.ann.ask(request)).goal

    async def resume(self) -> Any:
        request = api.ResumeGoalRequest(request_id=self.served.ann.fresh(), chat_id=self.chat_id)
        return (await self.served.ann.ask(request)).goal

    async def round(self) -> None:
        await self.served.pool.execute(END_CLAIMS)
        store = PostgresGoals(self.served.pool)
        pursuit = GoalPursuit(store, self.checks, self.judge, FakeClock())
        async with asyncio.timeout(20):
            await pursuit.make_round()

    async def read(self) -> Any:
        return (await self.served.ann.ask(api.GetGoalRequest(chat_id=self.chat_id))).goal

    async def has_sent(self) -> bool:
        return await self.messages() == 2

    async def messages(self) -> int:
        count: int = await self.served.pool.fetchval(COUNT_MESSAGES, self.chat_id)
        return count


@pytest.fixture
async def process(served: ServedChats) -> Process:
    chat = await served.ann.create()
    await served.finish(chat.id)
    no_processes: Any = None
    actions = OwnerActions(served.chat_servicer, no_processes, OwnerCalls(ERRORS))
    return Process(served, chat.id, Checks(actions))


async def test_a_chat_goes_on_until_the_check_passes(served: ServedChats, process: Process) -> None:
    made = await process.set()
    assert (made.state, made.turns_max, made.seconds_max) == (goal_pb2.GOAL_STATE_ACTIVE, 20, 3600)
    await process.round()
    assert (await process.read()).turns_count == 1
    await process.round()  # The chat runs: nothing is checked.
    assert process.checks.checked == []
    await served.finish(process.chat_id)
    process.checks.results = [None, CheckResult(1, "1 failed"), CheckResult(0, "fine")]
    await process.round()  # The check takes long.
    assert await process.messages() == 2
    await process.round()
    assert process.checks.checked[0] == process.checks.checked[1]
    going = await process.read()
    assert (going.turns_count, going.check_output) == (2, "1 failed")
    await served.finish(process.chat_id)
    await process.round()
    reached = await process.read()
    assert (reached.state, reached.check_output) == (goal_pb2.GOAL_STATE_REACHED, "fine")
    await process.round()
    assert await process.messages() == 3


async def test_a_chat_goes_on_until_its_judge_agrees(served: ServedChats, process: Process) -> None:
    made = await process.set(check_command="", judge_model_id="m")
    assert made.judge_model_id == "m"
    await process.round()
    await served.finish(process.chat_id)
    process.judge.verdicts = [Verdict(is_done=False, reason="No tests."), CallRefused("No key.")]
    await process.round()
    going = await process.read()
    assert (going.turns_count, going.verdict) == (2, "No tests.")
    assert "No tests." in (await served.ann.texts(process.chat_id))[-1]
    await served.finish(process.chat_id)
    await process.round()
    halted = await process.read()
    assert (halted.state, halted.reason) == (goal_pb2.GOAL_STATE_PAUSED, "No key.")
    await process.resume()
    process.judge.verdicts = [Verdict(is_done=True, reason="All pass.")]
    await process.round()
    reached = await process.read()
    assert (reached.state, reached.verdict) == (goal_pb2.GOAL_STATE_REACHED, "All pass.")
    assert await process.messages() == 3


async def test_a_judge_is_asked_only_after_the_check_passed(
    served: ServedChats, process: Process
) -> None:
    await process.set(judge_model_id="m")
    await process.round()
    await served.finish(process.chat_id)
    process.checks.results = [CheckResult(1, "1 failed"), CheckResult(0, "fine")]
    await process.round()
    await served.finish(process.chat_id)
    process.judge.verdicts = [Verdict(is_done=True, reason="All pass.")]
    await process.round()
    reached = await process.read()
    assert (reached.state, reached.check_output, reached.verdict) == (
        goal_pb2.GOAL_STATE_REACHED,
        "fine",
        "All pass.",
    )


async def test_a_goal_needs_a_check_or_a_judge(served: ServedChats, process: Process) -> None:
    asked = api.SetGoalRequest(
        request_id="n", chat_id=process.chat_id, goal=goal_pb2.Goal(text="Mend it.")
    )
    problem = await served.ann.refusal(asked)
    assert problem.metadata["field"] == "goal.check_command"


async def test_it_ends_when_its_turns_are_used_up(served: ServedChats, process: Process) -> None:
    await process.set(turns_max=1)
    await process.round()
    await served.finish(process.chat_id)
    process.checks.results = [CheckResult(1, "")]
    await process.round()
    read = await process.read()
    assert read.state == goal_pb2.GOAL_STATE_EXHAUSTED
    assert read.reason == "The check did not pass within 1 turns."


async def test_a_goal_that_waits_for_something_is_tried_rarely_and_not_for_ever(
    served: ServedChats, process: Process
) -> None:
    await process.set(seconds_max=600)
    await process.round()
    await served.finish(process.chat_id)
    process.checks.results = [CallPostponed("No node.")] * 2
    await process.round()
    assert (await process.read()).state == goal_pb2.GOAL_STATE_ACTIVE
    assert await served.pool.fetchval(SELECT_WAIT_S) > 20
    await served.pool.execute(SET_LONG_AGO)
    await process.round()
    read = await process.read()
    assert (read.state, read.reason) == (
        goal_pb2.GOAL_STATE_EXHAUSTED,
        "The check did not pass within 600 seconds. No node.",
    )


async def test_nothing_is_sent_for_a_goal_whose_time_is_over(
    served: ServedChats, process: Process
) -> None:
    await process.set(seconds_max=600)
    await served.pool.execute(SET_LONG_AGO)
    await process.round()
    assert (await process.read()).state == goal_pb2.GOAL_STATE_EXHAUSTED
    assert await process.messages() == 1


async def test_nothing_is_sent_for_a_goal_that_is_paused_during_its_check(
    served: ServedChats, process: Process
) -> None:
    await process.set()
    await process.round()
    await served.finish(process.chat_id)
    pausing = api.PauseGoalRequest(request_id="p", chat_id=process.chat_id)
    process.checks.meanwhile = partial(served.ann.ask, pausing)
    process.checks.results = [CheckResult(1, "")]
    await process.round()
    assert (await process.read()).state == goal_pb2.GOAL_STATE_PAUSED
    assert await process.messages() == 2


async def test_nothing_is_sent_for_a_goal_whose_chat_goes_on_during_its_check(
    served: ServedChats, process: Process
) -> None:
    await process.set()
    await process.round()
    await served.finish(process.chat_id)
    process.checks.meanwhile = partial(served.ann.send, process.chat_id)
    process.checks.results = [CheckResult(1, "")]
    await process.round()
    assert (await process.read()).turns_count == 1
    assert (await served.state(process.chat_id)).queue_length == 0
    process.checks.meanwhile = None
    await served.finish(process.chat_id)
    process.checks.results = [CheckResult(1, "")]
    await process.round()
    assert (await process.read()).turns_count == 2


async def test_many_processes_send_each_message_once(served: ServedChats, process: Process) -> None:
    await process.set()
    async with asyncio.TaskGroup() as tasks:
        for _ in range(5):
            tasks.create_task(process.round())
    assert await process.messages() == 2
    assert (await process.read()).turns_count == 1


async def test_a_process_that_ends_after_sending_sends_nothing_twice(
    served: ServedChats, process: Process
) -> None:
    await process.set()
    await process.round()
    await served.finish(process.chat_id)
    process.checks.crashes = True
    process.checks.results = [CheckResult(1, "first")]
    with pytest.raises(BaseExceptionGroup):
        await process.round()
    assert await process.messages() == 3
    assert (await process.read()).turns_count == 1
    await served.finish(process.chat_id)
    process.checks.crashes = False
    process.checks.results = [CheckResult(1, "second")]
    await process.round()
    assert await process.messages() == 3
    assert (await process.read()).turns_count == 2


async def test_an_interruption_or_a_refusal_pauses_it_until_it_is_resumed(
    served: ServedChats, process: Process
) -> None:
    await process.set()
    await process.round()
    await served.finish(process.chat_id)
    process.checks.results = [CallRefused("The check could not be started.")]
    await process.round()
    halted = await process.read()
    assert (halted.state, halted.reason) == (
        goal_pb2.GOAL_STATE_PAUSED,
        "The check could not be started.",
    )
    assert (await process.resume()).state == goal_pb2.GOAL_STATE_ACTIVE
    pausing = api.PauseGoalRequest(request_id="p", chat_id=process.chat_id)
    assert (await served.ann.ask(pausing)).goal.state == goal_pb2.GOAL_STATE_PAUSED
    await process.round()
    assert await process.messages() == 2


@pytest.mark.parametrize("result", [LookupError(), CheckResult(1, "\0")])
async def test_a_goal_that_fails_unexpectedly_is_paused_and_others_go_on(
    served: ServedChats, process: Process, result: CheckResult | Exception
) -> None:
    await process.set()
    await process.round()
    await served.finish(process.chat_id)
    other = await served.ann.create()
    await served.finish(other.id)
    sound = Process(served, other.id, process.checks)
    await sound.set()
    process.checks.results = [result]
    await process.round()
    halted = await process.read()
    assert (halted.state, halted.reason) == (goal_pb2.GOAL_STATE_PAUSED, DEFECT)
    assert (await sound.read()).turns_count == 1


async def test_texts_that_cannot_be_stored_are_refused(
    served: ServedChats, process: Process
) -> None:
    for name in ("text", "check_command"):
        goal = goal_pb2.Goal(text="a", check_command="b")
        setattr(goal, name, "a\0b")
        asked = api.SetGoalRequest(request_id="n", chat_id=process.chat_id, goal=goal)
        problem = await served.ann.refusal(asked)
        assert (problem.reason, problem.metadata["field"]) == ("INVALID_REQUEST", f"goal.{name}")


@pytest.mark.parametrize("is_failed", [False, True])
async def test_a_goal_that_is_resumed_goes_on_after_the_turn_that_paused_it(
    served: ServedChats, process: Process, is_failed: bool
) -> None:
    await process.set()
    await process.round()
    chats, chat_id = served.stores.chats, ChatId(process.chat_id)
    error = TurnError("The provider is away.", ErrorKind.OVERLOADED)
    if is_failed:
        await chats.apply(chat_id, FailTurn(fence_of(await served.state(chat_id)), error))
    else:
        await chats.apply(chat_id, Interrupt(MessageId(0), None))
        ending = FinishInterruption(fence_of(await served.state(chat_id)), ())
        await chats.apply(chat_id, ending)
    await process.round()
    halted = await process.read()
    reason = error.message if is_failed else INTERRUPTED
    assert (halted.state, halted.reason) == (goal_pb2.GOAL_STATE_PAUSED, reason)
    await process.resume()
    process.checks.results = [CallRefused("The check was cut off by a restart.")]
    await process.round()
    assert (await process.read()).state == goal_pb2.GOAL_STATE_PAUSED
    await process.resume()
    process.checks.results = [CheckResult(1, "1 failed")]
    await process.round()
    going = await process.read()
    assert (going.state, going.turns_count) == (goal_pb2.GOAL_STATE_ACTIVE, 2)
    assert len(set(process.checks.checked)) == 2
    assert await process.messages() == 3


async def test_a_goal_goes_on_after_its_chat_was_compacted(
    served: ServedChats, process: Process
) -> None:
    await process.set()
    await process.round()
    await served.finish(process.chat_id)
    await served.compact(process.chat_id)
    process.checks.results = [CheckResult(1, "1 failed")]
    await process.round()
    going = await process.read()
    assert (going.state, going.turns_count) == (goal_pb2.GOAL_STATE_ACTIVE, 2)


async def test_a_goal_waits_while_its_chat_waits_to_be_woken(
    served: ServedChats, process: Process
) -> None:
    await process.set()
    await process.round()
    await served.finish(process.chat_id)
    for state in ("waiting", "due"):
        await served.pool.execute(ADD_MONITOR, process.chat_id, ANN_ID, state)
        await process.round()
        assert process.checks.checked == []
        await served.pool.execute("UPDATE chat.monitors SET state = 'ended'")
    process.checks.results = [CheckResult(1, "1 failed")]
    await process.round()
    assert (await process.read()).turns_count == 2


async def test_nothing_is_done_for_a_suspended_owner(served: ServedChats, process: Process) -> None:
    await process.set()
    await served.pool.execute(SUSPEND, ANN_ID)
    await process.round()
    assert await process.messages() == 1


async def test_a_chat_without_a_goal_lists_none(served: ServedChats, process: Process) -> None:
    listing = api.ListGoalsRequest(chat_id=process.chat_id)
    assert (await served.ann.ask(listing)).goals == []
    made = await process.set()
    assert (await served.ann.ask(listing)).goals == [made]
    assert (await served.bob.refusal(listing)).reason == "CHAT_NOT_FOUND"


async def test_only_the_owner_sets_reads_and_ends_the_goal_of_a_root_chat(
    served: ServedChats, process: Process
) -> None:
    problem = await served.ann.refusal(api.GetGoalRequest(chat_id=process.chat_id))
    assert problem.reason == "RESOURCE_NOT_FOUND"
    made = await process.set()
    assert await process.set(text="Another.") != made
    for request in (
        api.GetGoalRequest(chat_id=process.chat_id),
        api.EndGoalRequest(request_id="e", chat_id=process.chat_id),
        api.PauseGoalRequest(request_id="p", chat_id=process.chat_id),
    ):
        assert (await served.bob.refusal(request)).reason == "CHAT_NOT_FOUND"
    child_id = await served.add_child(process.chat_id)
    goal = goal_pb2.Goal(text="a", check_command="b")
    asked = api.SetGoalRequest(request_id="c", chat_id=child_id, goal=goal)
    assert (await served.ann.refusal(asked)).reason == "INVALID_REQUEST"
    await served.ann.ask(api.EndGoalRequest(request_id="e", chat_id=process.chat_id))
    problem = await served.ann.refusal(api.EndGoalRequest(request_id="f", chat_id=process.chat_id))
    assert problem.reason == "RESOURCE_NOT_FOUND"


async def test_a_goal_goes_with_its_chat(served: ServedChats, process: Process) -> None:
    await process.set()
    await served.ann.ask(chats_api.DeleteChatRequest(request_id="d", chat_id=process.chat_id))
    assert await served.pool.fetchval("SELECT count(*) FROM chat.goals") == 0


async def test_the_loop_sends_the_first_message(served: ServedChats, process: Process) -> None:
    await process.set()
    clock = FakeClock()
    pursuit = GoalPursuit(PostgresGoals(served.pool), process.checks, process.judge, clock)
    async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
        running = tasks.create_task(pursuit.run())
        assert await clock.until_sleeping() == EVERY_S
        while not await process.has_sent():
            pass
        running.cancel()


async def test_a_check_that_takes_long_does_not_hold_up_other_goals(
    served: ServedChats, process: Process
) -> None:
    await process.set()
    await process.round()
    await served.finish(process.chat_id)
    await served.pool.execute(END_CLAIMS)
    never = asyncio.Event()
    process.checks.meanwhile = never.wait
    other = await served.ann.create()
    await served.finish(other.id)
    sound = Process(served, other.id, process.checks)
    clock = FakeClock()
    pursuit = GoalPursuit(PostgresGoals(served.pool), process.checks, process.judge, clock)
    async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
        running = tasks.create_task(pursuit.run())
        assert await clock.until_sleeping() == EVERY_S
        while not process.checks.checked:
            await process.read()
        await sound.set()
        clock.advance(EVERY_S)
        while not await sound.has_sent():
            pass
        running.cancel()
