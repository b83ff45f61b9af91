"""The state that a hub keeps of its chat: version, newest messages, the open episode's parts."""

from collections.abc import Sequence

from msgspec.structs import replace

from chatd.primitives.domain.ids import ChatId
from chatd.streams.hub.episode import EpisodeLog
from chatd.streams.hub.rows import Row, Rows, row_of
from chatd.streams.hub.steps import Snapshot, settled, step_events
from chatd.streams.rpc import wire
from chatd.streams.rpc.position import Position, mark_of
from chatd.streams.store.following import FollowedChat


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
        told = self.part_event(seq, body)
        return [told] if is_next else [self.part_event(seq - 1, wire.PREVIEW_TRUNCATED), told]

    def _keep(self, read: FollowedChat, rows: Sequence[Row], after: int) -> None:
        """Replace the kept messages by those of a read, except newer ones."""
        newer = [row for row in self.rows if row.revision > read.state.snapshot_version]
        floor = after if read.is_complete or not rows else rows[0].revision
        self.rows = Rows(floor)
        self.rows.add(rows)
        self.rows.add(newer)
        self.is_deep = after == 0
