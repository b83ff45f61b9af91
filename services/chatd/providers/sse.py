"""An incremental parser of server-sent events, for bytes split at any position."""

from collections.abc import Iterable, Iterator

import msgspec

from chatd.providers.wire import Failure, ProviderFailed

EVENT_BYTES_MAX = 16 * 1024 * 1024
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
DONE = b"[DONE]"

_NOTHING: tuple[bytes, ...] = ()


class ServerSentEvents:
    """Yields the data of each event; the other fields of an event are not used by models.

    An event without data is a keep-alive and yields nothing.
    """

    def __init__(self, event_bytes_max: int = EVENT_BYTES_MAX) -> None:
        self._event_bytes_max = event_bytes_max
        self._held: list[bytes] = []  # Pieces of the incomplete line.
        self._held_bytes = 0
        self._data: list[bytes] = []  # Lines of the incomplete event.
        self._data_bytes = 0
        self._is_error = False
        self._ended_with_return = False
        self._is_first_line = True

    def feed(self, chunk: bytes) -> Iterable[bytes]:
        """Return the data of the events that end within the next bytes of the body.

        They are parsed lazily: iterate over all before the next call.

        Raises:
            ProviderFailed: An event is too large, or reports an error in plain text.
        """
        if (plain := self._plain(chunk)) is not None:
            return plain
        if self._ended_with_return and chunk:
            # The line ended already: this is the second half of its CRLF.
            self._ended_with_return = False
            chunk = chunk.removeprefix(b"\n")
        has_return = b"\r" in chunk
        if not has_return and b"\n" not in chunk:
            self._hold(chunk)
            return _NOTHING
        if self._held:
            chunk = b"".join((*self._held, chunk))
        lines = chunk.splitlines() if has_return else chunk.split(b"\n")
        if has_return:
            self._ended_with_return = chunk.endswith(b"\r")
            if chunk[-1:] in (b"\r", b"\n"):
                lines.append(b"")
        self._held, self._held_bytes = [], 0
        self._hold(lines.pop())
        if self._is_first_line:
            self._is_first_line = False
            lines[0] = lines[0].removeprefix(BYTE_ORDER_MARK)
        return self._events(lines)

    def end(self) -> Iterable[bytes]:
        """Return the data of a last event that lacks its blank line, if it is complete otherwise.

        Raises:
            ProviderFailed: It reports an error in plain text.
        """
        lines = [b"".join(self._held).removeprefix(BYTE_ORDER_MARK), b""]
        self._held, self._held_bytes = [], 0
        return [data for data in self._events(lines) if data == DONE or _is_json(data)]

    def _plain(self, chunk: bytes) -> list[bytes] | None:
        """Return the data of complete events of the usual form; None if there is anything else.

        Nearly every chunk is like that, and this is cheaper than the general parser.
        """
        if (
            not chunk.endswith(b"\n\n")
            or self._held
            or self._data
            or self._is_error
            or self._ended_with_return
            or b"\r" in chunk
        ):
            return None
        found: list[bytes] = []
        body = chunk.removeprefix(BYTE_ORDER_MARK) if self._is_first_line else chunk
        for block in body[:-2].split(b"\n\n"):
            data = block
            if block.startswith(b"event: "):
                name, _, data = block.partition(b"\n")
                if name == b"event: error":
                    return None
            if not data.startswith(b"data: ") or len(data) == 6 or b"\n" in data:
                return None
            found.append(data[6:])
        self._is_first_line = False
        return found

    def _events(self, lines: Iterable[bytes]) -> Iterator[bytes]:
        for line in lines:
            if line.startswith(b"data: "):
                self._add(line[6:])
            elif not line:
                if self._data:
                    data = self._taken()
                    if data:
                        yield data
                self._is_error = False
            elif line.startswith(b"data:"):
                self._add(line[5:])
            elif line.startswith(b"event:"):
                self._is_error = line[6:].strip() == b"error"

    def _add(self, data: bytes) -> None:
        self._data.append(data)
        self._data_bytes += len(data)
        if self._data_bytes > self._event_bytes_max:
            raise _too_large(self._event_bytes_max)

    def _taken(self) -> bytes:
        """Return and clear the data of the event that just ended."""
        lines = self._data
        data = lines[0] if len(lines) == 1 else b"\n".join(lines)
        self._data, self._data_bytes = [], 0
        if self._is_error and data and not _is_json(data):
            raise ProviderFailed(Failure(data.decode(errors="replace")))
        return data

    def _hold(self, piece: bytes) -> None:
        if not piece:
            return
        self._held.append(piece)
        self._held_bytes += len(piece)
        if self._held_bytes > self._event_bytes_max:
            raise _too_large(self._event_bytes_max)


def _is_json(data: bytes) -> bool:
    try:
        msgspec.json.decode(data, type=msgspec.Raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


def _too_large(event_bytes_max: int) -> ProviderFailed:
    text = f"an event has more than {event_bytes_max} bytes and cannot be read"
    return ProviderFailed(Failure(text, is_garbled=True))
