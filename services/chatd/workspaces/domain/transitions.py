"""Applies commands to workspaces: pure functions, and the only code that changes their state."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import assert_never

from chatd.workspaces.domain.commands import (
    Command,
    ConfirmPolicy,
    Fail,
    FinishPreparing,
    FinishRemoving,
    FinishStopping,
    Grant,
    Lapse,
    MarkNodeLost,
    Place,
    Recover,
    Remove,
    Report,
    SetPolicy,
    SetTtl,
    Start,
    Stop,
    Use,
    Warn,
)
from chatd.workspaces.domain.errors import WorkspaceNotReady
from chatd.workspaces.domain.lifetime import bumped, deadlines, is_worth_writing
from chatd.workspaces.domain.matrix import ALLOWED
from chatd.workspaces.domain.spec import WorkspaceSpec
from chatd.workspaces.domain.workspace import (
    NODE_LOST,
    Failure,
    FailureKind,
    State,
    TtlSource,
    Usage,
    Workspace,
)


def decide(workspace: Workspace, command: Command, now: datetime) -> Workspace:
    """Return the workspace after a command; the same object if nothing changes.

    Raises:
        WorkspaceNotReady: the command is not allowed in this state.
    """
    if type(command) not in ALLOWED[workspace.state]:
        raise WorkspaceNotReady(workspace.id, workspace.state)
    decided = _decided(workspace, command, now)
    if decided is workspace or decided == workspace:
        return workspace
    return replace(decided, version=workspace.version + 1)


def _decided(workspace: Workspace, command: Command, now: datetime) -> Workspace:
    match command:
        case Place(after=after):
            is_next = after is None or after == workspace.epoch
            return _placed(workspace, command) if is_next else workspace
        case FinishPreparing():
            return _prepared(workspace, command, now)
        case Fail(epoch, failure):
            is_mine = epoch == workspace.epoch and workspace.state in _CAN_FAIL
            return _failed(workspace, failure) if is_mine else workspace
        case Report():
            return _reported(workspace, command, now)
        case Lapse(epoch, failure):
            is_mine = workspace.is_usable and epoch == workspace.epoch
            return _lapsed(workspace, failure, now) if is_mine else workspace
        case Use():
            return _used(workspace, now)
        case Warn():
            return replace(workspace, warned_for=workspace.deadline_at)
        case SetTtl(ttl_ms):
            return _with_ttl(workspace, ttl_ms)
        case Start(parameters):
            return _started(workspace, dict(parameters))
        case Stop():
            return _stopping(workspace, command, now)
        case FinishStopping(epoch):
            return _stopped(workspace, now) if _is_stopping(workspace, epoch) else workspace
        case Remove(is_node_lost):
            return _removing(workspace, now, is_node_lost=is_node_lost)
        case FinishRemoving(epoch):
            is_mine = _is_stopping(workspace, epoch) and workspace.is_removing
            return _deleted(workspace) if is_mine else workspace
        case MarkNodeLost(node_id):
            return _lost(workspace) if workspace.node_id == node_id else workspace
        case Recover():
            return _found(workspace, command)
        case Grant(secret_names):
            return _allowed(workspace, replace(workspace.spec, secret_names=secret_names))
        case SetPolicy(network, limits):
            spec = replace(
                workspace.spec,
                network=network or workspace.spec.network,
                limits=limits or workspace.spec.limits,
            )
            return _allowed(workspace, spec)
        case ConfirmPolicy(epoch, policy):
            is_mine = epoch == workspace.epoch and policy > workspace.policy_told
            return replace(workspace, policy_told=policy) if is_mine else workspace
        case _:
            assert_never(command)


_CAN_FAIL = frozenset({State.PENDING, State.PREPARING, State.STOPPING})
#: Nothing runs in these states, but files may exist.
_AT_REST = frozenset({State.STOPPED, State.FAILED})


def _allowed(workspace: Workspace, spec: WorkspaceSpec) -> Workspace:
    if spec == workspace.spec:
        return workspace
    return replace(workspace, spec=spec, policy=workspace.policy + 1)


def _placed(workspace: Workspace, command: Place) -> Workspace:
    is_there = command.node_id == workspace.node_id
    source = replace(workspace.spec.source, parent_epoch=command.parent_epoch)
    return replace(
        workspace,
        state=State.PREPARING,
        node_id=command.node_id,
        epoch=workspace.epoch + 1,
        spec=replace(workspace.spec, source=source),
        has_files=workspace.has_files and is_there,
        # Its previous node is ordered to remove the files that it has.
        usage=workspace.usage if is_there else None,
    )


def _prepared(workspace: Workspace, command: FinishPreparing, now: datetime) -> Workspace:
    if workspace.state is not State.PREPARING or command.epoch != workspace.epoch:
        return workspace
    deadline, latest = deadlines(workspace.lifetime, now)
    return replace(
        workspace,
        state=State.READY,
        has_files=True,
        failure=None,
        stop_reason=None,
        root_path=command.root_path,
        git_branch=command.git_branch,
        sandbox_level=command.sandbox_level,
        policy_told=command.policy,
        started_at=now,
        last_used_at=now,
        deadline_at=deadline,
        max_deadline_at=latest,
        warned_for=None,
    )


def _reported(workspace: Workspace, command: Report, now: datetime) -> Workspace:
    if command.epoch != workspace.epoch:
        return workspace
    if workspace.state in _AT_REST and command.usage is not None:
        return replace(workspace, usage=_kept(command.usage))
    if not workspace.is_usable:
        return workspace
    reported = replace(
        workspace,
        state=State.BUSY if command.is_busy else State.READY,
        usage=command.usage or workspace.usage,
    )
    is_newer = command.used_at is not None and command.used_at > workspace.last_used_at
    return _used(reported, min(now, command.used_at or now)) if is_newer else reported


def _lapsed(workspace: Workspace, failure: Failure | None, now: datetime) -> Workspace:
    return _stopped(workspace, now) if failure is None else _failed(workspace, failure)


def _used(workspace: Workspace, now: datetime) -> Workspace:
    if not workspace.is_usable:
        return workspace
    deadline = bumped(workspace.lifetime, workspace.deadline_at, workspace.max_deadline_at, now)
    is_recent = now - workspace.last_used_at < is_worth_writing(workspace.lifetime)
    if deadline == workspace.deadline_at and is_recent:
        return workspace
    return replace(workspace, last_used_at=max(now, workspace.last_used_at), deadline_at=deadline)


def _with_ttl(workspace: Workspace, ttl_ms: int) -> Workspace:
    lifetime = replace(workspace.lifetime, ttl_ms=ttl_ms, source=TtlSource.REQUESTED)
    if workspace.started_at is None or not workspace.is_usable:
        return replace(workspace, lifetime=lifetime)
    deadline, latest = deadlines(lifetime, workspace.started_at)
    return replace(workspace, lifetime=lifetime, deadline_at=deadline, max_deadline_at=latest)


def _started(workspace: Workspace, parameters: dict[str, str]) -> Workspace:
    changed = replace(workspace, parameters={**workspace.parameters, **parameters})
    match workspace.state:
        case State.STOPPED if workspace.node_id is not None and workspace.has_files:
            # Its files exist only on this node.
            return replace(
                changed,
                state=State.PREPARING,
                epoch=workspace.epoch + 1,
                stop_reason=None,
                delete_at=None,
            )
        case State.DELETED if not workspace.is_scratch_of_chat:
            raise WorkspaceNotReady(workspace.id, workspace.state)
        case State.STOPPED | State.FAILED | State.DELETED:
            return replace(
                changed,
                state=State.PENDING,
                failure=None,
                stop_reason=None,
                delete_at=None,
                has_files=False,
            )
        case _:
            return workspace


def _stopping(workspace: Workspace, command: Stop, now: datetime) -> Workspace:
    match workspace.state:
        case State.PENDING:
            return _stopped(replace(workspace, stop_reason=command.reason), now)
        case State.PREPARING | State.READY | State.BUSY:
            return replace(workspace, state=State.STOPPING, stop_reason=command.reason)
        case _:
            return workspace


def _stopped(workspace: Workspace, now: datetime) -> Workspace:
    if workspace.is_removing:
        # Stopping is not removal: FinishRemoving ends a removal.
        return workspace
    return replace(
        workspace,
        state=State.STOPPED,
        usage=_kept(workspace.usage),
        deadline_at=None,
        max_deadline_at=None,
        warned_for=None,
        stopped_at=now,
        delete_at=now + timedelta(milliseconds=workspace.lifetime.retention_ms),
    )


def _kept(usage: Usage | None) -> Usage | None:
    """Return the usage when nothing runs: the disk space of its files."""
    return None if usage is None else Usage(disk_bytes=usage.disk_bytes, inodes=usage.inodes)


def _removing(workspace: Workspace, now: datetime, *, is_node_lost: bool) -> Workspace:
    if workspace.state is State.DELETED:
        return workspace
    if is_node_lost or workspace.node_id is None:
        return _deleted(workspace)
    # Of a workspace that is not live; one that is live has no such time.
    delete_at = workspace.delete_at or now if workspace.state in _AT_REST else workspace.delete_at
    return replace(
        workspace, state=State.STOPPING, is_removing=True, failure=None, delete_at=delete_at
    )


def _deleted(workspace: Workspace) -> Workspace:
    return replace(
        workspace,
        state=State.DELETED,
        is_removing=False,
        failure=None,
        usage=None,
        deadline_at=None,
        max_deadline_at=None,
        warned_for=None,
        delete_at=None,
    )


def _failed(workspace: Workspace, failure: Failure) -> Workspace:
    return replace(
        workspace,
        state=State.FAILED,
        failure=failure,
        is_removing=False,
        usage=_kept(workspace.usage),
        deadline_at=None,
        max_deadline_at=None,
        warned_for=None,
        delete_at=None,
    )


def _lost(workspace: Workspace) -> Workspace:
    match workspace.state:
        case State.STOPPING if workspace.is_removing:
            # The node is ordered to remove it when it registers again.
            return _deleted(workspace)
        case State.PREPARING | State.READY | State.BUSY | State.STOPPING:
            # Files that cannot be reached do not count as disk usage.
            return replace(_failed(workspace, NODE_LOST), usage=None)
        case _:
            return workspace


def _found(workspace: Workspace, command: Recover) -> Workspace:
    is_lost = workspace.failure is not None and workspace.failure.kind is FailureKind.NODE_LOST
    is_same = (command.node_id, command.epoch) == (workspace.node_id, workspace.epoch)
    if not (is_lost and is_same and workspace.started_at is not None):
        return workspace
    match command.state:
        case State.READY | State.BUSY:
            deadline, latest = deadlines(workspace.lifetime, workspace.started_at)
            return replace(
                workspace,
                state=State.READY,
                failure=None,
                deadline_at=deadline,
                max_deadline_at=latest,
            )
        case State.STOPPED:
            return _stopped(replace(workspace, failure=None), workspace.last_used_at)
        case _:
            return workspace


def _is_stopping(workspace: Workspace, epoch: int) -> bool:
    return workspace.state is State.STOPPING and epoch == workspace.epoch
