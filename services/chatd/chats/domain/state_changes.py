"""The parts that decisions are made of: changes of a chat's state, and the writes with them."""

from dataclasses import dataclass, replace
from typing import TypedDict, Unpack

from chatd.chats.domain.chat import ChatState, Status
from chatd.chats.domain.writes import AnswerPending, CancelActions, CancelCalls, Write
from chatd.primitives.domain.ids import ExecutionId, MessageId, OwnerClaim, WorkerId


@dataclass(frozen=True, slots=True)
class Decision:
    """The new execution row, and the writes that must commit with it.

    Attributes:
        deadline_s: The action deadline, from now by the database's clock.
        claim: The claim of another chat that must hold when it commits; None for none.
    """

    state: ChatState
    writes: tuple[Write, ...] = ()
    deadline_s: float | None = None
    claim: OwnerClaim | None = None


class Growth(TypedDict):
    """The fields that change with new history."""

    history_version: int
    next_message_id: MessageId


class Changes(TypedDict, total=False):
    """Fields that may change with the status of a chat, so that its state is built once."""

    history_version: int
    next_message_id: MessageId
    turn_id: MessageId
    compactions: int


def running(moved: ChatState, claimed_by: WorkerId | None, **also: Unpack[Changes]) -> ChatState:
    """Return the state as running again, claimed or waiting for a sweep."""
    return replace(
        moved,
        status=Status.RUNNING,
        worker_id=claimed_by,
        # Also without a new owner: the process that ran the chat until now must stop.
        owner_epoch=moved.owner_epoch + 1,
        generation_attempt=int(claimed_by is not None),
        takeovers=0,
        retry=None,
        last_error=None,
        deadline_at=None,
        is_compaction_requested=False,
        revert=None,
        **also,
    )


def released(moved: ChatState, status: Status, **also: Unpack[Changes]) -> ChatState:
    """Return the state at rest: no owner, no episode."""
    return replace(
        moved,
        status=status,
        worker_id=None,
        generation_attempt=0,
        takeovers=0,
        retry=None,
        deadline_at=None,
        is_compaction_requested=False,
        revert=None,
        **also,
    )


def interrupted(moved: ChatState, claimed_by: WorkerId | None) -> ChatState:
    """Return a waiting chat as interrupting, for an owner that cancels its calls, or a sweep.

    New history without a message, as for every claim: see `chats.rpc.claims`.
    """
    return replace(running(grown(moved, 0), claimed_by), status=Status.INTERRUPTING)


def next_episode(moved: ChatState) -> ChatState:
    """Return the state with the episode that follows new history, under the same owner."""
    return replace(moved, generation_attempt=1, takeovers=0, retry=None)


def with_calls_closed(moved: ChatState, reason: str) -> tuple[ChatState, tuple[Write, ...]]:
    """Close every open call, with its recorded result or with `reason`."""
    if not moved.pending:
        return moved, ()
    closed = replace(grown(moved, len(moved.pending)), pending=())
    return closed, (AnswerPending(moved.pending, reason), *given_up_calls(moved))


def grown(moved: ChatState, message_count: int) -> ChatState:
    """Return the state with new history of that many messages."""
    return replace(moved, **growth(moved, message_count))


def growth(moved: ChatState, message_count: int) -> Growth:
    """Return the changes of a state by new history of that many messages."""
    return {
        "history_version": moved.snapshot_version,
        "next_message_id": MessageId(moved.next_message_id + message_count),
    }


def queue_changed(moved: ChatState, change: int) -> ChatState:
    """Return the state with a queue that is longer or shorter by `change`."""
    return replace(
        moved,
        queue_version=moved.snapshot_version,
        queue_length=moved.queue_length + change,
    )


def given_up_calls(moved: ChatState) -> tuple[Write, ...]:
    """Return the writes that cancel the open actions, and the calls that executors may have."""
    is_asked = any(call.is_asked for call in moved.pending)
    actions: tuple[Write, ...] = (CancelActions(),) if is_asked else ()
    dispatched = calls_at_executors(moved)
    return (*actions, CancelCalls(dispatched)) if dispatched else actions


def calls_at_executors(state: ChatState) -> tuple[ExecutionId, ...]:
    """Return the calls without a result that executors may have: those that run, or ask."""
    return tuple(
        call.execution_id
        for call in state.pending
        if call.execution_id is not None
        and not call.is_recorded
        and (call.is_dispatched or call.is_suspended)
    )
