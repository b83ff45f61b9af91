"""Path and query parameters of requests, as the fields of messages.

An invalid id in a path is answered like one that does not exist.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import msgspec
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from starlette.requests import Request

from gateway.api.json_input import value_type
from gateway.http.body_errors import FIELD_ERRORS_MAX, nearest
from gateway.http.problems.errors import FieldError, HttpProblem, invalid_request
from parley.contract.bindings import PathVariable
from parley.contract.errors import error_spec
from parley.contract.json_fields import JsonField, enum_words, json_field
from parley.contract.rules import JSON_INTEGER_MAX, Rules

CURSOR_CHARACTERS_MAX = 1024
RESOURCE_NOT_FOUND = "RESOURCE_NOT_FOUND"
#: Id in the path of a route that is more than a call -> the reason if there is no such resource.
NOT_FOUND_REASONS = {
    "chat_id": "CHAT_NOT_FOUND",
    "file_id": "FILE_NOT_FOUND",
    "process_id": "PROCESS_NOT_FOUND",
    "workspace_id": "WORKSPACE_NOT_FOUND",
}
TIMESTAMP = "google.protobuf.Timestamp"

_CANONICAL = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_NAME = re.compile(r"[A-Za-z0-9._-]{1,128}")

#: Converts the values of a parameter; raises ValueError with the text that follows its name.
Parser = Callable[[list[str]], Any]


@dataclass(frozen=True, slots=True)
class QueryParameter:
    """A query parameter.

    Attributes:
        name: Its name.
        field: The request field that it sets.
        is_repeatable: Whether it may be given more than once.
        parse: Converts its values.
    """

    name: str
    field: FieldDescriptor
    is_repeatable: bool
    parse: Parser

    def put(self, message: Message, value: Any) -> None:
        """Set the field."""
        match value:
            case dict():
                getattr(message, self.field.name).update(value)
            case list():
                getattr(message, self.field.name).extend(value)
            case datetime():
                getattr(message, self.field.name).FromDatetime(value)
            case _:
                setattr(message, self.field.name, value)


class _Invalid(Exception):
    """A value that a parameter cannot have."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


def query_parameters(message: Descriptor, without: frozenset[str]) -> Mapping[str, QueryParameter]:
    """Return the query parameters that set the public fields of a message.

    A field whose value is a message has no form in a query, except for a time and for a map.

    Args:
        message: The request message.
        without: Names of fields that other parts of the request set.
    """
    found: dict[str, QueryParameter] = {}
    for descriptor in message.fields:
        field = json_field(descriptor)
        if field is None or not field.is_input or descriptor.name in without:
            continue
        if field.is_map or not _is_message(descriptor):
            found[field.name] = QueryParameter(
                field.name, descriptor, descriptor.is_repeated, _parser(field)
            )
    return found


def read_query_into(
    message: Message, request: Request, known: Mapping[str, QueryParameter]
) -> None:
    """Set the fields of a message that the query names.

    Raises:
        HttpProblem: A parameter is unknown, repeated, missing or invalid (422); all are reported.
    """
    faults: list[FieldError] = []
    given: dict[str, list[str]] = {}
    for name, value in request.query_params.multi_items():
        if len(faults) == FIELD_ERRORS_MAX:
            break
        parameter = known.get(name)
        if parameter is None:
            faults.append(_unknown(name, tuple(known)))
        elif name in given and not parameter.is_repeatable:
            faults.append(FieldError("REPEATED", "Give it once.", parameter=name))
        elif "\0" in value:
            faults.append(FieldError("NUL", "Leave out the NUL character.", parameter=name))
        else:
            given.setdefault(name, []).append(value)
    for name, parameter in known.items():
        if name not in given:
            continue
        try:
            parameter.put(message, parameter.parse(given[name]))
        except _Invalid as problem:
            faults.append(FieldError(problem.code, problem.detail, parameter=name))
    if faults:
        raise invalid_request(*faults[:FIELD_ERRORS_MAX])


def _unknown(name: str, known: tuple[str, ...]) -> FieldError:
    detail = f"Unknown.{nearest(name, known)}"
    if "Known: " not in detail:
        detail += f" Known: {', '.join(known)}."
    return FieldError("UNKNOWN_PARAMETER", detail, parameter=name)


def path_id(request: Request, name: str) -> str:
    """Return an id of the path in canonical form, so that all processes hash it alike.

    Raises:
        HttpProblem: It is not an id, so there is no such resource (404).
    """
    found = uuid_of(request.path_params[name])
    if found is None:
        raise not_found(NOT_FOUND_REASONS[name])
    return found


def not_found(reason: str) -> HttpProblem:
    """Return the error for a resource that does not exist for this user."""
    return HttpProblem.of(reason, error_spec(reason).meaning)


