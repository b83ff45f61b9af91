"""The end of a chat's writable processes, when the chat begins to only read.

Theory: a mode that forbids changes is worth nothing while a shell, a watcher or a daemon from
before can still write. So a call that may only read waits until all processes that were started for
its chat with more rights are gone, also those that detached themselves: the spawner marks them, and
they cannot remove the mark. Processes of people belong to no chat and go on.

Later calls of the chat cost nothing until it starts a writable process again.
"""

from dataclasses import dataclass, field
from itertools import count
from signal import SIGKILL, SIGTERM
from typing import Final

from parley.clock import Clock
from toolrunner.directories.workspaces import Workspaces
from toolrunner.primitives.domain import ChatId, Scope, WorkspaceId
from toolrunner.primitives.errors import WorkspaceNotReady
from toolrunner.processes.registry import Registry
from toolrunner.spawner.client.spawner import GRACE_S, KILL_S, KILLS_AGAIN_S, NO_SIGNAL, Spawner

#: So many chats are remembered.
CHATS_MAX: Final = 4096
LOOK_S: Final = 0.01
LOOK_S_MAX: Final = 0.2


@dataclass
class ChatWriters:
    """Ends writable processes of chats, and remembers which chats have none."""

    spawner: Spawner
    registry: Registry
    workspaces: Workspaces
    clock: Clock
    _numbers: "count[int]" = field(default_factory=lambda: count(1))
    #: The numbers of the last start of each chat, and of that before its processes were ended.
    _started: dict[tuple[WorkspaceId, ChatId], int] = field(default_factory=dict)
    _ended: dict[tuple[WorkspaceId, ChatId], int] = field(default_factory=dict)

    def enter(self, scope: Scope) -> None:
        """Record that a writable process of a chat is in the registry, and about to start."""
        if len(self._started) >= CHATS_MAX:
            self._started.clear()
            self._ended.clear()
        self._started[scope.workspace_id, scope.chat_id] = next(self._numbers)

    async def pass_through(self, scope: Scope) -> None:
        """Return when no writable process of a chat is left.

        Raises:
            WorkspaceNotReady: One could not be ended.
        """
        name = scope.workspace_id, scope.chat_id
        while scope.chat_id and self._ended.get(name) != (last := self._started.get(name, 0)):
            await self._end(scope)
            if len(self._ended) >= CHATS_MAX:
                self._ended.clear()
            self._ended[name] = last

    async def _end(self, scope: Scope) -> None:
        # One that is about to start would be missed.
        for live in self.registry.all_live():
            place = live.record.workspace_id, live.record.chat_id
            if place == (scope.workspace_id, scope.chat_id):
                await live.settled.wait()
        kills = ((SIGKILL, limit_s) for limit_s in (KILL_S, *KILLS_AGAIN_S))
        for number, limit_s in ((SIGTERM, GRACE_S), *kills):
            if await self._are_gone(scope, number, limit_s):
                return
        raise WorkspaceNotReady(scope.workspace_id, "stopping", "wait")

    async def _are_gone(self, scope: Scope, number: int, limit_s: float) -> bool:
        directory = self.workspaces.at(scope.workspace_id).directory
        give_up_at, pause_s = self.clock.monotonic() + limit_s, LOOK_S
        while await self.spawner.signal_marked(
            scope.workspace_id, directory, scope.chat_id, number
        ):
            if self.clock.monotonic() >= give_up_at:
                return False
            await self.clock.sleep(pause_s)
            number, pause_s = NO_SIGNAL, min(2 * pause_s, LOOK_S_MAX)
        return True
