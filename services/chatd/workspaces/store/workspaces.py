"""Workspaces in PostgreSQL: commands are applied by pure functions and guarded by the version.

Times are those of the database, so that the clocks of replicas need not agree. A driver claims the
row of a workspace with a lease; rows that another transaction has locked are skipped.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace

import asyncpg

from chatd.chats.store.owner_claims import hold_claim
from chatd.chats.store.workspace_moves import require_rest
from chatd.primitives.domain.errors import NameTaken, RequestIdReused, WorkspaceNotFound
from chatd.primitives.domain.ids import ChatId, OwnerClaim, OwnerId, WorkerId
from chatd.primitives.store.audit_outbox import record_event
from chatd.primitives.store.constraints import Constraint
from chatd.workspaces.domain.commands import Command, Grant, SetPolicy, Start
from chatd.workspaces.domain.creation_rate import WINDOW, wait_s
from chatd.workspaces.domain.errors import (
    QuotaExhausted,
    TooManyNewWorkspaces,
    WorkspaceNotReady,
)
from chatd.workspaces.domain.ports import LogLine, Seen
from chatd.workspaces.domain.quota import QuotaLimits, exhausted
from chatd.workspaces.domain.transitions import decide
from chatd.workspaces.domain.workspace import Workspace
from chatd.workspaces.store.reads import (
    IS_ORPHANED,
    SELECT,
    SELECT_COUNTED,
    SELECT_CREATED,
    WorkspaceReads,
)
from chatd.workspaces.store.rows import (
    COLUMNS,
    MOVING,
    TYPES,
    columns_of,
    workspace_arguments,
    workspace_of,
)
from parley.audit_log import AuditAction, AuditEvent
from parley.postgres import Connection, Pool

LINES_MAX = 2000

_ALL = columns_of("w")
_ROW = ", ".join(f"${place}" for place in range(1, len(COLUMNS) + 1))
_SET = ", ".join(f"{name} = ${place}" for place, name in enumerate(MOVING, start=3))

# Insert a workspace, already claimed if a driver is given; none for a chat that was deleted.
# May run: owner, process.
INSERT = f"""
    INSERT INTO chat.workspaces AS w ({", ".join(COLUMNS)}, changed_at, request_hash,
        driver_id, driven_until)
    SELECT {_ROW}, clock_timestamp(), ${len(COLUMNS) + 1}, ${len(COLUMNS) + 2}::uuid,
        CASE WHEN ${len(COLUMNS) + 2}::uuid IS NULL THEN NULL
            ELSE clock_timestamp() + make_interval(secs => ${len(COLUMNS) + 3}) END
    WHERE NOT EXISTS (SELECT 1 FROM chat.deleted_chats d WHERE d.chat_id = $1)
    ON CONFLICT (id) DO NOTHING RETURNING {_ALL}
"""

# Whether a workspace was made for a chat that was deleted, and no other chat is bound to it.
# May run: process.
SELECT_IS_ORPHANED = f"""
    SELECT EXISTS (SELECT 1 FROM chat.workspaces w WHERE w.id = $1 AND {IS_ORPHANED})
"""

# Write the result of a command, unless another process wrote the row meanwhile.
# May run: administrator, checked by SELECT_OWN, process.
UPDATE = f"""
    UPDATE chat.workspaces SET {_SET}, changed_at = clock_timestamp()
    WHERE id = $1 AND version = $2 RETURNING id
"""

# Write the results of several commands, except for rows that another process wrote meanwhile. Rows
# are locked in one order, so that two of these statements do not deadlock.
# May run: service, process.
UPDATE_MANY = f"""
    WITH new AS MATERIALIZED (
        SELECT * FROM unnest($1::uuid[], $2::bigint[],
            {", ".join(f"${place}::{TYPES[name]}[]" for place, name in enumerate(MOVING, start=3))})
            AS new (id, old_version, {", ".join(MOVING)})),
    held AS MATERIALIZED (
        SELECT w.id FROM chat.workspaces w JOIN new ON new.id = w.id
        WHERE w.version = new.old_version ORDER BY w.id FOR UPDATE OF w)
    UPDATE chat.workspaces w SET {", ".join(f"{name} = new.{name}" for name in MOVING)},
        changed_at = clock_timestamp()
    FROM new JOIN held ON held.id = new.id
    WHERE w.id = new.id AND w.version = new.old_version RETURNING w.id
