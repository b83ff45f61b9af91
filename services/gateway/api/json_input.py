"""Reads JSON bodies into messages, as the options and rules of their fields declare it.

For each body a msgspec type is built from the descriptor once, with the rules of its fields, so
that decoding and checking are one pass. In a request that creates, null is the same as an absent
field. In a patch an absent field is not changed, and null clears a field that may be empty.
"""

from binascii import a2b_base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum, StrEnum
from functools import cache, reduce
from operator import or_
from typing import Annotated, Any, Union

import msgspec
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message
from msgspec import UNSET, UnsetType

from buf.validate import validate_pb2
from gateway.api.json_output import TIMESTAMP, TYPE
from gateway.http.problems.rule_errors import PROBLEM_OF, ProblemOf
from parley.contract.json_fields import JsonField, enum_words, is_tagged, json_fields
from parley.contract.rules import JSON_INTEGERS, UUID_PATTERN, Rules
from parley.contract.validation import value_check_of

#: A JSON object whose members are not decoded.
JsonObject = dict[str, msgspec.Raw]
#: A time with its offset from UTC.
Moment = Annotated[datetime, msgspec.Meta(tz=True)]
#: Sets one field of a message to a decoded value.
Setter = Callable[[Any, Any], None]


class BodyKind(Enum):
    """The kinds of bodies."""

    CREATE = "create"
    PATCH = "patch"


@dataclass(frozen=True, slots=True)
class Body:
    """The JSON body of a route.

    Attributes:
        type: The msgspec type of the body.
        fields: Its fields, by their JSON names.
    """

    type: type[msgspec.Struct]
    fields: Mapping[str, "BodyField"]

    def fill(self, message: Message, body: msgspec.Struct) -> list[str]:
        """Set the fields of a message that a body contains, and return their proto names."""
        given: list[str] = []
        for name, field in self.fields.items():
            value = getattr(body, name)
            if value is UNSET:
                continue
            if value is None:
                value = field.default
            if value is not None:
                field.put(message, value)
            given.append(field.path)
        return given


@dataclass(frozen=True, slots=True)
class BodyField:
    """A field of a body.

    Attributes:
        path: Its name in the message that a mask refers to.
        put: Sets it.
        default: Its value if it is null; None for empty.
    """

    path: str
    put: Setter
    default: Any


@cache
def body_of(
    message: Descriptor,
    kind: BodyKind,
    *,
    name: str,
    only: frozenset[str] = frozenset(),
    without: frozenset[str] = frozenset(),
) -> Body:
    """Return the body that sets the public fields of a message.

    Args:
        message: The message.
        kind: Whether the request creates or patches.
        name: The name of its type.
        only: JSON names of the fields that are accepted; empty for all.
        without: Proto names of fields that other parts of the request set.
    """
    members = {
        name: member
        for name, member in _members(message, kind).items()
        if (not only or name in only) and member.field.descriptor.name not in without
    }
    made = _struct(name, members, kind, either=_either(message, members))
    is_patch = kind is BodyKind.PATCH
    fields = {
        name: BodyField(each.path, each.put, None if is_patch else _default(each.field))
        for name, each in members.items()
    }
    return Body(made, fields)


@dataclass(frozen=True, slots=True)
class _Member:
    field: JsonField
    path: str
    put: Setter


def _members(message: Descriptor, kind: BodyKind) -> dict[str, _Member]:
    """Return the members of a body, with those of flattened messages."""
    found: dict[str, _Member] = {}
    for field in json_fields(message):
        if not field.is_input or (kind is BodyKind.PATCH and field.is_immutable):
            continue
        attribute = field.descriptor.name
        if field.options.flatten:
            is_one_of = field.descriptor.containing_oneof is not None
            for name, inner in _members(field.message, kind).items():
                # The members of a message that may be absent may be absent too.
                shown = replace(inner.field, is_required=False) if is_one_of else inner.field
                found[name] = _Member(shown, inner.path, _nested(attribute, inner.put))
        else:
            found[field.name] = _Member(field, attribute, _setter(field))
    return found


def _nested(attribute: str, put: Setter) -> Setter:
    def put_inside(message: Any, value: Any) -> None:
        inner = getattr(message, attribute)
        # An empty list is a value too: the message that contains it is present.
        inner.SetInParent()
        put(inner, value)

    return put_inside


def _struct(
    name: str,
    members: Mapping[str, _Member],
    kind: BodyKind,
    *,
    tag: str | None = None,
    either: "_Either | None" = None,
) -> type[msgspec.Struct]:
    fields: list[Any] = []
    for json_name, member in members.items():
        field, accepted = member.field, value_type(member.field)
        if kind is BodyKind.PATCH:
            nullable = Union[accepted, None] if _is_clearable(field) else accepted  # noqa: UP007
            fields.append((json_name, Union[nullable, UnsetType], UNSET))  # noqa: UP007
        elif field.is_required:
            fields.append((json_name, accepted))
        else:
            fields.append((json_name, Union[accepted, None], _default(field)))  # noqa: UP007
    return msgspec.defstruct(
        name,
        fields,
        frozen=True,
        kw_only=True,
        forbid_unknown_fields=True,
        tag_field=None if tag is None else TYPE,
        tag=tag,
        namespace=either.members() if either is not None else None,
    )


