"""Statements about memberships, each inside a transaction of its caller.

Transactions that change memberships lock users before groups and groups in the order of their ids,
so that they do not deadlock.
"""

from collections.abc import Collection, Sequence
from datetime import datetime

from sqlalchemy import delete, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.identity.errors import GroupNotFound, TooManyGroups
from gateway.identity.store.schema import group_members, groups

GROUPS_MAX = 100


# May run: administrator, service.
async def group_ids_of(
    connection: AsyncConnection, user_ids: Sequence[str]
) -> dict[str, tuple[str, ...]]:
    """Return the groups of each user, ordered by id."""
    rows = await connection.execute(
        select(group_members.c.user_id, group_members.c.group_id)
        .where(group_members.c.user_id.in_(user_ids))
        .order_by(group_members.c.group_id)
    )
    found: dict[str, tuple[str, ...]] = dict.fromkeys(user_ids, ())
    for user_id, group_id in rows:
        found[str(user_id)] += (str(group_id),)
    return found


# May run: administrator.
async def replace_groups(
    connection: AsyncConnection, user_id: str, group_ids: Collection[str], *, now: datetime
) -> bool:
    """Set the groups of a locked user; return whether that changed anything.

    Raises:
        GroupNotFound: There is no such group.
        TooManyGroups: They exceed the limit of groups.
    """
    before = frozenset((await group_ids_of(connection, (user_id,)))[user_id])
    after = frozenset(group_ids)
    if len(after) > GROUPS_MAX:
        raise TooManyGroups(GROUPS_MAX)
    await _changed(connection, before ^ after, required=after - before, now=now)
    if before - after:
        await connection.execute(
            delete(group_members).where(
                group_members.c.user_id == user_id, group_members.c.group_id.in_(before - after)
            )
        )
    if after - before:
        joined = [
            {"group_id": each, "user_id": user_id, "added_at": now} for each in after - before
        ]
        await connection.execute(insert(group_members).values(joined))
    return before != after


# May run: administrator.
async def _changed(
    connection: AsyncConnection,
    group_ids: frozenset[str],
    *,
    required: frozenset[str],
    now: datetime,
) -> None:
    """Lock groups whose members change, and increment their versions."""
    if not group_ids:
        return
    locked = await connection.execute(
        select(groups.c.id)
        .where(groups.c.id.in_(group_ids), groups.c.deleted_at.is_(None))
        .order_by(groups.c.id)
        .with_for_update()
    )
    found = frozenset(str(group_id) for group_id in locked.scalars())
    for absent in sorted(required - found):
        raise GroupNotFound(absent)
    await connection.execute(
        update(groups)
        .where(groups.c.id.in_(found))
        .values(version=groups.c.version + 1, updated_at=now)
    )
