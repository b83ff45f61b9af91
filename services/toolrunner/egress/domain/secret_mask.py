"""Masking of secrets in responses of servers, and in the output of processes that have them."""

import base64
import html
import json
from array import array
from collections.abc import Iterable
from typing import Final
from urllib.parse import quote, quote_plus

#: Shorter secrets would match unrelated data by chance.
SECRET_BYTES_MIN: Final = 8
#: So many bytes are compared at once while a stream goes on like a secret.
COMPARED_BYTES: Final = 256


def spellings(value: bytes) -> set[bytes]:
    """Return a secret in the encodings in which servers commonly repeat it."""
    found = {value, base64.b64encode(value), base64.urlsafe_b64encode(value)}
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return found
    for written in (quote(text, safe=""), quote(text), quote_plus(text)):
        found |= {written.encode(), _lower_escapes(written)}
    plain = json.dumps(text, ensure_ascii=False)[1:-1]
    escaped = json.dumps(text)[1:-1]
    found |= {each.encode() for each in (plain, escaped, plain.replace("/", "\\/"))}
    return found | {html.escape(text, quote=is_quoted).encode() for is_quoted in (True, False)}


def _lower_escapes(text: str) -> bytes:
    """Return a text with lower-case percent escapes."""
    first, *rest = text.split("%")
    return "%".join((first, *(each[:2].lower() + each[2:] for each in rest))).encode()


class Mask:
    """Replaces secrets in a stream by as many asterisks, also across chunk boundaries."""

    def __init__(self, secrets: Iterable[bytes]) -> None:
        self._secrets = sorted({each for each in secrets if len(each) >= SECRET_BYTES_MIN}, key=len)
        self._beginnings = [_Beginning(each) for each in self._secrets]
        self._kept = b""

    @property
    def is_holding(self) -> bool:
        """Whether bytes are held back."""
        return bool(self._kept)

    def pass_on(self, piece: bytes) -> bytes:
        """Return the bytes that can be sent now."""
        if not self._secrets:
            return piece
        text = self._kept + piece
        masked = self._masked(text)
        if masked != text:
            self._begin_again()
            piece = masked
        held = max(each.follow(piece) for each in self._beginnings)
        self._kept = masked[len(masked) - held :]
        return masked[: len(masked) - held]

    def finish(self) -> bytes:
        """Return the bytes held back, at the end of the stream."""
        kept, self._kept = self._kept, b""
        self._begin_again()
        return kept

    def _begin_again(self) -> None:
        for each in self._beginnings:
            each.length = 0

    def _masked(self, text: bytes) -> bytes:
        # The longest first: a shorter one may be a part of it.
        for secret in reversed(self._secrets):
            text = text.replace(secret, b"*" * len(secret))
        return text


class _Beginning:
    """The longest beginning of a secret with which a stream ends so far (Knuth, Morris, Pratt).

    Attributes:
        length: Its length, less than that of the secret.
    """

    def __init__(self, secret: bytes) -> None:
        self.length = 0
        self._secret = secret
        self._head = secret[:SECRET_BYTES_MIN]
        # For each length of a beginning, the length of the longest shorter one with which it ends.
        # Most outputs never need it.
        self._shorter: array[int] | None = None

    def follow(self, piece: bytes) -> int:
        """Continue with the next piece of the stream; return the new length."""
        secret, size = self._secret, len(piece)
        at = max(0, size - len(secret) + 1)
        length = 0 if at else self.length
        while at < size:
            if not length:
                found = piece.find(self._head, at)
                at = found if found >= 0 else max(at, size - len(self._head) + 1)
            run = piece[at : at + min(COMPARED_BYTES, len(secret) - length)]
            if secret.startswith(run, length):
                length += len(run)
                at += len(run)
            else:
                length = self._next(length, piece[at])
                at += 1
            if length == len(secret):
                length = self._lengths()[length]
        self.length = length
        return length

    def _next(self, length: int, byte: int) -> int:
        while length and self._secret[length] != byte:
            length = self._lengths()[length]
        return length + (self._secret[length] == byte)

    def _lengths(self) -> "array[int]":
        if self._shorter is None:
            self._shorter = array("I", (0, 0))
            length = 0
            for byte in self._secret[1:]:
                length = self._next(length, byte)
                self._shorter.append(length)
        return self._shorter
