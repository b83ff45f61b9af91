"""Reads the JSON body, the query and the idempotency key of a request.

Bodies are limited before they are parsed and decoded directly into their type. Every error is
reported with its location.
"""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Hashable, Iterator, Mapping
from contextlib import aclosing
from functools import cache
from sys import float_info
from typing import Any, TypeVar, cast

import msgspec
from msgspec import inspect
from starlette.requests import ClientDisconnect, Request
from starlette.types import Receive

from gateway.http.body_errors import FIELD_ERRORS_MAX, field_errors_of, field_names, nearest
from gateway.http.problems.errors import FieldError, HttpProblem, invalid_request
from gateway.http.problems.field_paths import escaped, pointer_of
from gateway.http.problems.rule_errors import rule_errors_of
from gateway.http.sse import ENDING_EVENTS

BODY_BYTES_MAX = 256 * 1024
BODY_S_MAX = 30.0
DRAINED_BYTES_MAX = 8 * 1024 * 1024
DRAINED_S_MAX = 1.0
IDEMPOTENCY_KEY_CHARACTERS_MAX = 128
JSON_TYPE = "application/json"
MERGE_PATCH_TYPE = "application/merge-patch+json"

_AT = re.compile(r" - at (?:`key` in )?`\$(.*)`$", re.DOTALL)
_BYTE = re.compile(r"\(byte (\d+)\)")
_KEY = re.compile(r'"((?:[^"\\]|\\["\\])*)"|([!#-\[\]-~]+)')

T = TypeVar("T")


async def read_json(request: Request, body_type: type[T]) -> T:
    """Return the body as `body_type`.

    Raises:
        HttpProblem: It is too large (413), not JSON (400, 415), or not of that type (422).
    """
    _check_media_type(request, JSON_TYPE)
    return decode(await _bounded(request), body_type)


async def read_patch(request: Request, body_type: type[T]) -> T:
    """Return a JSON Merge Patch as `body_type`, whose fields may all be unset.

    Raises:
        HttpProblem: It is invalid (400, 413, 415, 422), or contains no field (422).
    """
    _check_media_type(request, MERGE_PATCH_TYPE, JSON_TYPE)
    patch = decode(await _bounded(request), body_type)
    names = field_names(body_type)
    if all(getattr(patch, name) is msgspec.UNSET for name in names):
        detail = f"Name some of {', '.join(names)}."
        raise invalid_request(FieldError("EMPTY_PATCH", detail, pointer=""))
    return patch


async def read_optional_json(request: Request, body_type: type[T]) -> T:
    """Return the body as `body_type`, or its default if there is no body.

    Raises:
        HttpProblem: There is an invalid body (400, 413, 415, 422).
    """
    body = await _bounded(request)
    if not body:
        return body_type()
    _check_media_type(request, JSON_TYPE)
    return decode(body, body_type)


async def read_bytes(
    request: Request,
    too_large: HttpProblem,
    *,
    bytes_max: int,
    s_max: float,
    pieces: AsyncGenerator[bytes, None] | None = None,
) -> bytes:
    """Return the body unchanged, read from `pieces` if that is given.

    Raises:
        HttpProblem: It is too large (`too_large`), too slow (408), or the client disconnected
            (499).
    """
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared) > bytes_max:
        raise too_large
    body = bytearray()
    try:
        async with asyncio.timeout(s_max), aclosing(pieces or request.stream()) as chunks:
            async for chunk in chunks:
                body += chunk
                if len(body) > bytes_max:
                    raise too_large
    except TimeoutError:
        raise HttpProblem.of(
            "BODY_TOO_SLOW",
            f"The body did not arrive within {s_max:g} s, or stopped on its way.",
            headers={"connection": "close"},
        ) from None
    except ClientDisconnect:
        raise HttpProblem.of("CLIENT_CLOSED_REQUEST", "The client went away.") from None
    return bytes(body)


