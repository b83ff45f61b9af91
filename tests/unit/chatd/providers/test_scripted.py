from chatd.content.domain.messages import Role
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
        Finished(),
    ]
    assert await played(bad) == [
        ToolCallRequested(ToolCall("call_1", "read_file", '{"path": "a: {b}"}')),
        Finished(),
    ]
    assert await played(bad, good) == [
        ToolCallRequested(ToolCall("call_2", "ask", '{"deep": {"er": 1}}', mcp_server_id="server")),
        Finished(),
    ]


async def test_calls_that_belong_together_are_made_together() -> None:
    script = "run: a\nand run: b\nand run: c\nrun: d"

    def calls(*names: str) -> list[ModelEvent]:
        asked = [
            ToolCall(f"call_{'abcd'.index(name)}", "execute", f'{{"command": "{name}"}}')
            for name in names
        ]
        return [*map(ToolCallRequested, asked), Finished()]

    done = ToolResult("call", "execute", "{}", ToolOutcome.DONE)
    assert await played(script=script) == calls("a", "b", "c")
    assert await played(done, done, done, script=script) == calls("d")


async def test_after_its_last_step_a_script_tells_what_came_back() -> None:
    result = ToolResult("call", "execute", '{"exit_code":0}', ToolOutcome.DONE)
    events = await played(result, result, result)
    told = "".join(event.text for event in events if isinstance(event, TextDelta))
    assert told.count('execute answered: {"exit_code":0}') == 3
    assert not any(isinstance(event, ToolCallRequested) for event in events)
