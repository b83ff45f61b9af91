"""What hooks add for the model, as messages that only the model reads, or parts of an answer.

What they add to calls is a part of the answer that makes them, because no message may come between
calls and their results.
"""

from collections.abc import Iterable, Mapping, Sequence

from chatd.chats.domain.chat import Message, NewMessage
from chatd.content.domain.messages import Role, Visibility
from chatd.content.domain.parts import HookContext, ToolCall
from chatd.hooks.domain.answers import Verdict, bounded_context
from chatd.hooks.domain.hooks import HookEvent


def context_messages(contexts: Iterable[HookContext]) -> tuple[NewMessage, ...]:
    """Return the message with what hooks add; none if they add nothing."""
    kept = bounded_context(contexts)
    return (NewMessage(Role.USER, kept, visibility=Visibility.MODEL),) if kept else ()


def context_of_calls(
    calls: Sequence[ToolCall], verdicts: Mapping[str, Verdict]
) -> tuple[HookContext, ...]:
    """Return what hooks add to calls, in the order of the calls."""
    known = (verdicts[call.tool_call_id] for call in calls if call.tool_call_id in verdicts)
    return bounded_context(context for verdict in known for context in verdict.context)


def has_context(history: Sequence[Message], event: HookEvent) -> bool:
    """Return whether what hooks added to an event that happens once is stored already."""
    return any(
        isinstance(part, HookContext) and part.event == event.value
        for message in history
        for part in message.content
    )
