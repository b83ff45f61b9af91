"""Conversion of hosted workspaces and the node to protos."""

import os
from collections.abc import Iterable
from typing import Final, assert_never

from parley.api.workspace.v1 import host_service_pb2 as api
from parley.api.workspace.v1 import node_pb2, sandbox_pb2, workspace_pb2
from toolrunner.processes.rpc.convert import report_to_proto as sandbox_report_to_proto
from toolrunner.processes.rpc.convert import time_to_proto
from toolrunner.sandbox import Report
from toolrunner.workspaces.domain.placement import (
    Failure,
    Hosted,
    HostState,
    LogLine,
    Prepared,
    Usage,
)
from toolrunner.workspaces.merge.applied import AppliedMerge
from toolrunner.workspaces.merge.service import MergeReport
from toolrunner.workspaces.node.reporter import Load, Reporter
from toolrunner.workspaces.preparation_runs import EndReason, PreparationEvent

PATHS_MAX: Final = 10_000
PATHS_BYTES_MAX: Final = 1024 * 1024
CONFLICTS_MAX: Final = 1000
LEFT_OUT_MAX: Final = 100
LEFT_OUT_BYTES_MAX: Final = 64 * 1024
PREVIEW_BYTES_MAX: Final = 16 * 1024
PREVIEWS_BYTES_MAX: Final = 1024 * 1024

_STATE: Final = {
    HostState.PREPARING: workspace_pb2.WORKSPACE_STATE_PREPARING,
    HostState.READY: workspace_pb2.WORKSPACE_STATE_READY,
    HostState.STOPPING: workspace_pb2.WORKSPACE_STATE_STOPPING,
    HostState.STOPPED: workspace_pb2.WORKSPACE_STATE_STOPPED,
    HostState.FAILED: workspace_pb2.WORKSPACE_STATE_FAILED,
    HostState.REMOVING: workspace_pb2.WORKSPACE_STATE_STOPPING,
    HostState.REMOVED: workspace_pb2.WORKSPACE_STATE_DELETED,
}


def event_to_proto(
    event: PreparationEvent, *, root_path: str, sandbox: Report
) -> api.PrepareWorkspaceResponse:
    """Return one message of a preparation's stream."""
    match event:
        case LogLine():
            line = workspace_pb2.SetupLogLine(
                sequence=event.sequence,
                logged_at=time_to_proto(event.logged_at),
                stage=event.stage,
                text=event.text,
            )
            return api.PrepareWorkspaceResponse(log_line=line)
        case Prepared():
            return api.PrepareWorkspaceResponse(
                prepared=prepared_to_proto(event, root_path=root_path, sandbox=sandbox)
            )
        case Failure():
            return api.PrepareWorkspaceResponse(failed=failure_to_proto(event))
        case EndReason():
            name = f"STREAM_END_REASON_{event.name}"
            reason = workspace_pb2.StreamEndReason.Value(name)
            return api.PrepareWorkspaceResponse(closed=workspace_pb2.StreamEnd(reason=reason))
        case _:
            assert_never(event)


def prepared_to_proto(
    prepared: Prepared, *, root_path: str, sandbox: Report
) -> api.WorkspacePrepared:
    """Return a prepared workspace."""
    return api.WorkspacePrepared(
        root_path=root_path,
        git_branch=prepared.git_branch,
        git_commit=prepared.git_commit,
        fork_mode=workspace_pb2.ForkMode.Value(f"FORK_MODE_{prepared.fork_mode.name}"),
        sandbox=sandbox_pb2.SandboxUsed(
            level=sandbox_report_to_proto(sandbox).level,
            layers=sandbox_report_to_proto(sandbox).layers,
        ),
        duration_ms=prepared.duration_ms,
    )


def failure_to_proto(failure: Failure) -> workspace_pb2.WorkspaceFailure:
    """Return why a workspace cannot be used."""
    kind = f"WORKSPACE_FAILURE_KIND_{failure.kind.name}"
    return workspace_pb2.WorkspaceFailure(
        kind=workspace_pb2.WorkspaceFailureKind.Value(kind),
        message=failure.message,
        recreatable=failure.is_recreatable,
    )


