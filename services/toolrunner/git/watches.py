"""Watches of repositories, shared by all subscribers of a workspace."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Protocol

from parley.clock import Clock
from parley.tasks import Starter
from toolrunner.filesystem.errors import FileRefused
from toolrunner.fileworker.git.protocol import (
    Removed,
    Repositories,
    Repository,
    Unchanged,
    WatchGit,
)
from toolrunner.fileworker.protocol import Answer, Request
from toolrunner.primitives.domain import Scope, WorkspaceId
from toolrunner.primitives.errors import FileWorkerGone, ToolrunnerError

COOLDOWN_S: Final = 1.0
QUIET_S: Final = 0.2
UNCHANGED_S: Final = 15.0
RESCAN_S: Final = 30.0
LOOK_S: Final = 30.0
#: For the walk of a large tree before the first answer.
ANSWER_S: Final = 120.0
#: Consecutive file workers that exit without an answer before the watch is given up.
TRIES_MAX: Final = 3

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Looked:
    """A repository, and when it was scanned."""

    repository: Repository
    scanned_at: datetime


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All repositories; replaces all earlier events."""

    repositories: tuple[Looked, ...]


@dataclass(frozen=True, slots=True)
class Gone:
    """A repository was removed."""

    directory: str


@dataclass(frozen=True, slots=True)
class Quiet:
    """Nothing changed for a while."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of the stream: the service stops, or the workspace cannot be watched any more."""

    is_workspace_gone: bool = False


GitEvent = Snapshot | Looked | Gone | Quiet | Ended


@dataclass
class Listener:
    """The pending events of one subscriber; of each repository only the latest."""

    changed: asyncio.Event = field(default_factory=asyncio.Event)
    waiting: dict[str, GitEvent] = field(default_factory=dict)

    def tell(self, name: str, event: GitEvent) -> None:
        """Queue an event; it replaces an earlier one of that name."""
        if isinstance(event, Snapshot):
            self.waiting.clear()
        self.waiting.pop(name, None)
        self.waiting[name] = event
        self.changed.set()

    async def next(self) -> list[GitEvent]:
        """Wait for events and return all pending ones."""
        await self.changed.wait()
        self.changed.clear()
        notices = [*self.waiting.values()]
        self.waiting.clear()
        return notices


@dataclass
class Following:
    """One watched workspace."""

    listeners: list[Listener] = field(default_factory=list)
    known: dict[str, Looked] | None = None  # None before the first answer.
    task: "asyncio.Task[None] | None" = None

    def tell(self, name: str, event: GitEvent) -> None:
        """Queue an event for all subscribers."""
        for listener in self.listeners:
            listener.tell(name, event)

    def snapshot(self) -> Snapshot:
        """Return all known repositories."""
        return Snapshot(tuple((self.known or {}).values()))


class Source(Protocol):
    """The source of watch events."""

    def stream(
        self, scope: Scope, request: Request, *, limit_s: float
    ) -> AsyncGenerator[Answer, None]:
        """Yield the answers to a request.

        Raises:
            FileRefused: It is refused.
            ToolrunnerError: The workspace is not here, or the file worker exited.
        """
        ...


class GitWatches:
    """Watches workspaces as long as they have subscribers."""

    def __init__(self, files: Source, clock: Clock, tasks: Starter) -> None:
        self._files = files
        self._clock = clock
        self._tasks = tasks
        self._followed: dict[WorkspaceId, Following] = {}
        self._is_stopping = False

    def stop(self) -> None:
        """End all streams."""
        self._is_stopping = True
        for following in self._followed.values():
            following.tell("", Ended())
            if following.task is not None:
                following.task.cancel()

    async def watch(self, scope: Scope) -> AsyncGenerator[GitEvent, None]:
        """Yield all repositories first, then changes; ends with `Ended`."""
        workspace_id = scope.workspace_id
        if self._is_stopping:
            yield Ended()
            return
        following = self._followed.setdefault(workspace_id, Following())
        listener = Listener()
        following.listeners.append(listener)
        if following.known is not None:
            listener.tell("", following.snapshot())
        if following.task is None:
            following.task = self._tasks.create_task(self._follow(scope, following))
        try:
            while True:
                for event in await listener.next():
                    yield event
                    if isinstance(event, Ended):
                        return
        finally:
            following.listeners.remove(listener)
            if not following.listeners:
                following.task.cancel()
                if self._followed.get(workspace_id) is following:
                    del self._followed[workspace_id]

    async def _follow(self, scope: Scope, following: Following) -> None:
        tries = 0
        while tries < TRIES_MAX:
            tries += 1
            try:
                async with aclosing(self._answers(scope)) as answers:
                    async for answer in answers:
                        tries = 0
                        self._take(answer, following)
            except FileWorkerGone:
                # It may have been killed, or busy; the next one begins with all repositories.
                continue
            except (FileRefused, ToolrunnerError) as error:
                logger.info("repositories are followed no longer: %s", error)
                break
            except Exception:
                # Subscribers would wait for ever.
                self._end(scope, following)
                raise
        self._end(scope, following)

    def _end(self, scope: Scope, following: Following) -> None:
        # Later subscribers start a new watch.
        if self._followed.get(scope.workspace_id) is following:
            del self._followed[scope.workspace_id]
        following.tell("", Ended(is_workspace_gone=True))

    def _answers(self, scope: Scope) -> AsyncGenerator[Answer, None]:
        request = WatchGit(
            cooldown_s=COOLDOWN_S,
            quiet_s=QUIET_S,
            unchanged_s=UNCHANGED_S,
            rescan_s=RESCAN_S,
            timeout_s=LOOK_S,
        )
        return self._files.stream(scope, request, limit_s=ANSWER_S)

    def _take(self, answer: Answer, following: Following) -> None:
        now = self._clock.now()
        match answer:
            case Repositories(repositories):
                following.known = {each.directory: Looked(each, now) for each in repositories}
                following.tell("", following.snapshot())
            case Repository(directory):
                looked = Looked(answer, now)
                following.known = {**(following.known or {}), directory: looked}
                following.tell(f"repository {directory}", looked)
            case Removed(directory):
                if following.known is not None:
                    following.known.pop(directory, None)
                following.tell(f"repository {directory}", Gone(directory))
            case Unchanged():
                following.tell("quiet", Quiet())
