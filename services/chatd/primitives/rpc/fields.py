"""Canonical values of fields; their rules are declared in the protos and were checked before."""

import hashlib
import uuid
from collections.abc import Sequence

import msgspec
from google.protobuf.message import Message

from chatd.primitives.domain.errors import InvalidRequest
from chatd.primitives.domain.ids import ChatId
from chatd.primitives.domain.requests import ClientKey


def uuid_of(text: str, field: str) -> str:
    """Return a UUID in its canonical form.

    Raises:
        InvalidRequest: It is not a UUID.
    """
    try:
        return str(uuid.UUID(text))
    except ValueError:
        raise InvalidRequest(field, "is not a UUID") from None


def chat_id_of(text: str) -> ChatId:
    """Return a chat id in its canonical form."""
    return ChatId(uuid_of(text, "chat_id"))


def optional_uuid(text: str, field: str) -> str:
    """Return a UUID in its canonical form, or an empty string for an empty string."""
    return uuid_of(text, field) if text else ""


def storable(text: str, field: str) -> str:
    """Return a text that the database can store.

    Raises:
        InvalidRequest: It contains a NUL character.
    """
    if "\0" in text:
        raise InvalidRequest(field, "contains a NUL character; leave it out")
    return text


def mcp_server_ids(texts: Sequence[str]) -> tuple[str, ...]:
    """Return ids of MCP servers without duplicates."""
    return tuple(dict.fromkeys(str(uuid.UUID(text)) for text in texts))


def json_value(text: str, field: str) -> object:
    """Return the value of a JSON text.

    Raises:
        InvalidRequest: It is not JSON.
    """
    try:
        # It accepts neither NaN nor numbers beyond a double nor half of a surrogate pair.
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, ValueError, RecursionError):
        raise InvalidRequest(field, "is not JSON") from None


def client_key_of(request: Message, request_id: str) -> ClientKey:
    """Return the idempotency key: the same id with another body or method is another request."""
    body = request.SerializeToString(deterministic=True)
    kind = request.DESCRIPTOR.full_name.encode()
    return ClientKey(request_id, hashlib.sha256(kind + b"\n" + body).digest())
