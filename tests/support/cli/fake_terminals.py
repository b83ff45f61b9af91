"""A server of terminals that does with each connection what a test says."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, BytesMessage, RejectConnection, RejectData, Request
from wsproto.events import TextMessage as Text

from parley.cli.api.server import Server

READ_BYTES = 65536
SERVED_S_MAX = 20.0


@dataclass
class Seat:
    """One connection, as the server sees it."""

    channel: socket.socket
    speech: WSConnection
    target: str = ""
    typed: bytes = b""

    def opened(self, cursor: int) -> None:
        self.channel.sendall(self.speech.send(AcceptConnection()))
        self.tell(type="opened", process={"id": "p"}, cursor=cursor, view_only=False)

    def refused(self, status: int, **problem: object) -> None:
        body = json.dumps(problem).encode()
        headers = [(b"content-length", str(len(body)).encode())]
        refusal = RejectConnection(status_code=status, headers=headers, has_body=True)
        self.channel.sendall(self.speech.send(refusal) + self.speech.send(RejectData(body)))

    def print(self, data: bytes) -> None:
        self.channel.sendall(self.speech.send(BytesMessage(data)))

    def tell(self, **message: object) -> None:
        self.channel.sendall(self.speech.send(Text(json.dumps(message))))

    def exited(self, code: int) -> None:
        self.tell(type="exited", process={"exit": {"exit_code": code}}, cursor=0)

    def heard(self, wanted: bytes = b"") -> None:
        """Read until something was typed, or to the end of the connection."""
        while not wanted or wanted not in self.typed:
            data = self.channel.recv(READ_BYTES)
            if not data:
                return
            self.take(data)

    def take(self, data: bytes) -> None:
        self.speech.receive_data(data)
        for event in self.speech.events():
            match event:
                case Request(target=target):
                    self.target = target
                case BytesMessage(data=typed):
                    self.typed += bytes(typed)

    def asked(self) -> None:
        while not self.target:
            self.take(self.channel.recv(READ_BYTES))


@dataclass
class FakeTerminals:
    """Serves one connection after the other; afterwards nobody listens."""

    server: Server
    seats: list[Seat] = field(default_factory=list)

    @classmethod
    @contextmanager
    def serving(cls, *acts: Callable[[Seat], None]) -> Iterator["FakeTerminals"]:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            listener.settimeout(SERVED_S_MAX)
            terminals = cls(Server(f"http://127.0.0.1:{listener.getsockname()[1]}", "key"))
            thread = threading.Thread(target=terminals._serve, args=(listener, acts))
            thread.start()
            try:
                yield terminals
            finally:
                thread.join(SERVED_S_MAX)

    def _serve(self, listener: socket.socket, acts: tuple[Callable[[Seat], None], ...]) -> None:
        for number, act in enumerate(acts):
            channel, _ = listener.accept()
            if number == len(acts) - 1:
                listener.close()
            with channel:
                channel.settimeout(SERVED_S_MAX)
                seat = Seat(channel, WSConnection(ConnectionType.SERVER))
                self.seats.append(seat)
                seat.asked()
                act(seat)
