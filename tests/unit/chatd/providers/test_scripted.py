from chatd.content.domain.messages import FinishReason, Role
from chatd.content.domain.parts import Part, Text, ToolCall, ToolOutcome, ToolResult
from chatd.content.domain.prompts import PromptMessage
from chatd.content.domain.tools import Executor, ToolSpec
from chatd.models.domain.language_model import (
    Finished,
    ModelEvent,
    ModelRequest,
    TextDelta,
    ToolCallRequested,
)
from chatd.providers.scripted import ScriptedModel, demo_with
from parley.clock import FakeClock
from support.chatd.providers.answers import events_of

SCRIPT = """fix it

run: make test
call: read_file {"path": "a: {b}"}
call: ask {"deep": {"er": 1}}
"""
CALLING = Finished(FinishReason.TOOL_CALLS)
TOOLS = (ToolSpec("ask", "", "{}", Executor.MCPGATEWAY, server_id="server"),)


async def played(*results: ToolResult, script: str = SCRIPT) -> list[ModelEvent]:
    said = PromptMessage(Role.USER, (Text(script),))
    answers: tuple[Part, ...] = results
    request = ModelRequest(
        model="scripted", messages=(said, PromptMessage(Role.TOOL, answers)), tools=TOOLS
    )
    model = ScriptedModel(demo_with(FakeClock()))
    return await events_of(model, request)


async def test_a_script_is_played_step_by_step_whatever_comes_of_it() -> None:
    bad = ToolResult("call_0", "execute", '{"exit_code":2}', ToolOutcome.FAILED)
    good = ToolResult("call_1", "read_file", "{}", ToolOutcome.DONE)
    assert await played() == [
        ToolCallRequested(ToolCall("call_0", "execute", '{"command": "make test"}')),
        CALLING,
    ]
    assert await played(bad) == [
        ToolCallRequested(ToolCall("call_1", "read_file", '{"path": "a: {b}"}')),
        CALLING,
    ]
    assert await played(bad, good) == [
        ToolCallRequested(ToolCall("call_2", "ask", '{"deep": {"er": 1}}')),
        CALLING,
    ]


async def test_calls_that_belong_together_are_made_together() -> None:
    script = "run: a\nand run: b\nand run: c\nrun: d"

    def calls(*names: str) -> list[ModelEvent]:
        asked = [
            ToolCall(f"call_{'abcd'.index(name)}", "execute", f'{{"command": "{name}"}}')
            for name in names
        ]
        return [*map(ToolCallRequested, asked), CALLING]

    done = ToolResult("call", "execute", "{}", ToolOutcome.DONE)
    assert await played(script=script) == calls("a", "b", "c")
    assert await played(done, done, done, script=script) == calls("d")


async def test_after_its_last_step_a_script_tells_what_came_back() -> None:
    result = ToolResult("call", "execute", '{"exit_code":0}', ToolOutcome.DONE)
    events = await played(result, result, result)
    told = "".join(event.text for event in events if isinstance(event, TextDelta))
    assert told.count('execute answered: {"exit_code":0}') == 3
    assert not any(isinstance(event, ToolCallRequested) for event in events)
    assert events[-1] == Finished(FinishReason.STOP)


async def test_the_demo_says_whether_it_calls_a_tool() -> None:
    shell = ToolSpec("execute", "", "{}", Executor.TOOLRUNNER)
    model = ScriptedModel(demo_with(FakeClock()))
    messages = (PromptMessage(Role.USER, (Text("hello"),)),)
    calling = await events_of(model, ModelRequest("scripted", messages, (shell,)))
    alone = await events_of(model, ModelRequest("scripted", messages, ()))
    assert (calling[-1], alone[-1]) == (CALLING, Finished(FinishReason.STOP))
