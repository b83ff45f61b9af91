"""What is stored when a turn is interrupted, phase by phase."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterable

import pytest

from chatd.chats.domain.call_decisions import INTERRUPTED
from chatd.chats.domain.chat import NewMessage, Status
from chatd.chats.domain.commands import (
    BusyBehavior,
    CommitStep,
    EditMessage,
    FinishInterruption,
    RequestCompaction,
)
from chatd.chats.domain.pieces import CHAT_SUMMARIZED, Piece
from chatd.content.domain.messages import ErrorKind, Role, Visibility
from chatd.content.domain.parts import Part, Reasoning, Text, ToolCall, ToolOutcome, ToolResult
from chatd.models.domain.language_model import (
    Finished,
    ModelError,
    ModelEvent,
    ModelRequest,
    ProviderToolResult,
    ReasoningDelta,
    TextDelta,
    ToolCallRequested,
    ToolInputDelta,
)
from chatd.primitives.domain.ids import ChatId, MessageId
from chatd.turns.domain.turn import Ending
from parley.clock.fake import EPOCH
from support.chatd.turns.journaling_tools import Crash
from support.chatd.turns.turn_stage import ANN, WORKER, Stage, calling, live_parts, tool


class Stuck:
    """A model that says some things and then nothing more."""

    def __init__(self, *events: ModelEvent) -> None:
        self._events = events
        self.said_all = asyncio.Event()

    async def __call__(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        for event in self._events:
            yield event
        self.said_all.set()
        await asyncio.Event().wait()


def given_up(call_id: str, name: str) -> ToolResult:
    told = json.dumps({"error": INTERRUPTED})
    return ToolResult(call_id, name, told, ToolOutcome.CANCELLED)


async def stored_after(*events: ModelEvent) -> list[tuple[Role, tuple[Part, ...]]]:
    """Interrupt a model after it said some things; return what followed the user's message."""
    model = Stuck(*events)
    stage = Stage(model)
    stage.send()
    async with stage.running():
        await model.said_all.wait()
        stage.interrupt()
    assert stage.status == Status.WAITING
    assert stage.ended[-1].ending is Ending.INTERRUPTED
    return stage.said[1:]


async def test_before_the_first_part_nothing_is_stored() -> None:
    assert await stored_after() == []


async def test_partial_text_and_thoughts_are_stored_whole_and_ended() -> None:
    stored = await stored_after(
        ReasoningDelta("I "),
        ReasoningDelta("think"),
        TextDelta("so"),
        TextDelta(" "),
        TextDelta("it"),
    )
    thought = Reasoning("I think", EPOCH, EPOCH)
    assert stored == [(Role.ASSISTANT, (thought, Text("so it")))]


async def test_a_thought_under_way_ends_with_the_interruption() -> None:
    stored = await stored_after(ReasoningDelta("hm"))
    assert stored == [(Role.ASSISTANT, (Reasoning("hm", EPOCH, EPOCH),))]


async def test_time_is_kept_with_a_partial_answer() -> None:
    model = Stuck(TextDelta("so"))
    stage = Stage(model)
    stage.send()
    async with stage.running():
        await model.said_all.wait()
        stage.clock.advance(3)
        stage.interrupt()
    use = stage.messages[-1].use
    assert use is not None
    assert (use.runtime_ms, use.model_runtime_ms, use.cost_micros) == (3000, 3000, None)


async def test_a_call_is_kept_only_if_its_arguments_parse_so_far() -> None:
    assert await stored_after(ToolInputDelta("c", "execute", '{"a":')) == []
    assert await stored_after(ToolInputDelta("c", "execute", "")) == []
    stored = await stored_after(
        ToolInputDelta("c", "execute", '{"a"'), ToolInputDelta("c", "execute", ": 1}")
    )
    call = ToolCall("c", "execute", '{"a": 1}', created_at=EPOCH)
    assert stored == [
        (Role.ASSISTANT, (call,)),
        (Role.TOOL, (given_up("c", "execute"),)),
    ]


