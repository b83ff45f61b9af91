"""Signed heads of the chain, kept outside of the database: a log that was cut off contradicts them.

A checkpoint is signed like a head before old entries are pruned: it names the last one of them, so
that the chain is verified from there on. Entries that are missing without a checkpoint were
removed by somebody else. The file has one JSON object per line and is only ever appended to.
"""

import errno
import hashlib
import logging
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from parley.identity import SigningKey

_HEAD: Final = "parley audit head 1"
_CHECKPOINT: Final = "parley audit checkpoint 1"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SignedHead:
    """The last entry of the chain at a time, signed with the key of the audit log.

    Attributes:
        seq: The number of the entry.
        hash: Its hash.
        at: When it was signed.
        public_key: The key that signed it.
        signature: The signature.
        is_checkpoint: Whether it allows the entries up to this one to be missing.
    """

    seq: int
    hash: bytes
    at: datetime
    public_key: bytes
    signature: bytes
    is_checkpoint: bool = False

    def is_signed_by(self, public_key: bytes) -> bool:
        """Return whether the owner of this key signed it."""
        if public_key != self.public_key:
            return False
        try:
            Ed25519PublicKey.from_public_bytes(public_key).verify(
                self.signature, _signed(self.seq, self.hash, self.at, self.is_checkpoint)
            )
        except (InvalidSignature, ValueError):
            return False
        return True


class _Line(msgspec.Struct, omit_defaults=True):
    """A head as a line of the file."""

    seq: int
    hash: str
    at: datetime
    public_key: str
    signature: str
    is_checkpoint: bool = False


def sign_head(seq: int, entry_hash: bytes, at: datetime, key: SigningKey) -> SignedHead:
    """Sign the head of the chain."""
    signature = key.private.sign(_signed(seq, entry_hash, at, is_checkpoint=False))
    return SignedHead(seq, entry_hash, at, key.public, signature)


def sign_checkpoint(seq: int, entry_hash: bytes, at: datetime, key: SigningKey) -> SignedHead:
    """Sign that the entries up to this one are pruned."""
    signature = key.private.sign(_signed(seq, entry_hash, at, is_checkpoint=True))
    return SignedHead(seq, entry_hash, at, key.public, signature, is_checkpoint=True)


def seal_key_of(key: SigningKey) -> bytes:
    """Return the key of the entries' seals, which is derived from the signing key."""
    return hashlib.sha256(b"parley audit seal 1\0" + key.private.private_bytes_raw()).digest()


def line_of(head: SignedHead) -> bytes:
    """Return a head as a line of the file."""
    line = _Line(
        head.seq,
        head.hash.hex(),
        head.at,
        head.public_key.hex(),
        head.signature.hex(),
        head.is_checkpoint,
    )
    return msgspec.json.encode(line) + b"\n"


def append_head(path: Path, head: SignedHead) -> None:
    """Add a head to the file; several processes may do so at once.

    Raises:
        OSError: It was not written, or only a part of it.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        line = line_of(head)
        if not _ends_with_line(descriptor):
            line = b"\n" + line
        written = os.write(descriptor, line)
        if written != len(line):
            # A full disk takes what fits. The next line begins behind it.
            raise OSError(errno.ENOSPC, f"{written} of {len(line)} bytes were written", str(path))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _ends_with_line(descriptor: int) -> bool:
    size_bytes = os.fstat(descriptor).st_size
    return not size_bytes or os.pread(descriptor, 1, size_bytes - 1) == b"\n"


def read_heads(path: Path, report: Callable[[str], None] = _log.error) -> tuple[SignedHead, ...]:
    """Read the file; there are no heads if it does not exist.

    Args:
        path: The file.
        report: Is called with what is wrong with a line; such a line is skipped.
    """
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return ()
    return tuple(_heads_of(text.splitlines(), report))


def _heads_of(lines: Iterable[bytes], report: Callable[[str], None]) -> Iterable[SignedHead]:
    for number, text in enumerate(lines, start=1):
        if not text:
            continue
        try:
            line = msgspec.json.decode(text, type=_Line)
            yield SignedHead(
                line.seq,
                bytes.fromhex(line.hash),
                line.at,
                bytes.fromhex(line.public_key),
                bytes.fromhex(line.signature),
                line.is_checkpoint,
            )
        except ValueError as error:
            report(f"line {number} of the signed heads is damaged and skipped: {error}")


def _signed(seq: int, entry_hash: bytes, at: datetime, is_checkpoint: bool) -> bytes:
    when = at.astimezone(UTC).isoformat(timespec="microseconds")
    purpose = _CHECKPOINT if is_checkpoint else _HEAD
    return msgspec.json.encode((purpose, seq, entry_hash.hex(), when))
