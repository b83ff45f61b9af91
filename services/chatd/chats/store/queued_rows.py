"""The queue of a chat as one column, read in the same snapshot as its row.

A message moves from the queue to the history in one commit: two statements could miss it in both.
"""

from datetime import datetime

import msgspec

from chatd.chats.domain.chat import QueuedMessage
from chatd.chats.store.codec import choice_from_json, parts_from_json
from chatd.primitives.domain.ids import QueuedMessageId

_DECODER = msgspec.json.Decoder(tuple[tuple[str, str, str, datetime, str | None], ...])


def queue_column(chat_id: str) -> str:
    """Return an expression for the queue of a chat in the order of execution, NULL if it is empty.

    Args:
        chat_id: An expression for the chat's id.
    """
    return f"""(
        SELECT json_agg(json_build_array(
            waiting.id, waiting.content::text, waiting.created_by, waiting.created_at,
            waiting.choice::text) ORDER BY waiting.position, waiting.id)
        FROM chat.chat_queue waiting WHERE waiting.chat_id = {chat_id})::text"""


def queue_of(text: str | None) -> tuple[QueuedMessage, ...]:
    """Return the queue from the value of such an expression."""
    if text is None:
        return ()
    return tuple(
        QueuedMessage(
            QueuedMessageId(id_),
            parts_from_json(content),
            created_by,
            created_at,
            choice_from_json(choice),
        )
        for id_, content, created_by, created_at, choice in _DECODER.decode(text)
    )
