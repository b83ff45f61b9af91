"""A model that plays a script: the keyless demo, and the model of the tests."""

import json
import re
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Iterable
from typing import Any

from chatd.content.domain.messages import FinishReason, Role
from chatd.content.domain.parts import Text, ToolCall, ToolOutcome, ToolResult
from chatd.content.domain.prompts import PromptMessage
from chatd.content.domain.tools import Executor, ToolSpec
from chatd.models.domain.language_model import (
    Finished,
    ModelEvent,
    ModelRequest,
    OnEvent,
    RequestSent,
    TextDelta,
    ToolCallRequested,
    UsageReported,
)
from chatd.providers.demo.report import report
from parley.clock import Clock

Play = Callable[[ModelRequest], Iterable[ModelEvent] | AsyncIterable[ModelEvent]]

SHELL_TOOL = "execute"
CLOCK_TOOL = "get_current_time"
COUNT = re.compile(r"\bcount to (\d+)\b", re.IGNORECASE)
COUNT_MAX = 1000
ECHO = re.compile(r"\brepeat after me: (.+)", re.IGNORECASE | re.DOTALL)
COUNT_PAUSE_S = 0.05
STEP = re.compile(r"^(and )?(?:run: (.+)|call: ([\w-]+) (\{.*\}))$", re.IGNORECASE | re.MULTILINE)
EARLIER = re.compile(r"\$(agent|answer)_(\d+)\b")
SPAWN_TOOL = "spawn_agent"
ADVISES = re.compile(r"\badvise another agent\b")
JUDGES = re.compile(r"\bjudge whether the goal of another agent\b")
#: How a conversation shows a call that succeeded.
SUCCEEDED = "\ndone: "
USE = re.compile(r"\buse (\d+) tokens of (\d+)\b", re.IGNORECASE)
SUMMARY_CHARACTERS_MAX = 2000
QUESTION_TOOL = "ask_user_question"
PLAN_TOOL = "propose_plan"
WRITE_TOOL = "write_file"
FILES = ("NOTES.md", "hello.txt")
FILE_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,99}")


class ScriptedModel:
    """Answers with the events that a function of the request returns.

    A slow play is an asynchronous generator; one that fails raises `ModelError`.
    """

    def __init__(self, play: Play) -> None:
        self._play = play

    async def answer(self, request: ModelRequest, on_event: OnEvent) -> None:
        """Emit the events of the play."""
        on_event(RequestSent())
        events = self._play(request)
        if isinstance(events, Iterable):
            for event in events:
                on_event(event)
            return
        try:
            async for event in events:
                on_event(event)
        finally:
            if isinstance(events, AsyncGenerator):
                await events.aclose()


def demo_with(clock: Clock) -> Play:
    """Return the demo, with commands for slow and immediate answers.

    "count to 200" is answered slowly, "repeat after me: yes" at once and without tools. Lines such
    as "run: ls" or 'call: read_file {"path": "a"}' are a script: one step after the other,
    regardless of results; one that begins with "and" is called together with the one before it.
    "$agent_2" in arguments is the id of the second agent that the turn started, "$answer_1" the
    answer to its first question.
    "use 9 tokens of 10" fills the window, for as long as that message is in it. As the judge of a
    goal it finds that one reached once a call of the agent succeeded.
    """

    def play(request: ModelRequest) -> Iterable[ModelEvent] | AsyncIterable[ModelEvent]:
        said = _said(_present_turn(request.messages))
        if not request.may_call_tools:
            instructions = _instructions(request.messages)
            if ADVISES.search(instructions):
                return _advise(said)
            if JUDGES.search(instructions):
                return _judge(request.messages)
            return _summarise(request.messages)
        if steps := STEP.findall(said):
            return _play_step(steps, request)
        if (filled := _use(request.messages)) is not None:
            return (TextDelta("This used much of the window."), filled, Finished())
        if (echoed := ECHO.search(said)) is not None:
            return (TextDelta(echoed[1]), Finished())
        wanted = COUNT.search(said)
        return demo(request) if wanted is None else _count(int(wanted[1]), clock)

    return play


def _advise(question: str) -> Iterable[ModelEvent]:
    """Advise as the advisor of another agent would be expected to."""
    yield from _words(f"Take the smallest step that can be undone, and check it. {question}")
    yield Finished()


