"""Opaque page tokens: the position at which the next page starts."""

import base64
import binascii
from typing import TypeVar

import msgspec

from chatd.primitives.domain.errors import InvalidRequest

PAGE_LENGTH = 50

Place = TypeVar("Place", bound=msgspec.Struct)


def token_of(place: msgspec.Struct) -> str:
    """Encode a position as a token."""
    return base64.urlsafe_b64encode(msgspec.json.encode(place)).decode().rstrip("=")


def place_of(token: str, kind: type[Place]) -> Place | None:
    """Decode a token; None for the first page.

    Raises:
        InvalidRequest: it is not a token of this list.
    """
    if not token:
        return None
    try:
        padded = token + "=" * (-len(token) % 4)
        decoded = base64.b64decode(padded, altchars=b"-_", validate=True)
        return msgspec.json.decode(decoded, type=kind)
    except (binascii.Error, ValueError, msgspec.MsgspecError) as error:
        raise InvalidRequest("page_token", "is not from a previous response") from error


def length_of(page_size: int) -> int:
    """Return the number of entries of a page."""
    return page_size or PAGE_LENGTH