"""

# Requests that create or start workspaces of one owner are serialised, because they are counted.
# May run: no-rows.
LOCK_OWNER = "SELECT pg_advisory_xact_lock(hashtextextended('workspaces of ' || $1::text, 0))"

# Workspaces that require an action, the longest waiting first; each is claimed by one driver.
# May run: process.
CLAIM = f"""
    UPDATE chat.workspaces w SET driver_id = $1,
        driven_until = clock_timestamp() + make_interval(secs => $2)
    WHERE w.id IN (
        SELECT d.id FROM chat.workspaces d
        WHERE d.state IN ('pending', 'preparing', 'stopping')
            AND (d.driven_until IS NULL OR d.driven_until <= clock_timestamp())
        ORDER BY d.driven_until NULLS FIRST LIMIT $3 FOR UPDATE SKIP LOCKED)
    RETURNING {_ALL}
"""

# Claim one workspace, if no other driver has it.
# May run: process.
CLAIM_ONE = f"""
    UPDATE chat.workspaces w SET driver_id = $1,
        driven_until = clock_timestamp() + make_interval(secs => $2)
    WHERE w.id = $3 AND w.state IN ('pending', 'preparing', 'stopping')
        AND (w.driver_id = $1 OR w.driven_until IS NULL OR w.driven_until <= clock_timestamp())
    RETURNING {_ALL}
"""

# Renew a claim; returns no row if another driver has it by now.
# May run: process.
RENEW = f"""
    UPDATE chat.workspaces w SET driven_until = clock_timestamp() + make_interval(secs => $3)
    WHERE w.id = $2 AND w.driver_id = $1 RETURNING {_ALL}
"""

# Release a claim; the row is not claimed again before a delay.
# May run: process.
RELEASE = """
    UPDATE chat.workspaces SET driver_id = NULL,
        driven_until = clock_timestamp() + make_interval(secs => $3)
    WHERE id = $2 AND driver_id = $1
"""

# Bind a chat to a workspace, both of the same owner.
# May run: checked by Ownership.
BIND = """
    UPDATE chat.chats c SET workspace_id = $2
    FROM chat.workspaces w WHERE c.id = $1 AND w.id = $2 AND w.owner_id = c.owner_id
    RETURNING c.id
"""

# Log lines of a preparation, each stored once; the caller checks access to the workspace.
# May run: process.
INSERT_LINES = """
    INSERT INTO chat.workspace_logs (workspace_id, epoch, sequence, logged_at, stage, line)
    SELECT $1, $2, sequence, logged_at, stage, line
    FROM unnest($3::bigint[], $4::timestamptz[], $5::text[], $6::text[])
        AS new (sequence, logged_at, stage, line)
    ON CONFLICT DO NOTHING