def report_to_proto(report: MergeReport) -> workspace_pb2.MergeReport:
    """Return the report of a merge, truncated to the size limits."""
    paths = _shown_paths(report.merged_paths[:PATHS_MAX], PATHS_BYTES_MAX)
    conflicts = []
    room = PREVIEWS_BYTES_MAX
    for conflict in report.conflicts[:CONFLICTS_MAX]:
        preview = conflict.preview[: min(PREVIEW_BYTES_MAX, room)].decode(errors="replace")
        preview = preview.encode()[:PREVIEW_BYTES_MAX].decode(errors="ignore")
        room = max(0, room - len(preview.encode()))
        kind = f"MERGE_CONFLICT_KIND_{conflict.kind.name}"
        conflicts.append(
            workspace_pb2.MergeConflict(
                path=_shown(conflict.path),
                kind=workspace_pb2.MergeConflictKind.Value(kind),
                preview=preview,
            )
        )
    omitted = len(report.merged_paths) - len(paths) + len(report.conflicts) - len(conflicts)
    return workspace_pb2.MergeReport(
        applied=report.is_applied,
        merged_paths=paths,
        conflicts=conflicts,
        omitted=omitted,
        patches=[
            workspace_pb2.MergePatch(path=_shown(each.path), patch=_shown(each.text))
            for each in report.patches
        ],
        left_out_paths=_shown_paths(report.left_out[:LEFT_OUT_MAX], LEFT_OUT_BYTES_MAX),
        applied_merges=map(_applied_to_proto, report.applied_merges),
    )


def _applied_to_proto(merge: AppliedMerge) -> workspace_pb2.AppliedMerge:
    return workspace_pb2.AppliedMerge(
        applied_at=time_to_proto(merge.applied_at),
        paths=[_shown(os.fsdecode(name)) for name in merge.names],
        omitted=merge.omitted,
        patches=[
            workspace_pb2.MergePatch(path=_shown(os.fsdecode(name)), patch=_shown(text))
            for name, text in merge.patches
        ],
    )


def hosted_to_proto(hosted: Hosted) -> node_pb2.HostedWorkspace:
    """Return a workspace as its node reports it."""
    state = _STATE[hosted.state]
    if hosted.state is HostState.READY and (hosted.processes or hosted.waits):
        state = workspace_pb2.WORKSPACE_STATE_BUSY
    return node_pb2.HostedWorkspace(
        workspace_id=hosted.workspace_id,
        epoch=hosted.epoch,
        state=state,
        usage=None if hosted.usage is None else usage_to_proto(hosted.usage, hosted.processes),
        processes=hosted.processes,
        attachments=hosted.attachments,
        waits=hosted.waits,
        last_used_at=None if hosted.last_used_at is None else time_to_proto(hosted.last_used_at),
        failure=None if hosted.failure is None else failure_to_proto(hosted.failure),
    )


def usage_to_proto(usage: Usage, processes: int) -> workspace_pb2.WorkspaceUsage:
    """Return the usage of a workspace."""
    return workspace_pb2.WorkspaceUsage(
        pids=processes,
        disk_bytes=usage.disk_bytes,
        inodes=usage.inodes,
        measured_at=time_to_proto(usage.measured_at),
    )


def node_to_proto(reporter: Reporter) -> node_pb2.Node:
    """Return the node, without the fields that only chatd sets."""
    facts, capacity = reporter.facts, reporter.capacity()
    return node_pb2.Node(
        node_id=facts.node_id,
        name=facts.name,
        address=facts.address,
        capacity=node_pb2.NodeCapacity(
            workspaces=capacity.workspaces,
            cpu_millicores=capacity.cpu_millicores,
            memory_bytes=capacity.memory_bytes,
            disk_bytes=capacity.disk_bytes,
        ),
        load=load_to_proto(reporter.load()),
        sandbox=sandbox_report_to_proto(reporter.sandbox.report),
        labels=dict(facts.labels),
        directories=[
            node_pb2.LocalDirectory(
                name=each.name, overlay_only=each.is_overlay_only, overlay_available=True
            )
            for each in facts.directories
        ],
        mirrors=reporter.mirrors.addresses()[:1000],
        journal_generation=facts.journal_generation,
        version=facts.version,
    )


def load_to_proto(load: Load) -> node_pb2.NodeLoad:
    """Return the load of the node."""
    return node_pb2.NodeLoad(
        workspaces=load.workspaces,
        processes=load.processes,
        cpu_millicores=load.cpu_millicores,
        memory_bytes=load.memory_bytes,
        disk_free_bytes=load.disk_free_bytes,
        problem=load.problem,
    )


def _shown_paths(paths: Iterable[str], bytes_max: int) -> list[str]:
    """Return the first paths as text, up to a size."""
    shown: list[str] = []
    size = 0
    for path in map(_shown, paths):
        size += len(path.encode())
        if size > bytes_max:
            break
        shown.append(path)
    return shown


def _shown(path: str) -> str:
    """Return a path as text; file names need not be UTF-8."""
    return path.encode(errors="surrogateescape").decode(errors="replace")
