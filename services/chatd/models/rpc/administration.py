"""Helpers of the methods that manage the catalogue: ids, idempotency, pages, logging."""

import hashlib
import logging
import uuid
from collections.abc import Callable
from typing import TypeVar

import msgspec
from google.protobuf.message import Message

from chatd.primitives.domain.ids import Owner
from chatd.primitives.rpc.page_tokens import length_of, place_of, token_of

T = TypeVar("T")

logger = logging.getLogger(__name__)


class _PageToken(msgspec.Struct, frozen=True, array_like=True):
    after_id: str


def page_of(
    listed: list[T], id_of: Callable[[T], str], page_size: int, page_token: str
) -> tuple[list[T], str]:
    """Return a page of a list in its order, and the token of the next one."""
    length = length_of(page_size)
    place = place_of(page_token, _PageToken)
    start = 0
    if place is not None:
        ids = [id_of(each) for each in listed]
        start = ids.index(place.after_id) + 1 if place.after_id in ids else len(ids)
    page = listed[start : start + length]
    has_more = start + length < len(listed)
    return page, token_of(_PageToken(id_of(page[-1]))) if has_more else ""


def made_id(request: Message, request_id: str, caller: Owner) -> str:
    """Derive the id from caller and request, so that a repeated request finds its object."""
    kind = request.DESCRIPTOR.name
    return str(uuid.uuid5(uuid.UUID(caller.id), f"{kind} {request_id}"))


def body_hash(request: Message) -> bytes:
    """Return a hash that distinguishes a repetition from another request with the same id."""
    return hashlib.sha256(request.SerializeToString(deterministic=True)).digest()


def note(what: str, caller: Owner, **facts: object) -> None:
    """Log who changed what."""
    logger.info(what, extra={"user_id": caller.id, **facts})
