"""Updates the diff status of workspaces whose files may have changed, outside of turns.

A turn calls many tools one after another, and each may change files. A check waits until a chat has
called none for a while, up to a maximum, and covers all of them. After a check without a change the
next one waits longer: most chats call tools that change no repository.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Final, Protocol

from chatd.chats.domain.diffs import DiffStatus, Repositories, RepositoriesUnknown
from chatd.primitives.domain.ids import ChatId, Owner
from parley.clock import Clock

QUIET_S: Final = 1.0
LATEST_S: Final = 10.0
COOLDOWN_S: Final = 5.0
LOOKS_MAX: Final = 4
WAITING_MAX: Final = 4096

logger = logging.getLogger(__name__)


class Statuses(Protocol):
    """The store of diff statuses."""

    async def set(self, chat_id: ChatId, status: DiffStatus | None) -> int | None:
        """Store a status; return the chat's version, None if the status is unchanged."""
        ...


@dataclass(frozen=True, slots=True)
class _ChangedChat:
    owner: Owner
    first_s: float
    last_s: float
    calm_until_s: float

    @property
    def due_s(self) -> float:
        return max(min(self.last_s + QUIET_S, self.first_s + LATEST_S), self.calm_until_s)


async def _ignore_check(chat_id: ChatId, owner: Owner) -> None:
    """Look at nothing else."""


class DiffStatuses:
    """Checks the workspaces of chats whose tools were called.

    Args:
        repositories: Reads the diff status of workspaces.
        statuses: Stores it.
        clock: The clock.
        changed: Called with each chat whose status changed, and its version.
        seen: Called with each chat whose workspace was checked, to compare other files of it.
    """

    def __init__(
        self,
        repositories: Repositories,
        statuses: Statuses,
        clock: Clock,
        *,
        changed: Callable[[ChatId, int], None],
        seen: Callable[[ChatId, Owner], Awaitable[object]] = _ignore_check,
    ) -> None:
        self._repositories = repositories
        self._statuses = statuses
        self._clock = clock
        self._changed = changed
        self._seen = seen
        self._files_changed: dict[ChatId, _ChangedChat] = {}
        self._calm_until_s: dict[ChatId, float] = {}
        self._is_needed = asyncio.Event()
        self._slots = asyncio.Semaphore(LOOKS_MAX)

    def files_changed(self, chat_id: ChatId, owner: Owner) -> None:
        """Record that a tool of a chat may have changed files; never waits."""
        now_s = self._clock.monotonic()
        known = self._files_changed.get(chat_id)
        if known is not None:
            self._files_changed[chat_id] = replace(known, last_s=now_s)
        elif len(self._files_changed) < WAITING_MAX:
            calm_until_s = self._calm_until_s.pop(chat_id, 0.0)
            self._files_changed[chat_id] = _ChangedChat(owner, now_s, now_s, calm_until_s)
            self._is_needed.set()

    async def run(self) -> None:
        """Run due checks until cancelled."""
        # After a failure no check is running, though some may have started.
        self._slots = asyncio.Semaphore(LOOKS_MAX)
        async with asyncio.TaskGroup() as looks:
            while True:
                if not self._files_changed:
                    self._is_needed.clear()
                    await self._is_needed.wait()
                first = min(files_changed.due_s for files_changed in self._files_changed.values())
                await self._clock.sleep(max(0.0, first - self._clock.monotonic()))
                now_s = self._clock.monotonic()
                for chat_id, files_changed in [*self._files_changed.items()]:
                    if files_changed.due_s <= now_s:
                        del self._files_changed[chat_id]
                        await self._slots.acquire()
                        looks.create_task(self._look(chat_id, files_changed.owner))
                self._forget_cooldowns(now_s)

    async def _look(self, chat_id: ChatId, owner: Owner) -> None:
        try:
            status = await self._repositories.status(chat_id, owner)
            version = await self._statuses.set(chat_id, status)
            if version is not None:
                self._changed(chat_id, version)
            else:
                self._start_cooldown(chat_id, self._clock.monotonic() + COOLDOWN_S)
            await self._seen(chat_id, owner)
        except RepositoriesUnknown as error:
            logger.info("how a workspace differs is not known: %s", error)
        except Exception:
            logger.exception("how a workspace differs could not be kept")
        finally:
            self._slots.release()

    def _start_cooldown(self, chat_id: ChatId, until_s: float) -> None:
        """Delay the next check of a chat without changes until this time."""
        files_changed = self._files_changed.get(chat_id)
        if files_changed is None:
            self._calm_until_s[chat_id] = until_s
        else:
            self._files_changed[chat_id] = replace(files_changed, calm_until_s=until_s)

    def _forget_cooldowns(self, now_s: float) -> None:
        for chat_id in [each for each, until_s in self._calm_until_s.items() if until_s <= now_s]:
            del self._calm_until_s[chat_id]
