"""Live parts: the parts of answers that this process is generating and has published.

An episode numbers its parts after merging: the first piece is published at once, later ones wait
for at most one flush interval or until they are large, and are never merged across the boundary of
a part. A busy process has longer intervals: each part has a cost on its whole path to the readers,
and fewer parts carry the same text.

Numbered parts are kept until the commit that closes the episode, so that a late reader can catch
up; of a very long answer only the newest parts are kept. Listeners are called with every part when
it is numbered, and must not block.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import msgspec

from chatd.chats.domain.chat import ChatState, Status
from chatd.content.domain.messages import Role
from chatd.content.domain.parts import Part, ServerTexts, StreamedPart, ToolResult, ToolResultDelta
from chatd.primitives.domain.ids import ChatId, Fence
from chatd.streams.engine.coalescing import is_piece, joined_pieces, size_of
from chatd.streams.engine.flush_timer import FlushTimer
from chatd.streams.engine.live_results import LiveResults

JOINED_BYTES_MAX = 2048
EPISODE_BYTES_MAX = 1 << 20


class LivePart(msgspec.Struct, frozen=True):
    """A numbered piece of an answer that is being generated."""

    history_version: int
    generation_attempt: int
    seq: int
    part_index: int
    role: Role
    part: StreamedPart

    @property
    def characters(self) -> int:
        """Return its approximate size in bytes."""
        return size_of(self.part)


Listener = Callable[[ChatId, LivePart], None]


@dataclass(slots=True)
class _Waiting:
    """A piece that has no number yet."""

    role: Role
    part_index: int
    part: Part
    size: int


@dataclass(slots=True)
class _Open:
    """The open episode of one chat."""

    history_version: int
    generation_attempt: int
    parts: deque[LivePart] = field(default_factory=deque)
    kept_bytes: int = 0
    seq: int = 0
    waiting: _Waiting | None = None
    results: LiveResults = field(default_factory=LiveResults)
    has_shown_since_flush: bool = False


class Episode:
    """Publishes the pieces of one generation attempt while it is the open episode of its chat."""

    def __init__(self, live: "LiveChats", chat_id: ChatId, opened: _Open) -> None:
        self._live = live
        self._chat_id = chat_id
        self._open = opened

    def add(self, role: Role, part_index: int, part: StreamedPart) -> None:
        """Publish one more piece of the answer, or of the result of a running call."""
        if isinstance(part, ToolResultDelta):
            self._live.add_delta(self._chat_id, self._open, part_index, part)
            return
        if isinstance(part, ServerTexts):
            self._live.keep(self._chat_id, self._open, role, part_index, part)
            return
        if isinstance(part, ToolResult):
            self._open.results.end(part.tool_call_id)
        self._live.add_piece(
            self._chat_id, self._open, _Waiting(role, part_index, part, size_of(part))
        )


class LiveChats:
    """The open episodes of all chats that run in this process.

    Without a flush timer every piece is numbered at once.

    Args:
        keepers: Listeners for the next owner of a chat, who needs what no user is shown, too.
        flush_timer: Tells when pieces that wait are numbered.
    """

    def __init__(self, *keepers: Listener, flush_timer: FlushTimer | None = None) -> None:
        self._keepers = keepers
        self._listeners = list(keepers)
        self._flush_timer = flush_timer
        self._episodes: dict[ChatId, _Open] = {}
        self._busy: dict[ChatId, _Open] = {}  # Those that published or merged since the last flush.

    def listen(self, listener: Listener) -> None:
        """Register a listener that is called with every part from now on that users are shown."""
        self._listeners.append(listener)

    def open(self, chat_id: ChatId, fence: Fence) -> Episode:
        """Open the episode of `fence`; the parts of an older one are dropped."""
        opened = _Open(fence.history_version, fence.generation_attempt)
        self._episodes[chat_id] = opened
        return Episode(self, chat_id, opened)

    def parts(
        self, chat_id: ChatId, history_version: int, generation_attempt: int
    ) -> tuple[LivePart, ...]:
        """Return the kept parts of an episode; empty if it is not the open one here."""
        opened = self._episodes.get(chat_id)
        wanted = (history_version, generation_attempt)
        if opened is None or (opened.history_version, opened.generation_attempt) != wanted:
            return ()
        return tuple(opened.parts)

    def open_parts(self, chat_id: ChatId) -> tuple[LivePart, ...]:
        """Return the kept parts of the open episode of a chat that runs here."""
        opened = self._episodes.get(chat_id)
        return () if opened is None else tuple(opened.parts)

    def state_changed(self, state: ChatState) -> None:
        """Drop the episode that a commit closed; pieces not numbered yet are part of the commit."""
        opened = self._episodes.get(state.chat_id)
        episode = (state.history_version, state.generation_attempt)
        if opened is None:
            return
        if episode != (opened.history_version, opened.generation_attempt):
            opened.waiting = None
            del self._episodes[state.chat_id]
        elif state.status is not Status.RUNNING:
            opened.results.close()

    def add_piece(self, chat_id: ChatId, opened: _Open, piece: _Waiting) -> None:
        """Number a piece of an open episode, now or at the next flush."""
        if self._episodes.get(chat_id) is not opened:
            return
        if self._flush_timer is None:
            self._number(chat_id, opened, piece.role, piece.part_index, piece.part)
            return
        waiting = opened.waiting
        if waiting is not None:
            joined = self._joined(waiting, piece)
            if joined is not None:
                waiting.part, waiting.size = joined, waiting.size + piece.size
                if waiting.size >= JOINED_BYTES_MAX or not is_piece(joined):
                    self._number_waiting(chat_id, opened)
                return
            self._number_waiting(chat_id, opened)
        self._mark_busy(self._flush_timer, chat_id, opened)
        if is_piece(piece.part) and opened.has_shown_since_flush and piece.size < JOINED_BYTES_MAX:
            opened.waiting = piece
        else:
            self._number(chat_id, opened, piece.role, piece.part_index, piece.part)

    def keep(
        self, chat_id: ChatId, opened: _Open, role: Role, part_index: int, part: ServerTexts
    ) -> None:
        """Pass on what the next owner has to know, before the first piece of an open episode.

        It takes no number, so that readers miss none.
        """
        if self._episodes.get(chat_id) is not opened:
            return
        version, attempt = opened.history_version, opened.generation_attempt
        for keeper in self._keepers:
            keeper(chat_id, LivePart(version, attempt, opened.seq, part_index, role, part))

    def add_delta(
        self, chat_id: ChatId, opened: _Open, part_index: int, delta: ToolResultDelta
    ) -> None:
        """Number a delta of a running call at one of the next flushes."""
        if self._episodes.get(chat_id) is not opened or not opened.results.add(part_index, delta):
            return
        if self._flush_timer is not None:
            self._mark_busy(self._flush_timer, chat_id, opened)
            return
        while opened.results.has_unsent:
            self._number_results(chat_id, opened)

    def _joined(self, waiting: _Waiting, piece: _Waiting) -> Part | None:
        if (waiting.role, waiting.part_index) != (piece.role, piece.part_index):
            return None
        return joined_pieces(waiting.part, piece.part)

    def _mark_busy(self, flush_timer: FlushTimer, chat_id: ChatId, opened: _Open) -> None:
        if not self._busy:
            flush_timer.at_next_flush(partial(self._flush, flush_timer))
        self._busy[chat_id] = opened

    def _flush(self, flush_timer: FlushTimer) -> None:
        """Number all waiting pieces; a chat that had one stays marked for the next flush."""
        busy, self._busy = self._busy, {}
        for chat_id, opened in busy.items():
            if self._episodes.get(chat_id) is not opened:
                continue
            opened.has_shown_since_flush = False
            if opened.waiting is not None:
                self._mark_busy(flush_timer, chat_id, opened)
                self._number_waiting(chat_id, opened)
            self._number_results(chat_id, opened)
            if opened.results.has_unsent:
                self._mark_busy(flush_timer, chat_id, opened)

    def _number_results(self, chat_id: ChatId, opened: _Open) -> None:
        for part_index, delta in opened.results.due():
            self._number(chat_id, opened, Role.TOOL, part_index, delta)

    def _number_waiting(self, chat_id: ChatId, opened: _Open) -> None:
        waiting, opened.waiting = opened.waiting, None
        if waiting is not None:
            self._number(chat_id, opened, waiting.role, waiting.part_index, waiting.part)

    def _number(
        self, chat_id: ChatId, opened: _Open, role: Role, part_index: int, shown: StreamedPart
    ) -> None:
        opened.seq += 1
        opened.has_shown_since_flush = True
        part = LivePart(
            opened.history_version,
            opened.generation_attempt,
            opened.seq,
            part_index,
            role,
            shown,
        )
        opened.parts.append(part)
        opened.kept_bytes += size_of(shown)
        while opened.kept_bytes > EPISODE_BYTES_MAX and len(opened.parts) > 1:
            opened.kept_bytes -= size_of(opened.parts.popleft().part)
        for listener in self._listeners:
            listener(chat_id, part)
