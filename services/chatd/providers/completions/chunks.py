"""The chunks of a streamed chat completion, decoded leniently.

Endpoints deviate from the format, so a field is typed only as far as all agree on it; a field that
may be anything is an `object`, checked where it is used.
"""

import json

import msgspec

from chatd.providers.wire import Failure, ProviderFailed

BODY_BYTES_MAX = 16 * 1024


class FunctionDelta(msgspec.Struct):
    """A delta of a call's name or arguments."""

    name: str | None = None
    arguments: object = None  # Text to concatenate; with some endpoints the complete object.


class CallDelta(msgspec.Struct):
    """A delta of a tool call."""

    index: int | str | None = None
    id: str | int | None = None
    function: FunctionDelta | None = None
    extra_content: object = None  # Sent back to Google with the call.


class Delta(msgspec.Struct):
    """A delta of the answer."""

    content: str | list[object] | None = None
    refusal: str | None = None
    reasoning_content: object = None
    reasoning: object = None
    reasoning_details: object = None
    tool_calls: list[CallDelta] | None = None
    function_call: FunctionDelta | None = None  # The older field for a single call.
    annotations: object = None


class Choice(msgspec.Struct):
    """One of the alternative answers; only the first is read."""

    index: object = 0
    delta: Delta | None = None
    finish_reason: str | None = None
    usage: object = None
    error: object = None
    content_filter_results: object = None


class Chunk(msgspec.Struct):
    """One event."""

    choices: list[Choice] | None = None
    usage: object = None
    x_groq: object = None
    error: object = None
    citations: object = None
    search_results: object = None
    # Errors of endpoints that do not put them into `error`.
    message: object = None
    detail: object = None
    code: object = None
    type: object = None


_DECODER = msgspec.json.Decoder(Chunk)


def read_chunk(data: bytes) -> tuple[Chunk, bool]:
    """Return the chunk, and whether its texts may contain lone surrogates.

    Raises:
        ProviderFailed: It is no chunk.
    """
    try:
        return _DECODER.decode(data), False
    except RecursionError as error:
        raise _unreadable(data, error) from None
    except ValueError as error:
        return _read_damaged(data, error), True


def to_json(value: object) -> str:
    """Return a value of a chunk as JSON.

    Raises:
        ProviderFailed: It is nested too deeply.
    """
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except RecursionError as error:
        raise _unreadable(b"", error) from None


def _read_damaged(data: bytes, first: ValueError) -> Chunk:
    """Decode almost valid JSON: invalid UTF-8, raw control characters, split surrogates."""
    if isinstance(first, msgspec.ValidationError) and "out of range" not in str(first):
        raise _unreadable(data, first)
    try:
        value = json.loads(data.decode(errors="replace"), strict=False, parse_constant=_nothing)
        return msgspec.convert(value, Chunk)
    except (ValueError, RecursionError) as error:
        raise _unreadable(data, error) from None


def _nothing(_name: str) -> None:
    """Decode NaN and the infinities, which JSON does not have, as None."""


def _unreadable(data: bytes, error: Exception) -> ProviderFailed:
    text = f"an event of the stream cannot be read: {error}"
    return ProviderFailed(Failure(text, body=data[:BODY_BYTES_MAX], is_garbled=True))
