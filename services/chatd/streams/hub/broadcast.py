"""Sends each event of a chat to all its live readers; the event is encoded once."""

from collections.abc import Callable, Sequence

from chatd.chats.domain.chat import ChatState, Message
from chatd.content.domain.messages import Visibility
from chatd.primitives.domain.ids import ChatId
from chatd.streams.engine.live import LivePart
from chatd.streams.hub.episode import EarlyParts
from chatd.streams.hub.readers import Readers
from chatd.streams.hub.reads import is_all_known, snapshot_of
from chatd.streams.hub.rows import Row, row_of
from chatd.streams.hub.steps import Snapshot
from chatd.streams.hub.timeline import Timeline
from chatd.streams.rpc import wire
from chatd.streams.rpc.subscription import Subscription
from chatd.streams.store.following import FollowedChat

# Returns the live parts of an episode that this process runs.
LiveParts = Callable[[ChatId, int, int], tuple[LivePart, ...]]


class Broadcast:
    """Advances a timeline and sends the events to its readers; nothing here blocks or reads."""

    def __init__(
        self,
        timeline: Timeline,
        readers: Readers,
        *,
        live_parts: LiveParts,
        retarget: Callable[[ChatState], None],
    ) -> None:
        self._timeline = timeline
        self._readers = readers
        self._live_parts = live_parts
        self._retarget = retarget
        self._early = EarlyParts()

    def continued(self, state: ChatState, appended: tuple[Message, ...] | None) -> bool:
        """Apply a commit of this process; return False if the chat has to be read instead."""
        head = self._timeline.head
        if head is None or not is_all_known(head.state, state, appended):
            return False
        rows = [
            row_of(self._timeline.chat_id, message)
            for message in appended or ()
            if message.visibility is not Visibility.MODEL
        ]
        self._advance(Snapshot(state, queue=head.queue), rows)
        return True

    def take(self, read: FollowedChat, after: int) -> list[Subscription]:
        """Apply a read; its messages are never newer than its state.

        Returns:
            Readers that have to catch up by themselves: their messages are void, or too many are
                missing.
        """
        timeline, head, now = self._timeline, self._timeline.head, snapshot_of(read)
        if head is not None and now.version <= head.version:
            return []
        behind: list[Subscription] = []
        rows = timeline.learn(read, after)
        if head is None:
            self._settle(now)
        elif timeline.is_void_since(head.version):
            behind = self._readers.fall_behind(timeline.live_position)
            self._settle(now)
        else:
            self._advance(now, [row for row in rows if row.revision > head.version])
        return behind

    def shown(self, part: LivePart) -> None:
        """Forward a part that this process published."""
        head = self._timeline.head
        if head is None or (part.history_version, part.generation_attempt) != head.episode:
            return  # The read that opens the episode finds its parts in `live_parts`.
        if part.seq > self._timeline.log.last_seq:
            self._add_part(part.seq, wire.part_body(part))

    def relayed(self, episode: tuple[int, int], seq: int, body: bytes) -> bool:
        """Forward a part that the owner published; one of a future episode waits for its state.

        Returns:
            Whether it is the first part received of its episode.
        """
        head = self._timeline.head
        if head is None or episode > head.episode:
            return self._early.add(episode, seq, body)
        if episode == head.episode and seq > self._timeline.log.last_seq:
            self._add_part(seq, body)
        return False

    def _add_part(self, seq: int, body: bytes) -> None:
        self._readers.push(self._timeline.add_part(seq, body), seq)

    def _advance(self, now: Snapshot, rows: Sequence[Row]) -> None:
        """Advance to a version; `rows` are all messages that changed."""
        events = self._timeline.events_to(now, rows) if self._readers.has_live else []
        self._timeline.rows.add(rows)
        self._settle(now, events)

    def _settle(self, now: Snapshot, events: list[bytes] | None = None) -> None:
        """Set the current version, send its events, and start with the open episode's parts."""
        timeline = self._timeline
        is_other_episode = timeline.settle(now)
        if events:
            self._readers.push(events)
        if is_other_episode:
            self._readers.enter_episode()
            for part in self._live_parts(timeline.chat_id, *now.episode):
                self.shown(part)
        self._retarget(now.state)
        for seq, body in self._early.take(now.episode):
            self.relayed(now.episode, seq, body)