def _judge(messages: tuple[PromptMessage, ...]) -> Iterable[ModelEvent]:
    """Judge a goal by whether any call succeeded."""
    said = "\n".join(_said((message,)) for message in messages if message.role is Role.USER)
    is_done = SUCCEEDED in said
    reason = "A call succeeded." if is_done else "No call succeeded yet."
    yield TextDelta(json.dumps({"done": is_done, "reason": reason}))
    yield Finished()


def _instructions(messages: tuple[PromptMessage, ...]) -> str:
    """Return the text of the last system message."""
    systems = [message for message in messages if message.role is Role.SYSTEM]
    return _said(tuple(systems[-1:])) if systems else ""


def _summarise(messages: tuple[PromptMessage, ...]) -> Iterable[ModelEvent]:
    """Repeat the user messages before the summary request."""
    asked = [message for message in messages if message.role is Role.USER][:-1]
    said = " ".join(_said((message,)) for message in asked)
    yield from _words(f"The user said: {said[:SUMMARY_CHARACTERS_MAX]}")
    if (filled := _use(messages)) is not None:
        yield filled
    yield Finished()


def _use(messages: tuple[PromptMessage, ...]) -> UsageReported | None:
    """Return the usage that a user message requests."""
    said = " ".join(_said((message,)) for message in messages if message.role is Role.USER)
    wanted = USE.search(said)
    if wanted is None:
        return None
    return UsageReported(input_tokens=int(wanted[1]), context_limit_tokens=int(wanted[2]))


def _play_step(
    steps: list[tuple[str, str, str, str]], request: ModelRequest
) -> Iterable[ModelEvent]:
    """Make the next calls of a script, or report when all were made."""
    results = _results(_present_turn(request.messages))
    places = _next_places(steps, len(results))
    for place in places:
        _, command, name, arguments = steps[place]
        if command:
            name, arguments = SHELL_TOOL, json.dumps({"command": command})
        else:
            arguments = _with_earlier(arguments, results)
        yield ToolCallRequested(ToolCall(f"call_{place}", name, arguments))
    if len(results) >= len(steps):
        yield from _report(results)
    if (filled := _use(request.messages)) is not None:
        yield filled
    yield _finished(is_calling=bool(places))


def _with_earlier(arguments: str, results: list[ToolResult]) -> str:
    """Return arguments with the ids of agents and the answers of the turn filled in."""
    agents = [
        str(json.loads(each.result_json).get("agent_id", ""))
        for each in results
        if each.tool_name == SPAWN_TOOL
    ]
    known = {"agent": agents, "answer": _answers(results)}

    def text_of(found: re.Match[str]) -> str:
        values, number = known[found[1]], int(found[2])
        return json.dumps(values[number - 1])[1:-1] if 0 < number <= len(values) else found[0]

    return EARLIER.sub(text_of, arguments)


def _next_places(steps: list[tuple[str, str, str, str]], done: int) -> range:
    """Return the indexes of the next calls: one, and those called together with it."""
    end = min(done + 1, len(steps))
    while end < len(steps) and steps[end][0]:
        end += 1
    return range(done, end)


async def _count(last: int, clock: Clock) -> AsyncIterator[ModelEvent]:
    """Count slowly enough to be interrupted."""
    for number in range(1, min(last, COUNT_MAX) + 1):
        yield TextDelta(f"{number} ")
        await clock.sleep(COUNT_PAUSE_S)
    yield Finished()


def demo(request: ModelRequest) -> Iterable[ModelEvent]:
    """Greet, call one tool of each kind in the catalogue, and report the results.

    In plan mode it asks one question, proposes a plan, and writes a file once that is accepted.
    """
    turn = _present_turn(request.messages)
    results = _results(turn)
    if _is_planning((tool.name for tool in request.tools), results):
        call = _planned_call(_said(turn), results)
        yield from _report(results[-1:]) if call is None else (ToolCallRequested(call),)
        yield _finished(is_calling=call is not None)
        return
    if results:
        yield from _report(results)
        yield Finished()
        return
    yield from _words(
        f'You said "{_said(turn)}". I am the scripted demo of Parley, not a language model: '
        "set a provider key to talk to a real one. Until then I call the same tools each time. "
        "Try `run: ls -a` for a command of yours, `count to 50` for a slow answer, "
        "or plan mode for a question and a plan. "
    )
    calls = tuple(_demo_calls(request.tools))
    for index, (tool, arguments) in enumerate(calls):
        yield ToolCallRequested(ToolCall(f"call_{index}", tool.name, arguments))
    yield _finished(is_calling=bool(calls))


