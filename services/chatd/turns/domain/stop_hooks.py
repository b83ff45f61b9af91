"""A turn that a hook lets go on once, although its model had ended it.

That it went on is derived from the history, so another owner does not let it go on again.
"""

from collections.abc import Sequence
from typing import Final

from chatd.chats.domain.chat import Message, NewMessage
from chatd.content.domain.messages import MessageOrigin, Role, Visibility
from chatd.content.domain.parts import Part, Text
from chatd.content.domain.sanitizing import sanitized
from chatd.hooks.domain.answers import Denied
from chatd.primitives.domain.ids import MessageId
from chatd.turns.domain.hook_additions import contexts_of

BEGIN: Final = "<not_finished>"
END: Final = "</not_finished>"


def continuation(denied: Denied) -> NewMessage:
    """Return the message with which a turn goes on; only the model reads it."""
    text = (
        f"{BEGIN}\nA rule of this installation says that the work is not finished:\n"
        f"{sanitized(denied.reason)}\nGo on with it, or say what is in the way.\n{END}"
    )
    content: tuple[Part, ...] = (Text(text), *contexts_of(denied.added))
    return NewMessage(Role.USER, content, visibility=Visibility.MODEL, origin=MessageOrigin.HOOK)


def went_on(history: Sequence[Message], turn_id: MessageId) -> bool:
    """Return whether a hook let a turn go on already."""
    return any(_is_continuation(message) for message in history if message.id > turn_id)


def _is_continuation(message: Message) -> bool:
    texts = [part.text for part in message.content if isinstance(part, Text)]
    return message.visibility is Visibility.MODEL and "".join(texts).startswith(BEGIN)
