"""Ending what runs in a workspace, and taking its files away."""

import asyncio
from dataclasses import dataclass, field
from typing import Final

from toolrunner.primitives.domain import BY_THE_NODE, LIVE, NO_CHAT, Scope, WorkspaceId
from toolrunner.workspaces.preparation_runs import Rooms, Runs

#: A process that was let in just before the stop may start just after it.
STOP_ROUNDS_MAX: Final = 10


@dataclass(frozen=True, slots=True)
class Stopped:
    """Nothing of a workspace runs any more."""

    ended_processes: int = 0
    killed_processes: int = 0
    duration_ms: int = 0


@dataclass(frozen=True, slots=True)
class Endings:
    """Ends workspaces, for whoever holds their lock."""

    rooms: Rooms
    runs: Runs
    emptying: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def end_everything(self, workspace_id: WorkspaceId, grace_s: float) -> Stopped:
        """End all that runs in a workspace; return when nothing does any more."""
        rooms = self.rooms
        started_s = rooms.clock.monotonic()
        await self.runs.give_up(workspace_id)
        await rooms.files.end(workspace_id)
        scope = Scope(workspace_id, NO_CHAT, BY_THE_NODE)
        asked = killed = 0
        for _ in range(STOP_ROUNDS_MAX):
            ended = await rooms.processes.end_workspace(workspace_id, grace_s)
            asked, killed = asked + ended.asked, killed + ended.killed
            records = await rooms.processes.list(scope)
            if not any(record.state in LIVE for record in records):
                break
        duration_ms = round((rooms.clock.monotonic() - started_s) * 1000)
        return Stopped(asked, killed, duration_ms)

    async def remove_files(self, workspace_id: WorkspaceId) -> int:
        """Remove everything of a workspace that nobody runs in; return the bytes freed."""
        rooms = self.rooms
        await self.end_everything(workspace_id, 0.0)
        rooms.sourcing.take_off(workspace_id)
        directory = rooms.workspaces.at(workspace_id).directory
        rooms.workspaces.particulars.pop(workspace_id, None)
        await asyncio.to_thread(rooms.trash.throw, directory)
        await rooms.points.reached("remove.thrown", workspace_id)
        self.runs.forget(workspace_id)
        return await self.empty_trash()

    async def empty_trash(self) -> int:
        """Remove what was thrown away; return the bytes freed."""
        async with self.emptying:
            return await asyncio.to_thread(self.rooms.trash.empty)
