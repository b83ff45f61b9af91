"""Workspaces in PostgreSQL: every change is decided purely and written with its version as guard.

Time of record is the database's, so that replicas need not agree on it. Whoever has to do something
about a workspace claims its row for a while; rows that somebody else looks at are skipped.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

import asyncpg

from chatd.domain.chat import ChatId, OwnerId, WorkerId
from chatd.domain.errors import NameTaken, RequestIdReused, WorkspaceNotFound
from chatd.domain.workspaces.commands import Command, Start
from chatd.domain.workspaces.errors import QuotaExhausted
from chatd.domain.workspaces.lifetime import WARNING
from chatd.domain.workspaces.ports import ChatWorkspace, LogLine
from chatd.domain.workspaces.quota import QuotaLimits, exhausted
from chatd.domain.workspaces.transitions import decide
from chatd.domain.workspaces.workspace import LIVE, State, Workspace, WorkspaceId
from chatd.store.workspace_rows import (
    COLUMNS,
    MOVING,
    columns_of,
    workspace_arguments,
    workspace_of,
)
from chatd.store.workspace_tables import WORKSPACE_NAME_INDEX
from parley.postgres import typed_outages

LINES_MAX = 2000

_ALL = columns_of("w")
_ROW = ", ".join(f"${place}" for place in range(1, len(COLUMNS) + 1))
_SET = ", ".join(f"{name} = ${place}" for place, name in enumerate(MOVING, start=3))

# Make a workspace, already in the hands of whoever drives it if a driver is given.
INSERT = f"""
    INSERT INTO chat.workspaces AS w ({", ".join(COLUMNS)}, changed_at, request_hash,
        driver_id, driven_until)
    VALUES ({_ROW}, clock_timestamp(), ${len(COLUMNS) + 1}, ${len(COLUMNS) + 2}::uuid,
        CASE WHEN ${len(COLUMNS) + 2}::uuid IS NULL THEN NULL
            ELSE clock_timestamp() + make_interval(secs => ${len(COLUMNS) + 3}) END)
    ON CONFLICT (id) DO NOTHING RETURNING {_ALL}
"""

# A workspace for whoever may know of it, with the time at which it was read.
SELECT = f"""
    SELECT {_ALL}, w.request_hash, clock_timestamp() AS now
    FROM chat.workspaces w WHERE w.id = $1
"""

# The same for its owner only.
SELECT_OWN = f"SELECT {_ALL} FROM chat.workspaces w WHERE w.id = $1 AND w.owner_id = $2"

# Write what was decided, unless somebody else wrote meanwhile.
UPDATE = f"""
    UPDATE chat.workspaces SET {_SET}, changed_at = clock_timestamp()
    WHERE id = $1 AND version = $2 RETURNING id
"""

# Whoever makes or starts workspaces of one owner goes one after another: they are counted.
LOCK_OWNER = "SELECT pg_advisory_xact_lock(hashtextextended('workspaces of ' || $1::text, 0))"
SELECT_COUNTED = (
    f"SELECT {_ALL} FROM chat.workspaces w WHERE w.owner_id = $1 AND w.state <> 'deleted'"
)

# What waits for somebody to do something, the longest first; each goes to one driver only.
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

# One that this driver wants to drive, if nobody else does.
CLAIM_ONE = f"""
    UPDATE chat.workspaces w SET driver_id = $1,
        driven_until = clock_timestamp() + make_interval(secs => $2)
    WHERE w.id = $3 AND w.state IN ('pending', 'preparing', 'stopping')
        AND (w.driver_id = $1 OR w.driven_until IS NULL OR w.driven_until <= clock_timestamp())
    RETURNING {_ALL}
"""

# Go on driving; no row comes back if somebody else does by now.
RENEW = f"""
    UPDATE chat.workspaces w SET driven_until = clock_timestamp() + make_interval(secs => $3)
    WHERE w.id = $2 AND w.driver_id = $1 RETURNING {_ALL}
"""

# Let go, until a while from now.
RELEASE = """
    UPDATE chat.workspaces SET driver_id = NULL,
        driven_until = clock_timestamp() + make_interval(secs => $3)
    WHERE id = $2 AND driver_id = $1
"""

# What time has come for: autostop, its warning, and the end of what was kept; for no user.
SELECT_DUE = f"""
    SELECT {_ALL}, clock_timestamp() AS now FROM chat.workspaces w
    WHERE (w.state IN ('ready', 'busy') AND w.deadline_at <= clock_timestamp() + $1::interval
            AND (w.deadline_at <= clock_timestamp() OR w.warned_for IS DISTINCT FROM w.deadline_at))
        OR (w.state = 'stopped' AND w.delete_at <= clock_timestamp())
    ORDER BY coalesce(w.deadline_at, w.delete_at) LIMIT $2 FOR UPDATE OF w SKIP LOCKED
