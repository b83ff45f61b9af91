"""A process that dies before or after any commit: another goes on, and nothing happens twice."""

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest

from chatd.approvals.domain.rules import INSTALLATION, Effect, Rule
from chatd.chats.domain.chat import PendingCall, Status
from chatd.chats.domain.commands import (
    AnswerAction,
    Approved,
    RecordResult,
    RequestCompaction,
    Resolved,
    Supplied,
)
from chatd.chats.domain.writes import ActionOutcome
from chatd.content.domain.messages import ChatMode, Role
from chatd.content.domain.parts import Text, ToolCall, ToolOutcome, ToolResult
from chatd.content.domain.tools import (
    ASK_USER_QUESTION,
    PROPOSE_PLAN,
    Dispatch,
    Executor,
    InputAction,
    InputRequired,
    PendingKind,
)
from chatd.models.domain.language_model import (
    Finished,
    ModelEvent,
    ModelRequest,
    TextDelta,
    ToolCallRequested,
    UsageReported,
)
from chatd.models.domain.price import ModelUse
from chatd.models.domain.profile import ModelProfile
from chatd.turns.domain.loops import ASK_AFTER
from chatd.turns.domain.turn import TurnSetup
from support.chatd.approvals.in_memory_rules import Rules, judge_of
from support.chatd.turns.journaling_tools import Crash
from support.chatd.turns.turn_stage import SETUP, WORKER, Stage, calling, client_tool, tool

TWO_CALLS = (ToolCall("a", "one", "{}"), ToolCall("b", "two", "{}"))
SMALL = TurnSetup(ModelProfile("demo", context_limit_tokens=1000))


def plain() -> Stage:
    stage = Stage(lambda _: (TextDelta("hi"), Finished()))
    stage.send("one")
    stage.send("two")
    return stage


def with_tools() -> Stage:
    stage = Stage(calling(*TWO_CALLS), tool("one"), tool("two", is_serial=True))
    stage.send()
    return stage


def with_refused_calls() -> Stage:
    stage = Stage(calling(*TWO_CALLS), tool("one", is_exclusive=True), tool("two"))
    stage.send()
    return stage


def with_client_tools() -> Stage:
    setup = replace(SETUP, client_tools=(client_tool("two"),))
    stage = Stage(calling(*TWO_CALLS), tool("one"), setup=setup)
    stage.send()
    return stage


def with_summaries() -> Stage:
    """A chat whose first steps fill the window and whose summaries empty it."""

    def play(request: ModelRequest) -> Iterable[ModelEvent]:
        if not request.may_call_tools:
            yield TextDelta("a summary")
        elif any("handover" in str(message.content) for message in request.messages):
            yield TextDelta("from there")
            yield UsageReported(100, 10)
        else:
            yield ToolCallRequested(TWO_CALLS[0])
            yield UsageReported(800, 10)
        yield Finished()

    stage = Stage(play, tool("one"), setup=SMALL)
    stage.send()
    return stage


def with_a_question() -> Stage:
    asked = {"questions": [{"question": "Which?", "options": [{"label": "x"}, {"label": "y"}]}]}
    call = ToolCall("a", ASK_USER_QUESTION, json.dumps(asked))
    stage = Stage(calling(call), tool("one"), setup=replace(SETUP, mode=ChatMode.PLAN))
    stage.send()
    return stage


def with_a_plan() -> Stage:
    call = ToolCall("a", PROPOSE_PLAN, '{"plan": "# first this"}')
    stage = Stage(calling(call), tool("one"), setup=replace(SETUP, mode=ChatMode.PLAN))
    stage.send()
    return stage


def with_an_approval() -> Stage:
    """A chat whose first call waits for permission while its second one runs."""
    rules = Rules([Rule("1", INSTALLATION, Effect.ASK, tool="one")])
    stage = Stage(calling(*TWO_CALLS), tool("one"), tool("two"), approvals=judge_of(rules))
    stage.send()
    return stage


def with_a_loop() -> Stage:
    """A chat that makes one call again and again, until a person is asked."""

    def play(request: ModelRequest) -> Iterable[ModelEvent]:
        results = [
            part
            for message in request.messages
            for part in message.content
            if isinstance(part, ToolResult)
        ]
        if len(results) <= ASK_AFTER:
            yield ToolCallRequested(ToolCall(f"call {len(results)}", "one", "{}"))
        else:
            yield TextDelta("done")
        yield Finished()

    stage = Stage(play, tool("one"))
    stage.send()
    return stage


def with_a_call_that_asks() -> Stage:
    """A chat whose first call asks twice while it runs, beside one that does not."""
    stage = Stage(calling(*TWO_CALLS), tool("one"), tool("two"))
    stage.tools.questions["one"] = (
        InputRequired("r1", PendingKind.ELICITATION, "Which?"),
        InputRequired("r2", PendingKind.LOGIN, "Sign in.", url="https://example.com/login"),
    )
    stage.send()
    return stage


async def answer(stage: Stage) -> None:
    """Answer everything that the chat waits for, as a client and as a person do."""
    while stage.status == Status.REQUIRES_ACTION:
        for pending in stage.state.pending:
            if pending.kind is PendingKind.CLIENT:
                stage.submit(ToolResult("b", "two", "{}", ToolOutcome.DONE))
            elif pending.is_asked:
                stage.do(answer_of(stage, pending))
        await stage.run()


