"""Page tokens: places in a listing as opaque text."""

import base64
from typing import Any, TypeVar

import msgspec

from mcpgateway.servers.errors import InvalidRequest

T = TypeVar("T")


def token_of(place: Any) -> str:
    """Return the token of a place."""
    return base64.urlsafe_b64encode(msgspec.json.encode(place)).decode()


def place_of(token: str, kind: type[T]) -> T | None:
    """Return the place of a token; None at the beginning.

    Raises:
        InvalidRequest: The token is not from a previous response.
    """
    if not token:
        return None
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(token), type=kind)
    except (ValueError, msgspec.MsgspecError):
        raise InvalidRequest({"page_token": "is not from a previous response"}) from None