"""


class PostgresWorkspaces(WorkspaceReads):
    """Stores workspaces; `changed` is called with every change after its commit."""

    def __init__(
        self,
        pool: Pool,
        changed: Callable[[Workspace], None] = lambda _: None,
    ) -> None:
        super().__init__(pool)
        self._changed = changed

    async def add(
        self,
        workspace: Workspace,
        request_hash: bytes,
        limits: QuotaLimits,
        claim: OwnerClaim | None = None,
    ) -> tuple[Workspace, bool]:
        """Insert a workspace, or return that of the same request; also return whether it is new.

        Raises:
            FenceLost: another process owns the chat for which it is made.
            RequestIdReused: the request came with another body before.
            QuotaExhausted: its owner has reached a limit.
            TooManyNewWorkspaces: its owner has created too many within a minute.
            NameTaken: the owner has another one with that name.
        """
        async with self._pool.acquire() as connection, connection.transaction():
            await _hold(connection, claim)
            await connection.execute(LOCK_OWNER, workspace.owner_id)
            known = await connection.fetchrow(SELECT, workspace.id)
            if known is not None:
                if known["request_hash"] != request_hash:
                    raise RequestIdReused(workspace.id)
                return workspace_of(known), False
            await _count(connection, workspace.owner_id, limits, is_new=True)
            try:
                row = await connection.fetchrow(
                    INSERT, *workspace_arguments(workspace), request_hash, None, 0.0
                )
            except asyncpg.UniqueViolationError as violation:
                if violation.constraint_name != Constraint.WORKSPACES_BY_NAME:
                    raise
                raise NameTaken("workspace", workspace.name) from violation
            if workspace.spec.secret_names:
                await record_event(connection, _granted(workspace))
        assert row is not None  # The owner is locked, and the row did not exist.
        return self._notify(workspace_of(row)), True

    async def add_scratch(
        self,
        workspace: Workspace,
        driver_id: WorkerId,
        lease_s: float,
        claim: OwnerClaim | None = None,
    ) -> Workspace:
        """Insert a chat's scratch workspace, claimed by a driver, or return the existing one.

        A deletion of the chat that commits meanwhile leaves it to the removal of orphans.

        Raises:
            FenceLost: another process owns the chat whose tool makes it.
            WorkspaceNotFound: the one with that id belongs to another user, or the chat was
                deleted.
        """
        inserted = (*workspace_arguments(workspace), b"", driver_id, lease_s)
        has_secrets = bool(workspace.spec.secret_names)
        if claim is None and not has_secrets:
            row = await self._pool.fetchrow(INSERT, *inserted)
        else:
            async with self._pool.acquire() as connection, connection.transaction():
                await _hold(connection, claim)
                row = await connection.fetchrow(INSERT, *inserted)
                if row is not None and has_secrets:
                    # A turn that runs for the owner makes it, so no call says who did it.
                    granted = replace(_granted(workspace), actor_user_id=workspace.owner_id)
                    await record_event(connection, granted)
        if row is None:
            return await self.own(workspace.id, workspace.owner_id)
        return self._notify(workspace_of(row))

    async def restart_scratch(
        self, workspace_id: str, claim: OwnerClaim | None = None
    ) -> Workspace:
        """Start a scratch workspace that stopped or failed, and return it.

        Raises:
            FenceLost: another process owns the chat whose tool starts it.
            WorkspaceNotFound: the chat that it was made for was deleted.
        """
        if await self._pool.fetchval(SELECT_IS_ORPHANED, workspace_id):
            raise WorkspaceNotFound(workspace_id)
        if claim is not None:
            return (await self.apply_owned(workspace_id, Start(), claim))[1]
        _, after = await self.apply(workspace_id, Start())
        return after

    async def apply_owned(
        self, workspace_id: str, command: Command, claim: OwnerClaim
    ) -> tuple[Workspace, Workspace]:
        """Apply a command for a chat; return the workspace before and after.

        Raises:
            FenceLost: another process owns the chat.
            WorkspaceNotFound: there is none.
            WorkspaceNotReady: the command is not allowed in its state.
        """
        async with self._pool.acquire() as connection, connection.transaction():
            await _hold(connection, claim)
            row = await connection.fetchrow(f"{SELECT} FOR UPDATE", workspace_id)
            if row is None:
                raise WorkspaceNotFound(workspace_id)
            before = workspace_of(row)
            after = decide(before, command, row["now"])
            if after is not before:
                await connection.execute(UPDATE, *_guarded(before, after))
        return before, after if after is before else self._notify(after)

    async def apply(self, workspace_id: str, command: Command) -> tuple[Workspace, Workspace]:
        """Apply a command and write the result; return the workspace before and after.

        Raises:
            WorkspaceNotFound: there is none.
            WorkspaceNotReady: the command is not allowed in its state.
        """
        while True:
            row = await self._pool.fetchrow(SELECT, workspace_id)
            if row is None:
                raise WorkspaceNotFound(workspace_id)
            before = workspace_of(row)
            after = decide(before, command, row["now"])
            if after is before or await self._write(before, after, command):
                break
        return before, after if after is before else self._notify(after)

    async def _write(self, before: Workspace, after: Workspace, command: Command) -> bool:
        """Write a change, and what the audit log has of it; False if another change came first."""
        event = _event_of(command, after)
        if event is None:
            return await self._pool.fetchrow(UPDATE, *_guarded(before, after)) is not None
        async with self._pool.acquire() as connection, connection.transaction():
            if await connection.fetchrow(UPDATE, *_guarded(before, after)) is None:
                return False
            await record_event(connection, event)
        return True

    async def apply_all(self, commands: Iterable[tuple[Seen, Command]]) -> None:
        """Apply commands to workspaces that were just read, and write the results in one statement.

        A row that changed meanwhile is retried separately. A command that is not allowed in the
        state of its workspace is left out.
        """
        moved: dict[str, tuple[Workspace, Workspace, Command]] = {}
        for seen, command in commands:
            with suppress(WorkspaceNotReady):
                after = decide(seen.workspace, command, seen.at)
                if after is not seen.workspace:
                    moved[after.id] = (seen.workspace, after, command)
        if not moved:
            return
        rows = [_guarded(before, after) for before, after, _ in moved.values()]
        written = await self._pool.fetch(UPDATE_MANY, *map(list, zip(*rows, strict=True)))
        for row in written:
            self._notify(moved.pop(str(row["id"]))[1])
        for before, _, command in moved.values():
            with suppress(WorkspaceNotReady, WorkspaceNotFound):
                await self.apply(before.id, command)

    async def start(
        self,
        workspace_id: str,
        command: Start,
        limits: QuotaLimits,
        change: Callable[[Workspace], Workspace] = lambda workspace: workspace,
        claim: OwnerClaim | None = None,
    ) -> tuple[Workspace, Workspace]:
        """Start a workspace if its owner may have one more live workspace.

        Args:
            workspace_id: The workspace.
            command: The start.
            limits: The quota of the owner.
            change: Makes further changes, such as to the workspace spec.
            claim: The claim of the chat for which it is started, if it is for one.

        Raises:
            FenceLost: another process owns that chat.
            WorkspaceNotFound: there is none.
            WorkspaceNotReady: it is stopping or deleted.
            QuotaExhausted: the limit of live workspaces is reached.
        """
        async with self._pool.acquire() as connection, connection.transaction():
            await _hold(connection, claim)
            row = await connection.fetchrow(f"{SELECT} FOR UPDATE", workspace_id)
            if row is None:
                raise WorkspaceNotFound(workspace_id)
            before = workspace_of(row)
            after = decide(before, command, row["now"])
            if after is before:
                return before, before
            if not before.is_scratch_of_chat:
                await connection.execute(LOCK_OWNER, before.owner_id)
                await _count(connection, before.owner_id, limits, is_new=False)
            after = change(after)
            await connection.execute(UPDATE, *_guarded(before, after))
        return before, self._notify(after)

    async def claim(
        self, driver_id: WorkerId, lease_s: float, rows_max: int
    ) -> tuple[Workspace, ...]:
        """Claim workspaces that require an action."""
        rows = await self._pool.fetch(CLAIM, driver_id, lease_s, rows_max)
        return tuple(map(workspace_of, rows))

    async def claim_one(
        self, driver_id: WorkerId, workspace_id: str, lease_s: float
    ) -> Workspace | None:
        """Claim one of them, None if it requires no action or another driver has it."""
        row = await self._pool.fetchrow(CLAIM_ONE, driver_id, lease_s, workspace_id)
        return None if row is None else workspace_of(row)

    async def renew(
        self, driver_id: WorkerId, workspace_id: str, lease_s: float
    ) -> Workspace | None:
        """Renew a claim and return the workspace, None if another driver has it."""
        row = await self._pool.fetchrow(RENEW, driver_id, workspace_id, lease_s)
        return None if row is None else workspace_of(row)

    async def release(self, driver_id: WorkerId, workspace_id: str, rest_s: float) -> None:
        """Release a claim; the workspace is not claimed again for `rest_s` seconds."""
        await self._pool.execute(RELEASE, driver_id, workspace_id, rest_s)

    async def bind(self, chat_id: ChatId, workspace_id: str, claim: OwnerClaim) -> bool:
        """Bind a chat for its turn to a workspace of the same owner; return whether both exist.

        Raises:
            FenceLost: another process owns the chat.
        """
        async with self._pool.acquire() as connection, connection.transaction():
            await _hold(connection, claim)
            return await connection.fetchval(BIND, chat_id, workspace_id) is not None

    async def choose(self, chat_id: ChatId, workspace_id: str, owner_id: OwnerId) -> bool:
        """Bind a chat for its owner between turns; return whether chat and workspace exist.

        Raises:
            TransitionNotAllowed: a turn of the chat is under way.
            AgentAtWork: a turn of an agent is, which works in the present workspace.
        """
        async with self._pool.acquire() as connection, connection.transaction():
            await require_rest(connection, chat_id, owner_id, workspace_id)
            return await connection.fetchval(BIND, chat_id, workspace_id) is not None

    async def require_rest(self, chat_id: ChatId, workspace_id: str, owner_id: OwnerId) -> None:
        """Require that a chat could be bound now.

        Raises:
            TransitionNotAllowed: a turn of the chat is under way.
            AgentAtWork: a turn of an agent is, which works in the present workspace.
        """
        async with self._pool.acquire() as connection, connection.transaction():
            await require_rest(connection, chat_id, owner_id, workspace_id)

    async def log(self, workspace_id: str, epoch: int, lines: Sequence[LogLine]) -> None:
        """Store log lines of a preparation; existing lines are not changed."""
        kept = [line for line in lines if line.sequence <= LINES_MAX]
        if not kept:
            return
        await self._pool.execute(
            INSERT_LINES,
            workspace_id,
            epoch,
            [line.sequence for line in kept],
            [line.logged_at for line in kept],
            [line.stage for line in kept],
            [line.text for line in kept],
        )

    def _notify(self, workspace: Workspace) -> Workspace:
        self._changed(workspace)
        return workspace


async def _hold(connection: Connection, claim: OwnerClaim | None) -> None:
    """Require that the chat has the epoch of the claim, until the end of the transaction."""
    if claim is not None:
        await hold_claim(connection, claim)


async def _count(
    connection: Connection,
    owner_id: OwnerId,
    limits: QuotaLimits,
    *,
    is_new: bool,
) -> None:
    rows = await connection.fetch(SELECT_COUNTED, owner_id)
    use = exhausted(map(workspace_of, rows), limits, is_new=is_new)
    if use is not None:
        raise QuotaExhausted(use)
    if not is_new or not (created_max := limits.created_per_minute):
        return
    created = await connection.fetch(SELECT_CREATED, owner_id, WINDOW, created_max)
    if created and (
        after_s := wait_s([row["at"] for row in created], created_max, created[0]["now"])
    ):
        raise TooManyNewWorkspaces(created_max, after_s)


def _event_of(command: Command, after: Workspace) -> AuditEvent | None:
    """Return what the audit log has of a command: policies and granted secrets."""
    match command:
        case SetPolicy():
            details = {"policy": str(after.policy)}
            action = AuditAction.WORKSPACE_POLICY_SET
            return AuditEvent(action, after.id, after.owner_id, details=details)
        case Grant():
            return _granted(after)
        case _:
            return None


def _granted(workspace: Workspace) -> AuditEvent:
    # What a user called a secret is deleted with the user, which the audit log is not.
    details = {"secrets": str(len(workspace.spec.secret_names))}
    action = AuditAction.WORKSPACE_SECRETS_GRANTED
    return AuditEvent(action, workspace.id, workspace.owner_id, details=details)


def _guarded(before: Workspace, after: Workspace) -> list[object]:
    return [before.id, before.version, *workspace_arguments(after, MOVING)]
