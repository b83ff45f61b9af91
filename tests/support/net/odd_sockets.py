"""Clients that ask for a stream and then misbehave as only sockets can."""

import ctypes
import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

SO_ATTACH_FILTER = 26
RETURN_NOTHING = bytes.fromhex("0600000000000000")  # One instruction of BPF: keep 0 bytes.
SMALL_BUFFER_BYTES = 4096
HEAD_END = b"\r\n\r\n"


class _Program(ctypes.Structure):
    """The kernel's `sock_fprog`."""

    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


@dataclass(frozen=True, slots=True)
class RawStream:
    """An open stream whose client is nothing but a socket."""

    socket: socket.socket

    @classmethod
    def open(cls, port: int, path: str, headers: Mapping[str, str]) -> "RawStream":
        """Ask for a stream and wait for the head of its answer."""
        opened = socket.socket()
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_BUFFER_BYTES)
        opened.settimeout(20)
        opened.connect(("127.0.0.1", port))
        lines = [f"GET {path} HTTP/1.1", *(f"{name}: {text}" for name, text in headers.items())]
        opened.sendall("\r\n".join((*lines, "", "")).encode())
        seen = b""
        while HEAD_END not in seen:
            data = opened.recv(SMALL_BUFFER_BYTES)
            assert data, seen
            seen += data
        assert seen.startswith(b"HTTP/1.1 200"), seen
        return cls(opened)

    @property
    def port(self) -> int:
        """The client's own port, by which the server's side can be found."""
        number: int = self.socket.getsockname()[1]
        return number

    def read_all(self, silence_s: float = 0.5) -> None:
        """Read until nothing has come for a while."""
        self.socket.settimeout(silence_s)
        with suppress(TimeoutError):
            while self.socket.recv(SMALL_BUFFER_BYTES):
                pass

    def go_deaf(self) -> None:
        """Lose everything that arrives, unacknowledged, as if the network were gone."""
        program = _Program(1, RETURN_NOTHING)
        self.socket.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, bytes(program))

    def half_close(self) -> None:
        """Say that nothing more is sent, and stay."""
        self.socket.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Leave."""
        self.socket.close()