@dataclass(frozen=True, slots=True)
class _Either:
    """The fields of a oneof.

    Attributes:
        names: Their JSON names.
        is_required: Whether one of them is required.
    """

    names: tuple[str, ...]
    is_required: bool

    def members(self) -> dict[str, Any]:
        """Return the attributes of a body's type that has these fields."""
        is_required = self.is_required
        check = _check_one if is_required else _check_at_most_one
        return {"either": self.names, "needs_either": is_required, "__post_init__": check}


def _either(message: Descriptor, members: Mapping[str, _Member]) -> _Either | None:
    """Return the oneof of a body whose members are fields of their own."""
    public = {field.descriptor.name: field.name for field in json_fields(message)}
    for oneof in message.oneofs:
        listed = (public.get(field.name, "") for field in oneof.fields)
        names = tuple(name for name in listed if name in members)
        if len(names) > 1 and not is_tagged(message):
            is_required = oneof.GetOptions().Extensions[validate_pb2.oneof].required
            return _Either(names, is_required)
    return None


def _check_one(body: Any) -> None:
    if sum(bool(getattr(body, name)) for name in body.either) != 1:
        raise ValueError(f"give either {' or '.join(body.either)}")


def _check_at_most_one(body: Any) -> None:
    given = (getattr(body, name) for name in body.either)
    if sum(value is not None and value is not UNSET for value in given) > 1:
        raise ValueError(f"give either {' or '.join(body.either)}")


def _is_clearable(field: JsonField) -> bool:
    """Return whether null may clear the field in a patch."""
    is_bool = field.descriptor.type == FieldDescriptor.TYPE_BOOL
    may_be_empty = field.rules.may_be_empty or field.options.null_if_empty
    return not (is_bool or field.is_required) and may_be_empty


def _default(field: JsonField) -> Any:
    default = field.options.default_value
    if not default:
        return None
    if field.descriptor.type == FieldDescriptor.TYPE_BOOL:
        return default == "true"
    if field.descriptor.enum_type is not None:
        return _choices(field.descriptor.enum_type, field.rules.excluded)(default)
    return None


def value_type(field: JsonField) -> Any:
    """Return the msgspec type of a field's value."""
    rules = field.rules
    if field.is_map:
        entry = field.message.fields_by_name
        keys = _scalar_type(entry["key"], rules.keys or Rules(), field)
        values = _scalar_type(entry["value"], rules.items or Rules(), field)
        return _sized(dict[keys, values], rules)  # type: ignore[valid-type]
    if field.descriptor.is_repeated:
        items = _item_type(field)
        return _sized(tuple[items, ...], rules)  # type: ignore[valid-type]
    return _item_type(field)


def _item_type(field: JsonField) -> Any:
    message = field.descriptor.message_type
    if message is None:
        rules = field.rules.items if field.descriptor.is_repeated else field.rules
        return _scalar_type(field.descriptor, rules or Rules(), field)
    if message.full_name == TIMESTAMP:
        return Moment
    if not is_tagged(message):
        return nested_type(message)
    kinds = tuple(_kind_type(each) for each in json_fields(message) if each.is_input)
    return reduce(or_, kinds)


@cache
def nested_type(message: Descriptor) -> type[msgspec.Struct]:
    """Return the msgspec type of a message inside a body."""
    members = _members(message, BodyKind.CREATE)
    return _struct(
        f"{message.name}Input", members, BodyKind.CREATE, either=_either(message, members)
    )


@cache
def _kind_type(field: JsonField) -> type[msgspec.Struct]:
    """Return the msgspec type of one member of a tagged oneof."""
    message = field.message
    members = _members(message, BodyKind.CREATE)
    return _struct(f"{message.name}Input", members, BodyKind.CREATE, tag=field.name)


def _scalar_type(descriptor: FieldDescriptor, rules: Rules, field: JsonField) -> Any:
    """Return the type of one value, with the check of rules that a type cannot express."""
    kind = _plain_type(descriptor, rules, field)
    if descriptor.enum_type is not None or field.options.decimal_max:
        return kind
    check = value_check_of(descriptor, rules)
    if check is None:
        return kind
    return Annotated[kind, msgspec.Meta(extra={PROBLEM_OF: _of_json(descriptor, field, check)})]


def _of_json(descriptor: FieldDescriptor, field: JsonField, check: ProblemOf) -> ProblemOf:
    """Return the check of a field's value for the JSON that it is given as."""
    if field.options.embedded_json:
        return lambda document: check(msgspec.json.encode(document).decode())
    if descriptor.type != FieldDescriptor.TYPE_BYTES:
        return check
    if field.options.utf8_text:
        return lambda text: check(text.encode())
    return lambda text: check(a2b_base64(text))


