"""Converts templates, workspaces, quotas and nodes to JSON, and requests to protos."""

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import UNSET

from gateway.api.convert.parts import Json, enum_names, time_of
from gateway.api.inputs.workspaces import (
    GitInput,
    LimitsInput,
    LocalInput,
    NetworkInput,
    NewTemplate,
    ParameterInput,
    PresetInput,
    ScratchInput,
    TemplatePatch,
)
from parley.api.workspace.v1 import node_pb2, sandbox_pb2, template_pb2, workspace_pb2
from parley.api.workspace.v1 import workspace_service_pb2 as api

KIND = enum_names(template_pb2.WorkspaceKind, "WORKSPACE_KIND_")
PARAMETER_TYPE = enum_names(template_pb2.ParameterType, "PARAMETER_TYPE_")
NETWORK = enum_names(sandbox_pb2.NetworkAccess, "NETWORK_ACCESS_")
LEVEL = enum_names(sandbox_pb2.SandboxLevel, "SANDBOX_LEVEL_")
LAYER = enum_names(sandbox_pb2.SandboxLayer, "SANDBOX_LAYER_")
STATE = enum_names(workspace_pb2.WorkspaceState, "WORKSPACE_STATE_")
FAILURE = enum_names(workspace_pb2.WorkspaceFailureKind, "WORKSPACE_FAILURE_KIND_")
STOP_REASON = enum_names(workspace_pb2.StopReason, "STOP_REASON_")
DIMENSION = enum_names(workspace_pb2.QuotaDimension, "QUOTA_DIMENSION_")
CONFLICT = enum_names(workspace_pb2.MergeConflictKind, "MERGE_CONFLICT_KIND_")
NODE_STATE = enum_names(node_pb2.NodeState, "NODE_STATE_")
OUTCOME = enum_names(api.LifecycleOutcome, "LIFECYCLE_OUTCOME_")


def template_to_json(template: template_pb2.Template, *, is_whole: bool = True) -> Json:
    """Convert a template; in lists without the long fields."""
    shown: Json = {
        "id": template.template_id,
        "name": template.name,
        "display_name": template.display_name or None,
        "description": template.description,
        "kind": KIND.get(template.kind),
        "network": _network_to_json(template.network),
        "limits": _limits_to_json(template.limits),
        "group_ids": list(template.group_ids),
        "enabled_for_agents": template.enabled_for_agents,
        "ttl_ms": template.ttl_ms,
        "ttl_max_ms": template.ttl_max_ms,
        "bump_ms": template.bump_ms,
        "retention_ms": template.retention_ms,
        "sandbox_minimum": LEVEL.get(template.sandbox_minimum),
    }
    source = template.WhichOneof("source")
    match source:
        case "git":
            shown["git"] = {
                "url": template.git.url,
                "ref": template.git.ref,
                "branch": template.git.branch,
                "depth": template.git.depth,
                "worktree": template.git.worktree,
            }
        case "local":
            shown["local"] = {
                "directory": template.local.directory,
                "overlay": template.local.overlay,
            }
        case "scratch" if is_whole:
            shown["scratch"] = {"skeleton": dict(template.scratch.skeleton)}
    if is_whole:
        shown |= {
            "readme": template.readme,
            "parameters": [_parameter_to_json(each) for each in template.parameters],
            "presets": [_preset_to_json(each) for each in template.presets],
            "setup_script": template.setup_script,
            "setup_timeout_ms": template.setup_timeout_ms,
        }
    return shown


def summary_to_json(summary: template_pb2.TemplateSummary) -> Json:
    """Convert a template's entry in a user's list."""
    return {
        **template_to_json(summary.template, is_whole=False),
        "readme_excerpt": summary.readme_excerpt,
        "active_users": summary.active_users,
        "own_workspaces": summary.own_workspaces,
        "last_used_at": time_of(summary, "last_used_at"),
    }


