"""The order of a user's pinned chats, which is changed as a whole under one lock.

The pinned chats that are not archived have the positions 1, 2, 3 without a gap. An archived chat
keeps its position for its return, and does not count.
"""

from collections.abc import Sequence

import asyncpg

from chatd.primitives.domain.ids import ChatId, OwnerId
from parley.postgres import Connection

# One change at a time to the pins of one user; released with the transaction.
# May run: no-rows.
LOCK_PINS = "SELECT pg_advisory_xact_lock(hashtextextended('pins of ' || $1::text, 0))"

# The pinned chats of an owner in order; archived ones keep their position without counting.
# May run: owner.
SELECT_PINNED = """
    SELECT c.id FROM chat.chats c JOIN chat.chat_exec e ON e.chat_id = c.id
    WHERE c.owner_id = $1 AND c.parent_chat_id IS NULL AND c.pin_order > 0 AND NOT e.archived
    ORDER BY c.pin_order, c.id
"""

# Set the positions of an owner's pins; the lock of their pins is held.
# May run: owner.
UPDATE_PINS = """
    UPDATE chat.chats c SET pin_order = array_position($2::uuid[], c.id)
    WHERE c.owner_id = $1 AND c.parent_chat_id IS NULL AND c.id = ANY ($2::uuid[])
        AND c.pin_order <> array_position($2::uuid[], c.id)
    RETURNING c.id
"""

# Unpin one chat of an owner.
# May run: owner.
UNPIN = """
    UPDATE chat.chats SET pin_order = 0 WHERE id = $2 AND owner_id = $1 AND pin_order <> 0
    RETURNING id
"""

# The position of a chat, for its owner.
# May run: owner.
SELECT_PLACE = "SELECT pin_order FROM chat.chats WHERE id = $2 AND owner_id = $1"


def with_pin_moved(pinned: tuple[ChatId, ...], chat_id: ChatId, place: int) -> tuple[ChatId, ...]:
    """Return the pins with one chat moved to `place`, whether it was pinned before or not.

    1 is the first place, 0 unpins. A place beyond the last is the last.
    """
    others = [each for each in pinned if each != chat_id]
    if place <= 0:
        return tuple(others)
    index = min(place - 1, len(others))
    return (*others[:index], chat_id, *others[index:])


async def lock_pins(connection: Connection, owner_id: OwnerId) -> None:
    """Lock the pins of a user until the transaction ends."""
    await connection.execute(LOCK_PINS, owner_id)


async def move_pin(
    connection: Connection,
    *,
    owner_id: OwnerId,
    chat_id: ChatId,
    place: int,
) -> frozenset[ChatId]:
    """Move one chat to `place` among the pins of its owner, which are locked.

    Returns:
        The chats whose position changed.
    """
    unpinned = [] if place else await connection.fetch(UNPIN, owner_id, chat_id)
    wanted = with_pin_moved(await _pinned(connection, owner_id), chat_id, place)
    return _ids(unpinned) | _ids(await connection.fetch(UPDATE_PINS, owner_id, wanted))


async def leave_pins(connection: Connection, *, owner_id: OwnerId) -> frozenset[ChatId]:
    """Close the gap of an archived chat among the pins, which are locked.

    Returns:
        The chats whose position changed.
    """
    pinned = await _pinned(connection, owner_id)
    return _ids(await connection.fetch(UPDATE_PINS, owner_id, pinned))


async def return_pin(
    connection: Connection, *, owner_id: OwnerId, chat_id: ChatId
) -> frozenset[ChatId]:
    """Return an unarchived chat to the position that it kept, if it was pinned.

    Returns:
        The chats whose position changed.
    """
    place = await connection.fetchval(SELECT_PLACE, owner_id, chat_id)
    if not place:
        return frozenset()
    return await move_pin(connection, owner_id=owner_id, chat_id=chat_id, place=place)


async def _pinned(connection: Connection, owner_id: OwnerId) -> tuple[ChatId, ...]:
    rows = await connection.fetch(SELECT_PINNED, owner_id)
    return tuple(ChatId(str(row["id"])) for row in rows)


def _ids(rows: Sequence[asyncpg.Record]) -> frozenset[ChatId]:
    return frozenset(ChatId(str(row["id"])) for row in rows)
