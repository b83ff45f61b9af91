"""Combines the tools that chatd executes itself: each call goes to the set that has its name."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from chatd.content.domain.tools import (
    Execution,
    Found,
    InputRequired,
    Outcome,
    StillRunning,
    Tools,
    ToolSpec,
)
from chatd.content.domain.turn_context import TurnContext
from chatd.tools.workspace.results import failed


class NamedTools(Tools, Protocol):
    """Tools with fixed names."""

    @property
    def names(self) -> frozenset[str]:
        """The names of all its tools, offered or not."""
        ...


class LocalTools:
    """Offers the tools of several sets."""

    def __init__(self, sets: Sequence[NamedTools]) -> None:
        self._sets = tuple(sets)
        self._by_name: Mapping[str, NamedTools] = {
            name: each for each in self._sets for name in each.names
        }

    async def list_tools(self, context: TurnContext) -> tuple[ToolSpec, ...]:
        """Return the tools of all sets, in their order."""
        return tuple([spec for each in self._sets for spec in await each.list_tools(context)])

    async def execute(self, execution: Execution) -> Outcome | InputRequired:
        """Forward the call to its set."""
        tools = self._of(execution)
        if tools is None:
            hint = "Call a tool that is offered now."
            return failed("There is no such tool any more.", "NO_SUCH_TOOL", hint)
        return await tools.execute(execution)

    async def find(self, execution: Execution) -> Found:
        """Forward the request to the call's set."""
        tools = self._of(execution)
        return StillRunning() if tools is None else await tools.find(execution)

    async def cancel(self, execution: Execution) -> None:
        """Forward the cancellation to the call's set."""
        tools = self._of(execution)
        if tools is not None:
            await tools.cancel(execution)

    def _of(self, execution: Execution) -> NamedTools | None:
        return self._by_name.get(execution.dispatch.call.tool_name)
