"""Reads of workspaces in PostgreSQL: for owners, chats, nodes and timers.

Commands on these workspaces are applied and written in `workspaces`, guarded by the version.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from chatd.primitives.domain.errors import WorkspaceNotFound
from chatd.primitives.domain.ids import ChatId, OwnerId, WorkerId
from chatd.primitives.store.rows import Row
from chatd.workspaces.domain.lifetime import WARNING
from chatd.workspaces.domain.ports import ChatWorkspace, LogLine, Seen
from chatd.workspaces.domain.workspace import LIVE, State, Workspace, WorkspaceId
from chatd.workspaces.store.rows import columns_of, workspace_of
from parley.postgres import Pool

#: A fork whose chat does not exist after this time since its last change is not being started.
UNSTARTED: Final = timedelta(hours=1)
#: For how long the workspace of a deleted chat is searched for without reading all workspaces.
JUST_DELETED: Final = timedelta(minutes=30)

_ALL = columns_of("w")
_SEEN = f"{_ALL}, clock_timestamp() AS now"

# The workspace of a chat c with the root r: the one that either is bound to, if it still belongs to
# the owner and is not deleted or being deleted, otherwise the scratch workspace: that of the root,
# or for an agent in a fork its own. An agent whose fork is gone never works in the root's files.
_SCRATCH = "CASE WHEN c.workspace_id = c.id THEN c.id ELSE r.id END"
_USED_BY_WORKER = f"""coalesce(
        (SELECT b.id FROM chat.workspaces b
            WHERE b.id = coalesce(c.workspace_id, r.workspace_id) AND b.owner_id = c.owner_id
                AND b.state <> 'deleted' AND NOT b.is_removing),
        {_SCRATCH})"""

# The database time; without authorisation.
# May run: no-rows.
SELECT_NOW = "SELECT clock_timestamp()"

# A workspace without authorisation, with the time of the read; the caller checks access.
# May run: administrator, checked by SELECT_OWN, process.
SELECT = f"""
    SELECT {_ALL}, w.request_hash, clock_timestamp() AS now
    FROM chat.workspaces w WHERE w.id = $1
"""

# The same for its owner only.
# May run: owner.
SELECT_OWN = f"SELECT {_ALL} FROM chat.workspaces w WHERE w.id = $1 AND w.owner_id = $2"

# All workspaces that count against an owner's quota.
# May run: owner.
SELECT_COUNTED = (
    f"SELECT {_ALL} FROM chat.workspaces w WHERE w.owner_id = $1 AND w.state <> 'deleted'"
)

# When an owner created workspaces within a time, the newest first, also those that are deleted;
# scratch directories of chats do not count. One is used after it is created, and there is an index.
# May run: owner.
SELECT_CREATED = """
    SELECT w.created_at AS at, clock_timestamp() AS now FROM chat.workspaces w
    WHERE w.owner_id = $1 AND w.last_used_at > clock_timestamp() - $2::interval
        AND w.created_at > clock_timestamp() - $2::interval AND NOT w.is_scratch_of_chat
    ORDER BY w.created_at DESC LIMIT $3
"""

# Due deadlines: autostop, its warning, and the end of retention; without authorisation.
# May run: process.
SELECT_DUE = f"""
    SELECT {_SEEN} FROM chat.workspaces w
    WHERE (w.state IN ('ready', 'busy') AND w.deadline_at <= clock_timestamp() + $1::interval
            AND (w.deadline_at <= clock_timestamp() OR w.warned_for IS DISTINCT FROM w.deadline_at))
        OR (w.state = 'stopped' AND w.delete_at <= clock_timestamp())
    ORDER BY coalesce(w.deadline_at, w.delete_at) LIMIT $2 FOR UPDATE OF w SKIP LOCKED
"""

# Whether a workspace w is the scratch one of a deleted chat, and no other chat is bound to it.
IS_ORPHANED = """w.is_scratch_of_chat
    AND EXISTS (SELECT 1 FROM chat.deleted_chats d WHERE d.chat_id = w.id)
    AND NOT EXISTS (SELECT 1 FROM chat.chats c
        WHERE c.workspace_id = w.id AND c.owner_id = w.owner_id AND c.id <> w.id)"""

# Scratch workspaces of chats that were just deleted. Each is found by its key, so the cost does not
# grow with the number of all workspaces.
# May run: process.
SELECT_JUST_ORPHANED = f"""
    SELECT {_SEEN} FROM chat.deleted_chats gone CROSS JOIN LATERAL (
        SELECT w.* FROM chat.workspaces w
        WHERE w.id = gone.chat_id AND w.state <> 'deleted' AND NOT w.is_removing AND {IS_ORPHANED}
        LIMIT 1) w
    WHERE gone.deleted_at > statement_timestamp() - $2::interval LIMIT $1
