"""The order of a user's pinned chats, which is theirs as a whole and changes under one lock."""

from chatd.domain.chat import ChatId, OwnerId
from parley.postgres import Connection

# One change at a time to the pins of one user; released with the transaction.
LOCK_PINS = "SELECT pg_advisory_xact_lock(hashtextextended('pins of ' || $1::text, 0))"

# The pinned chats of an owner in order.
SELECT_PINNED = """
    SELECT id FROM chat.chats WHERE owner_id = $1 AND parent_chat_id IS NULL AND pin_order > 0
    ORDER BY pin_order, id
"""

# Number an owner's pins anew; whatever is not named is not pinned.
UPDATE_PINS = """
    UPDATE chat.chats c SET pin_order = coalesce(
        array_position($2::uuid[], c.id), 0)
    WHERE c.owner_id = $1 AND c.parent_chat_id IS NULL
        AND (c.pin_order > 0 OR c.id = ANY ($2::uuid[]))
        AND c.pin_order <> coalesce(array_position($2::uuid[], c.id), 0)
"""


def moved(pinned: tuple[ChatId, ...], chat_id: ChatId, place: int) -> tuple[ChatId, ...]:
    """Return the pins with one chat put at `place`.

    0 unpins. A chat that is not pinned goes to the end, wherever it was wanted; one that is goes to
    `place`, or as near as there are pins.
    """
    others = [each for each in pinned if each != chat_id]
    if place <= 0:
        return tuple(others)
    index = min(place - 1, len(others)) if chat_id in pinned else len(others)
    return (*others[:index], chat_id, *others[index:])


async def lock_pins(connection: Connection, owner_id: OwnerId) -> None:
    """Keep everybody else from changing the pins of a user until the transaction ends."""
    await connection.execute(LOCK_PINS, owner_id)


async def move_pin(
    connection: Connection,
    *,
    owner_id: OwnerId,
    chat_id: ChatId,
    place: int,
) -> None:
    """Put one chat at `place` among the pins of its owner, which are locked."""
    rows = await connection.fetch(SELECT_PINNED, owner_id)
    pinned = tuple(ChatId(str(row["id"])) for row in rows)
    wanted = moved(pinned, chat_id, place)
    if wanted != pinned:
        await connection.execute(UPDATE_PINS, owner_id, wanted)
