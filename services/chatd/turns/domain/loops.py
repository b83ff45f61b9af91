"""Detection of turns whose model repeats the same call."""

from collections.abc import Iterator, Sequence

from chatd.chats.domain.chat import Message
from chatd.content.domain.messages import Role
from chatd.content.domain.parts import ToolCall
from chatd.primitives.domain.ids import MessageId

REPETITIONS_MAX = 50


def repeated_call(
    history: Sequence[Message], turn_id: MessageId, repetitions_max: int
) -> ToolCall | None:
    """Return a call of the newest answer that too many answers of the turn made identically.

    Identical calls within one answer count once.
    """
    answers = _calls_of_turn(history, turn_id)
    newest = next(answers, ())
    if not newest:
        return None
    counts = {_identity(call): 1 for call in newest}
    for calls in answers:
        for identity in counts.keys() & {_identity(call) for call in calls}:
            counts[identity] += 1
    return next((call for call in newest if counts[_identity(call)] >= repetitions_max), None)


def _calls_of_turn(
    history: Sequence[Message], turn_id: MessageId
) -> Iterator[tuple[ToolCall, ...]]:
    """Yield the calls of each answer since the turn began, the newest first."""
    for message in reversed(history):
        if message.id <= turn_id:
            return
        if message.role is Role.ASSISTANT and not message.is_compressed:
            yield tuple(
                part
                for part in message.content
                if isinstance(part, ToolCall) and not part.provider_executed
            )


def _identity(call: ToolCall) -> tuple[str, str]:
    return call.tool_name, call.args_json
