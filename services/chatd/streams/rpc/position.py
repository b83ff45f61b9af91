"""A reader's position in a chat; as text it is the cursor.

While the step from version `base` to `target` is delivered, `row` is the progress: the last message
that was sent or, above `TAIL`, the last of the events that follow the messages. Between steps
`base` and `target` are equal. A new reader starts after message `row`. The last live part was `seq`
of the episode (`history`, `attempt`).

The cursor has these six numbers, after a prefix of the chat: the same numbers mean something else
in another chat. The last status that the reader was sent, so that it is not sent twice, is stored
in the high digits of `row`: between steps there is no other row.
"""

import re

import msgspec
from msgspec.structs import replace

from chatd.chats.domain.chat import ChatState, Status
from chatd.chats.store.reading import PageVersions
from chatd.primitives.domain.ids import ChatId
from chatd.workers.domain import is_ownerless

CURSOR = re.compile(r"[0-9]{1,19}(\.[0-9]{1,19}){5}")
# The largest bigint of PostgreSQL.
NUMBER_MAX = 2**63 - 1
MARK_CHARACTERS = 6
# Above every message id; the events after the messages are numbered from here.
TAIL = 10**15
# How many kinds of events precede the status.
AFTER_QUEUE = 1
STATUS_SENT_SCALE = 10**17
IN_LINE = 8

_CODES = {status: code for code, status in enumerate(Status, 1)}


class Position(msgspec.Struct, frozen=True):
    """How far one reader has come."""

    base: int = 0
    target: int = 0
    row: int = 0
    history: int = 0
    attempt: int = 0
    seq: int = 0
    status_sent: int = 0  # As `status_sent_of` returns it; 0 for none.

    @classmethod
    def parse(cls, cursor: str) -> "Position | None":
        """Return the position of a cursor; None if it is malformed."""
        if CURSOR.fullmatch(cursor) is None:
            return None
        numbers = tuple(map(int, cursor.split(".")))
        if max(numbers) > NUMBER_MAX or numbers[0] > numbers[1]:
            return None
        base, target, row, history, attempt, seq = numbers
        status_sent, row = (row, 0) if base == target else divmod(row, STATUS_SENT_SCALE)
        return cls(base, target, row, history, attempt, seq, status_sent)

    def __str__(self) -> str:
        return f"{self.before_seq}{self.seq}"

    @property
    def before_seq(self) -> str:
        """The cursor without its last number, which changes with each live part."""
        status_sent = (
            self.status_sent
            if self.is_between_steps
            else self.status_sent * STATUS_SENT_SCALE + self.row
        )
        return f"{self.base}.{self.target}.{status_sent}.{self.history}.{self.attempt}."

    def voided(self, target: int, first_id: int) -> "Position":
        """Return the position of a reader whose messages are void and follow from an id on."""
        # The reader is not new, though it may not have received a whole version yet.
        history = self.history or 1
        return replace(self, base=0, target=target, row=first_id - 1, history=history)

    @property
    def is_new(self) -> bool:
        """Whether the reader started without a cursor and has not received a whole version yet."""
        return self.base == 0 and self.history == 0

    @property
    def is_between_steps(self) -> bool:
        """Whether the last step was delivered completely."""
        return self.base == self.target

    @property
    def tail(self) -> int:
        """How many kinds of events after the messages were sent in the current step."""
        return self.row - TAIL if not self.is_between_steps and self.row >= TAIL else 0

    @property
    def is_behind_page(self) -> bool:
        """Whether the reader goes on after a page, which has the state of the version `target`."""
        return self.base == 0 and self.tail == AFTER_QUEUE and not self.status_sent

    @property
    def rows_behind(self) -> tuple[int, int]:
        """Which live messages are still to be sent: after this id, changed after this version."""
        is_done = self.is_between_steps and self.target > 0
        return (0, self.target) if is_done or self.row >= TAIL else (self.row, self.base)

    @property
    def episode(self) -> tuple[int, int]:
        """The episode whose parts were sent last."""
        return self.history, self.attempt


def mark_of(chat_id: ChatId) -> str:
    """Return the cursor prefix of a chat: the end of its id, which is random."""
    return f"{chat_id[-MARK_CHARACTERS:]}-"


def position_in(chat_id: ChatId, cursor: str) -> Position | None:
    """Return the position of a cursor; None if it is malformed or of another chat."""
    mark = mark_of(chat_id)
    return Position.parse(cursor.removeprefix(mark)) if cursor.startswith(mark) else None


def status_sent_of(state: ChatState) -> int:
    """Return the status that is sent to a reader, as a number."""
    return _CODES[state.status] + (IN_LINE if is_ownerless(state) else 0)


def is_status_sent(status_sent: int, status: Status) -> bool:
    """Return whether a reader was sent this status."""
    return status_sent % IN_LINE == _CODES[status]


def cursor_after(chat_id: ChatId, page: PageVersions) -> str:
    """Return where a reader goes on that has read a page of the history and the queue.

    It stands after the queue in the step to the version of the page: later messages follow, then
    the status with what explains it, and all live parts of the open episode.
    """
    row = TAIL + AFTER_QUEUE
    at = Position(0, page.snapshot, row, page.history, page.generation_attempt)
    return f"{mark_of(chat_id)}{at}"
