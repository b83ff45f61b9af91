"""Conversion of workspaces, nodes and quotas between protos and domain values."""

from datetime import UTC, datetime
from typing import Final

import msgspec
from google.protobuf.json_format import MessageToJson, Parse
from google.protobuf.timestamp_pb2 import Timestamp

from chatd.primitives.domain.errors import InvalidRequest
from chatd.primitives.rpc import fields
from chatd.primitives.rpc.times import optional_time, time_to_proto
from chatd.workspaces.clients.specs import (
    KINDS,
    level_of,
    level_to_proto,
    limits_to_proto,
    network_to_proto,
)
from chatd.workspaces.domain.nodes import Capacity, Directory, Load, Node
from chatd.workspaces.domain.ports import LogLine
from chatd.workspaces.domain.quota import QuotaUse
from chatd.workspaces.domain.workspace import Failure, NodeId, State, Usage, Workspace
from parley.api.workspace.v1 import node_pb2, sandbox_pb2, workspace_pb2
from parley.rpc import Address

PROBLEM_CHARACTERS_MAX: Final = 500

STATES: Final = {
    workspace_pb2.WorkspaceState.Value(f"WORKSPACE_STATE_{state.name}"): state for state in State
}
STATES_TO_PROTO: Final = {state: number for number, state in STATES.items()}


class WorkspacePage(msgspec.Struct, frozen=True):
    """The page token of a list of workspaces."""

    is_live: int
    last_used_at: datetime
    id: str


class NodePage(msgspec.Struct, frozen=True):
    """The page token of a list of nodes."""

    id: str


class OffsetPage(msgspec.Struct, frozen=True):
    """The page token of a ranked list: an offset."""

    after: int


def workspace_to_proto(workspace: Workspace) -> workspace_pb2.Workspace:
    """Convert a workspace to its proto."""
    lifetime = workspace.lifetime
    return workspace_pb2.Workspace(
        workspace_id=workspace.id,
        name=workspace.name,
        owner_id=workspace.owner_id,
        template_id=workspace.template_id,
        template_name=workspace.template_name,
        kind=KINDS[workspace.kind],
        parameters=dict(workspace.parameters),
        parent_workspace_id=workspace.parent_id,
        state=STATES_TO_PROTO[workspace.state],
        failure=None if workspace.failure is None else failure_to_proto(workspace.failure),
        stop_reason=(
            workspace_pb2.STOP_REASON_UNSPECIFIED
            if workspace.stop_reason is None
            else workspace_pb2.StopReason.Value(f"STOP_REASON_{workspace.stop_reason.name}")
        ),
        node_id=workspace.node_id or "",
        epoch=workspace.epoch,
        root_path=workspace.root_path,
        git_branch=workspace.git_branch,
        network=network_to_proto(workspace.spec.network),
        limits=limits_to_proto(workspace.spec.limits),
        usage=None if workspace.usage is None else usage_to_proto(workspace.usage),
        sandbox_level=level_to_proto(workspace.sandbox_level),
        ttl_ms=lifetime.ttl_ms,
        is_ttl_fixed=lifetime.is_ttl_fixed,
        ttl_source=(
            workspace_pb2.TTL_SOURCE_UNSPECIFIED
            if lifetime.source is None
            else workspace_pb2.TtlSource.Value(f"TTL_SOURCE_{lifetime.source.name}")
        ),
        deadline=optional_time(workspace.deadline_at),
        max_deadline=optional_time(workspace.max_deadline_at),
        last_used_at=time_to_proto(workspace.last_used_at),
        created_at=time_to_proto(workspace.created_at),
        started_at=optional_time(workspace.started_at),
        stopped_at=optional_time(workspace.stopped_at),
        delete_at=optional_time(workspace.delete_at),
        etag=str(workspace.version),
    )


def failure_to_proto(failure: Failure) -> workspace_pb2.WorkspaceFailure:
    """Convert the failure of a workspace to its proto."""
    return workspace_pb2.WorkspaceFailure(
        kind=workspace_pb2.WorkspaceFailureKind.Value(
            f"WORKSPACE_FAILURE_KIND_{failure.kind.name}"
        ),
        message=failure.message[:2000],
        recreatable=failure.is_recreatable,
    )


