"""A model that plays a script: the keyless demo, and the model of the tests."""

from collections.abc import AsyncIterator, Callable, Iterable

from chatd.domain.chat import Message, Role
from chatd.domain.model import (
    Finished,
    ModelEvent,
    ModelRequest,
    TextDelta,
    ToolCallRequested,
)
from chatd.domain.parts import Text, ToolCall, ToolResult
from chatd.domain.tools import Executor, ToolSpec

Play = Callable[[ModelRequest], Iterable[ModelEvent]]

SHELL_TOOL = "execute"
CLOCK_TOOL = "get_current_time"


class ScriptedModel:
    """Answers what a function of the request says; remembers what it was asked."""

    def __init__(self, play: Play) -> None:
        self._play = play
        self.requests: list[ModelRequest] = []

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Yield the events of the play."""
        self.requests.append(request)
        for event in self._play(request):
            yield event


def demo(request: ModelRequest) -> Iterable[ModelEvent]:
    """Greet, call one tool of each kind that is offered, and tell what came back."""
    turn = _present_turn(request.history)
    results = [part for message in turn for part in message.content if isinstance(part, ToolResult)]
    if results:
        yield from _report(results)
    else:
        yield from _greet(turn, request.tools)
    yield Finished()


def _greet(turn: tuple[Message, ...], tools: tuple[ToolSpec, ...]) -> Iterable[ModelEvent]:
    said = " ".join(part.text for part in turn[0].content if isinstance(part, Text))
    yield from _words(
        f'You said "{said}". I am the scripted demo of Parley, not a language model: '
        "set a provider key to talk to a real one. "
    )
    for index, call in enumerate(_demo_calls(tools)):
        yield ToolCallRequested(
            ToolCall(f"call_{index}", call[0].name, call[1], mcp_server_id=call[0].server_id)
        )


def _demo_calls(tools: tuple[ToolSpec, ...]) -> Iterable[tuple[ToolSpec, str]]:
    """Pick one shell command and one question to an MCP server."""
    for tool in tools:
        if tool.executor is Executor.TOOLRUNNER and tool.name == SHELL_TOOL:
            yield tool, '{"command":"echo hello from the workspace"}'
        elif tool.executor is Executor.MCPGATEWAY and tool.original_name == CLOCK_TOOL:
            yield tool, '{"timezone":"UTC"}'


def _report(results: list[ToolResult]) -> Iterable[ModelEvent]:
    for result in results:
        yield from _words(f"\n{result.tool_name} answered: {result.result_json}")
    yield from _words("\nThat is all the demo does.")


def _words(text: str) -> Iterable[ModelEvent]:
    """Stream a text word by word, as a model would."""
    for word in text.split(" "):
        yield TextDelta(f"{word} ")


def _present_turn(history: tuple[Message, ...]) -> tuple[Message, ...]:
    """Return the messages from the last user message on."""
    for place in range(len(history) - 1, -1, -1):
        if history[place].role is Role.USER:
            return history[place:]
    return history
