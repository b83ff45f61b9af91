"""Checks that a stream delivers every event once and in order; pure.

A cursor has six numbers after a mark of its chat: `mark-base.target.row.history.attempt.seq`.
Clients must not parse it, but this check does: the numbers give the position of an event, so that
repeated and late events are detected at once. A row above `TOLD` also encodes the status known to
the reader, which is not part of the position. A cursor of any other form is only compared with
earlier ones.

The previewed text of an answer must be a prefix of its message. It need not be complete: text that
was not streamed yet when the message is committed is in the message.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from parley.testing.scaletest.events import Document, LivePart, Message, Status

TOLD = 10**17
NUMBERS = 6
FINDINGS_MAX = 5
RUNNING, WAITING, ASSISTANT, USER = "running", "waiting", "assistant", "user"
#: Statuses of a chat that has an owner.
OWNED = (RUNNING, "interrupting")

Place = tuple[int, ...]


@dataclass(slots=True)
class Counts:
    """The counts of one stream.

    Attributes:
        events: Events with or without a cursor.
        duplicates: Events, messages and parts that were repeated.
        missing: Parts and messages that were never received.
        reordered: Events that were too late or too early.
        wrong_texts: Messages that differ from their previews.
        unfinished_previews: Answers whose last text came only with the message; allowed.
        retries: Failed attempts at the model that were reported.
        resets: How often all state had to be discarded: history_reset and resync.
        truncations: How often the server reported that it left parts out.
        lines: How often the chat had to queue for a worker.
    """

    events: int = 0
    duplicates: int = 0
    missing: int = 0
    reordered: int = 0
    wrong_texts: int = 0
    unfinished_previews: int = 0
    retries: int = 0
    resets: int = 0
    truncations: int = 0
    lines: int = 0

    @property
    def faults(self) -> int:
        """The number of counts that are faults."""
        return self.duplicates + self.missing + self.reordered + self.wrong_texts


@dataclass(slots=True)
class Checker:
    """Checks one stream across all its connections.

    Attributes:
        counts: The counts.
        findings: The first faults, as text.
        status: The last received status.
        is_settled: Whether all events of one version were received, and none of the next one. Only
            then do messages and status belong together: an unchanged status is not sent again,
            though there may have been another in between.
        messages: The received messages.
    """

    counts: Counts = field(default_factory=Counts)
    findings: list[str] = field(default_factory=list)
    status: str = ""
    is_settled: bool = False
    messages: dict[int, Message] = field(default_factory=dict)
    _shown: tuple[str, int] = ("", 0)
    _place: Place = ()
    _cursors: set[str] = field(default_factory=set)
    _episode: tuple[int, int] = (0, 0)
    _seq: int = 0
    _preview: str = ""
    _is_whole: bool = True
    _has_newer_message: bool = False

    @property
    def users(self) -> int:
        """The number of received messages of the user."""
        return sum(message.role == USER for message in self.messages.values())

    @property
    def is_answered(self) -> bool:
        """Whether the last message is the model's."""
        return bool(self.messages) and self.messages[max(self.messages)].role == ASSISTANT

    def take(self, kind: str, cursor: str | None, document: Document) -> None:
        """Process the next event."""
        self.counts.events += 1
        if kind == "history_reset":
            self.begin_anew()
        if cursor:
            self._move(kind, cursor)
        match kind:
            case "message_part" if document.message_part is not None:
                self._take_part(document.message_part)
            case "message" if document.message is not None:
                self._take_message(document.message)
            case "status" if document.status is not None:
                self._take_status(document.status)
            case "preview_reset":
                self._forget_preview()
            case "preview_truncated":
                self._skip_hole(cursor or "")
            case "retry":
                self.counts.retries += 1

    def begin_anew(self) -> None:
        """Discard all state, as the server requires."""
        self.counts.resets += 1
        self.messages.clear()
        self._cursors.clear()
        self.status, self.is_settled, self._shown, self._place = "", False, ("", 0), ()
        self._forget_preview()

    def compare(self, stored: Iterable[Message]) -> None:
        """Find messages that are in the chat and were not received, and the other way round."""
        there = {message.id: message for message in stored}
        for number in sorted(there.keys() - self.messages.keys()):
            self._find("missing", f"message {number} is in the chat and was never told")
        for number in sorted(self.messages.keys() - there.keys()):
            self._find("wrong_texts", f"message {number} was told and is not in the chat")
        for number in sorted(there.keys() & self.messages.keys()):
            streamed, kept = self.messages[number], there[number]
            if (streamed.role, streamed.revision) != (kept.role, kept.revision) or (
                streamed.parts() != kept.parts()
            ):
                self._find("wrong_texts", f"message {number} is not what was told of it")

    def _move(self, kind: str, cursor: str) -> None:
        place = _place_of(cursor)
        self.is_settled = place[0] == place[1] if place else kind == "status"
        if not place:
            if cursor in self._cursors:
                self._find("duplicates", f"{kind} with cursor {cursor} again")
            self._cursors.add(cursor)
            return
        if self._place and place <= self._place:
            name = "duplicates" if place == self._place else "reordered"
            self._find(name, f"{kind} at {cursor} behind {'.'.join(map(str, self._place))}")
        self._place = max(self._place, place)

    def _take_part(self, part: LivePart) -> None:
        if self.status != RUNNING:
            self._find("reordered", f"part {part.seq} of a chat that is {self.status or 'new'}")
        if self._seq and part.episode != self._episode:
            self._find("reordered", f"part of episode {part.episode} in {self._episode}")
            self._forget_preview()
        self._episode = part.episode
        if part.seq <= self._seq:
            self._find("duplicates", f"part {part.seq} of episode {part.episode} again")
            return
        if part.seq > self._seq + 1:
            gap = part.seq - self._seq - 1
            self._find("missing", f"{gap} parts before part {part.seq} of {part.episode}", gap)
            self._is_whole = False
        self._seq = part.seq
        if part.role == ASSISTANT and part.part.type == "text":
            self._preview += part.part.text

    def _take_message(self, message: Message) -> None:
        known = self.messages.get(message.id)
        last = max(self.messages, default=0)
        if known is not None and known.revision >= message.revision:
            self._find("duplicates", f"message {message.id} revision {message.revision} again")
        elif known is None and message.id < last:
            self._find("reordered", f"message {message.id} behind message {last}")
        self.messages[message.id] = message
        self._has_newer_message = True
        if message.role == ASSISTANT:
            if self._preview and self._is_whole:
                self._compare_preview(message)
            self._preview = ""

    def _compare_preview(self, message: Message) -> None:
        text = message.text()
        if not text.startswith(self._preview):
            self._find("wrong_texts", f"message {message.id} does not begin as its pieces did")
        elif text != self._preview:
            self.counts.unfinished_previews += 1

    def _take_status(self, status: Status) -> None:
        shown = (status.status, status.place_in_line)
        # A turn that was over at once has no status but that of its end, which repeats the last.
        is_end = self._has_newer_message and status.status not in OWNED
        if shown == self._shown and not is_end:
            self._find("duplicates", f"status {status.status} again")
        if status.status == WAITING and self._preview:
            self._find("reordered", "waiting before the message of what was told")
        self.counts.lines += status.place_in_line > 0
        self._shown, self.status = shown, status.status
        self._has_newer_message = False

    def _skip_hole(self, cursor: str) -> None:
        """Continue after parts that the server reported as left out."""
        self.counts.truncations += 1
        self._is_whole = False
        place = _place_of(cursor)
        if place:
            history, attempt, self._seq = place[-3:]
            self._episode = (history, attempt)

    def _forget_preview(self) -> None:
        self._episode, self._seq, self._preview, self._is_whole = (0, 0), 0, "", True

    def _find(self, name: str, words: str, times: int = 1) -> None:
        setattr(self.counts, name, getattr(self.counts, name) + times)
        if len(self.findings) < FINDINGS_MAX:
            self.findings.append(f"{name}: {words}")


def _place_of(cursor: str) -> Place:
    """Return the position of a cursor; empty for one of another form."""
    numbers = cursor.rpartition("-")[2].split(".")
    if len(numbers) != NUMBERS or not all(map(str.isdecimal, numbers)):
        return ()
    base, target, row, *live = map(int, numbers)
    # Between two steps the row only encodes the known status.
    return base, target, 0 if base == target else row % TOLD, *live
