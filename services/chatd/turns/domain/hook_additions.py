"""What hooks add to a chat: messages that only the model or only people read, or parts of answers.

What they add to calls is a part of the answer that makes them, because no message may come between
calls and their results.
"""

from collections.abc import Iterable, Mapping, Sequence

from chatd.chats.domain.chat import Message, NewMessage
from chatd.content.domain.messages import MessageOrigin, Role, Visibility
from chatd.content.domain.parts import HookAddition, HookContext, Notice, ToolCall
from chatd.hooks.domain.answers import Verdict, bounded_additions
from chatd.hooks.domain.hooks import HookEvent


def addition_messages(added: Iterable[HookAddition]) -> tuple[NewMessage, ...]:
    """Return the messages with what hooks add; none if they add nothing."""
    kept = bounded_additions(added)
    contexts = contexts_of(kept)
    notices = notice_messages(kept)
    if not contexts:
        return notices
    origin = MessageOrigin.HOOK
    return (
        NewMessage(Role.USER, contexts, visibility=Visibility.MODEL, origin=origin),
        *notices,
    )


def notice_messages(added: Iterable[HookAddition]) -> tuple[NewMessage, ...]:
    """Return the message with the notices of hooks; none if they give none.

    Like the rows of a summary it is no part of the conversation, so that a chat which ends with a
    notice still ends with its answer.
    """
    notices = tuple(each for each in bounded_additions(added) if isinstance(each, Notice))
    if not notices:
        return ()
    return (NewMessage(Role.SYSTEM, notices, visibility=Visibility.USER, is_compressed=True),)


def contexts_of(added: Iterable[HookAddition]) -> tuple[HookContext, ...]:
    """Return what hooks add for the model."""
    return tuple(each for each in bounded_additions(added) if isinstance(each, HookContext))


def additions_of_calls(
    calls: Sequence[ToolCall], verdicts: Mapping[str, Verdict]
) -> tuple[HookAddition, ...]:
    """Return what hooks add to calls, in the order of the calls."""
    known = (verdicts[call.tool_call_id] for call in calls if call.tool_call_id in verdicts)
    return bounded_additions(addition for verdict in known for addition in verdict.added)


def has_additions(history: Sequence[Message], event: HookEvent) -> bool:
    """Return whether what hooks added to an event that happens once is stored already."""
    return any(
        isinstance(part, HookContext | Notice) and part.event == event.value
        for message in history
        for part in message.content
    )