def decode(body: bytes, body_type: type[T]) -> T:
    """Return `body` as `body_type`.

    Raises:
        HttpProblem: It is not JSON (400), or not of that type (422).
    """
    try:
        decoded = msgspec.json.decode(body, type=body_type)
    except msgspec.ValidationError as error:
        raise _unacceptable(body, body_type, str(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _not_json(body, error) from None
    except RecursionError:
        raise _too_deep() from None
    if _has_raw_members(cast(Hashable, body_type)):
        # Raw members are not decoded above; what is no JSON in them is refused too.
        _parsed(body)
    nul_faults = _nul_faults(_parsed(body)) if b"\\u0000" in body else ()
    if nul_faults:
        raise invalid_request(*nul_faults)
    return decoded


@cache
def _has_raw_members(body_type: Hashable) -> bool:
    """Return whether a type has members whose JSON is kept as it is."""
    return _has_raw(inspect.type_info(body_type))


def _has_raw(kind: Any) -> bool:
    match kind:
        case inspect.RawType():
            return True
        case inspect.Metadata(type=inner):
            return _has_raw(inner)
        case inspect.UnionType(types=members):
            return any(map(_has_raw, members))
        case inspect.StructType(fields=fields):
            return any(_has_raw(field.type) for field in fields)
        case inspect.VarTupleType(item_type=item) | inspect.ListType(item_type=item):
            return _has_raw(item)
        case inspect.DictType(value_type=value):
            return _has_raw(value)
        case _:
            return False


def _unacceptable(body: bytes, body_type: Any, refusal: str) -> HttpProblem:
    """Return all errors of a body that the decoder rejected."""
    value = _parsed(body)
    faults = (*field_errors_of(value, body_type), *_nul_faults(value))[:FIELD_ERRORS_MAX]
    faults += rule_errors_of(value, body_type, faults, FIELD_ERRORS_MAX - len(faults))
    if not faults:
        at = _AT.search(refusal)
        pointer = pointer_of(at[1]) if at else ""
        faults = (FieldError("INVALID", "This value cannot be accepted.", pointer=pointer),)
    return invalid_request(*faults)


def _parsed(body: bytes) -> object:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _not_json(body, error) from None
    except RecursionError:
        raise _too_deep() from None


def _too_deep() -> HttpProblem:
    return HttpProblem.of("INVALID_JSON", "The body is nested too deeply.")


def read_query(
    request: Request,
    *known: str,
    repeatable: tuple[str, ...] = (),
) -> Mapping[str, str]:
    """Return the query parameters; of a repeatable one the last value.

    Args:
        request: The request.
        known: The names that may be given once.
        repeatable: The names that may be given more than once.

    Raises:
        HttpProblem: One is unknown, repeated, or contains NUL (422).
    """
    known = (*known, *repeatable)
    found: dict[str, str] = {}
    faults: list[FieldError] = []
    for name, value in request.query_params.multi_items():
        if len(faults) == FIELD_ERRORS_MAX:
            break
        if name not in known:
            detail = f"Unknown.{nearest(name, known)}"
            if "Known: " not in detail:
                detail += f" Known: {', '.join(known)}."
            faults.append(FieldError("UNKNOWN_PARAMETER", detail, parameter=name))
        elif name in found and name not in repeatable:
            faults.append(FieldError("REPEATED", "Give it once.", parameter=name))
        elif "\0" in value:
            faults.append(FieldError("NUL", "Leave out the NUL character.", parameter=name))
        found[name] = value
    if faults:
        raise invalid_request(*faults[:FIELD_ERRORS_MAX])
    return found


def int_parameter(query: Mapping[str, str], name: str, *, least: int, most: int) -> int | None:
    """Return a parameter as a number; None if it is absent.

    Raises:
        HttpProblem: It is not a number from `least` to `most` (422).
    """
    text = query.get(name)
    if text is None:
        return None
    if text.isascii() and text.isdigit() and len(text) <= 16 and least <= int(text) <= most:
        return int(text)
    detail = f"Give a whole number from {least} to {most}."
    raise invalid_request(FieldError("NOT_IN_RANGE", detail, parameter=name))


def flag(query: Mapping[str, str], name: str) -> bool:
    """Return whether a parameter is true; absent is false.

    Raises:
        HttpProblem: It is neither true nor false (422).
    """
    text = query.get(name, "false")
    if text not in ("true", "false"):
        raise invalid_parameter(name, "Give true or false.")
    return text == "true"


def event_types(query: Mapping[str, str], known: tuple[str, ...]) -> frozenset[str]:
    """Return the requested event types, separated by commas; none means all.

    Raises:
        HttpProblem: One of them is not known (422).
    """
    wanted = frozenset(filter(None, query.get("types", "").split(",")))
    known = tuple(dict.fromkeys((*known, *ENDING_EVENTS)))
    if unknown := sorted(wanted - set(known)):
        detail = f"{unknown[0][:64]!r} is no type of event here. Give some of {', '.join(known)}."
        raise invalid_parameter("types", detail)
    return wanted


def invalid_parameter(name: str, detail: str) -> HttpProblem:
    """Return the error for a query parameter's value."""
    return invalid_request(FieldError("INVALID", detail, parameter=name))


def idempotency_key(request: Request) -> str | None:
    """Return the Idempotency-Key, with or without the quotes of a structured string.

    Raises:
        HttpProblem: It is not 1 to 128 printable characters (400).
    """
    text = request.headers.get("idempotency-key")
    if text is None:
        return None
    match = _KEY.fullmatch(text.strip())
    key = "" if match is None else match[1] or match[2] or ""
    key = re.sub(r'\\(["\\])', r"\1", key)
    if not 1 <= len(key) <= IDEMPOTENCY_KEY_CHARACTERS_MAX or not key.isascii():
        detail = f"Give 1 to {IDEMPOTENCY_KEY_CHARACTERS_MAX} printable ASCII characters."
        raise HttpProblem.of(
            "INVALID_IDEMPOTENCY_KEY",
            f"Idempotency-Key: {detail}",
            errors=(FieldError("WRONG_FORMAT", detail, parameter="Idempotency-Key"),),
        )
    return key


async def drain(receive: Receive) -> None:
    """Read and discard the body for a short time.

    A connection that is closed while its client still sends is reset, and the client may never read
    the response. Most bodies end, or their clients stop, within these limits.
    """
    drained_bytes, has_more = 0, True
    try:
        async with asyncio.timeout(DRAINED_S_MAX):
            while has_more and drained_bytes < DRAINED_BYTES_MAX:
                message = await receive()
                drained_bytes += len(message.get("body", b""))
                has_more = message.get("more_body", False)
    except TimeoutError:
        return


def _check_media_type(request: Request, *accepted: str) -> None:
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if given not in accepted:
        raise HttpProblem.of(
            "UNSUPPORTED_MEDIA_TYPE",
            f"Send the body as Content-Type: {' or '.join(accepted)}.",
            errors=(
                FieldError(
                    "NOT_A_CHOICE", f"Give one of {', '.join(accepted)}.", parameter="Content-Type"
                ),
            ),
        )


async def _bounded(request: Request) -> bytes:
    return await read_bytes(request, _too_large(), bytes_max=BODY_BYTES_MAX, s_max=BODY_S_MAX)


def _too_large() -> HttpProblem:
    return HttpProblem.of(
        "BODY_TOO_LARGE",
        f"The body may have {BODY_BYTES_MAX} bytes; send less, or send files as files.",
        headers={"connection": "close"},
        facts={"limit_bytes": BODY_BYTES_MAX},
    )


def _nul_faults(value: object) -> tuple[FieldError, ...]:
    return tuple(
        FieldError("NUL", "Leave out the NUL character.", pointer=pointer)
        for pointer, text in _texts(value, "")
        if "\0" in text
    )[:FIELD_ERRORS_MAX]


def _texts(value: object, pointer: str) -> Iterator[tuple[str, str]]:
    """Yield every string of a decoded document with its pointer; keys are included."""
    match value:
        case str():
            yield pointer, value
        case list():
            for index, item in enumerate(value):
                yield from _texts(item, f"{pointer}/{index}")
        case dict():
            for key, item in value.items():
                at = f"{pointer}/{escaped(key)}"
                yield at, key
                yield from _texts(item, at)


def _not_json(body: bytes, error: Exception) -> HttpProblem:
    """Return the error for invalid JSON, with the offset of the error."""
    where = _stopped_at(body, str(error))
    if where is None:
        is_number = "Number" in str(error) or "Integer" in str(error)
        detail = (
            f"The body has a number beyond {float_info.max:.3g}; give a smaller one."
            if is_number
            else "The body has half of a surrogate pair, such as \\ud800 without the other half."
        )
        return HttpProblem.of("INVALID_JSON", detail)
    before = body[:where].decode(errors="replace")
    line, column = before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
    return HttpProblem.of(
        "INVALID_JSON",
        f"The body is not one JSON document in UTF-8; see line {line}, column {column}.",
        facts={"line": line, "column": column},
    )


def _stopped_at(body: bytes, message: str) -> int | None:
    """Return the offset of the invalid byte; None if it is unknown."""
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        return error.start
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return len(text[: error.pos].encode())
    except RecursionError:
        return 0
    except ValueError:  # An integer with more digits than Python parses.
        return None
    # It accepts more than JSON, such as NaN, which only the decoder rejects.
    found = _BYTE.search(message)
    return None if found is None else int(found[1])
