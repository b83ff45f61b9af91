"""Following a workspace: what it is, its setup log, warnings, and the end."""

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

#: Somebody who watches uses it this often.
USE_EVERY_S: Final = 30.0
LOOK_S: Final = 2.0


class FollowedWorkspaces(Protocol):
    """Workspaces as those see them who follow them."""

    async def get(self, workspace_id: str) -> Workspace:
        """Return a workspace."""
        ...

    async def lines(self, workspace_id: str, epoch: int, after: int) -> tuple[LogLine, ...]:
        """Return lines of a preparation after a number."""
        ...

    async def apply(self, workspace_id: str, command: Command) -> tuple[Workspace, Workspace]:
        """Decide and write."""
        ...


class WorkspaceWatch:
    """Tells whoever follows a workspace what happens to it."""

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
        """Yield the workspace, lines of its log after a number, and what happens from then on.

        Args:
            workspace: The workspace as it is now.
            after_line: The last line that is known.
            is_using: Whether whoever follows uses it by that.
        """
        told: Workspace | None = None
        line = after_line
        used_s = self._clock.monotonic()
        while not self._stopping.is_set():
            if told is not None and told.epoch != workspace.epoch:
                line = 0
            if told is None or told.version != workspace.version:
                yield api.WatchWorkspaceResponse(workspace=workspace_to_proto(workspace))
            for each in await self._workspaces.lines(workspace.id, workspace.epoch, line):
                line = each.sequence
                yield api.WatchWorkspaceResponse(log_line=line_to_proto(each))
            if _is_warned(workspace) and (told is None or told.warned_for != workspace.warned_for):
                assert workspace.deadline_at is not None
                warning = api.AutostopWarning(deadline=time_to_proto(workspace.deadline_at))
                yield api.WatchWorkspaceResponse(autostop_warning=warning)
            told = workspace
            if workspace.state is State.DELETED:
                yield _end(workspace_pb2.STREAM_END_REASON_WORKSPACE_STOPPED)
                return
            if is_using and self._clock.monotonic() - used_s >= USE_EVERY_S:
                used_s = self._clock.monotonic()
                await self._workspaces.apply(workspace.id, Use())
            await self._changes.next(workspace.id, LOOK_S)
            with suppress(WorkspaceNotFound):
                workspace = await self._workspaces.get(workspace.id)
        yield _end(workspace_pb2.STREAM_END_REASON_GOING_AWAY)


def _is_warned(workspace: Workspace) -> bool:
    return workspace.deadline_at is not None and workspace.warned_for == workspace.deadline_at


def _end(reason: "workspace_pb2.StreamEndReason.ValueType") -> api.WatchWorkspaceResponse:
    return api.WatchWorkspaceResponse(closed=workspace_pb2.StreamEnd(reason=reason))
