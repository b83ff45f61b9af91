"""Nodes in PostgreSQL: registration, load, and loss."""

import uuid
from dataclasses import dataclass
from datetime import timedelta

from chatd.primitives.store.audit_outbox import record_event
from chatd.workspaces.domain.errors import NodeNotFound, StaleNode
from chatd.workspaces.domain.nodes import LOST_AFTER_HEARTBEATS, Load, Node, NodeState
from chatd.workspaces.domain.workspace import NodeId
from chatd.workspaces.store.rows import NODE_COLUMNS, columns_of, node_of, written
from parley.audit_log import AuditAction, AuditEvent
from parley.postgres import Pool

_NODE = columns_of("n", NODE_COLUMNS)

# Workspaces that were placed on a node and are not stopped, counted here because the node may not
# have them yet.
_PLACED = """
    (SELECT count(*) FROM chat.workspaces w WHERE w.node_id = n.id
        AND w.state IN ('preparing', 'ready', 'busy', 'stopping')) AS placed
"""

# Registration by the node itself; a retry of the request is the same registration. Workspaces that
# were placed at its address before it registered are assigned to it, and counted, reported and lost
# like the others.
# May run: service.
REGISTER = f"""
    WITH moved AS (
        UPDATE chat.workspaces SET node_id = $1, version = version + 1
        WHERE node_id = $14 AND state <> 'deleted')
    INSERT INTO chat.nodes AS n (id, name, address, state, capacity, load, sandbox_level, sandbox,
        labels, directories, mirrors, journal_generation, registration_epoch, version,
        registered_at, last_seen_at, drain_at, is_leaving, request_id)
    VALUES ($1, $2, $3, 'active', $4, $5, $6, $7, $8, $9, $10, $11, 1, $12, clock_timestamp(),
        clock_timestamp(), NULL, false, $13)
    ON CONFLICT (id) DO UPDATE SET name = excluded.name, address = excluded.address,
        state = CASE WHEN n.request_id = excluded.request_id THEN n.state ELSE 'active' END,
        capacity = excluded.capacity, load = excluded.load,
        sandbox_level = excluded.sandbox_level, sandbox = excluded.sandbox,
        labels = excluded.labels, directories = excluded.directories, mirrors = excluded.mirrors,
        journal_generation = excluded.journal_generation,
        registration_epoch = n.registration_epoch
            + (n.request_id <> excluded.request_id)::int,
        version = excluded.version, registered_at = excluded.registered_at,
        last_seen_at = excluded.last_seen_at,
        drain_at = CASE WHEN n.request_id = excluded.request_id THEN n.drain_at END,
        is_leaving = n.is_leaving AND n.request_id = excluded.request_id,
        request_id = excluded.request_id
    RETURNING {_NODE}, 0 AS placed
"""

# Heartbeat; a node that was marked as lost has to register again with all its workspaces.
# May run: service.
HEARTBEAT = f"""
    UPDATE chat.nodes n SET last_seen_at = clock_timestamp(), load = $3
    WHERE n.id = $1 AND n.registration_epoch = $2 AND n.state IN ('active', 'draining')
    RETURNING {_NODE}, 0 AS placed
"""

# Drain a node; the first drain time is kept.
# May run: service.
DRAIN = f"""
    UPDATE chat.nodes n SET state = 'draining', is_leaving = $4,
        drain_at = coalesce(n.drain_at, clock_timestamp() + $3::interval)
    WHERE n.id = $1 AND n.registration_epoch = $2 RETURNING {_NODE}, {_PLACED}
"""

# For placement and for administrators.
# May run: administrator, process.
SELECT_NODES = f"""
    SELECT {_NODE}, {_PLACED} FROM chat.nodes n
    WHERE n.state = ANY ($1::text[]) AND ($2::uuid IS NULL OR n.id > $2) ORDER BY n.id LIMIT $3
"""
# May run: process.
SELECT_NODE = f"SELECT {_NODE}, {_PLACED} FROM chat.nodes n WHERE n.id = $1"

# Nodes without recent heartbeats; each is returned to one process.
# May run: process.
LOSE = f"""
    UPDATE chat.nodes n SET state = 'lost'
    WHERE n.id IN (SELECT s.id FROM chat.nodes s WHERE s.state IN ('active', 'draining')
        AND s.last_seen_at < clock_timestamp() - $1::interval FOR UPDATE SKIP LOCKED)
    RETURNING {_NODE}, 0 AS placed
"""

