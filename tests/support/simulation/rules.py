"""What must hold between two states of a chat that follow each other, whoever wrote the second."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from chatd.chats.domain.action_answers import expires_at
from chatd.chats.domain.chat import ChatState, Status
from chatd.chats.domain.commands import (
    Command,
    ExpireAction,
    FinishRevert,
    Interrupt,
    RecordRetry,
    WorkerCommand,
)
from chatd.chats.domain.transitions import impossibility
from chatd.primitives.domain.ids import ExecutionId, WorkerId
from support.chatd.turns.in_memory_workers import CLAIM_MARGIN, WorkerRow

OWNED = (Status.RUNNING, Status.INTERRUPTING)


@dataclass(frozen=True, slots=True)
class Author:
    """Who writes by which command."""

    worker_id: WorkerId
    command: Command


def broken_between(before: ChatState, after: ChatState) -> Iterator[str]:
    """Find what no write may do."""
    problem = impossibility(after)
    if problem is not None:
        yield f"impossible: {problem}"
    if after.snapshot_version != before.snapshot_version + 1:
        yield f"version {before.snapshot_version} was not followed by its next"
    if max(after.history_version, after.queue_version, after.retry_version) > (
        after.snapshot_version
    ):
        yield "a part is newer than the whole"
    is_monotone = (
        after.history_version >= before.history_version
        and after.queue_version >= before.queue_version
        and after.owner_epoch >= before.owner_epoch
        and after.next_message_id >= before.next_message_id
    )
    if not is_monotone:
        yield "a version went back"
    is_handed_on = after.worker_id not in (None, before.worker_id)
    if is_handed_on and after.owner_epoch == before.owner_epoch:
        yield "two owners share an epoch"
    is_same_episode = (after.history_version, after.owner_epoch) == (
        before.history_version,
        before.owner_epoch,
    )
    is_attempt_lost = after.generation_attempt < before.generation_attempt
    if is_same_episode and after.status in OWNED and is_attempt_lost:
        yield "an attempt ran back"
    takeovers = takeovers_after(before, after)
    if after.takeovers != takeovers:
        yield f"{before.takeovers} takeovers became {after.takeovers}, not {takeovers}"


def takeovers_after(before: ChatState, after: ChatState) -> int:
    """Count the owners that died on the turn since it last made progress."""
    is_progress = (
        after.history_version > before.history_version
        or _recorded(after) > _recorded(before)
        or _asking(after) > _asking(before)
    )
    if is_progress or after.status not in OWNED:
        return 0
    is_of_new_epoch = after.owner_epoch > before.owner_epoch
    is_lost = is_of_new_epoch and before.worker_id not in (None, after.worker_id)
    return before.takeovers + is_lost


def broken_claim(
    before: ChatState, after: ChatState, row: WorkerRow | None, now: datetime
) -> Iterator[str]:
    """Find a claim by somebody who may not claim; `row` is that of the new owner."""
    if after.worker_id is None or after.owner_epoch == before.owner_epoch:
        return
    if row is None:
        yield "a chat was claimed by a worker without a lease"
    elif row.is_draining:
        yield "a chat was claimed by a worker that drains"
    elif row.lease_until <= now + CLAIM_MARGIN:
        yield "a chat was claimed under a lease that ends"


def broken_by(author: Author, before: ChatState, now: datetime) -> Iterator[str]:
    """Find a write by somebody who had no right to it, or at another time than was meant."""
    match author.command:
        case Interrupt(turn_id) if turn_id not in (0, before.turn_id):
            yield "an interrupt stopped another turn than it named"
        case ExpireAction(action_id) if not _is_due(before, action_id, now):
            yield "an action was given up before its time was over"
        case RecordRetry(_, retry) if retry.attempt != before.generation_attempt:
            yield "a failure was counted twice"
        case _:
            pass
    is_of_another = before.worker_id not in (None, author.worker_id)
    if isinstance(author.command, WorkerCommand) and is_of_another:
        yield f"{author.worker_id} wrote for a chat that is not its own"


def dropped_revert(before: ChatState, after: ChatState, author: Author | None) -> Iterator[str]:
    """Find a revert that was neither completed nor ended with an error."""
    is_dropped = before.revert is not None and after.revert != before.revert
    is_done = author is not None and isinstance(author.command, FinishRevert)
    if is_dropped and not is_done and after.status is not Status.ERROR:
        yield "a revert was forgotten"


def _is_due(state: ChatState, action_id: ExecutionId | None, now: datetime) -> bool:
    named = (each for each in state.pending if each.is_asked and each.action_id == action_id)
    ends_at = next((expires_at(state, each) for each in named), None)
    return ends_at is not None and ends_at <= now


def _asking(state: ChatState) -> int:
    return sum(call.is_suspended for call in state.pending)


def _recorded(state: ChatState) -> int:
    return sum(call.is_recorded for call in state.pending)
