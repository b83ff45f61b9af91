"""Conversion of rows of workspaces, templates and nodes."""

from dataclasses import replace
from typing import Any, TypeVar

import msgspec

from chatd.primitives.domain.ids import OwnerId
from chatd.primitives.store.rows import Row
from chatd.workspaces.domain.nodes import Capacity, Directory, Load, Node, NodeState
from chatd.workspaces.domain.spec import Kind, WorkspaceSpec
from chatd.workspaces.domain.templates import Template
from chatd.workspaces.domain.workspace import (
    Failure,
    Lifetime,
    NodeId,
    State,
    StopReason,
    Usage,
    Workspace,
    WorkspaceId,
)

T = TypeVar("T")

#: Columns that never change after a workspace was created.
FIXED = ("id", "owner_id", "kind", "template_id", "template_name", "parent_id", "created_at")
#: Columns that a command may change.
MOVING = (
    "name",
    "spec",
    "parameters",
    "lifetime",
    "state",
    "failure",
    "stop_reason",
    "node_id",
    "epoch",
    "has_files",
    "is_removing",
    "is_scratch_of_chat",
    "root_path",
    "git_branch",
    "sandbox_level",
    "usage",
    "deadline_at",
    "max_deadline_at",
    "warned_for",
    "last_used_at",
    "started_at",
    "stopped_at",
    "delete_at",
    "policy",
    "policy_told",
    "version",
)
COLUMNS = (*FIXED, *MOVING)
#: Types of the columns that a command may change, for statements that write several rows.
TYPES = dict.fromkeys(MOVING, "text") | {
    **dict.fromkeys(("spec", "parameters", "lifetime", "failure", "usage"), "json"),
    **dict.fromkeys(("epoch", "policy", "policy_told", "version"), "bigint"),
    **dict.fromkeys(("has_files", "is_removing", "is_scratch_of_chat"), "boolean"),
    **dict.fromkeys((name for name in MOVING if name.endswith("_at")), "timestamptz"),
    "warned_for": "timestamptz",
    "node_id": "uuid",
}

NODE_COLUMNS = (
    "id",
    "name",
    "address",
    "state",
    "capacity",
    "load",
    "sandbox_level",
    "sandbox",
    "labels",
    "directories",
    "mirrors",
    "journal_generation",
    "registration_epoch",
    "version",
    "registered_at",
    "last_seen_at",
    "drain_at",
    "is_leaving",
)


def columns_of(table: str, names: tuple[str, ...] = COLUMNS) -> str:
    """Return columns qualified with a table alias."""
    return ", ".join(f"{table}.{name}" for name in names)


def workspace_of(row: Row) -> Workspace:
    """Convert a row to a workspace."""
    template_id, parent_id, node_id = row["template_id"], row["parent_id"], row["node_id"]
    return Workspace(
        id=WorkspaceId(str(row["id"])),
        name=row["name"],
        owner_id=OwnerId(str(row["owner_id"])),
        kind=Kind(row["kind"]),
        spec=read_json(row["spec"], WorkspaceSpec),
        lifetime=read_json(row["lifetime"], Lifetime),
        created_at=row["created_at"],
        last_used_at=row["last_used_at"],
        template_id="" if template_id is None else str(template_id),
        template_name=row["template_name"],
        parameters=read_json(row["parameters"], dict[str, str]),
        parent_id="" if parent_id is None else str(parent_id),
        state=State(row["state"]),
        failure=None if row["failure"] is None else read_json(row["failure"], Failure),
        stop_reason=StopReason(row["stop_reason"]) if row["stop_reason"] else None,
        node_id=None if node_id is None else NodeId(str(node_id)),
        epoch=row["epoch"],
        has_files=row["has_files"],
        is_removing=row["is_removing"],
        is_scratch_of_chat=row["is_scratch_of_chat"],
        root_path=row["root_path"],
        git_branch=row["git_branch"],
        sandbox_level=row["sandbox_level"],
        usage=None if row["usage"] is None else read_json(row["usage"], Usage),
        deadline_at=row["deadline_at"],
        max_deadline_at=row["max_deadline_at"],
        warned_for=row["warned_for"],
        started_at=row["started_at"],
        stopped_at=row["stopped_at"],
        delete_at=row["delete_at"],
        policy=row["policy"],
        policy_told=row["policy_told"],
        version=row["version"],
    )


def workspace_arguments(workspace: Workspace, names: tuple[str, ...] = COLUMNS) -> list[Any]:
    """Return the parameters of a statement in the order of the names."""
    made: dict[str, Any] = {
        "template_id": workspace.template_id or None,
        "parent_id": workspace.parent_id or None,
        "spec": written(workspace.spec),
        "parameters": written(workspace.parameters),
        "lifetime": written(workspace.lifetime),
        "failure": None if workspace.failure is None else written(workspace.failure),
        "stop_reason": workspace.stop_reason or "",
        "usage": None if workspace.usage is None else written(workspace.usage),
    }
    return [made[name] if name in made else getattr(workspace, name) for name in names]


def template_of(row: Row) -> Template:
    """Convert a row to a template; searchable fields have their own columns."""
    fields: dict[str, Any] = msgspec.json.decode(row["definition"])
    fields |= {"id": str(row["id"]), "name": row["name"], "kind": row["kind"]}
    template = msgspec.convert(fields, Template, strict=False)
    return replace(
        template,
        is_for_agents=row["is_for_agents"],
        group_ids=tuple(str(group_id) for group_id in row["group_ids"]),
        version=row["version"],
        created_at=row["created_at"],
    )


def definition_of(template: Template) -> str:
    """Return the JSON of the template fields that have no column."""
    beside = {"id", "name", "kind", "is_for_agents", "group_ids", "version", "created_at"}
    fields = msgspec.to_builtins(template)
    return msgspec.json.encode(
        {name: value for name, value in fields.items() if name not in beside}
    ).decode()


def node_of(row: Row, placed: int = 0) -> Node:
    """Convert a row to a node."""
    return Node(
        id=NodeId(str(row["id"])),
        address=row["address"],
        name=row["name"],
        state=NodeState(row["state"]),
        capacity=read_json(row["capacity"], Capacity),
        load=read_json(row["load"], Load),
        sandbox_level=row["sandbox_level"],
        sandbox=row["sandbox"],
        labels=read_json(row["labels"], dict[str, str]),
        directories=read_json(row["directories"], tuple[Directory, ...]),
        mirrors=read_json(row["mirrors"], tuple[str, ...]),
        journal_generation=row["journal_generation"],
        registration_epoch=row["registration_epoch"],
        version=row["version"],
        registered_at=row["registered_at"],
        last_seen_at=row["last_seen_at"],
        drain_at=row["drain_at"],
        is_leaving=row["is_leaving"],
        placed=placed,
    )


def written(value: object) -> str:
    """Encode a value as JSON."""
    return msgspec.json.encode(value).decode()


def read_json(text: str, kind: type[T]) -> T:
    """Decode a value from JSON."""
    return msgspec.json.decode(text, type=kind)
