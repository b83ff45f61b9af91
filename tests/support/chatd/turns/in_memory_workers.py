"""Leases and claims without a database: the rules of the statements, over chats in memory."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from chatd.chats.domain.action_answers import next_to_expire
from chatd.chats.domain.chat import ChatState, Claimed, DoneRevert, Retry, Status
from chatd.chats.domain.revert_decisions import failed_edit
from chatd.chats.domain.writes import RecordRevert
from chatd.primitives.domain.ids import ChatId, Owner, OwnerId, WorkerId
from chatd.workers.domain import (
    CRASH_LOOP,
    PARKING_TAKEOVERS,
    SUSPECT_TAKEOVERS,
    DueAction,
    NamedChat,
    Replica,
    SweepLimits,
    UserLoad,
    WorkerEnded,
    is_ownerless,
)
from parley.clock import Clock
from parley.postgres import DatabaseUnavailable
from support.chatd.chats.in_memory_chats import InMemoryChats, StoredChat

CLAIM_MARGIN = timedelta(seconds=3)
OWNED = (Status.RUNNING, Status.INTERRUPTING)


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """What is stored of a worker."""

    address: str
    lease_until: datetime
    is_draining: bool = False
    has_ended: bool = False
    is_quarantine: bool = False


class InMemoryWorkers:
    """Every statement about workers; `is_down` makes all of them fail as in an outage."""

    def __init__(self, chats: InMemoryChats, clock: Clock) -> None:
        self.is_down = False
        self.rows: dict[WorkerId, WorkerRow] = {}
        self._chats = chats
        self._clock = clock
        self._owners: dict[ChatId, Owner] = {}
        self._changes: dict[ChatId, tuple[int, datetime]] = {}

    def owner_of(self, chat_id: ChatId) -> Owner:
        """Return the owner of a chat."""
        return self._owners[chat_id]

    def add(self, state: ChatState, owner: Owner, changed_at: datetime) -> None:
        """Store a chat that last changed at that time."""
        self._chats.chats[state.chat_id] = StoredChat(state)
        self._owners[state.chat_id] = owner
        self._changes[state.chat_id] = (state.snapshot_version, changed_at)

    async def register(
        self, worker_id: WorkerId, address: str, lease_s: float, *, is_quarantine: bool = False
    ) -> None:
        """Make the row of a worker that starts."""
        self._require_connection()
        if self._has_ended(worker_id):
            raise WorkerEnded(worker_id)
        until = self._from_now(lease_s)
        self.rows[worker_id] = WorkerRow(address, until, is_quarantine=is_quarantine)

    async def renew(self, worker_id: WorkerId, lease_s: float) -> tuple[NamedChat, ...] | None:
        """Extend the lease; return the chats that name the worker, None if it is gone or ended."""
        self._require_connection()
        if worker_id not in self.rows or self._has_ended(worker_id):
            return None
        self.rows[worker_id] = replace(self.rows[worker_id], lease_until=self._from_now(lease_s))
        return tuple(
            NamedChat(state.chat_id, state.owner_epoch, state.snapshot_version, state.status)
            for state in self._owned(worker_id)
        )

    async def begin_drain(self, worker_id: WorkerId) -> None:
        """Let the worker claim nothing any more."""
        self._require_connection()
        if worker_id in self.rows:
            self.rows[worker_id] = replace(self.rows[worker_id], is_draining=True)

    async def end(self, worker_id: WorkerId) -> tuple[ChatState, ...]:
        """End a worker now and for ever, and release or park its chats."""
        self._require_connection()
        row = self.rows.get(worker_id)
        if row is None or row.has_ended:
            return ()
        ended_at = min(row.lease_until, self._clock.now())
        self.rows[worker_id] = replace(row, lease_until=ended_at, has_ended=True)
        return tuple(self._store(orphaned(state)) for state in self._owned(worker_id))

    async def replicas(self) -> tuple[Replica, ...]:
        """Return the processes that live."""
        return tuple(
            Replica(worker_id, row.address, row.is_draining, row.is_quarantine)
            for worker_id, row in sorted(self.rows.items())
            if self._is_live(worker_id)
        )

    async def sweep(self, worker_id: WorkerId, limits: SweepLimits) -> tuple[Claimed, ...]:
        """Claim what has no live owner: interrupting chats first, then the oldest change."""
        self._require_connection()
        taken: list[Claimed] = []
        free = self._free() if self.may_claim(worker_id) else []
        if limits.is_quarantine:
            free.sort(key=lambda each: (each.status, each.takeovers + (each.worker_id is not None)))
        for state in free:
            is_orphan = state.worker_id is not None
            is_ended = state.worker_id is not None and self._has_ended(state.worker_id)
            if is_orphan and not (is_ended or limits.may_take_orphans):
                continue
            takeovers = state.takeovers + is_orphan
            is_suspect = takeovers >= SUSPECT_TAKEOVERS
            owner = self._owners[state.chat_id]
            is_over_limit = self._count_running(owner.id) >= limits.running_per_user_max
            if (is_orphan and takeovers >= PARKING_TAKEOVERS) or is_suspect != limits.is_quarantine:
                continue
            if state.status is Status.RUNNING and is_over_limit:
                continue
            taken.append(self._claim(replace(state, takeovers=takeovers), worker_id))
            if len(taken) == limits.chats_max:
                break
        return tuple(taken)

    async def user_load(self, running_per_user_max: int) -> UserLoad:
        """Return the users who run as many chats as they may."""
        self._require_connection()
        owners = {owner.id for owner in self._owners.values()}
        return UserLoad(
            max(1, len(await self.replicas())),
            frozenset(each for each in owners if self._count_running(each) >= running_per_user_max),
        )

    async def park(self, worker_id: WorkerId, chats_max: int) -> tuple[ChatState, ...]:
        """End the turns that killed two owners in quarantine."""
        self._require_connection()
        doomed = [
            state
            for state in self._free()
            if state.worker_id is not None and state.takeovers + 1 >= PARKING_TAKEOVERS
        ]
        if not self.may_claim(worker_id):
            return ()
        return tuple(self._store(parked(state)) for state in doomed[:chats_max])

    async def needs_quarantine(self) -> bool:
        """Return whether a suspect waits for an owner and no live worker takes suspects."""
        self._require_connection()
        is_served = any(
            row.is_quarantine and not row.is_draining and self._is_live(worker_id)
            for worker_id, row in self.rows.items()
        )
        return not is_served and any(
            state.takeovers + (state.worker_id is not None) >= SUSPECT_TAKEOVERS
            for state in self._free()
        )

    async def reclaim(
        self, worker_id: WorkerId, chat_id: ChatId, owner_epoch: int
    ) -> Claimed | None:
        """Claim anew what the worker owns already; None if that has changed."""
        self._require_connection()
        state = self._chats.chats[chat_id].state
        is_same = (state.worker_id, state.owner_epoch) == (worker_id, owner_epoch)
        return self._claim(state, worker_id) if is_same and self.may_claim(worker_id) else None

    async def due_actions(self, chats_max: int) -> tuple[DueAction, ...]:
        """Return chats whose client is late, the longest overdue first."""
        self._require_connection()
        now = self._clock.now()
        due = [
            (state.deadline_at, state.chat_id, next_to_expire(state))
            for state in self._states()
            if state.deadline_at is not None and state.deadline_at <= now
        ]
        return tuple(
            DueAction(chat_id, self._owners[chat_id], action_id)
            for _, chat_id, action_id in sorted(due)[:chats_max]
        )

    async def owned(self, worker_id: WorkerId) -> tuple[ChatState, ...]:
        """Return the chats that name the worker."""
        self._require_connection()
        return tuple(self._owned(worker_id))

    async def states(self, chat_ids: tuple[ChatId, ...]) -> tuple[ChatState, ...]:
        """Return the states of those that exist, read now."""
        self._require_connection()
        return tuple(state for state in self._states() if state.chat_id in chat_ids)

    async def place_in_line(self, chat_id: ChatId) -> int | None:
        """Return the place of a chat that waits for an owner, the first is 1; else None."""
        waiting = [state.chat_id for state in self._free() if is_ownerless(state)]
        return waiting.index(chat_id) + 1 if chat_id in waiting else None

    def may_claim(self, worker_id: WorkerId) -> bool:
        """Return whether a worker may claim anything: its lease lasts and it does not drain."""
        row = self.rows.get(worker_id)
        if row is None or row.is_draining:
            return False
        return row.lease_until > self._clock.now() + CLAIM_MARGIN

    def _claim(self, state: ChatState, worker_id: WorkerId) -> Claimed:
        claimed = replace(
            state,
            worker_id=worker_id,
            owner_epoch=state.owner_epoch + 1,
            snapshot_version=state.snapshot_version + 1,
            generation_attempt=state.generation_attempt + (state.status is Status.RUNNING),
            retry=_kept(state.retry),
        )
        return Claimed(self._store(claimed), self._owners[state.chat_id])

    def _store(self, state: ChatState) -> ChatState:
        chat = self._chats.chats[state.chat_id]
        if state.status is Status.ERROR and chat.state.revert is not None:
            for write in failed_edit(chat.state.revert):
                assert isinstance(write, RecordRevert)
                done = DoneRevert(write.revert, state.snapshot_version, write.report)
                chat.reverts[write.revert.revert_id] = done
        chat.state = state
        return state

    def _states(self) -> list[ChatState]:
        return [chat.state for _, chat in sorted(self._chats.chats.items())]

    def _owned(self, worker_id: WorkerId) -> list[ChatState]:
        return [state for state in self._states() if state.worker_id == worker_id]

    def _free(self) -> list[ChatState]:
        """Return the chats without a live owner, in the order of a sweep."""
        free = [
            state
            for state in self._states()
            if state.status in OWNED and not self._is_live(state.worker_id)
        ]
        return sorted(free, key=lambda state: (state.status, self._changed_at(state)))

    def _changed_at(self, state: ChatState) -> datetime:
        """Return when the chat changed, as far as anybody looked."""
        version, changed_at = self._changes.get(state.chat_id, (0, self._clock.now()))
        if version != state.snapshot_version:
            changed_at = self._clock.now()
        self._changes[state.chat_id] = (state.snapshot_version, changed_at)
        return changed_at

    def _count_running(self, owner_id: OwnerId) -> int:
        return sum(
            state.status is Status.RUNNING
            and self._is_live(state.worker_id)
            and self._owners[state.chat_id].id == owner_id
            for state in self._states()
        )

    def _is_live(self, worker_id: WorkerId | None) -> bool:
        row = None if worker_id is None else self.rows.get(worker_id)
        return row is not None and row.lease_until > self._clock.now()

    def _has_ended(self, worker_id: WorkerId) -> bool:
        row = self.rows.get(worker_id)
        return row is not None and row.has_ended

    def _from_now(self, lease_s: float) -> datetime:
        return self._clock.now() + timedelta(seconds=lease_s)

    def _require_connection(self) -> None:
        if self.is_down:
            raise DatabaseUnavailable("the fake is down")


def orphaned(state: ChatState) -> ChatState:
    """Return the state of a chat whose owner has ended."""
    if state.takeovers + 1 >= PARKING_TAKEOVERS:
        return parked(state)
    return replace(
        state,
        worker_id=None,
        owner_epoch=state.owner_epoch + 1,
        snapshot_version=state.snapshot_version + 1,
        takeovers=state.takeovers + 1,
    )


def parked(state: ChatState) -> ChatState:
    """Return the state of a chat whose owners kept dying."""
    return replace(
        state,
        status=Status.ERROR,
        last_error=CRASH_LOOP,
        worker_id=None,
        owner_epoch=state.owner_epoch + 1,
        snapshot_version=state.snapshot_version + 1,
        generation_attempt=0,
        takeovers=0,
        retry=None,
        is_compaction_requested=False,
        revert=None,
    )


def _kept(retry: Retry | None) -> Retry | None:
    """Return the retry that the next owner of a chat finds: one of a fallback model."""
    return None if retry is None or retry.fallback is None else retry