async def test_a_complete_call_gets_a_result_that_says_it_was_interrupted() -> None:
    stored = await stored_after(ToolCallRequested(ToolCall("c", "execute", "{}")))
    call = ToolCall("c", "execute", "{}", created_at=EPOCH)
    assert stored == [
        (Role.ASSISTANT, (call,)),
        (Role.TOOL, (given_up("c", "execute"),)),
    ]


async def test_a_call_that_the_provider_executes_gets_no_result_of_ours() -> None:
    search = ToolCall("s", "web_search", "{}", provider_executed=True)
    found = ToolResult("s", "web_search", "[]", ToolOutcome.DONE, provider_executed=True)
    (alone,) = await stored_after(ToolCallRequested(search))
    assert alone[0] is Role.ASSISTANT
    assert len(alone[1]) == 1
    (both,) = await stored_after(ToolCallRequested(search), ProviderToolResult(found))
    assert both[1][1] == found


async def test_calls_of_a_finished_answer_that_meets_the_interruption_are_not_sent() -> None:
    def play(_: ModelRequest) -> Iterable[ModelEvent]:
        yield TextDelta("let me look")
        yield ToolCallRequested(ToolCall("c", "execute", "{}"))
        stage.interrupt()
        yield Finished()

    stage = Stage(play, tool("execute"))
    await stage.ask()
    assert stage.tools.order == []
    assert stage.texts == [
        ("user", "hello"),
        ("assistant", "let me look ToolCall"),
        ("tool", "ToolResult"),
    ]
    assert isinstance(stage.commits.commands[-1], FinishInterruption)


async def test_a_last_answer_that_meets_the_interruption_is_kept() -> None:
    def play(_: ModelRequest) -> Iterable[ModelEvent]:
        yield TextDelta("all of it")
        stage.interrupt()
        yield Finished()

    stage = Stage(play)
    await stage.ask()
    assert stage.texts == [("user", "hello"), ("assistant", "all of it")]
    assert stage.status == Status.WAITING


async def test_during_tools_finished_results_are_kept_and_the_others_are_stopped() -> None:
    calls = (ToolCall("a", "quick", "{}"), ToolCall("b", "slow", "{}"))
    stage = Stage(calling(*calls), tool("quick"), tool("slow"), held={"slow"})
    stage.send()
    with stage.watch() as watcher:
        async with stage.running():
            shown = await live_parts(watcher, 3)
            assert [part.role for part in shown] == [Role.ASSISTANT, Role.ASSISTANT, Role.TOOL]
            stage.interrupt()
    done = ToolResult("a", "quick", '{"output": "quick ran"}', ToolOutcome.DONE, created_at=EPOCH)
    assert stage.said[2:] == [
        (Role.TOOL, (done,)),
        (Role.TOOL, (given_up("b", "slow"),)),
    ]
    assert stage.tools.stopped == ["slow"]
    assert stage.status == Status.WAITING


async def test_a_tool_that_finishes_in_the_moment_of_the_interruption_is_kept() -> None:
    stage = Stage(calling(ToolCall("a", "slow", "{}")), tool("slow"), held={"slow"})
    stage.send()
    async with stage.running():
        await stage.tools.until_started(1)
        stage.interrupt()
        stage.tools.end("slow")
    assert stage.texts[2:] == [("tool", "ToolResult")]
    (result,) = stage.said[2][1]
    assert isinstance(result, ToolResult)
    assert result.outcome is ToolOutcome.DONE


async def test_an_interruption_before_the_calls_are_sent_sends_none() -> None:
    stage = Stage(calling(ToolCall("a", "execute", "{}")), tool("execute"))
    stage.commits.after = {CommitStep: stage.interrupt}
    await stage.ask()
    assert stage.said[2:] == [(Role.TOOL, (given_up("a", "execute"),))]
    assert stage.tools.order == []
    assert stage.tools.stopped == []


