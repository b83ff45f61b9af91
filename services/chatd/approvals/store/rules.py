"""Approval rules in PostgreSQL.

Whose rules a caller may change is checked before; a statement touches the rules of one scope only.
"""

import uuid
from collections.abc import Callable

import asyncpg
import msgspec

from chatd.approvals.domain.errors import TooManyRules
from chatd.approvals.domain.rules import RULES_MAX, Effect, Rule, Scope, ScopeKind
from chatd.content.domain.messages import ChatMode
from chatd.primitives.domain.errors import (
    ChatNotFound,
    InvalidRequest,
    RequestIdReused,
    ResourceNotFound,
    VersionConflict,
)
from chatd.primitives.domain.ids import ChatId, OwnerId
from chatd.primitives.store.audit_outbox import record_event
from parley.audit_log import AuditAction, AuditEvent
from parley.postgres import Connection, Pool

RESOURCE = "approval rule"

_COLUMNS = """id, scope, user_id, chat_id, effect, tool, server_id, modes, command,
    arguments::text AS arguments, reason, is_rememberable, is_for_tainted, digest, version,
    request_hash, created_at"""
_IN_SCOPE = """scope = $1 AND user_id IS NOT DISTINCT FROM $2::uuid
    AND chat_id IS NOT DISTINCT FROM $3::uuid"""

# The rules of the installation, of a user for that user, or of a chat whose owner was checked; the
# oldest first.
# May run: owner, administrator, process.
SELECT_RULES = f"""
    SELECT {_COLUMNS} FROM chat.approval_rules WHERE {_IN_SCOPE} ORDER BY created_at, id
"""

# Whether there are rules of this kind, of any user; it does not say whose.
# May run: process.
SELECT_ANY = "SELECT EXISTS (SELECT 1 FROM chat.approval_rules WHERE scope = $1)"

# The same scope, locked, so that its rules are counted; an advisory lock, since it may have none.
# May run: process.
LOCK_SCOPE = "SELECT pg_advisory_xact_lock(hashtextextended('approval_rules ' || $1, 0))"

# May run: owner, administrator, process.
COUNT_RULES = f"SELECT count(*) FROM chat.approval_rules WHERE {_IN_SCOPE}"

# One rule of a scope, locked.
# May run: owner, administrator.
LOCK_RULE = f"SELECT {_COLUMNS} FROM chat.approval_rules WHERE {_IN_SCOPE} AND id = $4 FOR UPDATE"

# Insert a rule; an existing id is the same request, an existing digest the same approval.
# May run: owner, administrator, process.
INSERT_RULE = f"""
    INSERT INTO chat.approval_rules (scope, user_id, chat_id, id, effect, tool, server_id, modes,
        command, arguments, reason, is_rememberable, is_for_tainted, digest, version,
        request_hash, created_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10::text::json, $11, $12, $13, $14, 1, $15,
        clock_timestamp())
    ON CONFLICT (id) DO NOTHING RETURNING {_COLUMNS}
"""

# May run: checked by LOCK_RULE.
UPDATE_RULE = f"""
    UPDATE chat.approval_rules SET effect = $5, tool = $6, server_id = $7, modes = $8, command = $9,
        arguments = $10::text::json, reason = $11, is_rememberable = $12, is_for_tainted = $13,
        version = version + 1
    WHERE {_IN_SCOPE} AND id = $4 RETURNING {_COLUMNS}
"""

# May run: owner, administrator.
DELETE_RULE = f"DELETE FROM chat.approval_rules WHERE {_IN_SCOPE} AND id = $4 RETURNING id"

# The root of the tree of a chat, for its owner.
# May run: owner.
SELECT_ROOT = "SELECT root_chat_id FROM chat.chats WHERE id = $1 AND owner_id = $2"

Changed = Callable[[Scope], None]


