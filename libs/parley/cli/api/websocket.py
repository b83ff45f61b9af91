"""A blocking WebSocket connection for commands, which wait for it with `select`."""

import json
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    CloseConnection,
    Event,
    Ping,
    RejectConnection,
    RejectData,
    Request,
    TextMessage,
)
from wsproto.utilities import LocalProtocolError, RemoteProtocolError

from parley.cli.api.client import PROBLEM_BYTES_MAX, Unreachable, refusal_of
from parley.cli.api.server import Server

READ_BYTES: Final = 64 * 1024
#: The timeout of the handshake, and of sends that the server does not read.
ANSWER_S: Final = 30.0
#: A frame well below the server's limit.
SENT_BYTES_MAX: Final = 16 * 1024


@dataclass(frozen=True, slots=True)
class Closed:
    """The server closed the connection, or it was lost."""

    reason: str


Received = bytes | dict[str, Any] | Closed


class WebSocket:
    """An open connection."""

    def __init__(self, channel: socket.socket, connection: WSConnection) -> None:
        self._channel = channel
        self._connection = connection
        self._text = ""
        self._early: list[Received] = []

    @classmethod
    def opened(cls, server: Server, path: str) -> "WebSocket":
        """Connect to a path below the server's URL.

        Raises:
            Unreachable: The server does not answer.
            ApiRefused: The answer is a problem.
        """
        parts = urlsplit(server.url)
        try:
            channel = _dialled(parts.hostname or "", parts.port, is_secure=parts.scheme == "https")
        except OSError as error:
            raise Unreachable(
                f"{server.url} does not answer ({error}): is Parley running?"
            ) from error
        socket_ = cls(channel, WSConnection(ConnectionType.CLIENT))
        try:
            key = f"Bearer {server.api_key}".encode()
            asked = Request(
                host=parts.netloc, target=parts.path + path, extra_headers=[(b"authorization", key)]
            )
            socket_._send(asked)
            socket_._accepted()
        except (OSError, RemoteProtocolError) as error:
            socket_.close()
            raise Unreachable(f"{server.url} does not open it ({error})") from error
        except BaseException:
            socket_.close()
            raise
        return socket_

    def fileno(self) -> int:
        """The descriptor for `select`."""
        return self._channel.fileno()

    def early(self) -> list[Received]:
        """Return the frames that arrived together with the answer to the handshake, once."""
        came, self._early = self._early, []
        return came

    def receive(self) -> Iterator[Received]:
        """Read the frames that have arrived: output, messages, or the end."""
        try:
            data = self._channel.recv(READ_BYTES)
            while isinstance(self._channel, ssl.SSLSocket) and self._channel.pending():
                data += self._channel.recv(READ_BYTES)
        except OSError as error:
            yield Closed(str(error) or type(error).__name__)
            return
        try:
            self._connection.receive_data(data or None)
            for event in self._connection.events():
                yield from self._taken(event)
        except (OSError, LocalProtocolError, RemoteProtocolError) as error:
            yield Closed(str(error))

    def send(self, data: bytes) -> None:
        """Send bytes.

        Raises:
            OSError: The connection is closed.
        """
        for place in range(0, len(data), SENT_BYTES_MAX):
            self._send(BytesMessage(data[place : place + SENT_BYTES_MAX]))

    def tell(self, **message: object) -> None:
        """Send a message.

        Raises:
            OSError: The connection is closed.
        """
        self._send(TextMessage(json.dumps(message)))

    def leave(self) -> None:
        """Close the connection with a closing handshake, if it is still open."""
        try:
            self._send(CloseConnection(code=1000))
        except (OSError, LocalProtocolError):
            pass
        finally:
            self.close()

    def close(self) -> None:
        """Close the socket."""
        self._channel.close()

    def _send(self, event: Event) -> None:
        self._channel.sendall(self._connection.send(event))

    def _taken(self, event: Event) -> Iterator[Received]:
        match event:
            case BytesMessage(data=data):
                yield bytes(data)
            case TextMessage(data=text, message_finished=is_whole):
                self._text += text
                if is_whole:
                    said, self._text = self._text, ""
                    yield json.loads(said)
            case Ping():
                self._send(event.response())
            case CloseConnection(code=code, reason=reason):
                yield Closed(reason or f"closed with {code}")

    def _accepted(self) -> None:
        """Wait for the answer to the handshake.

        Raises:
            ApiRefused: The answer is a problem.
        """
        status, body, is_accepted = 0, b"", False
        while not is_accepted:
            data = self._channel.recv(READ_BYTES)
            self._connection.receive_data(data or None)
            for event in self._connection.events():
                match event:
                    case AcceptConnection():
                        is_accepted = True
                    case RejectConnection(status_code=status, has_body=has_body):
                        if not has_body:
                            raise refusal_of(status, "", b"")
                    case RejectData(data=piece, body_finished=is_whole):
                        body = (body + bytes(piece))[:PROBLEM_BYTES_MAX]
                        if is_whole:
                            raise refusal_of(status, "", body)
                    case _:
                        self._early += self._taken(event)
            if not data:
                raise ConnectionError("it was closed")


def _dialled(host: str, port: int | None, *, is_secure: bool) -> socket.socket:
    channel = socket.create_connection((host, port or (443 if is_secure else 80)), ANSWER_S)
    # Keystrokes are sent without delay.
    channel.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if not is_secure:
        return channel
    return ssl.create_default_context().wrap_socket(channel, server_hostname=host)
