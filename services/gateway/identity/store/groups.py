"""Groups in PostgreSQL; each change is one transaction with all dependent rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Select, delete, func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.audit_log.store.appending import UNSEALED, AuditLog
from gateway.constraints import Constraint
from gateway.identity.domain import GroupRecord
from gateway.identity.errors import GroupNameTaken, GroupNotFound, VersionConflict
from gateway.identity.store.memberships import group_ids_of, replace_groups
from gateway.identity.store.schema import group_members, groups
from gateway.identity.store.users import locked_user, write_user
from parley.audit_log import AuditAction, AuditEvent
from parley.postgres import Database


@dataclass(frozen=True, slots=True)
class MembershipChange:
    """A group after a change of members, and the user's version; None if nothing changed."""

    group: GroupRecord
    user_version: int | None


class GroupStore:
    """The part of the schema `identity` for groups."""

    def __init__(self, database: Database, audit_log: AuditLog = UNSEALED) -> None:
        self._database = database
        self._audit_log = audit_log

    async def find(self, group_id: str) -> GroupRecord | None:
        """Return one group that is not deleted."""
        async with self._database.transaction() as connection:
            return await _find(connection, group_id)

    # May run: user, service.
    async def find_many(self, group_ids: Sequence[str]) -> tuple[GroupRecord, ...]:
        """Return the existing ones of these groups, unordered."""
        wanted = _live().where(groups.c.id.in_(group_ids))
        async with self._database.transaction() as connection:
            return tuple(map(_group, (await connection.execute(wanted)).mappings()))

    # May run: service.
    async def deleted_among(self, group_ids: Sequence[str]) -> frozenset[str]:
        """Return the deleted ones of these groups."""
        gone = select(groups.c.id).where(
            groups.c.id.in_(group_ids), groups.c.deleted_at.is_not(None)
        )
        async with self._database.transaction() as connection:
            return frozenset(str(each) for each in (await connection.execute(gone)).scalars())

    # May run: administrator.
    async def page(self, *, after: str, limit: int, query: str) -> tuple[GroupRecord, ...]:
        """Return groups after the group `after`, ordered by name."""
        listed = _live().order_by(groups.c.name_key).limit(limit)
        if after:
            last = select(groups.c.name_key).where(groups.c.id == after).scalar_subquery()
            listed = listed.where(groups.c.name_key > last)
        if query:
            listed = listed.where(groups.c.name_key.contains(query, autoescape=True))
        async with self._database.transaction() as connection:
            return tuple(map(_group, (await connection.execute(listed)).mappings()))

    # May run: user, service.
    async def of_user(self, user_id: str) -> tuple[GroupRecord, ...]:
        """Return the groups of a user, ordered by id."""
        own = select(group_members.c.group_id).where(group_members.c.user_id == user_id)
        wanted = _live().where(groups.c.id.in_(own)).order_by(groups.c.id)
        async with self._database.transaction() as connection:
            return tuple(map(_group, (await connection.execute(wanted)).mappings()))

    async def ids_of_users(self, user_ids: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
        """Return the ids of the groups of each user."""
        async with self._database.transaction() as connection:
            return await group_ids_of(connection, user_ids)

    # May run: administrator.
    async def add(self, group: GroupRecord, *, name_key: str, creation_request: str) -> GroupRecord:
        """Store a new group, or return the one that the same request created before.

        Raises:
            GroupNameTaken: Another group has the name.
        """
        made = insert(groups).values(
            id=group.id,
            name=group.name,
            name_key=name_key,
            version=group.version,
            created_at=group.created_at,
            updated_at=group.updated_at,
            creation_request=creation_request,
        )
        same = _live().where(groups.c.creation_request == creation_request)
        try:
            async with self._database.transaction() as connection:
                added = await connection.execute(
                    made.on_conflict_do_nothing(
                        index_elements=[groups.c.creation_request]
                    ).returning(groups.c.id)
                )
                if added.first() is not None:
                    await self._audit_log.append(
                        connection, AuditEvent(AuditAction.GROUP_CREATED, group.id)
                    )
                return _group((await connection.execute(same)).mappings().one())
        except IntegrityError as error:
            if Constraint.GROUPS_NAME_UNIQUE not in str(error.orig):
                raise
            raise GroupNameTaken(group.name) from error

    # May run: administrator.
    async def rename(
        self, group_id: str, name: str, *, name_key: str, expected_version: int, now: datetime
    ) -> GroupRecord:
        """Rename a group.

        Raises:
            GroupNotFound: There is no such group.
            VersionConflict: It changed since it was read.
            GroupNameTaken: Another group has the name.
        """
        try:
            async with self._database.transaction() as connection:
                version = await _locked_version(connection, group_id)
                if expected_version not in (0, version):
                    raise VersionConflict(version)
                await connection.execute(
                    update(groups)
                    .where(groups.c.id == group_id)
                    .values(name=name, name_key=name_key, version=version + 1, updated_at=now)
                )
                await self._audit_log.append(
                    connection, AuditEvent(AuditAction.GROUP_RENAMED, group_id)
                )
                return await _required(connection, group_id)
        except IntegrityError as error:
            if Constraint.GROUPS_NAME_UNIQUE not in str(error.orig):
                raise
            raise GroupNameTaken(name) from error

    # May run: administrator.
    async def erase(self, group_id: str, *, now: datetime) -> int:
        """Delete all of a group but its id, and return its version; members are not notified.

        Raises:
            GroupNotFound: There was never such a group.
        """
        async with self._database.transaction() as connection:
            row = (
                await connection.execute(
                    select(groups.c.version, groups.c.deleted_at)
                    .where(groups.c.id == group_id)
                    .with_for_update()
                )
            ).first()
            if row is None:
                raise GroupNotFound(group_id)
            if row.deleted_at is not None:
                return int(row.version)
            await connection.execute(
                delete(group_members).where(group_members.c.group_id == group_id)
            )
            await connection.execute(
                update(groups)
                .where(groups.c.id == group_id)
                .values(
                    version=row.version + 1,
                    updated_at=now,
                    deleted_at=now,
                    name="Deleted group",
                    name_key=group_id,
                    creation_request=None,
                )
            )
            await self._audit_log.append(
                connection, AuditEvent(AuditAction.GROUP_DELETED, group_id)
            )
            return int(row.version) + 1

    async def add_member(self, group_id: str, user_id: str, *, now: datetime) -> MembershipChange:
        """Add a user to a group.

        Raises:
            GroupNotFound: There is no such group.
            UserNotFound: There is no such user.
            TooManyGroups: The user has reached the limit of groups.
        """
        return await self._with_groups(group_id, user_id, frozenset({group_id}), frozenset(), now)

    async def remove_member(
        self, group_id: str, user_id: str, *, now: datetime
    ) -> MembershipChange:
        """Remove a user from a group.

        Raises:
            GroupNotFound: There is no such group.
            UserNotFound: There is no such user.
        """
        return await self._with_groups(group_id, user_id, frozenset(), frozenset({group_id}), now)

    async def _with_groups(
        self,
        group_id: str,
        user_id: str,
        joined: frozenset[str],
        left: frozenset[str],
        now: datetime,
    ) -> MembershipChange:
        async with self._database.transaction() as connection:
            await _required(connection, group_id)
            user = await locked_user(connection, user_id)
            before = (await group_ids_of(connection, (user_id,)))[user_id]
            wanted = (frozenset(before) | joined) - left
            version: int | None = None
            if await replace_groups(connection, user_id, wanted, now=now):
                version = (await write_user(connection, user, {}, now)).version
                is_added = group_id in joined
                action = (
                    AuditAction.GROUP_MEMBER_ADDED if is_added else AuditAction.GROUP_MEMBER_REMOVED
                )
                await self._audit_log.append(connection, AuditEvent(action, group_id, user_id))
            return MembershipChange(await _required(connection, group_id), version)


def _live() -> Select[Any]:
    count = (
        select(func.count())
        .select_from(group_members)
        .where(group_members.c.group_id == groups.c.id)
        .scalar_subquery()
    )
    return select(groups, count.label("member_count")).where(groups.c.deleted_at.is_(None))


# May run: administrator.
async def _find(connection: AsyncConnection, group_id: str) -> GroupRecord | None:
    row = (await connection.execute(_live().where(groups.c.id == group_id))).mappings().first()
    return None if row is None else _group(row)


async def _required(connection: AsyncConnection, group_id: str) -> GroupRecord:
    found = await _find(connection, group_id)
    if found is None:
        raise GroupNotFound(group_id)
    return found


# May run: administrator.
async def _locked_version(connection: AsyncConnection, group_id: str) -> int:
    version = await connection.scalar(
        select(groups.c.version)
        .where(groups.c.id == group_id, groups.c.deleted_at.is_(None))
        .with_for_update()
    )
    if version is None:
        raise GroupNotFound(group_id)
    return int(version)


def _group(row: Any) -> GroupRecord:
    return GroupRecord(
        id=str(row["id"]),
        name=row["name"],
        member_count=row["member_count"],
        version=row["version"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
    )