"""

# Scratch workspaces of deleted chats that are not removed yet, and forks of agents and candidates
# whose chats were not created: the start of one may have been interrupted for ever. It reads all
# workspaces, and may read all chats.
# May run: process.
SELECT_ORPHANED = f"""
    (SELECT {_SEEN} FROM chat.workspaces w
    WHERE w.state <> 'deleted' AND NOT w.is_removing AND {IS_ORPHANED} LIMIT $1)
    UNION ALL
    (SELECT {_SEEN} FROM chat.workspaces w
    WHERE w.is_scratch_of_chat AND w.parent_id IS NOT NULL AND w.state <> 'deleted'
        AND w.changed_at < statement_timestamp() - $2::interval AND NOT w.is_removing
        AND NOT EXISTS (SELECT 1 FROM chat.chats c WHERE c.id = w.id)
        AND NOT EXISTS (SELECT 1 FROM chat.chats c WHERE c.workspace_id = w.id)
        AND NOT EXISTS (SELECT 1 FROM chat.deleted_chats d WHERE d.chat_id = w.id) LIMIT $1)
"""

# Live workspaces of suspended users, and all workspaces of deleted users.
# May run: process.
SELECT_OF_SUSPENDED = f"""
    SELECT {_SEEN}, b.is_deleted FROM chat.suspended_users b
    JOIN chat.workspaces w ON w.owner_id = b.user_id
    WHERE CASE WHEN b.is_deleted THEN w.state <> 'deleted' AND NOT w.is_removing
        ELSE w.state IN ('pending', 'preparing', 'ready', 'busy') END
    LIMIT $1
"""

# The workspaces on a node, only for the node and administrators.
# May run: process.
SELECT_ON_NODE = f"""
    SELECT {_SEEN} FROM chat.workspaces w
    WHERE w.node_id = $1 AND w.state <> 'deleted' ORDER BY w.id
"""

# The workspaces that a node reports, in any state, and with $3 those that it should report.
# May run: service.
SELECT_HOSTED = f"""
    SELECT {_SEEN} FROM chat.workspaces w WHERE w.id = ANY ($1::uuid[])
    UNION ALL
    SELECT {_SEEN} FROM chat.workspaces w
    WHERE $3 AND w.node_id = $2 AND w.state IN ('ready', 'busy') AND w.id <> ALL ($1::uuid[])
"""

# Idle scratch workspaces of nodes that are nearly full, as many as must be stopped to free
# capacity; without authorisation. A stopped one is started automatically when its chat needs it.
# May run: process.
SELECT_IDLE_SCRATCH = f"""
    WITH crowded AS (
        SELECT n.id, (n.capacity ->> 'workspaces')::int AS most, (
            SELECT count(*) FROM chat.workspaces p WHERE p.node_id = n.id
                AND p.state IN ('preparing', 'ready', 'busy')) AS placed
        FROM chat.nodes n WHERE n.state = 'active')
    SELECT {_SEEN} FROM crowded c CROSS JOIN LATERAL (
        SELECT i.id FROM chat.workspaces i
        WHERE i.node_id = c.id AND i.state = 'ready' AND i.is_scratch_of_chat
            AND i.started_at < clock_timestamp() - $1::interval
            AND NOT EXISTS (SELECT 1 FROM chat.chats m JOIN chat.chat_exec e ON e.chat_id = m.id
                WHERE (m.root_chat_id = i.id OR m.id = i.id)
                    AND e.status IN ('running', 'interrupting', 'requires_action'))
            AND NOT EXISTS (SELECT 1 FROM chat.chat_exec e JOIN chat.chats m ON m.id = e.chat_id
                JOIN chat.chats r ON r.id = m.root_chat_id
                WHERE coalesce(m.workspace_id, r.workspace_id) = i.id
                    AND e.status IN ('running', 'interrupting', 'requires_action'))
        ORDER BY i.last_used_at LIMIT greatest(0, c.placed - c.most * 8 / 10)) idle
    JOIN chat.workspaces w ON w.id = idle.id
    WHERE c.most > 0 AND c.placed >= c.most * 9 / 10
