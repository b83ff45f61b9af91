"""Incremental parsing of HTTP answers and event streams; pure."""

from dataclasses import dataclass, field

HEAD_END = b"\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Head:
    """The head of an answer; status 0 means that the connection broke without one.

    Attributes:
        retry_after_s: The value of Retry-After, if the server sent it.
    """

    status: int
    length: int | None = 0
    is_chunked: bool = False
    is_closing: bool = False
    retry_after_s: float | None = None


BROKEN = Head(0)


def read_head(data: bytes) -> Head:
    """Parse the head of an answer from its bytes up to the empty line.

    Raises:
        ValueError: It is not valid HTTP.
    """
    first, *lines = data.split(b"\r\n")
    version, status, *_ = first.split(b" ")
    if not version.startswith(b"HTTP/1."):
        raise ValueError("no HTTP/1 answer")
    fields = {
        name.strip().lower(): value.strip().lower()
        for name, _, value in (line.partition(b":") for line in lines)
    }
    is_chunked = fields.get(b"transfer-encoding", b"").endswith(b"chunked")
    length = fields.get(b"content-length")
    return Head(
        int(status),
        None if is_chunked or length is None else int(length),
        is_chunked,
        fields.get(b"connection") == b"close",
        float(after) if (after := fields.get(b"retry-after", b"")).isdigit() else None,
    )


@dataclass(slots=True)
class Dechunker:
    """Decodes a chunked body."""

    is_over: bool = False
    _rest: bytes = b""
    _left: int = field(default=0)

    def feed(self, data: bytes) -> bytes:
        """Return the part of the body in the next bytes.

        Raises:
            ValueError: The chunks are malformed.
        """
        if self._rest:
            data, self._rest = self._rest + data, b""
        whole: list[bytes] = []
        place = 0
        while place < len(data) and not self.is_over:
            if self._left:
                # The two bytes after a chunk end its line.
                taken = data[place : place + self._left]
                self._left -= len(taken)
                place += len(taken)
                over = max(0, 2 - self._left)
                whole.append(taken[: len(taken) - over] if over else taken)
                continue
            end = data.find(b"\r\n", place)
            if end < 0:
                self._rest = data[place:]
                break
            size = int(data[place:end].partition(b";")[0], 16)
            place = end + 2
            self.is_over = size == 0
            self._left = size + 2
        return b"".join(whole)


@dataclass(frozen=True, slots=True)
class Frame:
    """One server-sent event; the cursor is None if it does not change."""

    kind: str
    cursor: str | None
    data: bytes


@dataclass(slots=True)
class Framer:
    """Splits a stream into events; comments are dropped."""

    _rest: bytes = b""

    def feed(self, data: bytes) -> list[Frame]:
        """Return the events that end in the next bytes."""
        *blocks, self._rest = (self._rest + data).split(b"\n\n")
        return [frame for block in blocks if (frame := _frame(block)) is not None]


def _frame(block: bytes) -> Frame | None:
    kind, cursor, data = "message", None, None
    for line in block.split(b"\n"):
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            data = value if data is None else data + b"\n" + value
        elif name == b"event":
            kind = value.decode()
        elif name == b"id":
            cursor = value.decode()
    return None if data is None else Frame(kind, cursor, data)
