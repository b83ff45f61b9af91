"""The newest messages of one chat, encoded: kept by a hub so that readers need no database."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from chatd.chats.domain.chat import Message
from chatd.primitives.domain.ids import ChatId
from chatd.streams.rpc.wire import message_body

ROWS_MAX = 256
ROWS_BYTES_MAX = 1 << 20


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