"""

# Workspaces whose nodes have applied an older policy; without authorisation.
# May run: process.
SELECT_UNPUBLISHED = f"""
    SELECT {_SEEN} FROM chat.workspaces w
    WHERE w.state IN ('ready', 'busy') AND w.policy > w.policy_told LIMIT $1
"""

# Workspaces on lost nodes that are not marked as failed yet; without authorisation.
# May run: process.
SELECT_ON_LOST_NODES = f"""
    SELECT {_SEEN} FROM chat.nodes n JOIN chat.workspaces w ON w.node_id = n.id
    WHERE n.state IN ('lost', 'gone') AND w.state IN ('preparing', 'ready', 'busy', 'stopping')
    LIMIT $1
"""

# The workspaces of chats that a worker runs now.
# May run: process.
SELECT_USED_BY_WORKER = f"""
    SELECT DISTINCT ON (w.id) {_SEEN}
    FROM chat.chat_exec e
    JOIN chat.chats c ON c.id = e.chat_id
    JOIN chat.chats r ON r.id = c.root_chat_id
    JOIN chat.workspaces w ON w.id = {_USED_BY_WORKER} AND w.owner_id = c.owner_id
    WHERE e.worker_id = $1 AND e.status IN ('running', 'interrupting')
        AND w.state IN ('ready', 'busy')
"""

# The workspace of a chat, if any: its own, otherwise that of its root.
# May run: checked by Ownership, process.
SELECT_OF_CHAT = f"""
    SELECT {_ALL}, c.id AS chat_id, c.owner_id AS chat_owner_id, {_SCRATCH} AS scratch_id,
        c.parent_chat_id IS NOT NULL AS is_child,
        w.id <> r.id AS is_bound,
        n.address AS node_address, n.state AS node_state, clock_timestamp() AS now
    FROM chat.chats c
    JOIN chat.chats r ON r.id = c.root_chat_id
    LEFT JOIN chat.workspaces w ON w.id = {_USED_BY_WORKER} AND w.owner_id = c.owner_id
    LEFT JOIN chat.nodes n ON n.id = w.node_id
    WHERE c.id = $1
"""

# A page for an owner: live ones first, then by last use.
# May run: owner, administrator.
SELECT_PAGE = f"""
    SELECT {_ALL}, (w.state = ANY ($6::text[]))::int AS is_live FROM chat.workspaces w
    WHERE ($1::uuid IS NULL OR w.owner_id = $1) AND w.state = ANY ($2::text[])
        AND ($3::uuid IS NULL OR w.node_id = $3)
        AND ($4::int IS NULL OR
            ((w.state = ANY ($6::text[]))::int, w.last_used_at, w.id)
                < ($4::int, $5::timestamptz, $7::uuid))
    ORDER BY is_live DESC, w.last_used_at DESC, w.id DESC LIMIT $8
"""

# Log lines of a preparation; the caller checks access to the workspace.
# May run: administrator, checked by SELECT_OWN.
SELECT_LINES = """
    SELECT sequence, logged_at, stage, line FROM chat.workspace_logs
    WHERE workspace_id = $1 AND epoch = $2 AND sequence > $3 ORDER BY sequence LIMIT $4