def usage_to_proto(usage: Usage) -> workspace_pb2.WorkspaceUsage:
    """Convert the usage of a workspace to its proto."""
    return workspace_pb2.WorkspaceUsage(
        cpu_millicores=usage.cpu_millicores,
        memory_bytes=usage.memory_bytes,
        pids=usage.pids,
        disk_bytes=usage.disk_bytes,
        inodes=usage.inodes,
        egress_bytes=usage.egress_bytes,
    )


def usage_of(usage: workspace_pb2.WorkspaceUsage) -> Usage:
    """Convert the usage that a node measured from its proto."""
    return Usage(
        cpu_millicores=usage.cpu_millicores,
        memory_bytes=usage.memory_bytes,
        pids=usage.pids,
        disk_bytes=usage.disk_bytes,
        inodes=usage.inodes,
        egress_bytes=usage.egress_bytes,
    )


def line_to_proto(line: LogLine) -> workspace_pb2.SetupLogLine:
    """Convert a line of a setup log to its proto."""
    return workspace_pb2.SetupLogLine(
        sequence=line.sequence,
        logged_at=time_to_proto(line.logged_at),
        stage=line.stage,
        text=line.text,
    )


def quota_to_proto(use: QuotaUse) -> workspace_pb2.QuotaUsage:
    """Convert a quota usage to its proto."""
    return workspace_pb2.QuotaUsage(
        dimension=workspace_pb2.QuotaDimension.Value(f"QUOTA_DIMENSION_{use.dimension.name}"),
        used=use.used,
        limit=use.limit,
        how_to_free=use.how_to_free,
    )


def node_to_proto(node: Node) -> node_pb2.Node:
    """Convert a node to its proto, for administrators."""
    return node_pb2.Node(
        node_id=node.id,
        name=node.name,
        address=node.address,
        state=node_pb2.NodeState.Value(f"NODE_STATE_{node.state.name}"),
        capacity=node_pb2.NodeCapacity(
            workspaces=node.capacity.workspaces,
            cpu_millicores=node.capacity.cpu_millicores,
            memory_bytes=node.capacity.memory_bytes,
            disk_bytes=node.capacity.disk_bytes,
        ),
        load=node_pb2.NodeLoad(
            workspaces=max(node.load.workspaces, node.placed),
            processes=node.load.processes,
            cpu_millicores=node.load.cpu_millicores,
            memory_bytes=node.load.memory_bytes,
            disk_free_bytes=node.load.disk_free_bytes,
            problem=node.load.problem,
        ),
        sandbox=Parse(node.sandbox, sandbox_pb2.SandboxReport(), ignore_unknown_fields=True),
        labels=dict(node.labels),
        directories=[
            node_pb2.LocalDirectory(
                name=each.name,
                overlay_only=each.is_overlay_only,
                overlay_available=each.has_overlay,
            )
            for each in node.directories
        ],
        mirrors=node.mirrors,
        journal_generation=node.journal_generation,
        registration_epoch=node.registration_epoch,
        version=node.version,
        registered_at=optional_time(node.registered_at),
        last_seen_at=optional_time(node.last_seen_at),
    )


def node_of(node: node_pb2.Node) -> Node:
    """Convert a node's registration from its proto.

    Raises:
        InvalidRequest: a field is invalid.
    """
    try:
        Address.parse(node.address)
    except ValueError as error:
        raise InvalidRequest("node.address", str(error)) from None
    return Node(
        id=NodeId(fields.uuid_of(node.node_id, "node.node_id")),
        address=node.address,
        name=node.name.strip(),
        capacity=Capacity(
            node.capacity.workspaces,
            node.capacity.cpu_millicores,
            node.capacity.memory_bytes,
            node.capacity.disk_bytes,
        ),
        load=load_of(node.load),
        sandbox_level=level_of(node.sandbox.level),
        sandbox=MessageToJson(node.sandbox, indent=None),
        labels=dict(node.labels),
        directories=tuple(
            Directory(each.name, each.overlay_only, each.overlay_available)
            for each in node.directories
        ),
        mirrors=tuple(node.mirrors),
        journal_generation=node.journal_generation,
        version=node.version.strip(),
    )


def load_of(load: node_pb2.NodeLoad) -> Load:
    """Convert the load of a node from its proto."""
    return Load(
        load.workspaces,
        load.processes,
        load.cpu_millicores,
        load.memory_bytes,
        load.disk_free_bytes,
        load.problem[:PROBLEM_CHARACTERS_MAX],
    )


def moment_of(stamp: Timestamp) -> datetime:
    """Convert a timestamp."""
    return stamp.ToDatetime(tzinfo=UTC)
