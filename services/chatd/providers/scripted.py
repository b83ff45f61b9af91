"""A model that plays a script: the keyless demo, and the model of the tests."""

import json
import re
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Iterable

from chatd.content.domain.messages import FinishReason, Role
from chatd.content.domain.parts import Text, ToolCall, ToolResult
from chatd.content.domain.prompts import PromptMessage
from chatd.content.domain.tools import Executor, ToolSpec
from chatd.content.domain.truncation import without_large_bytes
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
from parley.clock import Clock

Play = Callable[[ModelRequest], Iterable[ModelEvent] | AsyncIterable[ModelEvent]]

SHELL_TOOL = "execute"
CLOCK_TOOL = "get_current_time"
COUNT = re.compile(r"\bcount to (\d+)\b", re.IGNORECASE)
COUNT_MAX = 1000
ECHO = re.compile(r"\brepeat after me: (.+)", re.IGNORECASE | re.DOTALL)
COUNT_PAUSE_S = 0.05
STEP = re.compile(r"^(and )?(?:run: (.+)|call: (\w+) (\{.*\}))$", re.IGNORECASE | re.MULTILINE)
USE = re.compile(r"\buse (\d+) tokens of (\d+)\b", re.IGNORECASE)
SUMMARY_CHARACTERS_MAX = 2000


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

    "count to 30" is answered slowly, "repeat after me: yes" at once and without tools. Lines such
    as "run: ls" or 'call: read_file {"path": "a"}' are a script: one step after the other,
    regardless of results; one that begins with "and" is called together with the one before it.
    "use 9 tokens of 10" fills the window, for as long as that message is in it.
    """

    def play(request: ModelRequest) -> Iterable[ModelEvent] | AsyncIterable[ModelEvent]:
        said = _said(_present_turn(request.messages))
        if not request.may_call_tools:
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
        yield ToolCallRequested(ToolCall(f"call_{place}", name, arguments))
    if len(results) >= len(steps):
        yield from _report(results)
    if (filled := _use(request.messages)) is not None:
        yield filled
    yield _finished(is_calling=bool(places))


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
    """Greet, call one tool of each kind in the catalogue, and report the results."""
    turn = _present_turn(request.messages)
    if results := _results(turn):
        yield from _report(results)
        yield Finished()
        return
    yield from _words(
        f'You said "{_said(turn)}". I am the scripted demo of Parley, not a language model: '
        "set a provider key to talk to a real one. "
    )
    calls = tuple(_demo_calls(request.tools))
    for index, (tool, arguments) in enumerate(calls):
        yield ToolCallRequested(ToolCall(f"call_{index}", tool.name, arguments))
    yield _finished(is_calling=bool(calls))


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
    for result in results:
        yield from _words(
            f"\n{result.tool_name} answered: {without_large_bytes(result.result_json)}"
        )
    yield from _words("\nThat is all the demo does.")


def _words(text: str) -> Iterable[ModelEvent]:
    """Stream a text word by word, as a model would."""
    for word in text.split(" "):
        yield TextDelta(f"{word} ")


def _present_turn(history: tuple[PromptMessage, ...]) -> tuple[PromptMessage, ...]:
    """Return the messages from the last user message on."""
    for place in range(len(history) - 1, -1, -1):
        if history[place].role is Role.USER:
            return history[place:]
    return history