def workspace_to_json(workspace: workspace_pb2.Workspace) -> Json:
    """Convert a workspace."""
    failure = workspace.failure if workspace.HasField("failure") else None
    return {
        "id": workspace.workspace_id,
        "name": workspace.name,
        "owner_id": workspace.owner_id,
        "template_id": workspace.template_id or None,
        "template_name": workspace.template_name or None,
        "kind": KIND.get(workspace.kind),
        "parameters": dict(workspace.parameters),
        "parent_workspace_id": workspace.parent_workspace_id or None,
        "state": STATE.get(workspace.state),
        "failure": None
        if failure is None
        else {
            "kind": FAILURE.get(failure.kind),
            "message": failure.message,
            "recreatable": failure.recreatable,
        },
        "stop_reason": STOP_REASON.get(workspace.stop_reason),
        "node_id": workspace.node_id or None,
        "epoch": workspace.epoch,
        "root_path": workspace.root_path or None,
        "git_branch": workspace.git_branch or None,
        "network": _network_to_json(workspace.network),
        "limits": _limits_to_json(workspace.limits),
        "usage": _usage_to_json(workspace.usage) if workspace.HasField("usage") else None,
        "sandbox_level": LEVEL.get(workspace.sandbox_level),
        "ttl_ms": workspace.ttl_ms,
        **{
            name: time_of(workspace, name)
            for name in (
                "deadline",
                "max_deadline",
                "last_used_at",
                "created_at",
                "started_at",
                "stopped_at",
                "delete_at",
            )
        },
    }


def changed_to_json(workspace: workspace_pb2.Workspace, outcome: int) -> Json:
    """Convert a workspace after a change, with the outcome of the change."""
    return {**workspace_to_json(workspace), "outcome": OUTCOME.get(outcome)}


def quota_to_json(dimensions: Iterable[workspace_pb2.QuotaUsage]) -> Json:
    """Convert the quota usage of a user."""
    return {
        "items": [
            {
                "dimension": DIMENSION.get(each.dimension),
                "used": each.used,
                "limit": each.limit or None,
                "how_to_free": each.how_to_free,
            }
            for each in dimensions
        ]
    }


def merge_to_json(report: workspace_pb2.MergeReport) -> Json:
    """Convert the report of a merge."""
    return {
        "applied": report.applied,
        "merged_paths": list(report.merged_paths),
        "conflicts": [
            {"path": each.path, "kind": CONFLICT.get(each.kind), "preview": each.preview or None}
            for each in report.conflicts
        ],
        "omitted": report.omitted,
    }


def node_to_json(node: node_pb2.Node) -> Json:
    """Convert a node."""
    return {
        "id": node.node_id,
        "name": node.name,
        "address": node.address,
        "state": NODE_STATE.get(node.state),
        "capacity": {
            "workspaces": node.capacity.workspaces,
            "cpu_millicores": node.capacity.cpu_millicores,
            "memory_bytes": node.capacity.memory_bytes,
            "disk_bytes": node.capacity.disk_bytes,
        },
        "load": {
            "workspaces": node.load.workspaces,
            "processes": node.load.processes,
            "cpu_millicores": node.load.cpu_millicores,
            "memory_bytes": node.load.memory_bytes,
            "disk_free_bytes": node.load.disk_free_bytes,
        },
        "sandbox": {
            "level": LEVEL.get(node.sandbox.level),
            "minimum": LEVEL.get(node.sandbox.minimum),
            "summary": node.sandbox.summary,
            "missing": [
                {
                    "layer": LAYER.get(each.layer),
                    "cause": each.cause,
                    "effect": each.effect,
                    "remedy": each.remedy,
                }
                for each in node.sandbox.missing
            ],
        },
        "labels": dict(node.labels),
        "directories": [
            {
                "name": each.name,
                "overlay_only": each.overlay_only,
                "overlay_available": each.overlay_available,
            }
            for each in node.directories
        ],
        "mirrors": list(node.mirrors),
        "version": node.version,
        "registered_at": time_of(node, "registered_at"),
        "last_seen_at": time_of(node, "last_seen_at"),
    }


def template_to_proto(body: NewTemplate | TemplatePatch) -> template_pb2.Template:
    """Convert the given fields of a template."""
    made = template_pb2.Template()
    for field in msgspec.structs.fields(type(body)):
        value = getattr(body, field.name)
        if value is not UNSET and value is not None:
            _put(made, field.name, value)
    return made


def given_fields(body: TemplatePatch) -> tuple[str, ...]:
    """Return the names of the fields that a patch contains."""
    names = (field.name for field in msgspec.structs.fields(TemplatePatch))
    return tuple(name for name in names if getattr(body, name) is not UNSET)


