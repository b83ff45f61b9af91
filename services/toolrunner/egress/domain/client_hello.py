"""A parser of the TLS ClientHello, for the server name."""

from dataclasses import dataclass
from typing import Final

HANDSHAKE: Final = 22
CLIENT_HELLO: Final = 1
SERVER_NAME: Final = 0
ENCRYPTED_HELLO: Final = 0xFE0D
RECORD_BYTES: Final = 5
RECORD_BYTES_MAX: Final = 1 << 14

#: A fatal TLS alert, unrecognized_name.
ALERT: Final = bytes((21, 3, 3, 0, 2, 2, 112))


class HelloUnreadable(ValueError):
    """The bytes are not a ClientHello."""


@dataclass(frozen=True, slots=True)
class ClientHello:
    """The unencrypted part of a ClientHello that the proxy uses.

    Attributes:
        server_name: The host's name as it was sent; empty for none.
        is_hiding: Whether it contains an Encrypted Client Hello with another name.
    """

    server_name: str
    is_hiding: bool = False


def handshake_of(records: bytes) -> bytes | None:
    """Return the complete ClientHello message from TLS records; None while it is incomplete.

    Raises:
        HelloUnreadable: It cannot become one.
    """
    message = b""
    at = 0
    while len(records) >= at + 1:
        if records[at] != HANDSHAKE:
            raise HelloUnreadable("it is not TLS")
        if len(records) < at + RECORD_BYTES:
            return None
        length = int.from_bytes(records[at + 3 : at + 5])
        if records[at + 1] != 3 or not 0 < length <= RECORD_BYTES_MAX:
            raise HelloUnreadable("it is not TLS")
        message += records[at + RECORD_BYTES : at + RECORD_BYTES + length]
        if message and message[0] != CLIENT_HELLO:
            raise HelloUnreadable("it does not begin with a ClientHello")
        at += RECORD_BYTES + length
        if len(message) >= 4 and len(message) >= 4 + int.from_bytes(message[1:4]):
            return message[: 4 + int.from_bytes(message[1:4])]
    return None


def read_hello(message: bytes) -> ClientHello:
    """Parse a complete ClientHello message.

    Raises:
        HelloUnreadable: It is malformed, or names more than one host.
    """
    cursor = _Cursor(message[4:])
    cursor.take(2 + 32)
    cursor.take(cursor.number(1))
    cursor.take(cursor.number(2))
    cursor.take(cursor.number(1))
    if cursor.is_at_end:
        return ClientHello("")
    extensions = _Cursor(cursor.take(cursor.number(2)))
    found: dict[int, bytes] = {}
    while not extensions.is_at_end:
        kind = extensions.number(2)
        if kind in found:
            raise HelloUnreadable("it says something twice")
        found[kind] = extensions.take(extensions.number(2))
    name = _server_name(found[SERVER_NAME]) if SERVER_NAME in found else ""
    return ClientHello(name, ENCRYPTED_HELLO in found)


def _server_name(extension: bytes) -> str:
    cursor = _Cursor(extension)
    names = _Cursor(cursor.take(cursor.number(2)))
    kind = names.number(1)
    name = names.take(names.number(2))
    if kind != 0 or not names.is_at_end or not cursor.is_at_end or not name.isascii():
        raise HelloUnreadable("it names more than one host, or none that is a name")
    return name.decode("ascii")


class _Cursor:
    def __init__(self, text: bytes) -> None:
        self._text = text
        self._at = 0

    @property
    def is_at_end(self) -> bool:
        return self._at == len(self._text)

    def number(self, count: int) -> int:
        return int.from_bytes(self.take(count))

    def take(self, count: int) -> bytes:
        taken = self._text[self._at : self._at + count]
        if len(taken) != count:
            raise HelloUnreadable("it is cut short")
        self._at += count
        return taken
