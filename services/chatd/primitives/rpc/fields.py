"""Checks of single fields: each returns the canonical value or raises InvalidRequest."""

import hashlib
import re
import uuid
from collections.abc import Mapping, Sequence

import msgspec
from google.protobuf.message import Message

from chatd.primitives.domain.errors import InvalidRequest
from chatd.primitives.domain.ids import ChatId
from chatd.primitives.domain.requests import ClientKey

REQUEST_ID_CHARACTERS_MAX = 128
TITLE_CHARACTERS_MAX = 200
MODEL_ID_CHARACTERS_MAX = 200
LABELS_MAX = 50
LABEL_KEY_BYTES_MAX = 64
LABEL_VALUE_BYTES_MAX = 256
MCP_SERVERS_MAX = 100
INTEGER_MAX = 2**63 - 1

_LABEL_KEY = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9._/-]*")


def clean(text: str, field: str, *, bytes_max: int) -> str:
    """Return a text that the database can store and that is within the size limit."""
    if "\0" in text:
        raise InvalidRequest(field, "contains a NUL character; remove it")
    if len(text) > bytes_max or len(text.encode()) > bytes_max:
        raise InvalidRequest(field, f"is longer than {bytes_max} bytes")
    return text


def words(text: str, field: str, *, characters_max: int) -> str:
    """Return a line of text without surrounding whitespace; it may be empty."""
    trimmed = clean(text, field, bytes_max=4 * characters_max + 256).strip()
    if len(trimmed) > characters_max:
        raise InvalidRequest(field, f"is longer than {characters_max} characters")
    return trimmed


def title(text: str, field: str = "title") -> str:
    """Return a title; an empty one is rejected."""
    trimmed = words(text, field, characters_max=TITLE_CHARACTERS_MAX)
    if not trimmed:
        raise InvalidRequest(field, f"needs 1 to {TITLE_CHARACTERS_MAX} characters")
    return trimmed


def uuid_of(text: str, field: str) -> str:
    """Return a UUID in its canonical form."""
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


def mcp_server_ids(texts: Sequence[str], field: str = "mcp_server_ids") -> tuple[str, ...]:
    """Return ids of MCP servers without duplicates."""
    if len(texts) > MCP_SERVERS_MAX:
        raise InvalidRequest(field, f"holds more than {MCP_SERVERS_MAX} ids")
    ids = tuple(uuid_of(text, f"{field}[{index}]") for index, text in enumerate(texts))
    return tuple(dict.fromkeys(ids))


def model_id(text: str, field: str = "model_id") -> str:
    """Return the id of a model; it may be empty."""
    return words(text, field, characters_max=MODEL_ID_CHARACTERS_MAX)


def labels(given: Mapping[str, str], field: str = "labels") -> dict[str, str]:
    """Return labels after checking their keys and values."""
    if len(given) > LABELS_MAX:
        raise InvalidRequest(field, f"holds more than {LABELS_MAX} labels")
    for key, value in given.items():
        if not _LABEL_KEY.fullmatch(key) or len(key.encode()) > LABEL_KEY_BYTES_MAX:
            raise InvalidRequest(
                field,
                f"has a key that is not 1 to {LABEL_KEY_BYTES_MAX} letters, digits, '.', '_', '/' "
                "or '-', beginning with a letter or digit",
            )
        clean(value, f"{field}.{key}", bytes_max=LABEL_VALUE_BYTES_MAX)
        if not value:
            raise InvalidRequest(f"{field}.{key}", "is empty")
    return dict(given)


def whole(number: int, field: str, *, at_least: int, at_most: int = INTEGER_MAX) -> int:
    """Return a number within its bounds."""
    if number < at_least and at_most == INTEGER_MAX:
        raise InvalidRequest(field, f"is less than {at_least}")
    if not at_least <= number <= at_most:
        raise InvalidRequest(field, f"is not between {at_least} and {at_most}")
    return number


def json_value(text: str, field: str, *, bytes_max: int) -> object:
    """Return the value of a JSON text."""
    clean(text, field, bytes_max=bytes_max)
    try:
        # It accepts neither NaN nor numbers beyond a double nor half of a surrogate pair.
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, ValueError, RecursionError):
        raise InvalidRequest(field, "is not JSON") from None


def request_id_of(text: str) -> str:
    """Return the id that makes a request idempotent."""
    if not 1 <= len(text) <= REQUEST_ID_CHARACTERS_MAX:
        raise InvalidRequest(
            "request_id",
            f"needs 1 to {REQUEST_ID_CHARACTERS_MAX} characters; choose one per request, "
            "such as a UUID",
        )
    return clean(text, "request_id", bytes_max=4 * REQUEST_ID_CHARACTERS_MAX)


def client_key_of(request: Message, request_id: str) -> ClientKey:
    """Return the idempotency key: the same id with another body or method is another request."""
    body = request.SerializeToString(deterministic=True)
    kind = request.DESCRIPTOR.full_name.encode()
    return ClientKey(request_id_of(request_id), hashlib.sha256(kind + b"\n" + body).digest())
