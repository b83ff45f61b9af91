import json
from typing import Any

import pytest

from chatd.content.domain.messages import FinishReason, Role
from chatd.content.domain.parts import Part, Text, ToolCall, ToolOutcome, ToolResult
from chatd.content.domain.prompts import PromptMessage
from chatd.content.domain.tools import Executor, PendingKind, ToolSpec
from chatd.models.domain.language_model import (
    Finished,
    ModelEvent,
    ModelRequest,
    TextDelta,
    ToolCallRequested,
)
from chatd.providers.scripted import ScriptedModel, demo_with
from chatd.turns.domain.asking import asking_problem
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


async def test_a_step_can_name_agents_and_answers_of_its_turn() -> None:
    script = 'call: one {}\ncall: two {}\ncall: use {"a": "$agent_1", "b": "$answer_1 $agent_2"}'
    started = ToolResult("call_0", "spawn_agent", '{"agent_id": "a-1"}', ToolOutcome.DONE)
    chosen = '{"answers": [{"selected": ["\\"5\\""]}]}'
    answered = ToolResult("call_1", "ask_user_question", chosen, ToolOutcome.DONE)
    assert await played(started, answered, script=script) == [
        ToolCallRequested(ToolCall("call_2", "use", r'{"a": "a-1", "b": "\"5\" $agent_2"}')),
        CALLING,
    ]


async def test_after_its_last_step_a_script_tells_what_came_back() -> None:
    result = ToolResult("call", "execute", '{"output":"all is well"}', ToolOutcome.DONE)
    events = await played(result, result, result)
    told = "".join(event.text for event in events if isinstance(event, TextDelta))
    assert told.count("`execute` answered:\n\n```\nall is well\n```\n") == 3
    assert not any(isinstance(event, ToolCallRequested) for event in events)
    assert events[-1] == Finished(FinishReason.STOP)


async def test_the_demo_says_whether_it_calls_a_tool() -> None:
    shell = ToolSpec("execute", "", "{}", Executor.TOOLRUNNER)
    model = ScriptedModel(demo_with(FakeClock()))
    messages = (PromptMessage(Role.USER, (Text("hello"),)),)
    calling = await events_of(model, ModelRequest("scripted", messages, (shell,)))
    alone = await events_of(model, ModelRequest("scripted", messages, ()))
    assert (calling[-1], alone[-1]) == (CALLING, Finished(FinishReason.STOP))


PLANNING = tuple(
    ToolSpec(name, "", "{}", Executor.PERSON) for name in ("propose_plan", "ask_user_question")
)
WRITING = (ToolSpec("write_file", "", "{}", Executor.TOOLRUNNER),)


async def planned(tools: tuple[ToolSpec, ...], *results: ToolResult) -> ToolCall | None:
    """Return the call that the demo makes after these results; None if it ends the turn."""
    said = PromptMessage(Role.USER, (Text("say hello"),))
    answers: tuple[Part, ...] = results
    messages = (said, *((PromptMessage(Role.TOOL, answers),) if results else ()))
    request = ModelRequest(model="scripted", messages=messages, tools=tools)
    events = await events_of(ScriptedModel(demo_with(FakeClock())), request)
    calls = [event.call for event in events if isinstance(event, ToolCallRequested)]
    assert events[-1] == (CALLING if calls else Finished(FinishReason.STOP))
    return calls[0] if calls else None


def result(name: str, told: dict[str, Any], outcome: ToolOutcome = ToolOutcome.DONE) -> ToolResult:
    return ToolResult("call", name, json.dumps({"ok": True, **told}), outcome)


@pytest.mark.parametrize(
    ("answer", "file"),
    [
        ({"answers": [{"question": "?", "selected": ["hello.txt"]}]}, "hello.txt"),
        ({"answers": [{"question": "?", "selected": [], "text": "mine.md"}]}, "mine.md"),
        ({"text": "../other.md"}, "other.md"),
        ({"text": "?!"}, "NOTES.md"),
    ],
)
async def test_the_demo_asks_plans_and_writes_a_file_only_after_acceptance(
    answer: dict[str, Any], file: str
) -> None:
    question = await planned(PLANNING)
    answered = result("ask_user_question", answer)
    plan = await planned(PLANNING, answered)
    refused = result("propose_plan", {"accepted": False, "remark": "smaller"})
    again = await planned(PLANNING, answered, refused)
    accepted = result("propose_plan", {"accepted": True})
    written = await planned(WRITING, answered, refused, accepted)
    edited = result("propose_plan", {"accepted": True, "plan": "# mine"})
    as_edited = await planned(WRITING, answered, edited)
    over = await planned(WRITING, answered, accepted, result("write_file", {}))

    assert question is not None
    assert plan is not None
    assert again is not None
    assert written is not None
    assert as_edited is not None
    assert question.tool_name == "ask_user_question"
    asked = json.loads(question.args_json)
    assert asking_problem(PendingKind.QUESTION, asked) is None
    proposed = json.loads(plan.args_json)
    assert asking_problem(PendingKind.PLAN, proposed) is None
    assert (plan.tool_name, proposed["title"]) == ("propose_plan", f"Write {file}")
    assert "As you remarked: smaller" in json.loads(again.args_json)["plan"]
    content = json.loads(written.args_json)
    assert (written.tool_name, content) == (
        "write_file",
        {"path": file, "content": proposed["plan"]},
    )
    assert json.loads(as_edited.args_json) == {"path": file, "content": "# mine"}
    assert over is None


async def test_the_demo_ends_the_turn_when_nobody_looked_at_its_plan() -> None:
    expired = result("propose_plan", {}, ToolOutcome.FAILED)
    assert await planned(PLANNING, result("ask_user_question", {"text": "a"}), expired) is None