def answer_of(stage: Stage, pending: PendingCall) -> AnswerAction:
    action_id = pending.action_id
    assert action_id is not None
    if pending.is_suspended:
        supplied = Supplied(InputAction.ACCEPT)
        return AnswerAction(action_id, supplied, '{"accepted": true}', "ann", WORKER)
    call = stage.chats.chats[stage.state.chat_id].actions[action_id].asked.call
    message_id = next(each.id for each in stage.messages if call in each.content)
    given: Approved | Resolved = Resolved(
        ToolResult(call.tool_call_id, call.tool_name, '{"ok": true}', ToolOutcome.DONE),
        ChatMode.ORDINARY if pending.kind is PendingKind.PLAN else None,
    )
    if pending.kind in (PendingKind.APPROVAL, PendingKind.LOOP):
        given = Approved(message_id, Dispatch(action_id, call, Executor.TOOLRUNNER, "j1"))
    return AnswerAction(action_id, given, '{"accepted": true}', "ann", WORKER)


async def run_to_the_end(stage: Stage) -> None:
    await stage.run()
    await answer(stage)


def told(stage: Stage) -> list[object]:
    """Return the history without what differs between processes: derived ids and time."""
    ids = re.compile(r"chat_summarized_[0-9a-f-]+")
    return [
        (
            message.role,
            ids.sub("summary", repr(message.content)),
            message.is_compressed,
            message.visibility,
            message.use or ModelUse(),
        )
        for message in stage.messages
    ]


def outcomes(stage: Stage) -> list[ActionOutcome | None]:
    """Return how the actions of the chat ended; None for one that is open."""
    return [each.outcome for each in stage.chats.chats[stage.state.chat_id].actions.values()]


SCENES: tuple[Callable[[], Stage], ...] = (
    plain,
    with_tools,
    with_refused_calls,
    with_client_tools,
    with_summaries,
    with_a_question,
    with_a_plan,
    with_an_approval,
    with_a_loop,
    with_a_call_that_asks,
)


@pytest.mark.parametrize("is_after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
async def test_dying_at_any_commit_changes_nothing_in_the_end(
    scene: Callable[[], Stage], is_after: bool
) -> None:
    whole = scene()
    await run_to_the_end(whole)
    commits = len(whole.commits.commands)
    for place in range(commits):
        stage = scene()
        if is_after:
            stage.commits.dies_after = place
        else:
            stage.commits.dies_before = place
        with pytest.raises(Crash):
            await run_to_the_end(stage)
        await stage.take_over()
        await answer(stage)
        assert told(stage) == told(whole)
        assert outcomes(stage) == outcomes(whole)
        assert stage.tools.told == whole.tools.told
        assert stage.status == whole.status == Status.WAITING
        assert set(stage.tools.starts.values()) <= {1}
        assert len(stage.tools.starts) == len(whole.tools.starts)
    assert commits >= 2


@pytest.mark.parametrize("scene", [with_tools, with_client_tools], ids=lambda scene: scene.__name__)
async def test_dying_while_a_call_runs_attaches_to_it(scene: Callable[[], Stage]) -> None:
    whole, stage = scene(), scene()
    await run_to_the_end(whole)
    stage.tools.crash_after_start = True
    with pytest.raises(Crash):
        await stage.run()
    await stage.take_over()
    await answer(stage)
    assert told(stage) == told(whole)
    assert set(stage.tools.starts.values()) == {1}


@pytest.mark.parametrize("is_after", [False, True], ids=["before", "after"])
async def test_dying_at_the_end_of_an_interruption_stores_it_once(is_after: bool) -> None:
    stage = Stage(calling(*TWO_CALLS), tool("one"), tool("two"), held={"two"})
    stage.commits.after = {RecordResult: stage.interrupt}
    # The step, the result of the first call, then the end of the interruption.
    if is_after:
        stage.commits.dies_after = 2
    else:
        stage.commits.dies_before = 2
    with pytest.raises(Crash):
        await stage.ask()
    await stage.take_over()
    results = [part for _, parts in stage.said for part in parts if isinstance(part, ToolResult)]
    assert [result.outcome for result in results] == [ToolOutcome.DONE, ToolOutcome.CANCELLED]
    assert stage.status == Status.WAITING
    assert set(stage.tools.starts.values()) == {1}


@pytest.mark.parametrize("place", range(3))
async def test_a_summary_by_hand_is_made_once_and_not_talked_about(place: int) -> None:
    stage = Stage(lambda _: (TextDelta("words"), Finished()))
    await stage.ask()
    stage.do(RequestCompaction(WORKER))
    stage.commits.commands.clear()
    stage.commits.dies_after = place if place < 2 else None
    if place < 2:
        with pytest.raises(Crash):
            await stage.run()
        await stage.take_over()
    else:
        await stage.run()
    assert [message.role for message in stage.messages] == [
        Role.USER,
        Role.ASSISTANT,
        Role.USER,
        Role.ASSISTANT,
        Role.TOOL,
    ]
    assert stage.messages[1].content == (Text("words"),)
    assert stage.status == Status.WAITING


async def test_two_runners_of_one_chat_never_both_write() -> None:
    stage = Stage(calling(*TWO_CALLS), tool("one"), tool("two"), held={"two"})
    stage.send()
    async with stage.running():
        await stage.tools.until_started(2)
        stage.tools.end("two")
        stage.chats.chats[stage.state.chat_id].state = replace(
            stage.state,
            snapshot_version=stage.state.snapshot_version + 1,
            owner_epoch=stage.state.owner_epoch + 1,
        )
    committed = [type(command).__name__ for command in stage.commits.commands]
    assert "CommitResults" not in committed
    await stage.take_over()
    assert stage.texts[-1] == ("assistant", "done")
    assert set(stage.tools.starts.values()) == {1}