"""


@dataclass(frozen=True, slots=True)
class WorkspacePlace:
    """The position of a page of workspaces."""

    is_live: int
    last_used_at: datetime
    id: str


class WorkspaceReads:
    """Reads workspaces."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def now(self) -> datetime:
        """Return the database time, which is the same for all processes."""
        moment: datetime = await self._pool.fetchval(SELECT_NOW)
        return moment

    async def get(self, workspace_id: str) -> Workspace:
        """Return a workspace.

        Raises:
            WorkspaceNotFound: there is none.
        """
        row = await self._pool.fetchrow(SELECT, workspace_id)
        if row is None:
            raise WorkspaceNotFound(workspace_id)
        return workspace_of(row)

    async def own(self, workspace_id: str, owner_id: OwnerId) -> Workspace:
        """Return a workspace of an owner.

        Raises:
            WorkspaceNotFound: the owner has no such workspace.
        """
        row = await self._pool.fetchrow(SELECT_OWN, workspace_id, owner_id)
        if row is None:
            raise WorkspaceNotFound(workspace_id)
        return workspace_of(row)

    async def due(self, rows_max: int) -> tuple[Seen, ...]:
        """Return workspaces with a due deadline."""
        return _seen(await self._pool.fetch(SELECT_DUE, WARNING, rows_max))

    async def just_orphaned(self, rows_max: int) -> tuple[Seen, ...]:
        """Return scratch workspaces whose chats were deleted lately."""
        return _seen(await self._pool.fetch(SELECT_JUST_ORPHANED, rows_max, JUST_DELETED))

    async def orphaned(self, rows_max: int) -> tuple[Seen, ...]:
        """Return scratch workspaces whose chats were deleted, or never created."""
        return _seen(await self._pool.fetch(SELECT_ORPHANED, rows_max, UNSTARTED))

    async def of_suspended(self, rows_max: int) -> tuple[tuple[Seen, bool], ...]:
        """Return workspaces of suspended users, and whether the user is deleted."""
        rows = await self._pool.fetch(SELECT_OF_SUSPENDED, rows_max)
        return tuple(zip(_seen(rows), (row["is_deleted"] for row in rows), strict=True))

    async def on_node(self, node_id: str) -> tuple[Seen, ...]:
        """Return the workspaces on a node."""
        return _seen(await self._pool.fetch(SELECT_ON_NODE, node_id))

    async def idle_scratch(self, idle: timedelta) -> tuple[Seen, ...]:
        """Return idle scratch workspaces of nodes that are nearly full."""
        return _seen(await self._pool.fetch(SELECT_IDLE_SCRATCH, idle))

    async def unpublished(self, rows_max: int) -> tuple[Seen, ...]:
        """Return workspaces whose nodes have applied an older policy."""
        return _seen(await self._pool.fetch(SELECT_UNPUBLISHED, rows_max))

    async def on_lost_nodes(self, rows_max: int) -> tuple[Seen, ...]:
        """Return workspaces on lost nodes that are not marked as failed yet."""
        return _seen(await self._pool.fetch(SELECT_ON_LOST_NODES, rows_max))

    async def hosted(
        self, node_id: str, workspace_ids: Collection[str], *, is_all: bool
    ) -> dict[str, Seen]:
        """Return the existing workspaces of these ids; with `is_all`, also others of the node."""
        rows = await self._pool.fetch(SELECT_HOSTED, list(workspace_ids), node_id, is_all)
        return {seen.workspace.id: seen for seen in _seen(rows)}

    async def used_by_worker(self, worker_id: WorkerId) -> tuple[Seen, ...]:
        """Return the workspaces of the chats that a worker runs."""
        return _seen(await self._pool.fetch(SELECT_USED_BY_WORKER, worker_id))

    async def of_chat(self, chat_id: ChatId) -> ChatWorkspace | None:
        """Return the workspace of a chat, None if there is no such chat."""
        row = await self._pool.fetchrow(SELECT_OF_CHAT, chat_id)
        if row is None:
            return None
        return ChatWorkspace(
            workspace=None if row["id"] is None else workspace_of(row),
            scratch_id=WorkspaceId(str(row["scratch_id"])),
            owner_id=OwnerId(str(row["chat_owner_id"])),
            is_child=row["is_child"],
            is_bound=bool(row["is_bound"]),
            node_address=row["node_address"] or "",
            is_node_lost=row["node_state"] in ("lost", "gone"),
            now=row["now"],
        )

    async def counted(self, owner_id: OwnerId) -> tuple[Workspace, ...]:
        """Return all workspaces that count against an owner's quota."""
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
        """Return a page of workspaces: live ones first, then by last use."""
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

    async def lines(
        self, workspace_id: str, epoch: int, after: int, lines_max: int = 500
    ) -> tuple[LogLine, ...]:
        """Return log lines of a preparation after a sequence number."""
        rows = await self._pool.fetch(SELECT_LINES, workspace_id, epoch, after, lines_max)
        return tuple(
            LogLine(row["sequence"], row["logged_at"], row["stage"], row["line"]) for row in rows
        )


def _seen(rows: Sequence[Row]) -> tuple[Seen, ...]:
    return tuple(Seen(workspace_of(row), row["now"]) for row in rows)