"""

# Scratch workspaces of chats that were deleted; for no user.
SELECT_ORPHANED = f"""
    SELECT {_ALL} FROM chat.deleted_chats d
    JOIN chat.workspaces w ON w.id = d.chat_id AND w.is_scratch_of_chat
    WHERE w.state <> 'deleted' AND NOT w.is_removing LIMIT $1
"""

# What is on a node, for nobody but the node and its administrators.
SELECT_ON_NODE = f"""
    SELECT {_ALL} FROM chat.workspaces w
    WHERE w.node_id = $1 AND w.state <> 'deleted' ORDER BY w.id
"""

# Those that a node speaks of, whatever became of them.
SELECT_MANY = f"SELECT {_ALL} FROM chat.workspaces w WHERE w.id = ANY ($1::uuid[])"

# The workspaces of chats that a worker runs now.
SELECT_WORKED_IN = f"""
    SELECT DISTINCT ON (w.id) {_ALL}
    FROM chat.chat_exec e
    JOIN chat.chats c ON c.id = e.chat_id
    JOIN chat.chats r ON r.id = c.root_chat_id
    JOIN chat.workspaces w ON w.id = coalesce(c.workspace_id, r.workspace_id, r.id)
        AND w.owner_id = c.owner_id
    WHERE e.worker_id = $1 AND e.status IN ('running', 'interrupting')
        AND w.state IN ('ready', 'busy')
"""

# Where a chat's tools work, if anywhere: its own workspace, else that of its root.
SELECT_OF_CHAT = f"""
    SELECT {_ALL}, c.id AS chat_id, c.owner_id AS chat_owner_id, r.id AS root_id,
        c.parent_chat_id IS NOT NULL AS is_child,
        coalesce(c.workspace_id, r.workspace_id) IS NOT NULL AS is_bound,
        n.address AS node_address, n.state AS node_state, clock_timestamp() AS now
    FROM chat.chats c
    JOIN chat.chats r ON r.id = c.root_chat_id
    LEFT JOIN chat.workspaces w ON w.id = coalesce(c.workspace_id, r.workspace_id, r.id)
        AND w.owner_id = c.owner_id
    LEFT JOIN chat.nodes n ON n.id = w.node_id
    WHERE c.id = $1
"""

# Bind a chat to a workspace, both of the same owner.
BIND = """
    UPDATE chat.chats c SET workspace_id = $2
    FROM chat.workspaces w WHERE c.id = $1 AND w.id = $2 AND w.owner_id = c.owner_id
    RETURNING c.id
"""

# A page for an owner: live ones first, then by last use.
SELECT_PAGE = f"""
    SELECT {_ALL}, (w.state = ANY ($6::text[]))::int AS is_live FROM chat.workspaces w
    WHERE ($1::uuid IS NULL OR w.owner_id = $1) AND w.state = ANY ($2::text[])
        AND ($3::uuid IS NULL OR w.node_id = $3)
        AND ($4::int IS NULL OR
            ((w.state = ANY ($6::text[]))::int, w.last_used_at, w.id)
                < ($4::int, $5::timestamptz, $7::uuid))
    ORDER BY is_live DESC, w.last_used_at DESC, w.id DESC LIMIT $8
"""

# Lines of a preparation, each once; for whoever may see the workspace.
INSERT_LINES = """
    INSERT INTO chat.workspace_logs (workspace_id, epoch, sequence, logged_at, stage, line)
    SELECT $1, $2, sequence, logged_at, stage, line
    FROM unnest($3::bigint[], $4::timestamptz[], $5::text[], $6::text[])
        AS new (sequence, logged_at, stage, line)
    ON CONFLICT DO NOTHING
"""
SELECT_LINES = """
    SELECT sequence, logged_at, stage, line FROM chat.workspace_logs
    WHERE workspace_id = $1 AND epoch = $2 AND sequence > $3 ORDER BY sequence LIMIT $4
