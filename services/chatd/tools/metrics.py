"""Metrics of tool calls: duration, result size and outcome."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from opentelemetry.metrics import CallbackOptions, Observation

from chatd.content.domain.tools import (
    Execution,
    Executor,
    ExecutorUnreachable,
    Found,
    InputRequired,
    Outcome,
    Tools,
    ToolSpec,
)
from chatd.content.domain.turn_context import TurnContext
from parley.clock import Clock
from parley.telemetry import Durations, Telemetry

DURATION: Final = "chatd_tool_call_duration_seconds"
RESULT_CHARACTERS: Final = "chatd.tool.result.characters"
TRUNCATIONS: Final = "chatd.tool.truncations"
#: MCP tools have arbitrary names, which are not used as metric labels.
SERVER_TOOLS_LABEL: Final = "mcp"
UNREACHABLE: Final = "unreachable"
CRASHED: Final = "crashed"
ASKED: Final = "asked"
#: Within a string the quotation marks are escaped, so this matches only a field.
_CUT: Final = '"truncation": {"'


@dataclass(slots=True)
class _Results:
    """Counters of the results of one tool."""

    characters: int = 0
    truncated: int = 0


class MeasuredTools:
    """Forwards calls, and counts their results by tool and outcome."""

    def __init__(self, tools: Tools, clock: Clock) -> None:
        self._tools = tools
        self._clock = clock
        self._durations = Durations(
            DURATION, "How long calls of tools took, by tool and outcome.", ("tool", "outcome")
        )
        self._results: dict[str, _Results] = {}

    async def list_tools(self, context: TurnContext) -> tuple[ToolSpec, ...]:
        """Return the tools of the wrapped source."""
        return await self._tools.list_tools(context)

    async def execute(self, execution: Execution) -> Outcome | InputRequired:
        """Execute a call and count it; a cancelled wait is not counted: the call continues."""
        tool, began_s = _label(execution), self._clock.monotonic()
        try:
            outcome = await self._tools.execute(execution)
        except Exception as error:
            ended = UNREACHABLE if isinstance(error, ExecutorUnreachable) else CRASHED
            self._durations.of(tool, ended).record(self._clock.monotonic() - began_s)
            raise
        if isinstance(outcome, InputRequired):
            self._durations.of(tool, ASKED).record(self._clock.monotonic() - began_s)
            return outcome
        self._durations.of(tool, outcome.outcome.value).record(self._clock.monotonic() - began_s)
        results = self._results.setdefault(tool, _Results())
        results.characters += len(outcome.result_json)
        results.truncated += _CUT in outcome.result_json
        return outcome

    async def find(self, execution: Execution) -> Found:
        """Forward the request."""
        return await self._tools.find(execution)

    async def cancel(self, execution: Execution) -> None:
        """Forward the cancellation."""
        await self._tools.cancel(execution)

    def publish(self, telemetry: Telemetry) -> Callable[[], None]:
        """Register the metrics with the telemetry; return the callback that unregisters them."""
        telemetry.meter.create_observable_counter(
            RESULT_CHARACTERS,
            callbacks=[self._sizes],
            unit="{character}",
            description="Characters of results, by tool.",
        )
        telemetry.meter.create_observable_counter(
            TRUNCATIONS,
            callbacks=[self._truncations],
            unit="{result}",
            description="Results of which something was left out, by tool.",
        )
        telemetry.registry.register(self._durations)
        return lambda: telemetry.registry.unregister(self._durations)

    def _sizes(self, options: CallbackOptions) -> Iterable[Observation]:
        return [
            Observation(results.characters, {"tool": tool})
            for tool, results in tuple(self._results.items())
        ]

    def _truncations(self, options: CallbackOptions) -> Iterable[Observation]:
        return [
            Observation(results.truncated, {"tool": tool})
            for tool, results in tuple(self._results.items())
        ]


def _label(execution: Execution) -> str:
    is_of_server = execution.dispatch.executor is Executor.MCPGATEWAY or execution.spec.server_id
    return SERVER_TOOLS_LABEL if is_of_server else execution.spec.name
