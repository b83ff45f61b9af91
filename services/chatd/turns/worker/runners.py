"""The runners of this process: one task, one mailbox and one slot for each running chat.

A chat that is claimed again gets a new runner, which waits until its predecessor has ended: one
chat never has two runners at once. If a runner crashes, or returns while its chat still runs here,
the turn is ended with an error; if even that fails, reconciliation finds the chat without a runner.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from contextvars import Context, copy_context
from dataclasses import dataclass, replace
from functools import partial

from chatd.chats.domain.chat import ChatState, Claimed, Slot, Status
from chatd.chats.domain.commands import Command, FailTurn, FinishInterruption, Reconcile, Release
from chatd.chats.domain.errors import FenceLost, InvalidState, TransitionNotAllowed
from chatd.chats.domain.transitions import fence_of
from chatd.content.domain.messages import ErrorKind, TurnError
from chatd.primitives.domain.errors import ChatError, ChatNotFound
from chatd.primitives.domain.ids import ChatId, OwnerId, WorkerId
from chatd.turns.engine.mailbox import Mailbox
from chatd.turns.worker.ports import Apply, Runner, WorkerLimits, WorkerPorts
from chatd.workers.domain import Claims, UserLoad
from chatd.workers.engine.lease_keeper import LeaseKeeper
from parley.postgres import DatabaseUnavailable
from parley.tasks import Starter

logger = logging.getLogger(__name__)

CRASHED = TurnError("The chat request failed.", ErrorKind.GENERIC, is_retryable=True)
ENDING_ATTEMPTS_MAX = 3
OWNED = (Status.RUNNING, Status.INTERRUPTING)


@dataclass(frozen=True, slots=True, eq=False)
class Running:
    """A chat with its runner."""

    claimed: Claimed
    mailbox: Mailbox
    slot: Slot
    task: asyncio.Task[None]

    @property
    def owner_epoch(self) -> int:
        """The epoch of its claim."""
        return self.claimed.state.owner_epoch


class Slots:
    """Counts slots reserved for a claim and slots used by a runner."""

    def __init__(self, slots_max: int) -> None:
        self._slots_max = slots_max
        self._reserved: dict[Slot, OwnerId | None] = {}
        self._used: set[Slot] = set()
        self._is_unreserved = asyncio.Event()
        self._is_unreserved.set()

    @property
    def free(self) -> int:
        """How many more can be reserved."""
        return self._slots_max - len(self._reserved) - len(self._used)

    def reserve(self, owner_id: OwnerId | None = None) -> Slot | None:
        """Return a slot for a claim that is about to be made, or None when all are in use."""
        if self.free <= 0:
            return None
        slot = Slot()
        self._reserved[slot] = owner_id
        self._is_unreserved.clear()
        return slot

    def reserved_of(self, owner_id: OwnerId) -> int:
        """Return how many are reserved for claims of a user."""
        return sum(reserved_for == owner_id for reserved_for in self._reserved.values())

    def is_reserved(self, slot: Slot) -> bool:
        """Return whether a slot is still reserved for its claim."""
        return slot in self._reserved

    def use(self, slot: Slot) -> None:
        """Turn a reservation into a slot used by a runner."""
        del self._reserved[slot]
        self._used.add(slot)
        self._note_reservations()

    def release(self, slot: Slot) -> None:
        """Release a slot, reserved or used; idempotent."""
        self._reserved.pop(slot, None)
        self._used.discard(slot)
        self._note_reservations()

    async def until_unreserved(self) -> None:
        """Wait until every claim under way has its runner or has released its slot."""
        await self._is_unreserved.wait()

    def _note_reservations(self) -> None:
        if not self._reserved:
            self._is_unreserved.set()


class Runners:
    """Starts, updates and stops the runners of one worker."""

    def __init__(
        self,
        worker_id: WorkerId,
        *,
        run_chat: Runner,
        apply: Apply,
        claims: Claims,
        slots: Slots,
        release: Callable[[Slot, OwnerId], None],
    ) -> None:
        self._worker_id = worker_id
        self._run_chat = run_chat
        self._apply = apply
        self._claims = claims
        self._slots = slots
        self._release = release
        self._running: dict[ChatId, Running] = {}
        self._counts: Counter[OwnerId] = Counter()  # Running chats by user.
        self._tasks: set[asyncio.Task[None]] = set()
        self._undelivered: dict[
            ChatId, ChatState
        ] = {}  # Of chats whose runner has not started yet.
        self._group: Starter | None = None
        self._context = Context()
        self._is_idle = asyncio.Event()
        self._is_idle.set()

    def open(self, group: Starter) -> None:
        """Allow runners to start, as tasks of `group`."""
        self._group = group
        self._context = copy_context()

    def close(self) -> None:
        """Start no more runners and cancel the running ones."""
        self._group = None
        for task in self._tasks:
            task.cancel()

    async def until_idle(self) -> None:
        """Wait until no runner is left."""
        await self._is_idle.wait()

    @property
    def running(self) -> tuple[Running, ...]:
        """All running chats."""
        return tuple(self._running.values())

    def get(self, chat_id: ChatId) -> Running | None:
        """Return the runner of a chat."""
        return self._running.get(chat_id)

    def count_of(self, owner_id: OwnerId) -> int:
        """Return how many chats of a user run here."""
        return self._counts[owner_id]

    def start(self, claimed: Claimed, slot: Slot, context: Context | None = None) -> None:
        """Run a chat in `slot`; release the slot if another process owns it or it runs already."""
        state = claimed.state
        before = self._running.get(state.chat_id)
        is_known = before is not None and before.owner_epoch >= state.owner_epoch
        if before is not None:
            before.mailbox.put(state)
        if is_known or state.worker_id != self._worker_id or self._group is None:
            self._release(slot, claimed.owner.id)
            return
        mailbox = Mailbox(state)
        if (undelivered := self._undelivered.pop(state.chat_id, None)) is not None:
            mailbox.put(undelivered)
        if before is not None:
            before.task.cancel()
        work = self._run(claimed, mailbox, None if before is None else before.task)
        task = self._group.create_task(work, context=context or self._context.copy())
        running = Running(claimed, mailbox, slot, task)
        self._slots.use(slot)
        self._forget(before)
        self._running[state.chat_id] = running
        self._counts[claimed.owner.id] += 1
        self._tasks.add(task)
        self._is_idle.clear()
        # Not in the task itself: a task cancelled before its start never runs its code.
        task.add_done_callback(partial(self._ended, running))

    def deliver(self, state: ChatState) -> None:
        """Deliver a state to its runner; keep it for a runner that has not started yet."""
        running = self._running.get(state.chat_id)
        if running is not None:
            running.mailbox.put(state)
        elif state.worker_id == self._worker_id:
            kept = self._undelivered.setdefault(state.chat_id, state)
            if kept.snapshot_version < state.snapshot_version:
                self._undelivered[state.chat_id] = state

    def hand_over(self, state: ChatState) -> None:
        """Stop the runner of a chat and release the chat to other workers."""
        running = self._running.get(state.chat_id)
        if running is None or running.owner_epoch != state.owner_epoch or self._group is None:
            return
        running.task.cancel()
        self._group.create_task(self._release_after(running), context=self._context.copy())

    async def _release_after(self, running: Running) -> None:
        await asyncio.wait((running.task,))
        for state in await self._claims.states((running.claimed.state.chat_id,)):
            if self._is_ours(state, running.claimed) and state.status in OWNED:
                with suppress(ChatError):  # It changed; reconciliation finds it without a runner.
                    await self._apply(state.chat_id, Release(fence_of(state)))

    def forget_undelivered(self, named: frozenset[ChatId]) -> None:
        """Drop states kept for chats that do not name this worker any more."""
        self._undelivered = {
            chat_id: self._undelivered[chat_id] for chat_id in self._undelivered.keys() & named
        }

    def _ended(self, running: Running, task: asyncio.Task[None]) -> None:
        if self._running.get(running.claimed.state.chat_id) is running:
            self._forget(running)
        self._tasks.discard(task)
        self._release(running.slot, running.claimed.owner.id)
        if not self._tasks:
            self._is_idle.set()

    def _forget(self, running: Running | None) -> None:
        if running is None:
            return
        del self._running[running.claimed.state.chat_id]
        owner_id = running.claimed.owner.id
        self._counts[owner_id] -= 1
        if not self._counts[owner_id]:
            del self._counts[owner_id]

    async def _run(
        self, claimed: Claimed, mailbox: Mailbox, predecessor: asyncio.Task[None] | None
    ) -> None:
        """Run a chat; after a crash also the next queued message, if this worker still owns it."""
        if predecessor is not None:
            await asyncio.wait((predecessor,))
        chat = {"chat_id": claimed.state.chat_id}
        going_on: Claimed | None = claimed
        while going_on is not None:
            try:
                await self._run_chat(going_on, mailbox)
                if not self._is_ours(mailbox.newest, claimed):
                    return
                logger.error("a runner left its chat running", extra=chat)
            except (FenceLost, ChatNotFound, DatabaseUnavailable) as reason:
                logger.info("a runner stopped: %s", reason, extra=chat)
                return
            except Exception:
                logger.exception("a runner crashed", extra=chat)
            try:
                going_on = await self._end(claimed)
            except Exception:
                logger.exception("a crashed turn could not be ended yet", extra=chat)
                return
            if going_on is not None:
                mailbox.put(going_on.state)

    async def _end(self, claimed: Claimed) -> Claimed | None:
        """End the turn if this worker owns it; return the chat if its queue continues here."""
        chat_id = claimed.state.chat_id
        for _ in range(ENDING_ATTEMPTS_MAX):
            present = next(iter(await self._claims.states((chat_id,))), None)
            if present is None or not self._is_ours(present, claimed):
                return None
            try:
                after = await self._apply(chat_id, _ending_of(present))
            except InvalidState:
                after = await self._apply(chat_id, Reconcile())
            except (FenceLost, TransitionNotAllowed):
                continue  # The chat changed in between; read again.
            return replace(claimed, state=after) if self._is_ours(after, claimed) else None
        return None

    def _is_ours(self, state: ChatState, claimed: Claimed) -> bool:
        is_same_claim = state.owner_epoch == claimed.state.owner_epoch
        return is_same_claim and state.worker_id == self._worker_id


def _ending_of(state: ChatState) -> Command:
    if state.status is Status.INTERRUPTING:
        return FinishInterruption(fence_of(state), ())
    return FailTurn(fence_of(state), CRASHED)


class SlotPool:
    """Reserves slots for claims, while the lease holds and the worker does not drain.

    Attributes:
        worker_id: The worker that claims the chats.
        slots: All slots.
        runners: The runners in them.
        sweep_requested: Set to request a sweep.
        is_draining: Whether no more chats are claimed.
        running_per_user_max: How many chats of one user run at once, in all processes together.
    """

    def __init__(
        self, worker_id: WorkerId, ports: WorkerPorts, limits: WorkerLimits, keeper: LeaseKeeper
    ) -> None:
        self.worker_id = worker_id
        self.slots = Slots(limits.slots_max)
        self.runners = Runners(
            worker_id,
            run_chat=ports.run_chat,
            apply=ports.apply,
            claims=ports.claims,
            slots=self.slots,
            release=self._release_of,
        )
        self.sweep_requested = asyncio.Event()
        self.is_draining = False
        self._keeper = keeper
        self.running_per_user_max = limits.running_per_user_max
        self._load = UserLoad()
        self._was_refused = False

    def may_claim(self) -> bool:
        """Return whether a chat may be claimed now."""
        return not self.is_draining and self._keeper.may_act()

    def reserve(self, owner_id: OwnerId | None = None) -> Slot | None:
        """Return a slot for a claim, or None: then the chat waits for a sweep.

        With `owner_id` the user's limit applies too. A process claims its share of the limit by
        itself; the rest is left to sweeps, which count the chats of all processes.
        """
        if not self.may_claim():
            return None
        slot = None
        if owner_id is None or self._has_room(owner_id):
            slot = self.slots.reserve(owner_id)
        self._was_refused |= slot is None
        return slot

    def note_load(self, load: UserLoad) -> None:
        """Keep which users have reached the limit, as the last sweep found them."""
        self._load = load

    def _has_room(self, owner_id: OwnerId) -> bool:
        here = self.runners.count_of(owner_id) + self.slots.reserved_of(owner_id)
        share = self.running_per_user_max // self._load.replicas
        return owner_id not in self._load.at_limit and here < share

    def _release_of(self, slot: Slot, owner_id: OwnerId) -> None:
        """Release the slot of a user; if they were at their limit, another chat may wait for it."""
        self._was_refused |= owner_id in self._load.at_limit
        self.release(slot)

    def reserve_many(self, wanted: int) -> list[Slot]:
        """Return as many of `wanted` slots as are free, for a sweep over all users."""
        count = min(wanted, self.slots.free)
        slots = [slot for _ in range(count) if (slot := self.slots.reserve()) is not None]
        if slots:
            self._was_refused = False
        return slots

    def release(self, slot: Slot) -> None:
        """Release a slot; request a sweep if a reservation was refused or all slots were used."""
        is_awaited = self._was_refused or self.slots.free == 0
        self.slots.release(slot)
        if is_awaited:
            self.sweep_requested.set()

    def release_if_reserved(self, slot: Slot) -> None:
        """Release a slot that no runner uses; unlike a freed slot this requests no sweep."""
        if self.slots.is_reserved(slot):
            self.slots.release(slot)
