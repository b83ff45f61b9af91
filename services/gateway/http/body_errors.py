"""Validation errors of a request body, field by field, with the expected values.

The decoder stops at the first error, with a message for programmers. So a rejected body is compared
here once more with the description of its type, and all errors are reported.
"""

import binascii
import difflib
import re
from collections.abc import Iterator
from datetime import datetime
from functools import cache
from typing import Annotated, Any

import msgspec
from msgspec import inspect

from gateway.http.problems.errors import FieldError
from gateway.http.problems.field_paths import escaped
from parley.contract.validation import counted

#: The most errors reported for one body.
FIELD_ERRORS_MAX = 100
CHOICES_SHOWN_MAX = 50

_KINDS: tuple[tuple[type, str], ...] = (
    (bool, "true or false"),
    (str, "a text"),
    (int, "a number"),
    (float, "a number"),
    (list, "a list"),
    (dict, "an object"),
)


def field_errors_of(value: object, body_type: Any) -> tuple[FieldError, ...]:
    """Return the errors of a decoded body, in the order of its fields."""
    found: list[FieldError] = []
    for fault in _faults(value, _description(body_type), ""):
        found.append(fault)
        if len(found) == FIELD_ERRORS_MAX:
            break
    return tuple(found)


@cache
def _description(body_type: Any) -> inspect.Type:
    """Return the description of a type, which takes milliseconds; there are as many as routes."""
    return inspect.type_info(body_type)


def field_names(body_type: Any) -> tuple[str, ...]:
    """Return the JSON names of a body's fields."""
    return tuple(field.encode_name for field in msgspec.structs.fields(body_type))


def nearest(name: str, known: tuple[str, ...]) -> str:
    """Return a hint at the closest known name, or at all of them."""
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f" Did you mean {close[0]!r}?" if close else f" Known: {', '.join(known) or 'none'}."


def _faults(value: object, kind: Any, pointer: str, about: str = "") -> Iterator[FieldError]:
    match kind:
        case inspect.Metadata(type=inner, extra_json_schema=schema):
            yield from _faults(value, inner, pointer, str((schema or {}).get("description", about)))
        case inspect.UnionType(types=members):
            yield from _union_faults(value, members, pointer, about)
        case inspect.StructType():
            yield from _struct_faults(value, kind, pointer)
        case inspect.DictType():
            yield from _dict_faults(value, kind, pointer)
        case inspect.VarTupleType(item_type=item) | inspect.ListType(item_type=item):
            yield from _list_faults(value, kind, item, pointer)
        case inspect.StrType():
            yield from _text_faults(value, kind, pointer, about)
        case inspect.EnumType() | inspect.LiteralType():
            yield from _choice_faults(value, _words(kind), pointer)
        case inspect.IntType() | inspect.FloatType():
            yield from _number_faults(value, kind, pointer)
        case inspect.BytesType():
            yield from _base64_faults(value, pointer)
        case inspect.DateTimeType():
            yield from _moment_faults(value, pointer)
        case inspect.BoolType() if not isinstance(value, bool):
            yield _wrong_kind(value, "true or false", pointer)
        case inspect.NoneType() if value is not None:
            yield _wrong_kind(value, "null", pointer)


def _struct_faults(value: object, kind: inspect.StructType, pointer: str) -> Iterator[FieldError]:
    if not isinstance(value, dict):
        yield _wrong_kind(value, "an object", pointer)
        return
    known = {field.encode_name: field for field in kind.fields}
    for name in value:
        if name not in known and name != kind.tag_field:
            at = f"{pointer}/{escaped(name)}"
            tag = () if kind.tag_field is None else (kind.tag_field,)
            hint = nearest(name, (*tag, *known))
            yield FieldError("UNKNOWN_FIELD", f"Unknown field.{hint}", pointer=at)
    yield from _either_faults(value, kind.cls, pointer)
    for name, field in known.items():
        at = f"{pointer}/{escaped(name)}"
        if name in value:
            yield from _faults(value[name], field.type, at)
        elif field.required:
            yield FieldError("MISSING_FIELD", "This field is required.", pointer=at)


def _either_faults(value: dict[Any, Any], body: Any, pointer: str) -> Iterator[FieldError]:
    """Yield the error of an object that has none or several of the fields of a oneof."""
    either: tuple[str, ...] = getattr(body, "either", ())
    detail = f"Give either {' or '.join(either)}."
    given = [name for name in either if value.get(name) is not None]
    if either and body.needs_either and sum(bool(value[name]) for name in given) != 1:
        yield FieldError("INVALID", detail, pointer=pointer or f"/{either[0]}")
    elif either and not body.needs_either and len(given) > 1:
        yield FieldError("INVALID", detail, pointer=f"{pointer}/{given[-1]}")


