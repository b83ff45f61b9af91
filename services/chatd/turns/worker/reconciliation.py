"""Reconciles the runners of this process with the chats that name it, after each renewal."""

import asyncio
import logging
from contextlib import suppress

from chatd.chats.domain.commands import Release
from chatd.chats.domain.transitions import fence_of
from chatd.primitives.domain.errors import ChatError
from chatd.primitives.domain.ids import ChatId
from chatd.turns.worker.ports import WorkerPorts
from chatd.turns.worker.runners import Running, SlotPool
from chatd.workers.domain import NamedChat

logger = logging.getLogger(__name__)

ABSENT = float("inf")  # The version of a chat that a renewal did not name: newer than any known.


class Reconciler:
    """Compares the chats of a renewal with the runners, and repairs differences."""

    def __init__(self, slot_pool: SlotPool, ports: WorkerPorts) -> None:
        self._slot_pool = slot_pool
        self._ports = ports
        self._named: tuple[NamedChat, ...] = ()  # The chats of the last renewal.
        self._is_renewed = asyncio.Event()
        self._unattended: frozenset[tuple[ChatId, int]] = frozenset()
        self._stray: frozenset[Running] = frozenset()

    def note(self, named: tuple[NamedChat, ...]) -> None:
        """Record the chats of a renewal."""
        self._named = named
        self._is_renewed.set()

    async def run(self) -> None:
        """Reconcile after every renewal until cancelled."""
        while True:
            await self._is_renewed.wait()
            self._is_renewed.clear()
            try:
                await self._reconcile(self._named)
            except Exception:
                logger.exception("what runs could not be compared with what is owned")

    async def _reconcile(self, named: tuple[NamedChat, ...]) -> None:
        """Update runners, and attend to chats that name this worker and have no runner."""
        self._slot_pool.runners.forget_undelivered(frozenset(chat.chat_id for chat in named))
        unattended = frozenset(
            (chat.chat_id, chat.owner_epoch) for chat in named if not self._is_attended(chat)
        )
        await self._refresh(named)
        for chat_id, owner_epoch in sorted(unattended & self._unattended):
            await self._attend(chat_id, owner_epoch)
        self._unattended = unattended

    def _is_attended(self, chat: NamedChat) -> bool:
        running = self._slot_pool.runners.get(chat.chat_id)
        return running is not None and running.owner_epoch >= chat.owner_epoch

    async def _refresh(self, named: tuple[NamedChat, ...]) -> None:
        """Deliver missed states to runners, and cancel those whose chat has another owner."""
        versions = {chat.chat_id: chat.snapshot_version for chat in named}
        behind = {
            each.claimed.state.chat_id: each
            for each in self._slot_pool.runners.running
            if versions.get(each.claimed.state.chat_id, ABSENT)
            > each.mailbox.newest.snapshot_version
        }
        if not behind:
            self._stray = frozenset()
            return
        found = {each.chat_id: each for each in await self._ports.claims.states(tuple(behind))}
        stray = set()
        for chat_id, running in behind.items():
            state = found.get(chat_id)
            if state is None or state.owner_epoch > running.owner_epoch:
                running.task.cancel()
                continue
            running.mailbox.put(state)
            if state.worker_id != self._slot_pool.worker_id:
                stray.add(running)  # It may be about to end by itself; next time it is cancelled.
        for running in stray & self._stray:
            running.task.cancel()
        self._stray = frozenset(stray)

    async def _attend(self, chat_id: ChatId, owner_epoch: int) -> None:
        """Reclaim a chat that two renewals found without a runner, or release it."""
        if not self._slot_pool.may_claim():
            return
        logger.warning("a chat of this worker had no runner", extra={"chat_id": chat_id})
        slot = self._slot_pool.reserve()
        if slot is None:
            for state in await self._ports.claims.states((chat_id,)):
                if (state.worker_id, state.owner_epoch) == (self._slot_pool.worker_id, owner_epoch):
                    with suppress(ChatError):
                        await self._ports.apply(chat_id, Release(fence_of(state)))
            return
        try:
            claimed = await self._ports.claims.reclaim(
                self._slot_pool.worker_id, chat_id, owner_epoch
            )
            if claimed is not None:
                self._ports.state_changed(claimed.state)
                self._slot_pool.runners.start(claimed, slot)
        finally:
            self._slot_pool.release_if_reserved(slot)