def path_value(variable: PathVariable, text: str) -> Any:
    """Return the value of a path variable.

    Raises:
        HttpProblem: It cannot be an id, so there is no such resource (404).
    """
    field = variable.fields[-1]
    declared = json_field(field)
    rules = Rules() if declared is None else declared.rules
    if field.enum_type is not None:
        numbers = {word: number for number, word in enum_words(field.enum_type).items()}
        if text in numbers:
            return numbers[text]
    elif field.cpp_type == FieldDescriptor.CPPTYPE_INT64:
        if text.isascii() and text.isdigit() and len(text) <= 16:
            number = int(text)
            if 0 < number <= JSON_INTEGER_MAX:
                return number
    elif rules.is_uuid:
        if (found := uuid_of(text)) is not None:
            return found
    elif _NAME.fullmatch(text):
        return text
    raise _not_found_by(declared)


def uuid_of(text: str) -> str | None:
    """Return an id in canonical form; None if the text is no id."""
    if _CANONICAL.fullmatch(text):
        return text
    try:
        return str(UUID(text))
    except ValueError:
        return None


def _not_found_by(field: JsonField | None) -> HttpProblem:
    if field is not None and field.options.resource:
        resource = field.options.resource
        detail = f"There is no such {resource}, or you may not see it."
        return HttpProblem(404, RESOURCE_NOT_FOUND, detail, facts={"resource": resource})
    return not_found("" if field is None else field.options.not_found_reason)


def _is_message(descriptor: FieldDescriptor) -> bool:
    """Return whether the values of a field are messages with members, which a time is not."""
    message = descriptor.message_type
    return message is not None and message.full_name != TIMESTAMP


def _parser(field: JsonField) -> Parser:
    if field.is_map:
        return _pairs(field)
    if field.descriptor.is_repeated:
        convert, most = _single(field), field.rules.length_max

        def parse_all(texts: list[str]) -> Any:
            if most is not None and len(texts) > most:
                raise _Invalid("INVALID", f"Give at most {most}.")
            return [convert(text) for text in texts]

        return parse_all
    convert_one = _single(field)
    return lambda texts: convert_one(texts[-1])


def _single(field: JsonField) -> Callable[[str], Any]:
    descriptor = field.descriptor
    rules = (field.rules.items if descriptor.is_repeated else field.rules) or Rules()
    if descriptor.enum_type is not None:
        return _choice(descriptor, rules)
    if descriptor.message_type is not None:
        return _moment
    match descriptor.type:
        case FieldDescriptor.TYPE_BOOL:
            return _flag
        case FieldDescriptor.TYPE_STRING if field.name == "cursor":
            return _cursor
        case FieldDescriptor.TYPE_STRING:
            return lambda text: _text(text, rules)
        case _:
            return lambda text: _number(text, rules)


def _choice(descriptor: FieldDescriptor, rules: Rules) -> Callable[[str], int]:
    assert descriptor.enum_type is not None
    numbers = {
        word: number
        for number, word in enum_words(descriptor.enum_type).items()
        if number not in rules.excluded
    }

    def parse(text: str) -> int:
        if text not in numbers:
            raise _Invalid("INVALID", f"Give one of {', '.join(numbers)}.")
        return numbers[text]

    return parse


def _pairs(field: JsonField) -> Parser:
    """Return the parser of entries of a map, each written as key:value."""
    entries = value_type(field)

    def parse(texts: list[str]) -> dict[str, str]:
        pairs = [text.partition(":") for text in texts]
        found = {key: value for key, _, value in pairs}
        if len(found) < len(pairs):
            raise _Invalid("INVALID", "Give each key once.")
        try:
            return msgspec.convert(found, entries)  # type: ignore[no-any-return]
        except msgspec.ValidationError:
            raise _Invalid("INVALID", f"Give {field.options.pattern_description}.") from None

    return parse


def _flag(text: str) -> bool:
    if text not in ("true", "false"):
        raise _Invalid("INVALID", "Give true or false.")
    return text == "true"


def _number(text: str, rules: Rules) -> int:
    least, most = int(rules.least or 0), int(rules.most or JSON_INTEGER_MAX)
    if text.isascii() and text.isdigit() and len(text) <= 16 and least <= int(text) <= most:
        return int(text)
    raise _Invalid("NOT_IN_RANGE", f"Give a whole number from {least} to {most}.")


def _cursor(text: str) -> str:
    if len(text) > CURSOR_CHARACTERS_MAX or not (text.isascii() and text.isprintable()):
        raise _Invalid("INVALID", "Give next_cursor of the page before.")
    return text


def _text(text: str, rules: Rules) -> str:
    if rules.length_max is not None and len(text) > rules.length_max:
        raise _Invalid("INVALID", f"Give at most {rules.length_max} characters.")
    if rules.is_required and not text:
        raise _Invalid("INVALID", "Give a value.")
    return text


def _moment(text: str) -> datetime:
    invalid = _Invalid("INVALID", "Give a time like 2026-01-31T12:00:00Z.")
    try:
        # An unencoded plus sign arrives as a space.
        found = datetime.fromisoformat(text.replace(" ", "+"))
        if found.tzinfo is None:
            raise invalid
        # Near the ends of the calendar a time does not exist in UTC.
        return found.astimezone(UTC)
    except (ValueError, OverflowError):
        raise invalid from None