def _union_faults(
    value: object, members: tuple[Any, ...], pointer: str, about: str
) -> Iterator[FieldError]:
    """Yield the errors of a value that may be null, or one of several tagged objects."""
    if value is None and any(isinstance(member, inspect.NoneType) for member in members):
        return
    others = [member for member in members if not isinstance(member, inspect.NoneType)]
    if len(others) == 1:
        yield from _faults(value, others[0], pointer, about)
        return
    tagged = {member.tag: member for member in others if isinstance(member, inspect.StructType)}
    if not isinstance(value, dict):
        yield _wrong_kind(value, "an object", pointer)
        return
    tag_field = next(iter(tagged.values())).tag_field or "type"
    at, tag = f"{pointer}/{escaped(tag_field)}", value.get(tag_field)
    words = [str(word) for word in tagged]
    if tag_field not in value:
        yield FieldError("MISSING_FIELD", f"Give one of {', '.join(words)}.", pointer=at)
    elif not isinstance(tag, str) or tag not in tagged:
        yield from _choice_faults(tag, words, at)
    else:
        yield from _struct_faults(value, tagged[tag], pointer)


def _dict_faults(value: object, kind: inspect.DictType, pointer: str) -> Iterator[FieldError]:
    if not isinstance(value, dict):
        yield _wrong_kind(value, "an object", pointer)
        return
    faults = [*_length_faults(len(value), kind, "members", pointer)]
    yield from faults
    if faults:
        return
    for key, item in value.items():
        at = f"{pointer}/{escaped(key)}"
        for fault in _faults(key, kind.key_type, at):
            yield FieldError(fault.code, f"As a name: {fault.detail}", pointer=at)
        yield from _faults(item, kind.value_type, at)


def _list_faults(value: object, kind: Any, item_kind: Any, pointer: str) -> Iterator[FieldError]:
    if not isinstance(value, list):
        yield _wrong_kind(value, "a list", pointer)
        return
    faults = [*_length_faults(len(value), kind, "items", pointer)]
    yield from faults
    if faults:
        return
    for index, item in enumerate(value):
        yield from _faults(item, item_kind, f"{pointer}/{index}")


def _text_faults(
    value: object, kind: inspect.StrType, pointer: str, about: str
) -> Iterator[FieldError]:
    if not isinstance(value, str):
        wanted = f"a text ({about})" if about else "a text"
        yield _wrong_kind(value, wanted, pointer)
        return
    is_reported = False
    for fault in _length_faults(len(value), kind, "characters", pointer):
        is_reported = True
        yield fault
    if not is_reported and kind.pattern is not None and re.search(kind.pattern, value) is None:
        yield FieldError("WRONG_FORMAT", f"Give {about}.", pointer=pointer)


def _choice_faults(value: object, words: list[str], pointer: str) -> Iterator[FieldError]:
    if not isinstance(value, str) or value not in words:
        yield FieldError(
            "NOT_A_CHOICE", f"Give one of {', '.join(words[:CHOICES_SHOWN_MAX])}.", pointer=pointer
        )


def _number_faults(
    value: object, kind: inspect.IntType | inspect.FloatType, pointer: str
) -> Iterator[FieldError]:
    is_whole = isinstance(kind, inspect.IntType)
    wanted = "a whole number" if is_whole else "a number"
    if isinstance(value, bool) or not isinstance(value, int if is_whole else int | float):
        yield _wrong_kind(value, wanted, pointer)
        return
    least, most = kind.ge, kind.le
    if (least is not None and value < least) or (most is not None and value > most):
        yield FieldError("NOT_IN_RANGE", f"Give {wanted} {_span(least, most)}.", pointer)


def _moment_faults(value: object, pointer: str) -> Iterator[FieldError]:
    if not isinstance(value, str):
        yield _wrong_kind(value, "a time as a text", pointer)
        return
    try:
        msgspec.convert(value, Annotated[datetime, msgspec.Meta(tz=True)])
    except msgspec.ValidationError:
        yield FieldError("WRONG_FORMAT", "Give a time like 2026-01-31T12:00:00Z.", pointer=pointer)


def _base64_faults(value: object, pointer: str) -> Iterator[FieldError]:
    if not isinstance(value, str):
        yield _wrong_kind(value, "bytes as a text in base64", pointer)
        return
    try:
        binascii.a2b_base64(value, strict_mode=True)
    except (binascii.Error, ValueError):
        yield FieldError("WRONG_FORMAT", "Give bytes as a text in base64.", pointer=pointer)


def _length_faults(length: int, kind: Any, what: str, pointer: str) -> Iterator[FieldError]:
    least, most = kind.min_length or 0, kind.max_length
    if least <= length and (most is None or length <= most):
        return
    detail = f"Give {_count(least, most, what)}; these are {length}."
    yield FieldError("TOO_SHORT" if length < least else "TOO_LONG", detail, pointer)


def _wrong_kind(value: object, wanted: str, pointer: str) -> FieldError:
    given = next((word for kind, word in _KINDS if isinstance(value, kind)), "null")
    if given == "a number" and wanted == "a whole number":
        given = "one with a fraction or an exponent"
    return FieldError("WRONG_TYPE", f"Give {wanted}, not {given}.", pointer=pointer)


def _words(kind: Any) -> list[str]:
    if isinstance(kind, inspect.EnumType):
        return [str(word.value) for word in kind.cls]
    return [str(word) for word in kind.values]


def _span(least: float | None, most: float | None) -> str:
    if most is None:
        return f"of at least {least}"
    return f"of at most {most}" if least is None else f"from {least} to {most}"


def _count(least: int, most: int | None, what: str) -> str:
    if most is None:
        return f"at least {counted(least, what)}"
    return f"{least} to {counted(most, what)}" if least else f"at most {counted(most, what)}"
