"""Publishes the output of running calls as live parts."""

import math
from collections.abc import Callable, Sequence
from typing import assert_never

from msgspec.structs import replace

from chatd.chats.domain.chat import PendingCall
from chatd.content.domain.messages import Role
from chatd.content.domain.parts import CallProgress, StreamedPart, ToolResultDelta
from chatd.content.domain.truncation import repaired
from chatd.content.domain.turn_context import CallProcess

PROGRESS_MESSAGE_MAX = 1024


class LiveProgress:
    """The progress of the calls of one step; each delta is at the place of its call.

    Args:
        pending: The calls of the step.
        show: Publishes a live part.
    """

    def __init__(
        self, pending: Sequence[PendingCall], show: Callable[[Role, int, StreamedPart], None]
    ) -> None:
        self._show = show
        self._places = {call.tool_call_id: place for place, call in enumerate(pending)}
        self._empty = {
            call.tool_call_id: ToolResultDelta(
                call.tool_call_id, call.tool_name, call.mcp_server_id
            )
            for call in pending
        }

    def report(self, tool_call_id: str, update: str | CallProcess | CallProgress) -> None:
        """Append text to the live result of a call, or name its process or its progress."""
        empty = self._empty.get(tool_call_id)
        if empty is None:
            return
        match update:
            case str():
                if update:
                    self._publish(replace(empty, text=repaired(update)))
            case CallProcess(process_id):
                self._publish(replace(empty, process_id=process_id))
            case CallProgress():
                if (shown := _presentable(update)) is not None:
                    self._publish(replace(empty, progress=shown))
            case _:
                assert_never(update)

    def reset(self, tool_call_id: str) -> None:
        """Discard the live text of a call."""
        empty = self._empty.get(tool_call_id)
        if empty is not None:
            self._publish(replace(empty, is_reset=True))

    def _publish(self, delta: ToolResultDelta) -> None:
        self._show(Role.TOOL, self._places[delta.tool_call_id], delta)


def _presentable(update: CallProgress) -> CallProgress | None:
    """Return the progress with numbers that JSON has; None if there is none."""
    if not math.isfinite(update.progress):
        return None
    total = update.total
    has_total = total is not None and math.isfinite(total)
    message = repaired(update.message)[:PROGRESS_MESSAGE_MAX]
    return CallProgress(update.progress, total if has_total else None, message)