def _put(made: template_pb2.Template, name: str, value: Any) -> None:
    match name, value:
        case "kind", _:
            made.kind = template_pb2.WorkspaceKind.Value(f"WORKSPACE_KIND_{value.name}")
        case "sandbox_minimum", _:
            made.sandbox_minimum = sandbox_pb2.SandboxLevel.Value(f"SANDBOX_LEVEL_{value.name}")
        case _, ScratchInput():
            made.scratch.CopyFrom(template_pb2.ScratchSource(skeleton=value.skeleton))
        case _, GitInput():
            made.git.CopyFrom(template_pb2.GitSource(**msgspec.structs.asdict(value)))
        case _, LocalInput():
            made.local.CopyFrom(template_pb2.LocalSource(**msgspec.structs.asdict(value)))
        case _, NetworkInput():
            made.network.CopyFrom(network_to_proto(value))
        case _, LimitsInput():
            made.limits.CopyFrom(limits_to_proto(value))
        case "parameters", _:
            made.parameters.extend(map(_parameter_to_proto, value))
        case "presets", _:
            made.presets.extend(map(_preset_to_proto, value))
        case "group_ids", _:
            made.group_ids.extend(value)
        case _:
            setattr(made, name, value)


def _parameter_to_proto(given: ParameterInput) -> template_pb2.TemplateParameter:
    kind = template_pb2.ParameterType.Value(f"PARAMETER_TYPE_{given.type.name}")
    return template_pb2.TemplateParameter(**{**msgspec.structs.asdict(given), "type": kind})


def _preset_to_proto(given: PresetInput) -> template_pb2.TemplatePreset:
    return template_pb2.TemplatePreset(**msgspec.structs.asdict(given))


def _parameter_to_json(parameter: template_pb2.TemplateParameter) -> Json:
    return {
        "name": parameter.name,
        "description": parameter.description,
        "type": PARAMETER_TYPE.get(parameter.type),
        "required": parameter.required,
        "default_value": parameter.default_value,
        "options": list(parameter.options),
        "pattern": parameter.pattern,
        "mutable": parameter.mutable,
    }


def _preset_to_json(preset: template_pb2.TemplatePreset) -> Json:
    return {
        "preset_id": preset.preset_id,
        "name": preset.name,
        "is_default": preset.is_default,
        "parameters": dict(preset.parameters),
    }


def _network_to_json(policy: sandbox_pb2.NetworkPolicy) -> Json:
    return {
        "access": NETWORK.get(policy.access) or "none",
        "presets": list(policy.presets),
        "allowed_hosts": list(policy.allowed_hosts),
        "denied_hosts": list(policy.denied_hosts),
    }


def _limits_to_json(limits: sandbox_pb2.ResourceLimits) -> Json:
    return {
        "cpu_millicores": limits.cpu_millicores,
        "memory_bytes": limits.memory_bytes,
        "pids": limits.pids,
        "disk_bytes": limits.disk_bytes,
        "inodes": limits.inodes,
        "output_bytes": limits.output_bytes,
    }


def _usage_to_json(usage: workspace_pb2.WorkspaceUsage) -> Json:
    return {
        "cpu_millicores": usage.cpu_millicores,
        "memory_bytes": usage.memory_bytes,
        "pids": usage.pids,
        "disk_bytes": usage.disk_bytes,
        "inodes": usage.inodes,
        "egress_bytes": usage.egress_bytes,
    }


def network_to_proto(given: NetworkInput) -> sandbox_pb2.NetworkPolicy:
    """Convert a network policy to its proto."""
    access = sandbox_pb2.NetworkAccess.Value(f"NETWORK_ACCESS_{given.access.name}")
    fields = {**msgspec.structs.asdict(given), "access": access}
    return sandbox_pb2.NetworkPolicy(**fields)


def limits_to_proto(given: LimitsInput) -> sandbox_pb2.ResourceLimits:
    """Convert resource limits to their proto."""
    return sandbox_pb2.ResourceLimits(**msgspec.structs.asdict(given))


#: The types of events that the stream of a workspace sends.
WORKSPACE_EVENTS = ("workspace", "log_line", "autostop_warning")


def workspace_event(told: api.WatchWorkspaceResponse) -> tuple[str, Json] | None:
    """Return the type and the JSON of an event about a workspace."""
    match told.WhichOneof("kind"):
        case "workspace":
            return "workspace", workspace_to_json(told.workspace)
        case "log_line":
            line = told.log_line
            document: Json = {
                "sequence": line.sequence,
                "logged_at": time_of(line, "logged_at"),
                "stage": line.stage,
                "text": line.text,
            }
            return "log_line", document
        case "autostop_warning":
            deadline = time_of(told.autostop_warning, "deadline")
            return "autostop_warning", {"deadline": deadline}
        case _:
            return None
