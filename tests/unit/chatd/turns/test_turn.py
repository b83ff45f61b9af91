import json
from collections.abc import AsyncIterator, Iterable
from dataclasses import replace

import pytest

from chatd.chats.domain.chat import NewMessage, Status
from chatd.chats.domain.commands import CommitStep, EditMessage, FinishTurn
from chatd.content.domain.messages import FinishReason, Role, Visibility
from chatd.content.domain.parts import Notice, Text, ToolCall, ToolOutcome, ToolResult
from chatd.content.domain.tools import Executor, ToolSpec
from chatd.content.domain.turn_context import TurnContext
from chatd.models.domain.language_model import (
    Finished,
    ModelEvent,
    ModelRequest,
    TextDelta,
    ToolCallRequested,
    UsageReported,
)
from chatd.models.domain.price import ModelUse
from chatd.primitives.domain.errors import ChatNotFound
from chatd.primitives.domain.ids import Fence, MessageId
from chatd.providers.scripted import demo
from chatd.spend.domain.ledger import Bill, CallOutcome, CallPurpose
from chatd.streams.engine.live import LivePart
from chatd.turns.domain.steps import STEPS_MAX
from chatd.turns.domain.turn import Ending
from chatd.turns.engine.calls import dispatches_for
from chatd.turns.engine.dependencies import TurnLimits
from parley.clock import FakeClock
from support.chatd.turns.journaling_tools import Crash
from support.chatd.turns.turn_stage import (
    ANN,
    CHAT,
    SETUP,
    WORKER,
    Stage,
    calling,
    client_tool,
    live_parts,
    tool,
)

SHELL = tool("execute")
CLOCK = ToolSpec(
    "demo__get_current_time",
    "tell the time",
    "{}",
    Executor.MCPGATEWAY,
    journal_generation="j1",
    server_id="server-1",
    original_name="get_current_time",
)


def hello(_: ModelRequest) -> Iterable[ModelEvent]:
    return (TextDelta("hel"), TextDelta("lo"), UsageReported(10, 2), Finished())


def echo(request: ModelRequest) -> Iterable[ModelEvent]:
    said = request.messages[-1].content[0]
    assert isinstance(said, Text)
    return (TextDelta(f"you said {said.text}"), Finished())


async def test_a_plain_answer_takes_one_commit_and_is_shown_as_it_comes() -> None:
    stage = Stage(hello)
    with stage.watch() as watcher:
        await stage.ask()
        parts = await live_parts(watcher, 2)
    use = ModelUse("demo", input_tokens=10, output_tokens=2)
    reason = FinishReason.STOP
    answer = NewMessage(Role.ASSISTANT, (Text("hello"),), use=use, finish_reason=reason)
    bill = Bill(CallPurpose.TURN, CallOutcome.DONE, use)
    assert stage.commits.commands == [FinishTurn(Fence(1, 2, 1), (answer,), bill)]
    assert parts == [
        LivePart(2, 1, 1, 0, Role.ASSISTANT, Text("hel")),
        LivePart(2, 1, 2, 0, Role.ASSISTANT, Text("lo")),
    ]
    assert stage.status == Status.WAITING


async def test_the_end_of_a_turn_is_told_with_what_its_runner_knows() -> None:
    stage = Stage(hello)
    await stage.ask()
    (ended,) = stage.ended
    assert (ended.ending, ended.owner, ended.text) == (Ending.FINISHED, ANN, "hello")
    assert ended.state == stage.state


async def test_the_demo_calls_one_tool_of_each_kind_and_tells_what_came_back() -> None:
    stage = Stage(demo, SHELL, CLOCK)
    await stage.ask()
    assert stage.tools.order == ["execute", "demo__get_current_time"]
    roles = [message.role.value for message in stage.messages]
    assert roles == ["user", "assistant", "tool", "tool", "assistant"]
    assert "execute ran" in stage.texts[-1][1]
    assert "not a language model" in stage.texts[1][1]
    assert stage.status == Status.WAITING