"""


@dataclass(frozen=True, slots=True)
class WorkspacePlace:
    """Where a list of workspaces goes on."""

    is_live: int
    last_used_at: datetime
    id: str


class PostgresWorkspaces:
    """Stores workspaces; whoever is given is told of every change after its commit."""

    def __init__(
        self,
        pool: "asyncpg.Pool[asyncpg.Record]",
        changed: Callable[[Workspace], None] = lambda _: None,
    ) -> None:
        self._pool = pool
        self._changed = changed

    async def add(
        self, workspace: Workspace, request_hash: bytes, limits: QuotaLimits
    ) -> tuple[Workspace, bool]:
        """Make a workspace and say that it is new, or return what the same request made.

        Raises:
            RequestIdReused: the request came with another body before.
            QuotaExhausted: its owner has as many as they may.
            NameTaken: the owner has another one of that name.
        """
        with typed_outages():
            async with self._pool.acquire() as connection, connection.transaction():
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
                    if violation.constraint_name != WORKSPACE_NAME_INDEX:
                        raise
                    raise NameTaken("workspace", workspace.name) from violation
        assert row is not None  # The owner is locked, and it was not there.
        return self._told(workspace_of(row)), True

    async def add_scratch(
        self, workspace: Workspace, driver_id: WorkerId, lease_s: float
    ) -> Workspace:
        """Make the scratch workspace of a chat, in the hands of a driver, or return it."""
        with typed_outages():
            row = await self._pool.fetchrow(
                INSERT, *workspace_arguments(workspace), b"", driver_id, lease_s
            )
        return await self.get(workspace.id) if row is None else self._told(workspace_of(row))

    async def restart_scratch(self, workspace_id: str) -> Workspace:
        """Start a scratch workspace that stopped or failed, and return it."""
        _, after = await self.apply(workspace_id, Start())
        return after

    async def get(self, workspace_id: str) -> Workspace:
        """Return a workspace.

        Raises:
            WorkspaceNotFound: there is none.
        """
        with typed_outages():
            row = await self._pool.fetchrow(SELECT, workspace_id)
        if row is None:
            raise WorkspaceNotFound(workspace_id)
        return workspace_of(row)

    async def own(self, workspace_id: str, owner_id: OwnerId) -> Workspace:
        """Return a workspace of an owner.

        Raises:
            WorkspaceNotFound: there is none that is theirs.
        """
        with typed_outages():
            row = await self._pool.fetchrow(SELECT_OWN, workspace_id, owner_id)
        if row is None:
            raise WorkspaceNotFound(workspace_id)
        return workspace_of(row)

    async def apply(self, workspace_id: str, command: Command) -> tuple[Workspace, Workspace]:
        """Decide and write; return the workspace before and after.

        Raises:
            WorkspaceNotFound: there is none.
            WorkspaceNotReady: the command means nothing in its state.
        """
        with typed_outages():
            while True:
                row = await self._pool.fetchrow(SELECT, workspace_id)
                if row is None:
                    raise WorkspaceNotFound(workspace_id)
                before = workspace_of(row)
                after = decide(before, command, row["now"])
                if after is before or await self._pool.fetchrow(UPDATE, *_guarded(before, after)):
                    break
        return before, after if after is before else self._told(after)

    async def start(
        self,
        workspace_id: str,
        command: Start,
        limits: QuotaLimits,
        change: Callable[[Workspace], Workspace] = lambda workspace: workspace,
    ) -> tuple[Workspace, Workspace]:
        """Start a workspace if its owner may have one more that lives.

        Args:
            workspace_id: The workspace.
            command: The start.
            limits: What the owner may have.
            change: What else becomes different with it, such as its recipe.

        Raises:
            WorkspaceNotFound: there is none.
            WorkspaceNotReady: it is stopping or gone.
            QuotaExhausted: as many live as may.
        """
        with typed_outages():
            async with self._pool.acquire() as connection, connection.transaction():
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
        return before, self._told(after)

    async def claim(
        self, driver_id: WorkerId, lease_s: float, rows_max: int
    ) -> tuple[Workspace, ...]:
        """Take what waits for somebody to do something."""
        with typed_outages():
            rows = await self._pool.fetch(CLAIM, driver_id, lease_s, rows_max)
        return tuple(map(workspace_of, rows))

    async def claim_one(
        self, driver_id: WorkerId, workspace_id: str, lease_s: float
    ) -> Workspace | None:
        """Take one of them, None if there is nothing to do or somebody does it."""
        with typed_outages():
            row = await self._pool.fetchrow(CLAIM_ONE, driver_id, lease_s, workspace_id)
        return None if row is None else workspace_of(row)

    async def renew(
        self, driver_id: WorkerId, workspace_id: str, lease_s: float
    ) -> Workspace | None:
        """Keep one longer and return it as it is, None if it is somebody else's."""
        with typed_outages():
            row = await self._pool.fetchrow(RENEW, driver_id, workspace_id, lease_s)
        return None if row is None else workspace_of(row)

    async def release(self, driver_id: WorkerId, workspace_id: str, rest_s: float) -> None:
        """Let go of one; nobody takes it before a while has passed."""
        with typed_outages():
            await self._pool.execute(RELEASE, driver_id, workspace_id, rest_s)

    async def due(self, rows_max: int) -> tuple[tuple[Workspace, datetime], ...]:
        """Return workspaces whose time has come for something, with the time."""
        with typed_outages():
            rows = await self._pool.fetch(SELECT_DUE, WARNING, rows_max)
        return tuple((workspace_of(row), row["now"]) for row in rows)

    async def orphaned(self, rows_max: int) -> tuple[Workspace, ...]:
        """Return scratch workspaces whose chats were deleted."""
        with typed_outages():
            rows = await self._pool.fetch(SELECT_ORPHANED, rows_max)
        return tuple(map(workspace_of, rows))

    async def on_node(self, node_id: str) -> tuple[Workspace, ...]:
        """Return what is on a node."""
        with typed_outages():
            rows = await self._pool.fetch(SELECT_ON_NODE, node_id)
        return tuple(map(workspace_of, rows))

    async def many(self, workspace_ids: Collection[str]) -> dict[str, Workspace]:
        """Return those that exist by their ids."""
        with typed_outages():
            rows = await self._pool.fetch(SELECT_MANY, list(workspace_ids))
        return {str(row["id"]): workspace_of(row) for row in rows}

    async def worked_in(self, worker_id: WorkerId) -> tuple[Workspace, ...]:
        """Return the workspaces of the chats that a worker runs."""
        with typed_outages():
            rows = await self._pool.fetch(SELECT_WORKED_IN, worker_id)
        return tuple(map(workspace_of, rows))

    async def of_chat(self, chat_id: ChatId) -> ChatWorkspace | None:
        """Return where a chat's tools work, None if there is no such chat."""
        with typed_outages():
            row = await self._pool.fetchrow(SELECT_OF_CHAT, chat_id)
        if row is None:
            return None
        return ChatWorkspace(
            workspace=None if row["id"] is None else workspace_of(row),
            scratch_id=WorkspaceId(str(row["root_id"])),
            owner_id=OwnerId(str(row["chat_owner_id"])),
            is_child=row["is_child"],
            is_bound=row["is_bound"],
            node_address=row["node_address"] or "",
            is_node_lost=row["node_state"] in ("lost", "gone"),
            now=row["now"],
        )

    async def bind(self, chat_id: ChatId, workspace_id: str) -> bool:
        """Let a chat's tools work in a workspace of the same owner; say whether there are both."""
        with typed_outages():
            return await self._pool.fetchval(BIND, chat_id, workspace_id) is not None

    async def counted(self, owner_id: OwnerId) -> tuple[Workspace, ...]:
        """Return everything that an owner has."""
        with typed_outages():
            rows = await self._pool.fetch(SELECT_COUNTED, owner_id)
        return tuple(map(workspace_of, rows))

    async def page(
        self,
        *,
        owner_id: OwnerId | None,
        states: Sequence[State],
        node_id: str,
        after: WorkspacePlace | None,
        length: int,
    ) -> tuple[Workspace, ...]:
        """Return workspaces: live ones first, then by last use."""
        with typed_outages():
            rows = await self._pool.fetch(
                SELECT_PAGE,
                owner_id,
                list(states),
                node_id or None,
                None if after is None else after.is_live,
                None if after is None else after.last_used_at,
                sorted(LIVE),
                None if after is None else after.id,
                length,
            )
        return tuple(map(workspace_of, rows))

    async def log(self, workspace_id: str, epoch: int, lines: Sequence[LogLine]) -> None:
        """Keep lines of a preparation; those that are known already stay as they are."""
        kept = [line for line in lines if line.sequence <= LINES_MAX]
        if not kept:
            return
        with typed_outages():
            await self._pool.execute(
                INSERT_LINES,
                workspace_id,
                epoch,
                [line.sequence for line in kept],
                [line.logged_at for line in kept],
                [line.stage for line in kept],
                [line.text for line in kept],
            )

    async def lines(
        self, workspace_id: str, epoch: int, after: int, lines_max: int = 500
    ) -> tuple[LogLine, ...]:
        """Return lines of a preparation after a number."""
        with typed_outages():
            rows = await self._pool.fetch(SELECT_LINES, workspace_id, epoch, after, lines_max)
        return tuple(
            LogLine(row["sequence"], row["logged_at"], row["stage"], row["line"]) for row in rows
        )

    def _told(self, workspace: Workspace) -> Workspace:
        self._changed(workspace)
        return workspace


async def _count(
    connection: "asyncpg.pool.PoolConnectionProxy[asyncpg.Record]",
    owner_id: OwnerId,
    limits: QuotaLimits,
    *,
    is_new: bool,
) -> None:
    rows = await connection.fetch(SELECT_COUNTED, owner_id)
    use = exhausted(map(workspace_of, rows), limits, is_new=is_new)
    if use is not None:
        raise QuotaExhausted(use)


def _guarded(before: Workspace, after: Workspace) -> list[object]:
    return [before.id, before.version, *workspace_arguments(after, MOVING)]
