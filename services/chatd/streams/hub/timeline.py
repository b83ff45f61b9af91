"""The state that a hub keeps of its chat, and the events of a step in their fixed order; pure.

A hub keeps the version, the newest messages and the parts of the open episode.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum

from msgspec.structs import replace

from chatd.chats.domain.chat import ChatState, Message, QueuedMessage, Status
from chatd.chats.domain.transitions import OWNED
from chatd.chats.domain.views import EndedAction, OpenAction
from chatd.primitives.domain.ids import ChatId
from chatd.streams.rpc import wire
from chatd.streams.rpc.position import TAIL, Position, is_status_sent, mark_of, status_sent_of
from chatd.streams.rpc.wire import message_body
from chatd.streams.store.chat_reads import FollowedChat
from chatd.workers.domain import is_ownerless

ROWS_MAX = 256
ROWS_BYTES_MAX = 1 << 20

PARTS_BYTES_MAX = 1 << 20
EARLY_PARTS_MAX = 1024


@dataclass(frozen=True, slots=True)
class Row:
    """A live message at its revision."""

    id: int
    revision: int
    body: bytes


def row_of(chat_id: ChatId, message: Message) -> Row:
    """Return an encoded message."""
    return Row(message.id, message.revision, message_body(chat_id, message))


class Rows:
    """Live messages in order.

    All messages that changed after `floor` are kept; older ones may be missing.
    """

    def __init__(self, floor: int = 0) -> None:
        self.floor = floor
        self._rows: dict[int, Row] = {}
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(tuple(self._rows.values()))

    def add(self, rows: Iterable[Row]) -> None:
        """Append messages; the oldest are evicted beyond the limits."""
        for row in rows:
            self._rows[row.id] = row
            self._bytes += len(row.body)
        while len(self._rows) > ROWS_MAX or (self._bytes > ROWS_BYTES_MAX and len(self._rows) > 1):
            oldest = self._rows.pop(next(iter(self._rows)))
            self._bytes -= len(oldest.body)
            self.floor = max(self.floor, oldest.revision)

    def behind(self, row_id: int, after: int) -> Iterator[Row]:
        """Yield messages with a larger id that changed after a version, at least `floor`."""
        assert after >= self.floor
        return (row for row in self._rows.values() if row.id > row_id and row.revision > after)


class EpisodeLog:
    """Parts with consecutive numbers; of a very long episode only the newest are kept."""

    def __init__(self, key: tuple[int, int]) -> None:
        self.key = key
        self.last_seq = 0
        self._parts: deque[bytes] = deque()
        self._bytes = 0

    @property
    def first_seq(self) -> int:
        """The number of the oldest kept part; `last_seq + 1` if there is none."""
        return self.last_seq - len(self._parts) + 1

    def add(self, seq: int, body: bytes) -> bool:
        """Keep a part; return whether its number is the next one.

        A part after a gap drops all parts before it: readers are sent a truncation event.
        """
        assert seq > self.last_seq
        is_next = seq == self.last_seq + 1
        if not is_next:
            self._parts.clear()
            self._bytes = 0
        self.last_seq = seq
        self._parts.append(body)
        self._bytes += len(body)
        while self._bytes > PARTS_BYTES_MAX and len(self._parts) > 1:
            self._bytes -= len(self._parts.popleft())
        return is_next

    def behind(self, seq: int) -> Iterator[tuple[int, bytes]]:
        """Yield number and body of the parts after a number."""
        first = self.first_seq
        for place, body in enumerate(self._parts):
            if first + place > seq:
                yield first + place, body


class EarlyParts:
    """Parts of the newest episode whose state was not read yet; they wait for that state."""

    def __init__(self) -> None:
        self._episode = (0, 0)
        self._parts: list[tuple[int, bytes]] = []

    def add(self, episode: tuple[int, int], seq: int, body: bytes) -> bool:
        """Keep a part; return whether it is the first part received of its episode."""
        is_first = self._episode != episode
        if is_first:
            self._episode, self._parts = episode, []
        if len(self._parts) < EARLY_PARTS_MAX:
            self._parts.append((seq, body))
        return is_first

    def pop(self, episode: tuple[int, int]) -> list[tuple[int, bytes]]:
        """Return the parts of an episode that is open now; those of older ones are dropped."""
        if self._episode > episode:
            return []
        parts = self._parts if self._episode == episode else []
        self._episode, self._parts = (0, 0), []
        return parts


class Tail(IntEnum):
    """The events after the messages, in their order."""

    QUEUE = 1
    STATUS = 2
    ERROR = 3
    ACTION = 4
    RETRY = 5
    PREVIEW_RESET = 6
    ACTION_ENDED = 7


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A chat at one version, without its messages."""

    state: ChatState
    place_in_line: int = 0
    queue: tuple[QueuedMessage, ...] = ()
    asking: tuple[OpenAction, ...] = ()
    ended: tuple[EndedAction, ...] = ()  # How the newest actions ended.

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
        yield Tail.ACTION, is_due, lambda: wire.action_body(state, now.asking)

    retry = state.retry
    if retry is not None:
        is_retry_due = state.retry_version > known(Tail.RETRY)
        yield Tail.RETRY, is_retry_due, lambda: wire.retry_body(retry)

    is_reset = not seen.is_new and (
        seen.history != state.history_version
        or (seen.attempt != state.generation_attempt and state.generation_attempt != 0)
    )
    yield Tail.PREVIEW_RESET, is_reset, lambda: wire.PREVIEW_RESET

    known_version = now.version if seen.is_new else known(Tail.ACTION_ENDED)
    if seen.is_behind_page:
        known_version = seen.target
    ended = tuple(each for each in now.ended if each.version > known_version)
    yield Tail.ACTION_ENDED, bool(ended), lambda: wire.action_ended_body(ended)


