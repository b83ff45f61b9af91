"""Matches the tool calls and results of one history in the order in which a model reads them.

Call ids are not unique: some endpoints return the same id twice. A result belongs to the first call
with its id that has no result yet.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from chatd.chats.domain.chat import Message
from chatd.content.domain.messages import Role
from chatd.content.domain.parts import ToolCall, ToolResult
from chatd.primitives.domain.ids import MessageId


@dataclass(frozen=True, slots=True)
class PlacedCall:
    """A call and the message that contains it."""

    message_id: MessageId
    call: ToolCall


@dataclass(frozen=True, slots=True)
class PlacedResult:
    """A result and the message that contains it."""

    message_id: MessageId
    result: ToolResult


@dataclass(slots=True)
class Pairing:
    """The matched calls and results of a live history, and those without a match."""

    answered: list[tuple[PlacedCall, ToolResult]] = field(default_factory=list)
    open: list[PlacedCall] = field(default_factory=list)  # At the end of the history.
    passed_over: list[PlacedCall] = field(default_factory=list)  # Another message followed first.
    repeated: list[PlacedResult] = field(default_factory=list)  # The call already had a result.
    uncalled: list[PlacedResult] = field(default_factory=list)
    _open_of_provider: list[PlacedCall] = field(default_factory=list)

    def add(self, message: Message) -> None:
        """Add the next live message."""
        if message.role is not Role.TOOL:
            self.passed_over += self.open
            self.open.clear()
        for part in message.content:
            if isinstance(part, ToolCall):
                # A call that the provider executes may stay without a result, and no other executor
                # sends one.
                waiting = self._open_of_provider if part.provider_executed else self.open
                waiting.append(PlacedCall(message.id, part))
            elif isinstance(part, ToolResult):
                self._answer(message.id, part)

    def _answer(self, message_id: MessageId, result: ToolResult) -> None:
        waiting = self._open_of_provider if result.provider_executed else self.open
        called = result.tool_call_id
        for place, each in enumerate(waiting):
            if each.call.tool_call_id == called:
                self.answered.append((waiting.pop(place), result))
                return
        is_known = any(each.call.tool_call_id == called for each, _ in self.answered)
        placed = PlacedResult(message_id, result)
        (self.repeated if is_known else self.uncalled).append(placed)


def paired(live: Sequence[Message]) -> Pairing:
    """Match the calls and results of a live history."""
    pairing = Pairing()
    for message in live:
        pairing.add(message)
    return pairing
