import asyncio
from collections.abc import Iterable
from dataclasses import replace

import pytest

from chatd.domain.chat import ChatId, ChatState, MessageId, NewMessage, Owner, OwnerId, Role, Status
from chatd.domain.commands import CommitStep, Fence, FinishTurn, SendMessage
from chatd.domain.model import Finished, ModelEvent, ModelRequest, TextDelta, ToolCallRequested
from chatd.domain.parts import Text, ToolCall, ToolOutcome, ToolResult
from chatd.domain.tools import Dispatch, Execution, Executor, Outcome, ToolSpec
from chatd.engine.live import LiveChats, LivePart, Moved
from chatd.engine.turn import AnswerCutOff, TurnPorts, dispatches_for, run_turn
from chatd.providers.scripted import ScriptedModel, demo
from support.in_memory_chats import InMemoryChats

CHAT = ChatId("00000000-0000-0000-0000-000000000001")
ANN = Owner(OwnerId("00000000-0000-0000-0000-00000000000a"), "member")
IDLE = ChatState(CHAT, Status.WAITING, 1, 0, 0, MessageId(1))
SHELL = ToolSpec("execute", "run", "{}", Executor.TOOLRUNNER, journal_generation="j1")
CLOCK = ToolSpec(
    "demo__get_current_time",
    "tell the time",
    "{}",
    Executor.MCPGATEWAY,
    journal_generation="j2",
    server_id="server-1",
    original_name="get_current_time",
)


class RecordingTools:
    """Offers what it was given and answers every call with its name."""

    def __init__(self, *specs: ToolSpec) -> None:
        self._specs = specs
        self.executions: list[Execution] = []

    async def offer(self, chat_id: ChatId, owner: Owner) -> tuple[ToolSpec, ...]:
        return self._specs

    async def execute(self, execution: Execution) -> Outcome:
        self.executions.append(execution)
        return Outcome(ToolOutcome.DONE, f'"{execution.spec.name} ran"')


async def claimed_chat(live: LiveChats) -> tuple[InMemoryChats, ChatState]:
    chats = InMemoryChats(live, IDLE)
    message = NewMessage(Role.USER, (Text("hello"),), ANN.id)
    return chats, await chats.apply(CHAT, SendMessage(message, CHAT))  # type: ignore[arg-type]


async def test_a_plain_answer_takes_one_commit_and_is_shown_as_it_comes() -> None:
    live = LiveChats()
    chats, claimed = await claimed_chat(live)
    model = ScriptedModel(lambda _: (TextDelta("hel"), TextDelta("lo"), Finished()))
    with live.watch(CHAT) as watcher:
        ports = TurnPorts(chats, model, RecordingTools(), live)
        await run_turn(claimed, owner=ANN, model="demo", ports=ports)
        async with asyncio.timeout(5):
            signals = [await watcher.next() for _ in range(3)]
    answer = NewMessage(Role.ASSISTANT, (Text("hello"),))
    assert chats.commands[1:] == [FinishTurn(Fence(1, 2, 1), (answer,))]
    assert signals == [
        LivePart(2, 1, 1, 0, Role.ASSISTANT, Text("hel")),
        LivePart(2, 1, 2, 0, Role.ASSISTANT, Text("lo")),
        Moved(3),
    ]


async def test_the_demo_calls_one_tool_of_each_kind_and_tells_what_came_back() -> None:
    live = LiveChats()
    chats, claimed = await claimed_chat(live)
    tools = RecordingTools(SHELL, CLOCK)
    ports = TurnPorts(chats, ScriptedModel(demo), tools, live)
    await run_turn(claimed, owner=ANN, model="demo", ports=ports)
    assert [execution.spec.name for execution in tools.executions] == [
        "execute",
        "demo__get_current_time",
    ]
    history = await chats.history(CHAT)
    assert [message.role for message in history] == [
        "user",
        "assistant",
        "tool",
        "tool",
        "assistant",
    ]
    final = history[-1].content[0]
    assert isinstance(final, Text)
    assert '"execute ran"' in final.text
    assert "not a language model" in "".join(
        part.text for part in history[1].content if isinstance(part, Text)
    )
    assert (await chats.state(CHAT)).status is Status.WAITING


async def test_calls_are_committed_as_dispatched_before_any_of_them_leaves() -> None:
    live = LiveChats()
    chats, claimed = await claimed_chat(live)
    tools = RecordingTools(SHELL)
    await run_turn(
        claimed,
        owner=ANN,
        model="demo",
        ports=TurnPorts(chats, ScriptedModel(demo), tools, live),
    )
    step = chats.commands[1]
    assert isinstance(step, CommitStep)
    assert step.dispatches == tuple(execution.dispatch for execution in tools.executions)


async def test_a_call_of_a_tool_that_was_not_offered_is_answered_and_not_dispatched() -> None:
    live = LiveChats()
    chats, claimed = await claimed_chat(live)
    call = ToolCall("call_0", "rm_rf", "{}")

    def play(request: ModelRequest) -> Iterable[ModelEvent]:
        if request.history[-1].role is Role.USER:
            yield ToolCallRequested(call)
        yield Finished()

    tools = RecordingTools(SHELL)
    ports = TurnPorts(chats, ScriptedModel(play), tools, live)
    await run_turn(claimed, owner=ANN, model="demo", ports=ports)
    result = (await chats.history(CHAT))[2].content[0]
    assert isinstance(result, ToolResult)
    assert result.outcome is ToolOutcome.FAILED
    assert tools.executions == []


async def test_a_stream_without_its_end_is_an_error() -> None:
    live = LiveChats()
    chats, claimed = await claimed_chat(live)
    ports = TurnPorts(chats, ScriptedModel(lambda _: (TextDelta("hel"),)), RecordingTools(), live)
    with pytest.raises(AnswerCutOff):
        await run_turn(claimed, owner=ANN, model="demo", ports=ports)


def test_execution_ids_come_from_chat_step_and_place_alone() -> None:
    calls = [ToolCall("same", "execute", "{}"), ToolCall("same", "execute", "{}")]
    fence = Fence(1, 7, 1)
    first = dispatches_for(CHAT, fence, calls, {"execute": SHELL})
    again = dispatches_for(CHAT, replace(fence, owner_epoch=2), calls, {"execute": SHELL})
    other = dispatches_for(CHAT, replace(fence, history_version=8), calls, {"execute": SHELL})
    ids = {dispatch.execution_id for dispatch in (*first, *other)}
    assert first == again
    assert len(ids) == 4
    assert all(isinstance(dispatch, Dispatch) for dispatch in first)
