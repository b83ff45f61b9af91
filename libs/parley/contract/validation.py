"""Checks messages against the rules of their fields.

A checker is compiled once for each message type; fields without rules cost nothing. The semantics
are those of protovalidate: rules apply to every value of a field without presence, unless it is
declared to ignore the zero value. One rule is added: a string that has rules contains no NUL, which
neither PostgreSQL nor the arguments of programs can hold.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from buf.validate import validate_pb2
from parley.api.contract.v1 import options_pb2
from parley.contract.rules import UUID_PATTERN, Rules, rules_of

#: The most violations reported for one message.
VIOLATIONS_MAX = 100
MUST_BE_GIVEN = "must be given"

_UUID = re.compile(UUID_PATTERN)

#: Returns what is wrong with a value; None if nothing is.
ValueCheck = Callable[[Any], str | None]


@dataclass(frozen=True, slots=True)
class RuleViolation:
    """A value that breaks a rule.

    Attributes:
        field: Path of the field, as in the proto.
        description: What is required.
    """

    field: str
    description: str


#: Adds the violations of a message, whose path ends with a dot or is empty.
MessageCheck = Callable[[Any, str, list[RuleViolation]], None]


def violations_of(message: Message) -> tuple[RuleViolation, ...]:
    """Return what is wrong with a message, at most `VIOLATIONS_MAX`."""
    found: list[RuleViolation] = []
    for check in _checks(message.DESCRIPTOR):
        check(message, "", found)
    return tuple(found[:VIOLATIONS_MAX])


def value_check_of(field: FieldDescriptor, rules: Rules) -> ValueCheck | None:
    """Return the check of a value that was given for a field, or as an item of it; None for any."""
    if field.GetOptions().Extensions[options_pb2.json].not_found_reason:
        return None
    check_value, has_presence = _value_check(field, rules), field.has_presence
    if check_value is None and not rules.is_required:
        return None

    def check(value: Any) -> str | None:
        if not value and not has_presence:
            if rules.is_required:
                return MUST_BE_GIVEN
            if rules.ignores_zero:
                return None
        return None if check_value is None else check_value(value)

    return check


@cache
def _checks(message: Descriptor) -> list[MessageCheck]:
    found: list[MessageCheck] = []
    for field in message.fields:
        check = _field_check(field)
        if check is not None:
            found.append(check)
    for oneof in message.oneofs:
        if oneof.GetOptions().Extensions[validate_pb2.oneof].required:
            found.append(_oneof_check(oneof.name, [field.name for field in oneof.fields]))
    return found


def _oneof_check(name: str, members: list[str]) -> MessageCheck:
    def check(message: Any, prefix: str, found: list[RuleViolation]) -> None:
        if message.WhichOneof(name) is None:
            problem = f"must have one of {', '.join(members)}"
            found.append(RuleViolation(prefix.removesuffix(".") or name, problem))

    return check


def _field_check(field: FieldDescriptor) -> MessageCheck | None:
    if field.GetOptions().Extensions[options_pb2.json].not_found_reason:
        # A servicer answers an id that cannot be one like that of an absent resource.
        return None
    rules, inner = rules_of(field), field.message_type
    if inner is not None and inner.GetOptions().map_entry:
        return _map_check(field, rules)
    if field.is_repeated:
        return _list_check(field, rules)
    return _scalar_check(field, rules) if inner is None else _message_check(field, rules)


def _message_check(field: FieldDescriptor, rules: Rules) -> MessageCheck | None:
    inner, name = field.message_type, field.name
    assert inner is not None
    if inner.file.package.startswith("google.") and not rules.is_required:
        return None

    def check(message: Any, prefix: str, found: list[RuleViolation]) -> None:
        if message.HasField(name):
            value = getattr(message, name)
            for check_inner in _checks(inner):
                check_inner(value, f"{prefix}{name}.", found)
        elif rules.is_required:
            found.append(RuleViolation(f"{prefix}{name}", MUST_BE_GIVEN))

    return check


def _scalar_check(field: FieldDescriptor, rules: Rules) -> MessageCheck | None:
    name, has_presence = field.name, field.has_presence
    check_value = _value_check(field, rules)
    if check_value is None and not rules.is_required:
        return None

    def check(message: Any, prefix: str, found: list[RuleViolation]) -> None:
        value = getattr(message, name)
        if not value and (not has_presence or not message.HasField(name)):
            if rules.is_required:
                found.append(RuleViolation(f"{prefix}{name}", MUST_BE_GIVEN))
            if rules.is_required or has_presence or rules.ignores_zero:
                return
        problem = None if check_value is None else check_value(value)
        if problem is not None:
            found.append(RuleViolation(f"{prefix}{name}", problem))

    return check


def _list_check(field: FieldDescriptor, rules: Rules) -> MessageCheck | None:
    name, inner = field.name, field.message_type
    check_item = None if inner is not None else _value_check(field, rules.items or Rules())
    has_length = rules.length_min or rules.length_max is not None
    if inner is None and check_item is None and not has_length and not rules.is_unique:
        return None

    def check(message: Any, prefix: str, found: list[RuleViolation]) -> None:
        items = getattr(message, name)
        problem = _length(len(items), rules, "items")
        if problem is not None:
            # The items of a list that is too long are not checked: there may be millions.
            found.append(RuleViolation(f"{prefix}{name}", problem))
            return
        if rules.is_unique and len(set(items)) < len(items):
            found.append(RuleViolation(f"{prefix}{name}", "must not contain an item twice"))
        for index, item in enumerate(items):
            if len(found) >= VIOLATIONS_MAX:
                return
            if inner is not None:
                for check_inner in _checks(inner):
                    check_inner(item, f"{prefix}{name}[{index}].", found)
            elif check_item is not None and (problem := check_item(item)) is not None:
                found.append(RuleViolation(f"{prefix}{name}[{index}]", problem))

    return check


def _map_check(field: FieldDescriptor, rules: Rules) -> MessageCheck:
    assert field.message_type is not None
    entry, name = field.message_type.fields_by_name, field.name
    check_key = _value_check(entry["key"], rules.keys or Rules())
    check_value = _value_check(entry["value"], rules.items or Rules())

    def check(message: Any, prefix: str, found: list[RuleViolation]) -> None:
        entries = getattr(message, name)
        if not entries and not rules.length_min:
            return
        problem = _length(len(entries), rules, "entries")
        if problem is not None:
            found.append(RuleViolation(f"{prefix}{name}", problem))
            return
        for key, value in entries.items():
            if check_key is not None and (problem := check_key(key)) is not None:
                found.append(RuleViolation(f"{prefix}{name}.{key}", f"as a key {problem}"))
            if check_value is not None and (problem := check_value(value)) is not None:
                found.append(RuleViolation(f"{prefix}{name}.{key}", problem))
            if len(found) >= VIOLATIONS_MAX:
                return

    return check


def _value_check(field: FieldDescriptor, rules: Rules) -> ValueCheck | None:
    match field.cpp_type:
        case FieldDescriptor.CPPTYPE_STRING if field.type == FieldDescriptor.TYPE_BYTES:
            return _sized(rules, "bytes")
        case FieldDescriptor.CPPTYPE_STRING:
            return _text_check(rules)
        case FieldDescriptor.CPPTYPE_ENUM:
            return _choice_check(field, rules)
        case FieldDescriptor.CPPTYPE_BOOL | FieldDescriptor.CPPTYPE_MESSAGE:
            return None
        case _:
            return _number_check(rules)


def _sized(rules: Rules, unit: str) -> ValueCheck | None:
    if not rules.length_min and rules.length_max is None:
        return None
    return lambda value: _length(len(value), rules, unit)


def _text_check(rules: Rules) -> ValueCheck | None:
    size = _sized(rules, "characters")
    pattern = None if rules.pattern is None else re.compile(rules.pattern)
    if size is None and pattern is None and not rules.is_uuid and rules.bytes_max is None:
        return None

    def check(value: str) -> str | None:
        if "\0" in value:
            return "must not contain the NUL character"
        if rules.is_uuid and _UUID.fullmatch(value) is None:
            return "must be a UUID"
        if size is not None and (problem := size(value)) is not None:
            return problem
        if rules.bytes_max is not None and len(value.encode()) > rules.bytes_max:
            return f"must have at most {rules.bytes_max} bytes"
        if pattern is not None and pattern.search(value) is None:
            return f"must be {rules.pattern_description or f'text that matches {rules.pattern}'}"
        return None

    return check


def _choice_check(field: FieldDescriptor, rules: Rules) -> ValueCheck | None:
    if not rules.is_declared and not rules.excluded:
        return None
    assert field.enum_type is not None
    excluded, declared = rules.excluded, frozenset(field.enum_type.values_by_number)
    known = declared if rules.is_declared else None

    def check(value: int) -> str | None:
        is_refused = value in excluded or (known is not None and value not in known)
        return "must be another of its values" if is_refused else None

    return check


def _number_check(rules: Rules) -> ValueCheck | None:
    least, most = rules.least, rules.most
    if least is None and most is None:
        return None

    def check(value: float) -> str | None:
        if least is not None and value < least:
            return f"must be at least {least}"
        return f"must be at most {most}" if most is not None and value > most else None

    return check


def _length(length: int, rules: Rules, unit: str) -> str | None:
    if length < rules.length_min:
        return f"must have at least {counted(rules.length_min, unit)}, and has {length}"
    if rules.length_max is not None and length > rules.length_max:
        return f"must have at most {counted(rules.length_max, unit)}, and has {length}"
    return None


def counted(count: int, unit: str) -> str:
    """Return a number with its unit, which is given in the plural."""
    singular = "entry" if unit == "entries" else unit.removesuffix("s")
    return f"{count} {singular if count == 1 else unit}"
