"""The calls that run in a chat, as its events show them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from parley.client.events import (
    ChatEvent,
    HistoryReset,
    MessageCommitted,
    PartStreamed,
    PreviewReset,
    Resync,
)
from parley.client.parts import CallProgress, ToolResult


@dataclass(frozen=True, slots=True)
class RunningCall:
    """A call that has no result yet.

    Attributes:
        tool_call_id: The call.
        tool_name: The name the model used.
        output: The end of its output so far.
        process_id: Its process in the workspace; empty if it has none.
        progress: How far it is; None if it did not tell.
    """

    tool_call_id: str
    tool_name: str
    output: str = ""
    process_id: str = ""
    progress: CallProgress | None = None


class RunningCalls:
    """Applies the events of a chat in their order, and keeps the calls that are shown running."""

    def __init__(self) -> None:
        self._calls: dict[str, RunningCall] = {}

    @property
    def calls(self) -> Mapping[str, RunningCall]:
        """The running calls by their ids."""
        return self._calls

    def apply(self, event: ChatEvent) -> None:
        """Apply one event."""
        match event:
            case PartStreamed(part=ToolResult() as result):
                self._apply_result(result)
            case MessageCommitted(message=message):
                for part in message.content:
                    if isinstance(part, ToolResult):
                        self._calls.pop(part.tool_call_id, None)
            case PreviewReset() | HistoryReset() | Resync():
                self._calls.clear()
            case _:
                pass

    def _apply_result(self, result: ToolResult) -> None:
        if not result.is_running:
            self._calls.pop(result.tool_call_id, None)
            return
        new = RunningCall(result.tool_call_id, result.tool_name)
        known = self._calls.get(result.tool_call_id, new)
        self._calls[result.tool_call_id] = replace(
            known,
            output=("" if result.is_reset else known.output) + result.result_delta,
            process_id=result.process_id or known.process_id,
            progress=result.progress or known.progress,
        )