async def test_queued_messages_are_answered_one_after_another_by_the_same_runner() -> None:
    stage = Stage(echo)
    stage.send("one")
    stage.send("two")
    stage.send("three")
    await stage.run()
    assert stage.texts == [
        ("user", "one"),
        ("assistant", "you said one"),
        ("user", "two"),
        ("assistant", "you said two"),
        ("user", "three"),
        ("assistant", "you said three"),
    ]
    assert stage.status == Status.WAITING


async def test_a_warm_history_is_read_only_where_it_changed() -> None:
    stage = Stage(echo)
    await stage.ask("one")
    finished_at = stage.state.history_version
    await stage.ask("two")
    assert stage.commits.reads == [0, finished_at]
    assert [message.content for message in stage.model.requests[1].messages] == [
        (Text("one"),),
        (Text("you said one"),),
        (Text("two"),),
    ]


async def test_what_an_edit_removed_is_not_in_a_warm_history() -> None:
    stage = Stage(echo)
    await stage.ask("one")
    await stage.ask("two")
    stage.do(EditMessage(MessageId(3), NewMessage(Role.USER, (Text("2"),), ANN.id), WORKER))
    await stage.run()
    assert [message.content for message in stage.model.requests[-1].messages] == [
        (Text("one"),),
        (Text("you said one"),),
        (Text("2"),),
    ]


async def test_an_answer_without_content_ends_the_turn_and_stores_nothing() -> None:
    stage = Stage(lambda _: (Finished(),))
    await stage.ask()
    assert stage.texts == [("user", "hello")]
    assert stage.status == Status.WAITING


async def test_a_turn_that_takes_too_many_steps_ends_with_a_notice() -> None:
    def restless(_: ModelRequest) -> Iterable[ModelEvent]:
        return (ToolCallRequested(ToolCall("c", "execute", "{}")), Finished())

    stage = Stage(restless, SHELL, limits=TurnLimits(steps_max=3))
    await stage.ask()
    assert stage.tools.order == ["execute"] * 3
    last = stage.messages[-1]
    assert isinstance(last.content[0], Notice)
    assert "3 steps" in last.content[0].text
    assert last.visibility is Visibility.USER
    assert stage.status == Status.WAITING
    assert STEPS_MAX == 1200


async def test_time_is_stored_with_the_answer_alive_and_in_the_model() -> None:
    clock = FakeClock()

    async def slow(_: ModelRequest) -> AsyncIterator[ModelEvent]:
        await clock.sleep(2)
        yield TextDelta("late")
        yield Finished()

    stage = Stage(slow, clock=clock)
    async with stage.running():
        stage.send()
        await stage.clock.until_sleeping(2)
        stage.clock.advance(2)
    use = stage.messages[-1].use
    assert use is not None
    assert (use.runtime_ms, use.model_runtime_ms) == (2000, 2000)


async def test_client_tools_wait_for_the_client_and_go_on_with_its_results() -> None:
    stage = Stage(
        calling(ToolCall("a", "execute", "{}"), ToolCall("b", "pick_file", "{}")),
        SHELL,
        setup=replace(SETUP, client_tools=(client_tool("pick_file"),)),
    )
    await stage.ask()
    assert stage.tools.order == ["execute"]
    asked = (stage.status, stage.ended[-1].ending)
    assert asked == (Status.REQUIRES_ACTION, Ending.ASKED_CLIENT)
    stage.submit(ToolResult("b", "pick_file", '"x.txt"', ToolOutcome.DONE))
    await stage.run()
    assert stage.texts[-1] == ("assistant", "done")
    assert stage.status == Status.WAITING


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ('{"_filter": "x", "user_name": "é", "c": 1}', '{"$filter":"x","user name":"é","c":1}'),
        ('{ "c" : 1.50 }', '{ "c" : 1.50 }'),
        ("", "{}"),
    ],
)
async def test_a_client_gets_the_names_of_arguments_that_it_declared(
    given: str, named: str
) -> None:
    schema = json.dumps({"properties": {"$filter": {}, "user name": {}, "c": {}}})
    find = replace(client_tool("find"), input_schema_json=schema)
    call = ToolCall("a", "find", given)
    stage = Stage(calling(call), SHELL, setup=replace(SETUP, client_tools=(find,)))

    await stage.ask()

    (action,) = stage.chats.chats[CHAT].actions.values()
    (part,) = [each for each in stage.messages[-1].content if isinstance(each, ToolCall)]
    assert (action.asked.call.args_json, part.args_json) == (named, named)