def _is_planning(tool_names: Iterable[str], results: list[ToolResult]) -> bool:
    """Return whether a turn plans, or carries out what it planned."""
    return PLAN_TOOL in tool_names or any(each.tool_name == PLAN_TOOL for each in results)


def _planned_call(said: str, results: list[ToolResult]) -> ToolCall | None:
    """Return the next call of a turn that plans; None if there is none left."""
    newest = results[-1] if results else None
    call_id = f"call_{len(results)}"
    if newest is None:
        return ToolCall(call_id, QUESTION_TOOL, json.dumps(_question()))
    if newest.tool_name == QUESTION_TOOL:
        return ToolCall(call_id, PLAN_TOOL, json.dumps(_plan(said, _file_of(results))))
    if newest.tool_name != PLAN_TOOL or newest.outcome is not ToolOutcome.DONE:
        return None
    answer = json.loads(newest.result_json)
    proposed = _plan(said, _file_of(results), answer.get("remark", ""))
    if not answer.get("accepted"):
        return ToolCall(call_id, PLAN_TOOL, json.dumps(proposed))
    written = {"path": _file_of(results), "content": answer.get("plan") or proposed["plan"]}
    return ToolCall(call_id, WRITE_TOOL, json.dumps(written))


def _question() -> dict[str, Any]:
    options = [{"label": name} for name in FILES]
    asked = {"header": "File", "question": "Which file should I write?", "options": options}
    return {"questions": [asked]}


def _plan(said: str, file: str, remark: str = "") -> dict[str, str]:
    remarked = f"\nAs you remarked: {remark}\n" if remark else ""
    plan = f"# Write {file}\n\n1. Write what was asked for into {file}: {said}\n{remarked}"
    return {"title": f"Write {file}", "plan": plan}


def _file_of(results: list[ToolResult]) -> str:
    """Return the name of the file that the person chose or wrote."""
    found = FILE_NAME.search((_answers(results) or [""])[-1])
    return found[0] if found is not None else FILES[0]


def _answers(results: list[ToolResult]) -> list[str]:
    """Return what the person chose or wrote at each question."""
    return [
        _answer(json.loads(each.result_json)) for each in results if each.tool_name == QUESTION_TOOL
    ]


def _answer(answered: dict[str, Any]) -> str:
    first: dict[str, Any] = next(iter(answered.get("answers") or ()), {})
    told = (*first.get("selected", ()), first.get("text", ""), answered.get("text", ""))
    return " ".join(each for each in told if each)


def _finished(*, is_calling: bool) -> Finished:
    return Finished(FinishReason.TOOL_CALLS if is_calling else FinishReason.STOP)


def _results(turn: tuple[PromptMessage, ...]) -> list[ToolResult]:
    return [part for message in turn for part in message.content if isinstance(part, ToolResult)]


def _said(turn: tuple[PromptMessage, ...]) -> str:
    """Return the text of the message that began the turn."""
    return " ".join(part.text for part in turn[0].content if isinstance(part, Text))


def _demo_calls(tools: tuple[ToolSpec, ...]) -> Iterable[tuple[ToolSpec, str]]:
    """Pick one shell command and one call of an MCP server."""
    for tool in tools:
        if tool.executor is Executor.TOOLRUNNER and tool.name == SHELL_TOOL:
            yield tool, '{"command":"echo hello from the workspace"}'
        elif tool.executor is Executor.MCPGATEWAY and tool.original_name == CLOCK_TOOL:
            yield tool, '{"timezone":"UTC"}'


def _report(results: list[ToolResult]) -> Iterable[ModelEvent]:
    yield from _words(report(results))


def _words(text: str) -> Iterable[ModelEvent]:
    """Stream a text word by word, as a model would."""
    for word in text.split(" "):
        yield TextDelta(f"{word} ")


def _present_turn(history: tuple[PromptMessage, ...]) -> tuple[PromptMessage, ...]:
    """Return the messages from the last one of a person on; reports of agents are none."""
    for place in range(len(history) - 1, -1, -1):
        is_added = _said((history[place],)).startswith(("<agent_report ", "<hook_context "))
        if history[place].role is Role.USER and not is_added:
            return history[place:]
    return history
