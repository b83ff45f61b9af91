"""Masking of secrets in responses of servers, and in the output of processes that have them."""

import base64
import html
import json
from collections.abc import Iterable
from typing import Final
from urllib.parse import quote, quote_plus

#: Shorter secrets would match unrelated data by chance.
SECRET_BYTES_MIN: Final = 8


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
        self._kept = b""

    @property
    def is_holding(self) -> bool:
        """Whether bytes are held back."""
        return bool(self._kept)

    def pass_on(self, piece: bytes) -> bytes:
        """Return the bytes that can be sent now."""
        if not self._secrets:
            return piece
        text = self._masked(self._kept + piece)
        held = self._held(text)
        self._kept = text[len(text) - held :]
        return text[: len(text) - held]

    def finish(self) -> bytes:
        """Return the bytes held back, at the end of the stream."""
        kept, self._kept = self._kept, b""
        return kept

    def _masked(self, text: bytes) -> bytes:
        # The longest first: a shorter one may be a part of it.
        for secret in reversed(self._secrets):
            text = text.replace(secret, b"*" * len(secret))
        return text

    def _held(self, text: bytes) -> int:
        """Return how many bytes at the end may be the beginning of a secret."""
        return max(_overlap(text, secret) for secret in self._secrets)


def _overlap(text: bytes, secret: bytes) -> int:
    end = text[max(0, len(text) - len(secret) + 1) :]
    at = end.find(secret[:1])
    while at >= 0:
        if secret.startswith(end[at:]):
            return len(end) - at
        at = end.find(secret[:1], at + 1)
    return 0