async def test_during_a_summary_its_call_is_stored_as_interrupted_and_is_no_boundary() -> None:
    stuck = Stuck()

    def play(request: ModelRequest) -> Iterable[ModelEvent] | AsyncIterator[ModelEvent]:
        if not request.may_call_tools:
            return stuck(request)
        return (TextDelta("hi"), Finished())

    stage = Stage(play)
    await stage.ask()
    stage.do(RequestCompaction(WORKER))
    async with stage.running():
        await stuck.said_all.wait()
        stage.interrupt()
    call, result = stage.messages[-2:]
    assert isinstance(call.content[0], ToolCall)
    assert call.content[0].tool_name == CHAT_SUMMARIZED
    assert isinstance(result.content[0], ToolResult)
    assert result.content[0].outcome is ToolOutcome.CANCELLED
    assert [(m.is_compressed, m.visibility) for m in (call, result)] == [
        (False, Visibility.USER)
    ] * 2
    assert (stage.state.status, stage.state.is_compaction_requested) == (Status.WAITING, False)
    await stage.ask("again")
    assert [message.role for message in stage.model.requests[-1].messages] == [
        Role.USER,
        Role.ASSISTANT,
        Role.USER,
    ]


async def test_during_the_wait_for_a_retry_nothing_is_stored() -> None:
    def broken(_: ModelRequest) -> Iterable[ModelEvent]:
        yield TextDelta("half")
        raise ModelError(ErrorKind.OVERLOADED, "busy", is_retryable=True)

    stage = Stage(broken)
    stage.send()
    async with stage.running():
        await stage.clock.until_sleeping()
        stage.interrupt()
    assert stage.texts == [("user", "hello")]
    assert stage.status == Status.WAITING


async def test_an_edit_keeps_nothing_of_the_answer() -> None:
    model = Stuck(TextDelta("old"))
    stage = Stage(model)
    stage.send()
    async with stage.running():
        await model.said_all.wait()
        stage.do(EditMessage(MessageId(1), NewMessage(Role.USER, (Text("new"),), ANN.id), WORKER))
    assert stage.texts == [("user", "new")]
    assert stage.commits.commands == []


async def test_an_interrupting_message_is_answered_after_what_was_said_is_stored() -> None:
    stuck = Stuck(TextDelta("well"))

    def play(request: ModelRequest) -> Iterable[ModelEvent] | AsyncIterator[ModelEvent]:
        if len(request.messages) == 1:
            return stuck(request)
        return (TextDelta("yes"), Finished())

    stage = Stage(play)
    stage.send("one")
    async with stage.running():
        await stuck.said_all.wait()
        stage.send("two", BusyBehavior.INTERRUPT)
    assert stage.texts == [
        ("user", "one"),
        ("assistant", "well"),
        ("user", "two"),
        ("assistant", "yes"),
    ]


class Left:
    """What a dead process wrote down of its answers."""

    def __init__(self, *pieces: Piece) -> None:
        self._pieces = pieces
        self.asked: list[tuple[int, int]] = []

    async def load(
        self, chat_id: ChatId, history_version: int, generation_attempt: int
    ) -> tuple[Piece, ...]:
        self.asked.append((history_version, generation_attempt))
        return self._pieces


async def test_the_heir_of_an_interrupted_chat_stores_what_was_shown() -> None:
    left = Left(
        Piece(Role.ASSISTANT, 0, Text("as I ")),
        Piece(Role.ASSISTANT, 0, Text("said")),
        Piece(Role.ASSISTANT, 1, ToolCall("c", "execute", '{"cut')),
    )
    stage = Stage(Stuck(), partials=left)
    stage.send()
    stage.interrupt()
    await stage.take_over()
    assert left.asked == [(2, 1)]
    assert stage.texts == [("user", "hello"), ("assistant", "as I said")]
    assert stage.status == Status.WAITING


@pytest.mark.parametrize("is_ended", [True, False])
async def test_the_heir_of_an_interrupted_batch_keeps_what_the_executor_finished(
    is_ended: bool,
) -> None:
    stage = Stage(calling(ToolCall("a", "slow", "{}")), tool("slow"), held={"slow"})
    stage.tools.crash_after_start = True
    stage.send()
    with pytest.raises(Crash):
        await stage.run()
    stage.interrupt()
    if is_ended:
        stage.tools.end("slow")
    await stage.take_over()
    (result,) = stage.said[2][1]
    assert isinstance(result, ToolResult)
    assert result.outcome is (ToolOutcome.DONE if is_ended else ToolOutcome.CANCELLED)
    assert stage.tools.stopped == ([] if is_ended else ["slow"])
    assert list(stage.tools.starts.values()) == [1]
