"""A loopback server that plays scripts of bytes to whoever asks it, right or wrong."""

import asyncio
import ipaddress
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum, auto
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

LAST_CHUNK = b"0\r\n\r\n"


class Act(Enum):
    """What a script does beside sending bytes."""

    CLOSE = auto()  # Ends the connection in good order.
    RESET = auto()  # Breaks it, over TLS without a goodbye.
    HANG = auto()  # Says nothing until the other side is gone.


Script = Sequence[bytes | Act | asyncio.Event]


def head(status: str = "200 OK", content_type: str = "text/event-stream", **headers: str) -> bytes:
    """Return the beginning of an answer whose body comes in chunks."""
    named = {
        "Content-Type": content_type,
        "Transfer-Encoding": "chunked",
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    lines = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in named.items() if value)]
    return "\r\n".join((*lines, "", "")).encode()


def chunk(data: bytes) -> bytes:
    """Return one chunk of such a body."""
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def whole(body: bytes, status: str = "200 OK", **headers: str) -> Script:
    """Return an answer in one piece."""
    return (head(status, **headers), chunk(body) if body else b"", LAST_CHUNK)


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as it arrived; header names are lower case."""

    path: str
    headers: dict[str, str]
    body: bytes
    connection: int


@dataclass(slots=True)
class ModelServer:
    """Plays its scripts in order, the last one for ever."""

    scripts: list[Script] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    hung_up: asyncio.Event = field(default_factory=asyncio.Event)
    url: str = ""
    _connections: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one connection until a script or its other side ends it."""
        self._connections += 1
        number = self._connections
        try:
            while await self._exchange(reader, writer, number):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            pass
        finally:
            self.hung_up.set()
            writer.transport.abort()

    async def _exchange(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int
    ) -> bool:
        """Read a request and play a script; return whether another one may follow."""
        lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in lines[1:] if line)
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        self.asked.append(Asked(lines[0].split(" ")[1], headers, body, number))
        script = self.scripts.pop(0) if len(self.scripts) > 1 else self.scripts[0]
        for step in script:
            match step:
                case bytes():
                    writer.write(step)
                    await writer.drain()
                case asyncio.Event():
                    await step.wait()
                case Act.CLOSE:
                    writer.close()
                    await writer.wait_closed()
                    return False
                case Act.RESET:
                    _reset(writer)
                    return False
                case Act.HANG:
                    await reader.read()
                    return False
        return True


def _reset(writer: asyncio.StreamWriter) -> None:
    """Break a connection so that the other side learns of it as an error."""
    raw = writer.get_extra_info("socket")
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


@asynccontextmanager
async def model_server(
    *scripts: Script, tls: ssl.SSLContext | None = None
) -> AsyncIterator[ModelServer]:
    """Serve scripts on a free port of this machine."""
    played = ModelServer(list(scripts))
    server = await asyncio.start_server(played.serve, "127.0.0.1", 0, ssl=tls)
    port = server.sockets[0].getsockname()[1]
    played.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{port}"
    async with server:
        yield played


@dataclass(frozen=True, slots=True)
class Certified:
    """Both sides of a connection to this machine that nobody else would trust."""

    server: ssl.SSLContext
    client: ssl.SSLContext


def loopback_certificate(directory: Path) -> Certified:
    """Return a certificate for this machine's own address."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "loopback")])
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(datetime(2020, 1, 1, tzinfo=UTC))
        .not_valid_after(datetime(2120, 1, 1, tzinfo=UTC))
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = directory / "loopback.pem"
    pem.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(pem)
    return Certified(server, ssl.create_default_context(cafile=pem))