# Nodes whose drain period is over.
# May run: process.
SELECT_DRAINED = f"""
    SELECT {_NODE}, {_PLACED} FROM chat.nodes n
    WHERE n.state = 'draining' AND n.drain_at <= clock_timestamp()
"""

# An empty node that is leaving becomes gone.
# May run: process.
LEAVE = """
    UPDATE chat.nodes n SET state = 'gone'
    WHERE n.id = $1 AND n.state = 'draining' AND n.is_leaving
        AND NOT EXISTS (SELECT 1 FROM chat.workspaces w WHERE w.node_id = n.id
            AND w.state IN ('preparing', 'ready', 'busy', 'stopping'))
"""

PRESENT = (NodeState.ACTIVE, NodeState.DRAINING, NodeState.LOST)


@dataclass(frozen=True, slots=True)
class NodePlace:
    """The position of a page of nodes."""

    id: str


class PostgresNodes:
    """Stores nodes."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def register(self, node: Node, request_id: str) -> Node:
        """Register a node, or register it again, and return it with its registration epoch."""
        row = await self._pool.fetchrow(
            REGISTER,
            node.id,
            node.name,
            node.address,
            written(node.capacity),
            written(node.load),
            node.sandbox_level,
            node.sandbox,
            written(node.labels),
            written(node.directories),
            written(node.mirrors),
            node.journal_generation,
            node.version,
            request_id,
            static_node_id(node.address),
        )
        assert row is not None
        return node_of(row)

    async def heartbeat(self, node_id: str, registration_epoch: int, load: Load) -> Node:
        """Record a heartbeat of a node with its load.

        Raises:
            NodeNotFound: it never registered.
            StaleNode: it has registered again since, was marked as lost, or left.
        """
        row = await self._pool.fetchrow(HEARTBEAT, node_id, registration_epoch, written(load))
        if row is None:
            await self.get(node_id)
            raise StaleNode(node_id)
        return node_of(row)

    async def drain(
        self, node_id: str, registration_epoch: int, grace: timedelta, *, is_leaving: bool
    ) -> Node:
        """Set a node to draining, and return it with the number of its workspaces.

        Raises:
            NodeNotFound: it never registered.
            StaleNode: it has registered again since.
        """
        async with self._pool.acquire() as connection, connection.transaction():
            row = await connection.fetchrow(DRAIN, node_id, registration_epoch, grace, is_leaving)
            if row is not None:
                details = {"is_leaving": str(is_leaving).lower()}
                event = AuditEvent(AuditAction.NODE_DRAINED, node_id, details=details)
                await record_event(connection, event)
        if row is None:
            await self.get(node_id)
            raise StaleNode(node_id)
        return node_of(row, row["placed"])

    async def get(self, node_id: str) -> Node:
        """Return a node.

        Raises:
            NodeNotFound: there is none.
        """
        row = await self._pool.fetchrow(SELECT_NODE, node_id)
        if row is None:
            raise NodeNotFound(node_id)
        return node_of(row, row["placed"])

    async def list(
        self, after: NodePlace | None = None, length: int = 1000, *, is_gone_shown: bool = False
    ) -> tuple[Node, ...]:
        """Return a page of nodes, ordered by id."""
        states = tuple(NodeState) if is_gone_shown else PRESENT
        rows = await self._pool.fetch(
            SELECT_NODES, list(states), None if after is None else after.id, length
        )
        return tuple(node_of(row, row["placed"]) for row in rows)

    async def lose(self, after: timedelta = LOST_AFTER_HEARTBEATS) -> tuple[Node, ...]:
        """Mark nodes without recent heartbeats as lost, and return them; each is returned once."""
        rows = await self._pool.fetch(LOSE, after)
        return tuple(map(node_of, rows))

    async def drained(self) -> tuple[Node, ...]:
        """Return nodes whose drain period is over."""
        rows = await self._pool.fetch(SELECT_DRAINED)
        return tuple(node_of(row, row["placed"]) for row in rows)

    async def leave(self, node_id: str) -> None:
        """Mark an empty node that is leaving as gone."""
        await self._pool.execute(LEAVE, node_id)


def static_node_id(address: str) -> NodeId:
    """Return the id of a node that is only in the settings, derived from its address."""
    return NodeId(str(uuid.uuid5(uuid.NAMESPACE_URL, f"parley node {address}")))
