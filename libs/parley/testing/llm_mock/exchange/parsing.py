"""Strict parsing of a request: its JSON into declared types, and errors with their location."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

import msgspec

T = TypeVar("T")

MISSING = re.compile(r"Object missing required field `([^`]+)`")
UNKNOWN = re.compile(r"Object contains unknown field `([^`]+)`")
PLACE = re.compile(r" - at `\$?([^`]*)`$")
DEPTH_MAX = 4


class ParseErrorKind(StrEnum):
    """The kinds of errors of a field."""

    MISSING = "missing"
    UNKNOWN = "unknown"
    INVALID = "invalid"
    NOT_JSON = "not_json"


@dataclass(frozen=True, slots=True)
class Place:
    """A location in a request, as steps through objects and arrays."""

    steps: tuple[str | int, ...] = ()

    def __truediv__(self, step: str | int) -> "Place":
        return Place((*self.steps, step))

    def dotted(self) -> str:
        """Return the location in the notation of Anthropic: `messages.0.content`."""
        return ".".join(map(str, self.steps))

    def indexed(self) -> str:
        """Return the location in the notation of OpenAI: `messages[0].content`."""
        text = "".join(f"[{s}]" if isinstance(s, int) else f".{s}" for s in self.steps)
        return text.removeprefix(".")


class ParseError(Exception):
    """A part of a request is invalid."""

    def __init__(self, wrong: ParseErrorKind, place: Place, text: str) -> None:
        super().__init__(f"{place.dotted()}: {text}")
        self.wrong = wrong
        self.place = place
        self.text = text


class Typed(msgspec.Struct):
    """An object with a `type`."""

    type: str = ""


def read(data: bytes | msgspec.Raw, kind: type[T], place: Place = Place()) -> T:  # noqa: B008 (immutable)
    """Parse the JSON as a value of the kind.

    Raises:
        ParseError: it is not one.
    """
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.ValidationError as error:
        raise _unreadable(str(error), place) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ParseError(ParseErrorKind.NOT_JSON, place, str(error)) from error


def read_typed(
    raw: msgspec.Raw, kinds: Mapping[str, type[msgspec.Struct]], place: Place, usual: str = ""
) -> msgspec.Struct:
    """Parse an object by its `type`; kinds whose value is `Typed` are not parsed further.

    Raises:
        ParseError: the type is unknown, or the object does not match it.
    """
    said = read(raw, Typed, place).type or usual
    if not said:
        raise ParseError(ParseErrorKind.MISSING, place / "type", "Field required")
    if said not in kinds:
        known = ", ".join(f"'{kind}'" for kind in kinds)
        raise ParseError(
            ParseErrorKind.INVALID,
            place / "type",
            f"Invalid value: '{said}'. Supported values are: {known}",
        )
    return read(raw, kinds[said], place)


def sample_arguments(schema: object) -> str:
    """Return arguments that are valid for the required fields of a JSON schema."""
    return msgspec.json.encode(_sample(schema, DEPTH_MAX)).decode()


def _unreadable(text: str, place: Place) -> ParseError:
    for step in re.findall(r"\w+", found[1]) if (found := PLACE.search(text)) else ():
        place /= int(step) if step.isdecimal() else step
    text = PLACE.sub("", text)
    if (missing := MISSING.search(text)) is not None:
        return ParseError(ParseErrorKind.MISSING, place / missing[1], "Field required")
    if (unknown := UNKNOWN.search(text)) is not None:
        return ParseError(
            ParseErrorKind.UNKNOWN, place / unknown[1], "Extra inputs are not permitted"
        )
    return ParseError(ParseErrorKind.INVALID, place, text)


def _sample(schema: object, depth: int) -> object:
    if not isinstance(schema, dict) or depth == 0:
        return {}
    if "const" in schema:
        return schema["const"]
    for name in ("enum", "anyOf", "oneOf"):
        match schema.get(name):
            case [first, *_]:
                return first if name == "enum" else _sample(first, depth - 1)
    match schema.get("type"):
        case [first, *_]:
            return _sample({**schema, "type": first}, depth - 1)
        case "string":
            return "mock"
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            return True
        case "array":
            return [_sample(schema.get("items"), depth - 1)] if schema.get("minItems") else []
        case "null":
            return None
        case _:
            return _sample_object(schema, depth)


def _sample_object(schema: dict[str, object], depth: int) -> object:
    fields, required = schema.get("properties"), schema.get("required")
    if not isinstance(fields, dict) or not isinstance(required, list):
        return {}
    names = [name for name in required if isinstance(name, str)]
    return {name: _sample(fields.get(name), depth - 1) for name in names}
