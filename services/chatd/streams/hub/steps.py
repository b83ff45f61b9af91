"""The events that follow the messages of a step, in their fixed order; pure."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum

from msgspec.structs import replace

from chatd.chats.domain.chat import ChatState, QueuedMessage, Status
from chatd.chats.domain.transitions import OWNED
from chatd.content.domain.parts import ToolCall
from chatd.streams.rpc import wire
from chatd.streams.rpc.position import TAIL, Position, is_status_sent, status_sent_of


class Tail(IntEnum):
    """The events after the messages, in their order."""

    QUEUE = 1
    STATUS = 2
    ERROR = 3
    ACTION = 4
    RETRY = 5
    PREVIEW_RESET = 6


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A chat at one version, without its messages."""

    state: ChatState
    place_in_line: int = 0
    queue: tuple[QueuedMessage, ...] = ()
    asking: tuple[ToolCall, ...] = ()

    @property
    def version(self) -> int:
        """The snapshot version."""
        return self.state.snapshot_version

    @property
    def episode(self) -> tuple[int, int]:
        """The open episode."""
        return self.state.history_version, self.state.generation_attempt


def settled(seen: Position, now: Snapshot) -> Position:
    """Return a reader's position after all events of a version except live parts."""
    history, attempt = now.episode
    seq = seen.seq if seen.episode == now.episode else 0
    status_sent = status_sent_of(now.state)
    return Position(now.version, now.version, 0, history, attempt, seq, status_sent)


def at_row(seen: Position, now: Snapshot, row_id: int) -> Position:
    """Return a reader's position after one message of the step to a version."""
    base = seen.target if seen.is_between_steps else seen.base
    return replace(seen, base=base, target=now.version, row=row_id)


def step_events(
    seen: Position, now: Snapshot, rows: Sequence[tuple[int, bytes]]
) -> list[tuple[Position, bytes]]:
    """Return all events of a step, each with the reader's position after it.

    Args:
        seen: The reader's current position.
        now: The version to reach.
        rows: Id and body of the messages that are still to be sent, in order.
    """
    events = [(at_row(seen, now, row_id), body) for row_id, body in rows]
    for kind, is_due, body in _tail(seen, now):
        if is_due:
            events.append((_at_tail(seen, now, kind), body()))
    if events:
        # The last event ends the step, of whatever kind it is.
        events[-1] = (settled(seen, now), events[-1][1])
    return events


def _at_tail(seen: Position, now: Snapshot, kind: Tail) -> Position:
    status_sent = status_sent_of(now.state) if kind >= Tail.STATUS else seen.status_sent
    return replace(at_row(seen, now, TAIL + kind), status_sent=status_sent)


def _tail(seen: Position, now: Snapshot) -> Iterator[tuple[Tail, bool, Callable[[], bytes]]]:
    state = now.state

    def known(kind: Tail) -> int:
        """Return the version up to which the reader has events of this kind."""
        return seen.target if seen.is_between_steps or seen.tail >= kind else seen.base

    def is_explained(kind: Tail, status: Status) -> bool:
        """Return whether the reader has this status and the event that explains it."""
        if seen.tail >= kind:
            return is_status_sent(seen.status_sent, status) and state.history_version <= seen.target
        is_cut_between = seen.tail >= Tail.STATUS
        is_same = seen.history == state.history_version
        return is_status_sent(seen.status_sent, status) and is_same and not is_cut_between

    is_queue_due = state.queue_version > known(Tail.QUEUE)
    if seen.is_new and not seen.tail:
        is_queue_due = bool(now.queue)
    yield Tail.QUEUE, is_queue_due, lambda: wire.queue_body(now.queue)

    # A client that waits for the end of a turn waits for a status. The turn may have ended before
    # this reader was sent its start, so a status of a chat at rest is sent again once the history
    # has advanced.
    is_turn_past = state.status not in OWNED and state.history_version > known(Tail.STATUS)
    is_status_due = seen.status_sent != status_sent_of(state) or is_turn_past
    yield Tail.STATUS, is_status_due, lambda: wire.status_body(state, now.place_in_line)

    error = state.last_error
    if error is not None:
        is_due = not is_explained(Tail.ERROR, Status.ERROR)
        yield Tail.ERROR, is_due, lambda: wire.error_body(error)

    if state.status is Status.REQUIRES_ACTION:
        is_due = not is_explained(Tail.ACTION, Status.REQUIRES_ACTION)
        yield Tail.ACTION, is_due, lambda: wire.action_body(now.asking, state.deadline_at)

    retry = state.retry
    if retry is not None:
        is_retry_due = state.retry_version > known(Tail.RETRY)
        yield Tail.RETRY, is_retry_due, lambda: wire.retry_body(retry)

    is_reset = not seen.is_new and (
        seen.history != state.history_version
        or (seen.attempt != state.generation_attempt and state.generation_attempt != 0)
    )
    yield Tail.PREVIEW_RESET, is_reset, lambda: wire.PREVIEW_RESET
