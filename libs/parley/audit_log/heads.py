"""Signed heads of the chain, kept outside of the database: a log that was cut off contradicts them.

The file has one JSON object per line and is only ever appended to.
"""

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from parley.identity import SigningKey

_FORMAT: Final = "parley audit head 1"


@dataclass(frozen=True, slots=True)
class SignedHead:
    """The last entry of the chain at a time, signed with the key of the audit log."""

    seq: int
    hash: bytes
    at: datetime
    public_key: bytes
    signature: bytes

    def is_signed_by(self, public_key: bytes) -> bool:
        """Return whether the owner of this key signed it."""
        if public_key != self.public_key:
            return False
        try:
            Ed25519PublicKey.from_public_bytes(public_key).verify(
                self.signature, _signed(self.seq, self.hash, self.at)
            )
        except (InvalidSignature, ValueError):
            return False
        return True


class _Line(msgspec.Struct):
    """A head as a line of the file."""

    seq: int
    hash: str
    at: datetime
    public_key: str
    signature: str


def sign_head(seq: int, entry_hash: bytes, at: datetime, key: SigningKey) -> SignedHead:
    """Sign the head of the chain."""
    signature = key.private.sign(_signed(seq, entry_hash, at))
    return SignedHead(seq, entry_hash, at, key.public, signature)


def seal_key_of(key: SigningKey) -> bytes:
    """Return the key of the entries' seals, which is derived from the signing key."""
    return hashlib.sha256(b"parley audit seal 1\0" + key.private.private_bytes_raw()).digest()


def line_of(head: SignedHead) -> bytes:
    """Return a head as a line of the file."""
    line = _Line(head.seq, head.hash.hex(), head.at, head.public_key.hex(), head.signature.hex())
    return msgspec.json.encode(line) + b"\n"


def append_head(path: Path, head: SignedHead) -> None:
    """Add a head to the file; several processes may do so at once."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(descriptor, line_of(head))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_heads(path: Path) -> tuple[SignedHead, ...]:
    """Read the file; there are no heads if it does not exist.

    Raises:
        ValueError: A line is not a head.
    """
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return ()
    return tuple(heads_of(text.splitlines()))


def heads_of(lines: Iterable[bytes]) -> Iterable[SignedHead]:
    """Parse lines of the file.

    Raises:
        ValueError: A line is not a head.
    """
    for number, text in enumerate(lines, start=1):
        try:
            line = msgspec.json.decode(text, type=_Line)
            yield SignedHead(
                line.seq,
                bytes.fromhex(line.hash),
                line.at,
                bytes.fromhex(line.public_key),
                bytes.fromhex(line.signature),
            )
        except ValueError as error:
            raise ValueError(f"line {number} of the signed heads is damaged: {error}") from error


def _signed(seq: int, entry_hash: bytes, at: datetime) -> bytes:
    when = at.astimezone(UTC).isoformat(timespec="microseconds")
    return msgspec.json.encode((_FORMAT, seq, entry_hash.hex(), when))
