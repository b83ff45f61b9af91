"""Random tokens of cookies and links, and the digests that are stored in their place."""

import base64
import hashlib
from collections.abc import Callable
from typing import Final

TOKEN_BYTES: Final = 32

TokenBytes = Callable[[int], bytes]


def new_token(token_bytes: TokenBytes) -> str:
    """Return a token of 256 random bits."""
    return _text(token_bytes(TOKEN_BYTES))


def digest_of(token: str) -> bytes:
    """Return the stored digest of a random token."""
    return hashlib.sha256(token.encode()).digest()


def csrf_token_of(session_token: str) -> str:
    """Return the token that requests with a session's cookie repeat; it does not reveal it."""
    return _text(hashlib.sha256(b"parley csrf " + session_token.encode()).digest())


def _text(token: bytes) -> str:
    return base64.urlsafe_b64encode(token).decode().rstrip("=")
