"""Messages between the service and the spawner: a length prefix and JSON."""

import json
import socket
import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

LENGTH = struct.Struct(">I")
CHUNK_BYTES = 64 * 1024


@dataclass
class Frames:
    """Splits a byte stream into messages."""

    rest: bytes = b""

    def feed(self, data: bytes) -> Iterator[dict[str, Any]]:
        """Yield every message that is complete now."""
        self.rest += data
        while len(self.rest) >= LENGTH.size:
            end = LENGTH.size + LENGTH.unpack_from(self.rest)[0]
            if len(self.rest) < end:
                return
            message, self.rest = self.rest[LENGTH.size : end], self.rest[end:]
            yield json.loads(message)


def frame(message: dict[str, Any]) -> bytes:
    """Return a message as an encoded frame."""
    body = json.dumps(message).encode()
    return LENGTH.pack(len(body)) + body


@dataclass
class FrameChannel:
    """The connection to the service, while there is one."""

    channel: socket.socket | None

    def tell(self, message: dict[str, Any], *descriptors: int) -> None:
        """Send a message, with descriptors attached to its first byte, if connected."""
        if self.channel is None:
            return
        data = frame(message)
        with suppress(ConnectionError):
            sent = socket.send_fds(self.channel, [data], list(descriptors)) if descriptors else 0
            self.channel.sendall(data[sent:])
