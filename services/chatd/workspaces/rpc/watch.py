"""Streams a workspace: its state, setup log, warnings, and the end."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Final, Protocol

from chatd.primitives.domain.errors import WorkspaceNotFound
from chatd.primitives.rpc.times import time_to_proto
from chatd.workspaces.domain.commands import Command, Use
from chatd.workspaces.domain.ports import LogLine
from chatd.workspaces.domain.workspace import State, Workspace
from chatd.workspaces.engine.watchers import Changes
from chatd.workspaces.rpc.convert import line_to_proto, workspace_to_proto
from parley.api.workspace.v1 import workspace_pb2
from parley.api.workspace.v1 import workspace_service_pb2 as api
from parley.clock import Clock

#: Interval at which a watcher's use is recorded.
USE_EVERY_S: Final = 30.0
LOOK_S: Final = 2.0


class FollowedWorkspaces(Protocol):
    """The store of workspaces as a watch uses it."""

    async def get(self, workspace_id: str) -> Workspace:
        """Return a workspace."""
        ...

    async def lines(self, workspace_id: str, epoch: int, after: int) -> tuple[LogLine, ...]:
        """Return log lines of a preparation after a sequence number."""
        ...

    async def apply(self, workspace_id: str, command: Command) -> tuple[Workspace, Workspace]:
        """Apply a command and write the result."""
        ...


class WorkspaceWatch:
    """Streams changes of a workspace to a watcher."""

    def __init__(
        self,
        workspaces: FollowedWorkspaces,
        changes: Changes,
        clock: Clock,
        stopping: asyncio.Event,
    ) -> None:
        self._workspaces = workspaces
        self._changes = changes
        self._clock = clock
        self._stopping = stopping

    async def follow(
        self, workspace: Workspace, after_line: int, *, is_using: bool = True
    ) -> AsyncIterator[api.WatchWorkspaceResponse]:
        """Yield the workspace, its log lines after a sequence number, and its further changes.

        Args:
            workspace: The current workspace.
            after_line: The last log line that the client has.
            is_using: Whether watching counts as use.
        """
        sent: Workspace | None = None
        line = after_line
        used_s = self._clock.monotonic()
        while not self._stopping.is_set():
            if sent is not None and sent.epoch != workspace.epoch:
                line = 0
            if sent is None or sent.version != workspace.version:
                yield api.WatchWorkspaceResponse(workspace=workspace_to_proto(workspace))
            lines = await self._workspaces.lines(workspace.id, workspace.epoch, line)
            for each in lines:
                line = each.sequence
                yield api.WatchWorkspaceResponse(log_line=line_to_proto(each))
            if _is_warned(workspace) and (sent is None or sent.warned_for != workspace.warned_for):
                assert workspace.deadline_at is not None
                warning = api.AutostopWarning(deadline=time_to_proto(workspace.deadline_at))
                yield api.WatchWorkspaceResponse(autostop_warning=warning)
            sent = workspace
            if workspace.state is State.DELETED:
                yield _end(workspace_pb2.STREAM_END_REASON_WORKSPACE_STOPPED)
                return
            if is_using and self._clock.monotonic() - used_s >= USE_EVERY_S:
                used_s = self._clock.monotonic()
                await self._workspaces.apply(workspace.id, Use())
            # Lines come by the page: only the read that finds none shows that there are no more.
            if not lines:
                await self._changes.next(workspace.id, LOOK_S)
            with suppress(WorkspaceNotFound):
                workspace = await self._workspaces.get(workspace.id)
        yield _end(workspace_pb2.STREAM_END_REASON_GOING_AWAY)


def _is_warned(workspace: Workspace) -> bool:
    return workspace.deadline_at is not None and workspace.warned_for == workspace.deadline_at


def _end(reason: "workspace_pb2.StreamEndReason.ValueType") -> api.WatchWorkspaceResponse:
    return api.WatchWorkspaceResponse(closed=workspace_pb2.StreamEnd(reason=reason))