class Timeline:
    """One chat up to a version, and the encoding of its events.

    Attributes:
        head: The version; None before the first read.
        rows: The newest messages.
        log: The parts of the open episode.
        deleted_version: The version at which a message was last deleted, as far as that was read.
        is_deep: Whether as many messages are kept as the limits allow.
    """

    def __init__(self, chat_id: ChatId) -> None:
        self.chat_id = chat_id
        self.head: Snapshot | None = None
        self.rows = Rows()
        self.log = EpisodeLog((0, 0))
        self.deleted_version = 0
        self.is_deep = False
        self._mark = mark_of(chat_id)
        self._position = Position()
        self._parts_prefix = ""

    @property
    def live_position(self) -> Position:
        """The position of all live readers; parts are too frequent to move it for each."""
        return replace(self._position, seq=self.log.last_seq)

    def is_void_since(self, version: int) -> bool:
        """Return whether messages of a version are void, or too many newer ones are missing."""
        return self.deleted_version > version or self.rows.floor > version

    def event(self, at: Position, body: bytes) -> bytes:
        """Return an event with the cursor of the reader's position after it."""
        return wire.with_cursor(f"{self._mark}{at}", body)

    def part_event(self, seq: int, body: bytes) -> bytes:
        """Return a live part of the open episode."""
        return wire.with_cursor(f"{self._parts_prefix}{seq}", body)

    def events_to(self, now: Snapshot, rows: Sequence[Row]) -> list[bytes]:
        """Return the events of a step for live readers; `rows` are the messages that changed."""
        events = step_events(self.live_position, now, [(row.id, row.body) for row in rows])
        return [self.event(at, body) for at, body in events]

    def settle(self, now: Snapshot) -> bool:
        """Set the current version, whose messages are known; return whether it opens an episode."""
        self._position = settled(self.live_position, now)
        self.head = now
        self._parts_prefix = f"{self._mark}{self._position.before_seq}"
        is_other = self.log.key != now.episode
        if is_other:
            self.log = EpisodeLog(now.episode)
        return is_other

    def learn(self, read: FollowedChat, after: int) -> list[Row]:
        """Return the messages of a read after a version, and keep them if they are the newest."""
        version = read.state.snapshot_version
        rows = [
            row_of(self.chat_id, each)
            for each in read.messages
            # One statement returns no newer messages; if a read did, they come with their own
            # state.
            if not each.is_deleted and each.revision <= version
        ]
        self.deleted_version = max(self.deleted_version, read.deleted_version or 0)
        if self.head is None or after == 0:
            self._keep(read, rows, after)
        return rows

    def deepen(self, read: FollowedChat) -> None:
        """Keep the messages of a read from the beginning, though its version is known already."""
        if not self.is_deep and self.deleted_version <= read.state.snapshot_version:
            self._keep(read, [row_of(self.chat_id, each) for each in read.messages], 0)

    def add_part(self, seq: int, body: bytes) -> list[bytes]:
        """Keep a part of the open episode; return its events."""
        is_next = self.log.add(seq, body)
        event = self.part_event(seq, body)
        return [event] if is_next else [self.part_event(seq - 1, wire.PREVIEW_TRUNCATED), event]

    def _keep(self, read: FollowedChat, rows: Sequence[Row], after: int) -> None:
        """Replace the kept messages by those of a read, except newer ones."""
        newer = [row for row in self.rows if row.revision > read.state.snapshot_version]
        floor = after if read.is_complete or not rows else rows[0].revision
        self.rows = Rows(floor)
        self.rows.add(rows)
        self.rows.add(newer)
        self.is_deep = after == 0


def has_gap(read: FollowedChat) -> bool:
    """Return whether messages between a hub's version and a read are missing or deleted."""
    return not read.is_complete or any(message.is_deleted for message in read.messages)


def snapshot_of(read: FollowedChat) -> Snapshot:
    """Return a read without its messages."""
    return Snapshot(read.state, read.place_in_line, read.queue, read.asking, read.ended)


def is_all_known(before: ChatState, after: ChatState, appended: tuple[Message, ...] | None) -> bool:
    """Return whether a commit of this process can be followed without a read.

    Queues, queue positions, the actions that it waits for and their ends are read; and a chat that
    goes to `waiting` without a new message may be gone.
    """
    is_next = after.snapshot_version == before.snapshot_version + 1
    is_queue_same = after.queue_version == before.queue_version
    is_history_known = appended is not None or (
        after.history_version == before.history_version and after.status is not Status.WAITING
    )
    return (
        is_next
        and is_queue_same
        and is_history_known
        and _asked(before) <= _asked(after)
        and after.status is not Status.REQUIRES_ACTION
        and not is_ownerless(after)
    )


def _asked(state: ChatState) -> frozenset[str | None]:
    """Return the actions that are open."""
    return frozenset(call.action_id for call in state.pending if call.is_asked)
