"""A push service on loopback, and the browsers that subscribe to it and decrypt what they get."""

import asyncio
import base64
import json
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

WITHIN_S = 60.0


def unpadded(plain: bytes) -> str:
    """Return bytes in base64url without padding."""
    return base64.urlsafe_b64encode(plain).rstrip(b"=").decode()


def decoded(text: str) -> bytes:
    """Return the bytes of such a text."""
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


@dataclass(frozen=True, slots=True)
class Browser:
    """The side of a browser: its keys, and the decryption of RFC 8291."""

    private_key: ec.EllipticCurvePrivateKey = field(
        default_factory=lambda: ec.generate_private_key(ec.SECP256R1())
    )
    auth: bytes = field(default_factory=lambda: os.urandom(16))

    @property
    def public_key(self) -> bytes:
        """Return the uncompressed point."""
        return self.private_key.public_key().public_bytes(
            Encoding.X962, PublicFormat.UncompressedPoint
        )

    def keys(self) -> dict[str, str]:
        """Return the keys as a request of the API has them."""
        return {"p256dh": unpadded(self.public_key), "auth": unpadded(self.auth)}

    def decrypt(self, body: bytes) -> bytes:
        """Return the text of a body of one record."""
        salt, size, key_bytes = body[:16], int.from_bytes(body[16:20]), body[20]
        sender, sealed = body[21 : 21 + key_bytes], body[21 + key_bytes :]
        assert len(sealed) <= size
        point = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), sender)
        shared = self.private_key.exchange(ec.ECDH(), point)
        info = b"WebPush: info\0" + self.public_key + sender
        secret = _derived(shared, self.auth, info, 32)
        key = _derived(secret, salt, b"Content-Encoding: aes128gcm\0", 16)
        nonce = _derived(secret, salt, b"Content-Encoding: nonce\0", 12)
        plain = AESGCM(key).decrypt(nonce, sealed, None).rstrip(b"\0")
        assert plain.endswith(b"\x02")
        return plain[:-1]


def verified_claims(authorization: str, public_key: str) -> dict[str, Any]:
    """Return the claims of a VAPID header that a key signed.

    Raises:
        InvalidSignature: Another key signed them.
    """
    scheme, _, rest = authorization.partition(" ")
    parameters = dict(each.strip().split("=", 1) for each in rest.split(","))
    assert (scheme, parameters["k"]) == ("vapid", public_key)
    signed, _, signature = parameters["t"].rpartition(".")
    header, claims = (json.loads(decoded(part)) for part in signed.split("."))
    assert header == {"typ": "JWT", "alg": "ES256"}
    raw = decoded(signature)
    assert len(raw) == 64
    der = encode_dss_signature(int.from_bytes(raw[:32]), int.from_bytes(raw[32:]))
    point = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), decoded(public_key))
    point.verify(der, signed.encode(), ec.ECDSA(hashes.SHA256()))
    return dict(claims)


@dataclass(frozen=True, slots=True)
class Pushed:
    """A request as it arrived; header names are lower case."""

    path: str
    headers: dict[str, str]
    body: bytes


@dataclass(slots=True)
class LoopbackPushService:
    """Answers with a status for each path, 201 unless told otherwise."""

    url: str = ""
    pushed: list[Pushed] = field(default_factory=list)
    #: Path -> status line and headers; a path that is in `silent` is never answered.
    answers: dict[str, str] = field(default_factory=dict)
    silent: set[str] = field(default_factory=set)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def endpoint(self, name: str) -> str:
        """Return the endpoint of a device."""
        return f"{self.url}/{name}"

    def of(self, name: str) -> list[Pushed]:
        """Return what arrived for a device."""
        return [each for each in self.pushed if each.path == f"/{name}"]

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until something holds that only requests change."""
        async with asyncio.timeout(WITHIN_S):
            while not condition():
                self.changed.clear()
                await self.changed.wait()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one connection until its other side ends it."""
        try:
            while await self._exchange(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.transport.abort()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        named = (line.split(": ", 1) for line in lines[1:] if line)
        headers = {name.lower(): value for name, value in named}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        method, path, _ = lines[0].split(" ")
        assert method == "POST"
        self.pushed.append(Pushed(path, headers, body))
        self.changed.set()
        if path in self.silent:
            await reader.read()
            return False
        answer = self.answers.get(path, "201 Created")
        writer.write(f"HTTP/1.1 {answer}\r\nContent-Length: 0\r\n\r\n".encode())
        await writer.drain()
        return True


@asynccontextmanager
async def loopback_push_service() -> AsyncIterator[LoopbackPushService]:
    """Yield a push service that listens on loopback."""
    service = LoopbackPushService()
    server = await asyncio.start_server(service.serve, "127.0.0.1", 0)
    service.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield service
    finally:
        server.close()


def _derived(secret: bytes, salt: bytes, info: bytes, length: int) -> bytes:
    return HKDF(hashes.SHA256(), length, salt, info).derive(secret)