class PostgresRules:
    """Stores rules, and calls `changed` with the scope of each change after its commit."""

    def __init__(self, pool: Pool, changed: Changed = lambda scope: None) -> None:
        self._pool = pool
        self._changed = changed

    async def of_scope(self, scope: Scope) -> tuple[Rule, ...]:
        """Return the rules of a scope, the oldest first."""
        return tuple(map(_rule_of, await self._pool.fetch(SELECT_RULES, *_place(scope))))

    async def are_there_any(self, kind: ScopeKind) -> bool:
        """Return whether the installation, any user or any chat has rules."""
        is_any: bool = await self._pool.fetchval(SELECT_ANY, kind)
        return is_any

    async def require_root(self, chat_id: ChatId, owner_id: OwnerId) -> None:
        """Check that a user owns a root chat.

        Raises:
            ChatNotFound: There is no such chat of this owner.
            InvalidRequest: It is a child, for which the rules of its root hold.
        """
        root_id = await self._pool.fetchval(SELECT_ROOT, chat_id, owner_id)
        if root_id is None:
            raise ChatNotFound(chat_id)
        if str(root_id) != chat_id:
            raise InvalidRequest("chat_id", "is a child; give rules to the root of its tree")

    async def create(self, rule: Rule, request_hash: bytes) -> Rule:
        """Store a rule, or return the one that the same request stored.

        Raises:
            TooManyRules: The scope has as many as it may have.
            RequestIdReused: The request id was used for another body.
            ResourceNotFound: The same request stored it, and it was deleted since.
            ChatNotFound: The chat was deleted meanwhile.
        """
        async with self._pool.acquire() as connection, connection.transaction():
            row, is_new = await self._insert(connection, rule, request_hash)
            if is_new:
                await record_event(connection, _event(AuditAction.APPROVAL_RULE_CREATED, rule))
        self._changed(rule.scope)
        return _rule_of(row)

    async def update(
        self, scope: Scope, rule_id: str, edit: Callable[[Rule], Rule], expected_version: int | None
    ) -> Rule:
        """Update a rule with the result of `edit`.

        Raises:
            ResourceNotFound: There is none in this scope.
            VersionConflict: It was changed since that version.
        """
        async with self._pool.acquire() as connection, connection.transaction():
            row = await connection.fetchrow(LOCK_RULE, *_place(scope), rule_id)
            if row is None:
                raise ResourceNotFound(RESOURCE, rule_id)
            if expected_version not in (None, row["version"]):
                raise VersionConflict(str(row["version"]))
            changed = edit(_rule_of(row))
            row = await connection.fetchrow(UPDATE_RULE, *_arguments(changed)[:-1])
            assert row is not None  # It is locked.
            await record_event(connection, _event(AuditAction.APPROVAL_RULE_UPDATED, changed))
        self._changed(scope)
        return _rule_of(row)

    async def delete(self, scope: Scope, rule_id: str) -> None:
        """Delete a rule.

        Raises:
            ResourceNotFound: There is none in this scope.
        """
        async with self._pool.acquire() as connection, connection.transaction():
            if await connection.fetchval(DELETE_RULE, *_place(scope), rule_id) is None:
                raise ResourceNotFound(RESOURCE, rule_id)
            details = _scope_details(scope)
            await record_event(
                connection,
                AuditEvent(AuditAction.APPROVAL_RULE_DELETED, rule_id, details=details),
            )
        self._changed(scope)

    def changed(self, chat_id: ChatId) -> None:
        """Publish that a rule of a chat was stored with something else."""
        self._changed(Scope(ScopeKind.CHAT, chat_id))

    async def _insert(
        self, connection: Connection, rule: Rule, request_hash: bytes
    ) -> tuple[asyncpg.Record, bool]:
        """Return the row of a rule, and whether it is new."""
        place = _place(rule.scope)
        await connection.execute(LOCK_SCOPE, f"{rule.scope.kind} {rule.scope.id}")
        stored = await connection.fetchrow(LOCK_RULE, *place, rule.id)
        is_new = stored is None
        if stored is None:
            if await connection.fetchval(COUNT_RULES, *place) >= RULES_MAX:
                raise TooManyRules(RULES_MAX)
            try:
                stored = await connection.fetchrow(INSERT_RULE, *_arguments(rule), request_hash)
            except asyncpg.ForeignKeyViolationError:
                raise ChatNotFound(rule.scope.id) from None
        if stored is None or stored["request_hash"] != request_hash:
            # The id is derived from the request's, so another scope has it with another body.
            raise RequestIdReused(rule.id)
        return stored, is_new


def new_rule_id(user_id: str, key: str) -> str:
    """Derive the id of a rule from its request, so that a repeated request finds it."""
    return str(uuid.uuid5(uuid.UUID(user_id), f"approval rule {key}"))


def _event(action: AuditAction, rule: Rule) -> AuditEvent:
    details = {**_scope_details(rule.scope), "effect": rule.effect.value}
    if rule.scope.kind is ScopeKind.INSTALLATION:
        # What a user wrote is deleted with the user, which the audit log is not.
        details["tool"] = rule.tool
    return AuditEvent(action, rule.id, details=details)


def _scope_details(scope: Scope) -> dict[str, str]:
    return {"scope": scope.kind.value} | (
        {"chat_id": scope.id} if scope.kind is ScopeKind.CHAT else {}
    )


def _place(scope: Scope) -> tuple[str, str | None, str | None]:
    match scope.kind:
        case ScopeKind.INSTALLATION:
            return scope.kind, None, None
        case ScopeKind.USER:
            return scope.kind, scope.id, None
        case ScopeKind.CHAT:
            return scope.kind, None, scope.id


def _arguments(rule: Rule) -> tuple[object, ...]:
    return (
        *_place(rule.scope),
        rule.id,
        rule.effect,
        rule.tool,
        rule.server_id or None,
        sorted(mode.name.lower() for mode in rule.modes),
        rule.command,
        msgspec.json.encode(rule.arguments).decode(),
        rule.reason,
        rule.is_rememberable,
        rule.is_for_tainted,
        rule.digest,
    )


def _rule_of(row: asyncpg.Record) -> Rule:
    kind = ScopeKind(row["scope"])
    return Rule(
        id=str(row["id"]),
        scope=Scope(kind, str(row["user_id"] or row["chat_id"] or "")),
        effect=Effect(row["effect"]),
        tool=row["tool"],
        server_id=str(row["server_id"] or ""),
        modes=frozenset(ChatMode[mode.upper()] for mode in row["modes"]),
        command=row["command"],
        arguments=msgspec.json.decode(row["arguments"], type=dict[str, str]),
        reason=row["reason"],
        is_rememberable=row["is_rememberable"],
        is_for_tainted=row["is_for_tainted"],
        digest=row["digest"],
        version=row["version"],
        created_at=row["created_at"],
    )
