"""Workspaces, nodes and templates as tests want them, the rest filled in."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from chatd.primitives.domain.ids import OwnerId
from chatd.workspaces.domain.nodes import Capacity, Load, Node
from chatd.workspaces.domain.spec import Kind, WorkspaceSpec
from chatd.workspaces.domain.templates import Template
from chatd.workspaces.domain.workspace import (
    NODE_LOST,
    Lifetime,
    NodeId,
    State,
    Workspace,
    WorkspaceId,
)

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
HOUR_MS = 3_600_000
ANN = OwnerId("00000000-0000-0000-0000-00000000000a")
NODE = NodeId("00000000-0000-0000-0000-0000000000f1")
OTHER_NODE = NodeId("00000000-0000-0000-0000-0000000000f2")
WORKSPACE = WorkspaceId("00000000-0000-0000-0000-000000000077")


def workspace(state: State = State.PENDING, **values: Any) -> Workspace:
    """Return a workspace in a state, as it would be after a usual life up to there."""
    made = Workspace(
        id=WORKSPACE,
        name="one",
        owner_id=ANN,
        kind=Kind.SCRATCH,
        spec=WorkspaceSpec(Kind.SCRATCH),
        lifetime=Lifetime(ttl_ms=2 * HOUR_MS, ttl_max_ms=8 * HOUR_MS),
        created_at=NOON,
        last_used_at=NOON,
    )
    if state is not State.PENDING:
        made = replace(made, state=state, node_id=NODE, epoch=1)
    if state not in (State.PENDING, State.PREPARING):
        made = replace(made, has_files=True, started_at=NOON, root_path="/workspace")
    if state in (State.READY, State.BUSY):
        made = replace(
            made,
            deadline_at=datetime(2026, 11, 15, 14, tzinfo=UTC),
            max_deadline_at=datetime(2026, 11, 15, 20, tzinfo=UTC),
        )
    if state is State.FAILED:
        made = replace(made, failure=NODE_LOST)
    return replace(made, **values)


def node(**values: Any) -> Node:
    """Return a node with room for ten workspaces."""
    made = Node(
        NODE,
        "unix:/run/node.sock",
        capacity=Capacity(10, 4000, 8 << 30, 100 << 30),
        load=Load(disk_free_bytes=100 << 30),
        sandbox_level="landlock",
    )
    return replace(made, **values)


def template(**values: Any) -> Template:
    """Return a template of an empty directory."""
    made = Template("00000000-0000-0000-0000-0000000000e1", "plain", Kind.SCRATCH)
    return replace(made, **values)