def _plain_type(descriptor: FieldDescriptor, rules: Rules, field: JsonField) -> Any:
    options = field.options
    if options.embedded_json:
        return msgspec.Raw if options.any_json else JsonObject
    if options.decimal_max:
        return Annotated[float, msgspec.Meta(ge=0, le=options.decimal_max)]
    if descriptor.enum_type is not None:
        return _choices(descriptor.enum_type, rules.excluded)
    match descriptor.type:
        case FieldDescriptor.TYPE_BOOL:
            return bool
        case FieldDescriptor.TYPE_STRING:
            return _text_type(
                rules, is_required=field.is_required or descriptor is not field.descriptor
            )
        case FieldDescriptor.TYPE_BYTES:
            return _sized(str if options.utf8_text else bytes, rules)
        case FieldDescriptor.TYPE_DOUBLE:
            return _bounded(float, rules.least, rules.most)
        case _:
            least, most = JSON_INTEGERS[descriptor.cpp_type]
            bounds = (least if rules.least is None else rules.least, rules.most or most)
            return _bounded(int, *bounds)


def _text_type(rules: Rules, *, is_required: bool) -> Any:
    meta: dict[str, Any] = {}
    if rules.is_uuid:
        optional = f"^(?:{UUID_PATTERN})?\\Z"
        meta["pattern"] = rf"^{UUID_PATTERN}\Z" if is_required else optional
        meta["description"] = "a UUID" if is_required else 'a UUID, or "" for none'
    elif rules.pattern is not None:
        meta |= {"pattern": rules.pattern, "description": rules.pattern_description}
    if rules.length_min:
        meta["min_length"] = rules.length_min
    if rules.length_max is not None:
        meta["max_length"] = rules.length_max
    return Annotated[str, msgspec.Meta(**meta)] if meta else str


def _sized(kind: Any, rules: Rules) -> Any:
    meta = {"min_length": rules.length_min or None, "max_length": rules.length_max}
    return Annotated[kind, msgspec.Meta(**meta)] if any(meta.values()) else kind  # type: ignore[arg-type]


def _bounded(kind: Any, least: float | None, most: float | None) -> Any:
    if least is None and most is None:
        return kind
    return Annotated[kind, msgspec.Meta(ge=least, le=most)]


@cache
def _choices(enum: EnumDescriptor, excluded: frozenset[int]) -> type[StrEnum]:
    words = {
        word.upper(): word for number, word in enum_words(enum).items() if number not in excluded
    }
    return StrEnum(enum.name, words)  # type: ignore[return-value]


def _setter(field: JsonField) -> Setter:
    descriptor, attribute = field.descriptor, field.descriptor.name
    if field.is_map:
        return lambda message, value: getattr(message, attribute).update(value)
    if descriptor.message_type is not None:
        return _message_setter(field)
    convert = _from_json(field)
    if descriptor.is_repeated:
        return lambda message, value: getattr(message, attribute).extend(map(convert, value))
    return lambda message, value: setattr(message, attribute, convert(value))


def _message_setter(field: JsonField) -> Setter:
    message_type, attribute = field.message, field.descriptor.name
    if message_type.full_name == TIMESTAMP:
        return lambda message, value: getattr(message, attribute).FromDatetime(_in_utc(value))
    fill = _tagged_filler(message_type) if is_tagged(message_type) else _filler(message_type)
    if field.descriptor.is_repeated:

        def put_all(message: Any, values: Any) -> None:
            items = getattr(message, attribute)
            for value in values:
                fill(items.add(), value)

        return put_all

    def put(message: Any, value: Any) -> None:
        inner = getattr(message, attribute)
        inner.SetInParent()
        fill(inner, value)

    return put


def _in_utc(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        # Near the ends of the calendar a time does not exist in UTC.
        return moment.replace(tzinfo=UTC)


@cache
def _filler(message: Descriptor) -> Setter:
    members: list[tuple[str, Setter]] = []

    def fill(target: Any, value: Any) -> None:
        if not members:
            found = _members(message, BodyKind.CREATE)
            members.extend((name, member.put) for name, member in found.items())
        for name, put in members:
            given = getattr(value, name)
            if given is not None:
                put(target, given)

    return fill


def _tagged_filler(message: Descriptor) -> Setter:
    kinds = {
        _kind_type(field): (field.descriptor.name, _filler(field.message))
        for field in json_fields(message)
        if field.is_input
    }

    def fill(target: Any, value: Any) -> None:
        attribute, fill_member = kinds[type(value)]
        inner = getattr(target, attribute)
        inner.SetInParent()
        fill_member(inner, value)

    return fill


def _from_json(field: JsonField) -> Callable[[Any], Any]:
    descriptor, options = field.descriptor, field.options
    if options.embedded_json:
        return _json_text
    if options.decimal_max:
        return _decimal
    if descriptor.enum_type is not None:
        numbers = {word: number for number, word in enum_words(descriptor.enum_type).items()}
        return lambda word: numbers[word]
    return str.encode if options.utf8_text else lambda value: value


def _json_text(document: msgspec.Raw | JsonObject) -> str:
    """Return JSON as text, with its members unchanged."""
    if isinstance(document, msgspec.Raw):
        return bytes(document).decode()
    return msgspec.json.encode(document).decode()


def _decimal(number: float) -> str:
    """Format a number in decimal digits as given, without an exponent."""
    return format(Decimal(str(number)).normalize(), "f")