async def test_arguments_of_a_client_tool_that_are_given_twice_are_still_refused() -> None:
    find = replace(client_tool("find"), input_schema_json='{"properties": {"$filter": {}}}')
    call = ToolCall("a", "find", '{"_filter": 1, "_filter": 2}')
    stage = Stage(calling(call), SHELL, setup=replace(SETUP, client_tools=(find,)))

    await stage.ask()

    assert (stage.chats.chats[CHAT].actions, stage.status) == ({}, Status.WAITING)


async def test_a_client_tool_never_takes_the_name_of_another() -> None:
    setup = replace(SETUP, client_tools=(client_tool("execute"),))
    stage = Stage(hello, SHELL, setup=setup)
    await stage.ask()
    assert stage.model.requests[0].tools == (SHELL,)


async def test_a_tool_that_ends_the_turn_does_so_only_when_it_succeeds() -> None:
    stage = Stage(
        calling(ToolCall("a", "propose_plan", "{}")), tool("propose_plan", ends_turn=True)
    )
    await stage.ask()
    assert [role for role, _ in stage.texts] == ["user", "assistant", "tool"]
    failing = Stage(
        calling(ToolCall("a", "propose_plan", "{}")), tool("propose_plan", ends_turn=True)
    )
    failing.tools.answers["propose_plan"] = ValueError("no")
    await failing.ask()
    assert failing.texts[-1] == ("assistant", "done")


async def test_calls_that_cannot_be_executed_are_answered_and_not_dispatched() -> None:
    stage = Stage(
        calling(
            ToolCall("a", "rm_rf", "{}"),
            ToolCall("b", "execute", "{"),
            ToolCall("c", "execute", "[]"),
            ToolCall("d", "execute", '{"a":1,"a":2}'),
            ToolCall("e", "execute", '{"a":1,"A":2}'),
            ToolCall("f", "execute", ""),
        ),
        SHELL,
    )
    await stage.ask()
    assert stage.tools.order == ["execute"]
    step = stage.commits.commands[0]
    assert isinstance(step, CommitStep)
    assert [dispatch.call.args_json for dispatch in step.dispatches] == ["{}"]
    results = [
        part for _, content in stage.said for part in content if isinstance(part, ToolResult)
    ]
    outcomes = {result.tool_call_id: result.outcome for result in results}
    assert outcomes == {**dict.fromkeys("abcde", ToolOutcome.FAILED), "f": ToolOutcome.DONE}


async def test_calls_are_committed_as_dispatched_before_any_of_them_leaves() -> None:
    stage = Stage(calling(ToolCall("a", "execute", "{}")), SHELL)
    stage.commits.dies_before = 0
    with pytest.raises(Crash):
        await stage.ask()
    assert stage.tools.order == []


def test_execution_ids_come_from_chat_step_and_place_alone() -> None:
    calls = (ToolCall("same", "execute", "{}"), ToolCall("same", "execute", "{}"))
    fence = Fence(1, 7, 1)
    context = TurnContext(CHAT, ANN)
    first = dispatches_for(context, fence, calls, {"execute": SHELL})
    again = dispatches_for(context, replace(fence, owner_epoch=2), calls, {"execute": SHELL})
    other = dispatches_for(context, replace(fence, history_version=8), calls, {"execute": SHELL})
    assert first == again
    assert len({dispatch.execution_id for dispatch in (*first, *other)}) == 4


async def test_a_chat_that_is_deleted_while_it_runs_is_told_as_absent_and_not_as_left() -> None:
    def deleting(request: ModelRequest) -> Iterable[ModelEvent]:
        del stage.chats.chats[CHAT]
        return hello(request)

    stage = Stage(deleting)
    with pytest.raises(ChatNotFound):
        await stage.ask()
