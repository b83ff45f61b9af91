"""Termination of the processes of a workspace, and removal of its files."""

import asyncio
from dataclasses import dataclass, field
from typing import Final

from toolrunner.journal.records import LIVE
from toolrunner.primitives.domain import NO_CHAT, NODE_EPOCH, Scope, WorkspaceId
from toolrunner.workspaces.preparation_runs import HostResources, PreparationRuns

#: A process that was accepted just before the stop may start just after it.
STOP_ROUNDS_MAX: Final = 10


@dataclass(frozen=True, slots=True)
class Stopped:
    """The result of a stop."""

    ended_processes: int = 0
    killed_processes: int = 0
    duration_ms: int = 0


@dataclass(frozen=True, slots=True)
class WorkspaceTermination:
    """Ends workspaces; the caller holds their lock."""

    resources: HostResources
    runs: PreparationRuns
    emptying: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def end_everything(self, workspace_id: WorkspaceId, grace_s: float) -> Stopped:
        """End all processes of a workspace; return when none is left."""
        resources = self.resources
        started_s = resources.clock.monotonic()
        await self.runs.give_up(workspace_id)
        await resources.files.end(workspace_id)
        scope = Scope(workspace_id, NO_CHAT, NODE_EPOCH)
        asked = killed = 0
        for _ in range(STOP_ROUNDS_MAX):
            ended = await resources.processes.end_workspace(workspace_id, grace_s)
            asked, killed = asked + ended.asked, killed + ended.killed
            records = await resources.processes.list(scope)
            if not any(record.state in LIVE for record in records):
                break
        duration_ms = round((resources.clock.monotonic() - started_s) * 1000)
        return Stopped(asked, killed, duration_ms)

    async def remove_files(self, workspace_id: WorkspaceId) -> int:
        """Remove all files of a workspace after its processes ended; return the bytes freed."""
        resources = self.resources
        await self.end_everything(workspace_id, 0.0)
        resources.source_builder.take_off(workspace_id)
        directory = resources.workspaces.at(workspace_id).directory
        resources.workspaces.options.pop(workspace_id, None)
        await asyncio.to_thread(resources.trash.throw, directory)
        await resources.points.reached("remove.thrown", workspace_id)
        self.runs.forget(workspace_id)
        return await self.empty_trash()

    async def empty_trash(self) -> int:
        """Empty the trash; return the bytes freed."""
        async with self.emptying:
            return await asyncio.to_thread(self.resources.trash.empty)
