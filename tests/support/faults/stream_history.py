"""What clients read of chats in lists and streams, and the check of it against what is stored.

Lists must be prefixes of one order that only grow, and show whatever was acknowledged before. A
stream, over all its connections, must give every event once: what its reader has put together at a
cursor is what was stored at that version. All of it is checked in one pass, without a search,
because cursors and messages carry the versions they belong to.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from support.faults.history import History, Known
from support.faults.report import RowReport

TOLD = 10**17  # Above it the row of a cursor says which status was told.
FIRST_EVENT = (-1, 0, 0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Stored:
    """A message as the database has it."""

    id: int
    revision: int
    role: str
    text: str
    is_deleted: bool = False


@dataclass(frozen=True, slots=True)
class Listing:
    """A list of messages that a client asked for, with what waited in the queue then."""

    session: str
    chat_id: str
    invoked_s: float
    ended_s: float
    known: Known
    messages: tuple[tuple[int, str], ...] = ()
    queued: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Seen:
    """One event that a reader got."""

    cursor: str
    kind: str
    document: Any
    at_s: float = 0.0
    connection: int = 0


@dataclass(frozen=True, slots=True)
class Opening:
    """One connection of a reader: where it asked to go on, and what became of asking."""

    cursor: str
    invoked_s: float
    known: Known


@dataclass(slots=True)
class Followed:
    """Everything that one reader of one chat got, over all its connections."""

    reader: str
    chat_id: str
    openings: list[Opening] = field(default_factory=list)
    events: list[Seen] = field(default_factory=list)

    @property
    def cursor(self) -> str:
        """Where the reader stands."""
        return self.events[-1].cursor if self.events else ""


@dataclass(frozen=True, slots=True)
class Ended:
    """A chat when all is over."""

    status: str
    messages: tuple[Stored, ...]

    def at(self, version: int) -> list[tuple[int, int, str]]:
        """Return the messages that were there at a version and still are."""
        return [
            (each.id, each.revision, each.text)
            for each in self.messages
            if each.revision <= version and not each.is_deleted
        ]

    @property
    def deleted_version(self) -> int:
        """Before this version there were messages that are gone."""
        return max((each.revision for each in self.messages if each.is_deleted), default=0)


def place_of(cursor: str) -> tuple[int, int, int, int, int, int]:
    """Return what grows from one event of a chat to the next."""
    base, target, told, history, attempt, seq = map(int, cursor.rpartition("-")[2].split("."))
    is_settled = base == target
    return target, is_settled, 0 if is_settled else told % TOLD, history, attempt, seq


def check_listings(
    history: History, chat_id: str, listings: Sequence[Listing], ended: Ended, row: RowReport
) -> None:
    """Compare what clients were listed with what they sent, and with one another."""
    whole = [each for each in listings if each.chat_id == chat_id and each.known is Known.OK]
    whole.sort(key=lambda each: each.invoked_s)
    row.counts["listings"] += len(whole)
    reached: list[tuple[float, tuple[bool, int]]] = []
    for listing in whole:
        _check_visible(history, listing, row)
        extent = _extent(listing, ended)
        if extent is None:
            row.problems.append(f"{chat_id}: listed {listing.messages!r:.300}, which never was")
            continue
        if any(ended_s < listing.invoked_s and before > extent for ended_s, before in reached):
            row.problems.append(f"{chat_id}: {listing.session} was listed less than before")
        reached.append((listing.ended_s, extent))


def _extent(listing: Listing, ended: Ended) -> tuple[bool, int] | None:
    """Return how much a client was listed, and whether of what is; None if it never was.

    What an edit of the first message took away is all before what is.
    """
    for is_present in (False, True):
        order = tuple(
            (each.id, each.text) for each in ended.messages if each.is_deleted is not is_present
        )
        if listing.messages == order[: len(listing.messages)]:
            return is_present, len(listing.messages)
    return None


def _check_visible(history: History, listing: Listing, row: RowReport) -> None:
    texts = {text for _, text in listing.messages} | set(listing.queued)
    for operation in history.of(listing.chat_id):
        is_due = operation.known is Known.OK and operation.ended_s < listing.invoked_s
        if is_due and operation.text not in texts:
            row.lost += 1
            row.problems.append(
                f"{listing.chat_id}: {operation.text!r} was acknowledged and not listed after"
            )


class Fold:
    """A reader that applies events as a client does, and finds fault with what cannot be."""

    def __init__(self, followed: Followed, ended: Ended, row: RowReport) -> None:
        self._followed = followed
        self._ended = ended
        self._row = row
        self._forget()

    def _forget(self) -> None:
        self.messages: dict[int, tuple[int, int, str]] = {}
        self.status = ""
        self.queue: list[Any] = []
        self.preview = ""
        self._place = FIRST_EVENT
        self._episode = self._over = (0, 0)
        self._seq = 0

    def check(self) -> None:
        """Apply everything, and require that it ends with what is stored."""
        self._check_openings()
        for event in self._followed.events:
            self._take(event)
        if list(self.messages.values()) != self._ended.at(2**63):
            self._gap(f"ends with {list(self.messages.values())!r:.300}")
        if (self.status, self.queue) != (self._ended.status, []):
            self._gap(f"ends {self.status} with {len(self.queue)} in its queue")
        self._row.counts["stream_events"] += len(self._followed.events)
        self._row.counts["stream_openings"] += len(self._followed.openings)

    def _check_openings(self) -> None:
        """Require that each connection began where the one before ended."""
        for number, opening in enumerate(self._followed.openings):
            before = [e for e in self._followed.events if e.connection < number]
            if opening.cursor != (before[-1].cursor if before else ""):
                self._problem(f"connection {number} was asked to begin at {opening.cursor!r}")

    def _take(self, event: Seen) -> None:
        if event.kind == "resync":
            self._row.counts["resyncs"] += 1
            self._forget()
            return
        if event.kind in ("bye", "error") and not event.cursor:
            return
        place = place_of(event.cursor)
        if place <= self._place:
            self._repeat(f"{event.kind} {event.cursor} after {self._place}")
        self._place = place
        self._apply(event)
        target, is_settled, *_ = place
        if is_settled:
            self._check_messages(target)

    def _apply(self, event: Seen) -> None:
        body = event.document.get(event.kind)
        match event.kind:
            case "message":
                self._take_message(body)
            case "message_part":
                self._take_part(body)
            case "history_reset":
                # What was shown belonged to it.
                self.messages, self.preview = {}, ""
            case "preview_reset":
                self._over = max(self._over, self._episode)
                self._episode, self._seq, self.preview = (0, 0), 0, ""
            case "preview_truncated":
                self._seq, self.preview = self._place[-1], ""
            case "status":
                self.status = body["status"]
                if self.status == "waiting":
                    self._check_messages(self._place[0])
            case "queue_update":
                self.queue = event.document["queued_messages"]
            case _:
                pass

    def _take_message(self, body: Any) -> None:
        text = text_of(body)
        row = (body["id"], body["revision"], text)
        known = self.messages.get(body["id"])
        if known is not None and known[1] >= body["revision"]:
            self._repeat(f"message {row!r:.80}")
        elif known is None and self.messages and max(self.messages) > body["id"]:
            self._problem(f"message {body['id']} came after a later one")
        self.messages[body["id"]] = row
        if body["role"] == "assistant":
            if not text.startswith(self.preview):
                self._problem(f"showed {self.preview!r:.200} and stored {text!r:.200}")
            # Its message is there; those of later steps may follow before the preview is void.
            self.preview = ""

    def _take_part(self, body: Any) -> None:
        episode = (body["history_version"], body["generation_attempt"])
        if self.status not in ("running", "interrupting"):
            self._problem(f"a part came while the chat was {self.status or 'unknown'}")
        if episode <= self._over or (self._seq and episode != self._episode):
            self._problem(f"part of {episode} after {max(self._over, self._episode)} began")
        if body["seq"] <= self._seq:
            self._repeat(f"part {body['seq']} of {episode} after {self._seq}")
        elif body["seq"] != self._seq + 1:
            self._gap(f"part {body['seq']} of {episode} after {self._seq}")
        self._episode, self._seq = episode, body["seq"]
        self.preview += body["part"].get("text", "") if body["part"]["type"] == "text" else ""

    def _check_messages(self, version: int) -> None:
        """Require that the reader has what was stored at a version."""
        has, stored = list(self.messages.values()), self._ended.at(version)
        if version < self._ended.deleted_version:
            gone = {each.id for each in self._ended.messages if each.is_deleted}
            has = [each for each in has if each[0] not in gone]
        if has != stored:
            self._gap(f"has {has!r:.200} at version {version}, stored was {stored!r:.200}")

    def _gap(self, text: str) -> None:
        self._row.counts["stream_gaps"] += 1
        self._problem(text)

    def _repeat(self, text: str) -> None:
        self._row.counts["stream_repeats"] += 1
        self._problem(text)

    def _problem(self, text: str) -> None:
        followed = self._followed
        self._row.problems.append(f"{followed.chat_id}: {followed.reader}: {text}")


def text_of(message: Any) -> str:
    """Return the words of a message."""
    return "".join(part["text"] for part in message["content"] if part["type"] == "text")
