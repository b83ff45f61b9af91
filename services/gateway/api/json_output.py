"""Converts messages to the JSON of the API, as the options of their fields declare it.

A converter is compiled to a Python function once for each message type: events are converted for
every reader, and a function with one expression per field costs a third of a loop over fields. Only
public fields are written: a new field of a proto stays internal until it is declared public.
"""

import base64
from collections.abc import Callable
from functools import cache
from typing import Any

import msgspec
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from parley.contract.json_fields import JsonField, enum_words, is_tagged, json_fields

Json = dict[str, object]
MessageConverter = Callable[[Any], Json | None]
TIMESTAMP = "google.protobuf.Timestamp"
TYPE = "type"
KIND = "kind"


def to_json(message: Message) -> Json:
    """Return the JSON document of a message; a message of an unknown kind is empty."""
    return converter_of(message.DESCRIPTOR)(message) or {}


@cache
def converter_of(message: Descriptor) -> MessageConverter:
    """Return the function that converts messages of a type; it returns None for an unknown kind."""
    return _tagged(message) if is_tagged(message) else _Source(message).compiled()


def embedded_json(text: str) -> msgspec.Raw | str:
    """Return JSON text to embed in a document, on one line; otherwise the text itself."""
    try:
        return msgspec.Raw(msgspec.json.format(text.encode(), indent=-1))
    except (msgspec.DecodeError, RecursionError):
        return text


def _tagged(message: Descriptor) -> MessageConverter:
    kinds = {
        field.descriptor.name: (field.name, converter_of(field.message))
        for field in json_fields(message)
    }

    def convert(value: Any) -> Json | None:
        chosen = value.WhichOneof(KIND)
        if chosen not in kinds:
            return None
        word, member = kinds[chosen]
        return {TYPE: word, **(member(getattr(value, chosen)) or {})}

    return convert


class _Source:
    """The source of the function that converts one type of message."""

    def __init__(self, message: Descriptor) -> None:
        self._message = message
        self._names: dict[str, Any] = {"embedded_json": embedded_json, "base64": _base64}

    def compiled(self) -> MessageConverter:
        """Return the function."""
        fields = [field for field in json_fields(self._message) if field.is_output]
        always = [each for each in fields if not (_is_omitted(each) or each.options.flatten)]
        lines = ["def convert(m):", "    document = {"]
        lines += [f"        {each.name!r}: {self._value(each)}," for each in always]
        lines.append("    }")
        for each in fields:
            if each.options.flatten:
                convert = self._named(converter_of(each.message))
                lines.append(f"    document |= {convert}(m.{each.descriptor.name})")
            elif _is_omitted(each):
                lines.append(f"    if {_presence(each.descriptor)}:")
                lines.append(f"        document[{each.name!r}] = {self._value(each)}")
        lines.append("    return document")
        exec("\n".join(lines), self._names)
        converter: MessageConverter = self._names["convert"]
        return converter

    def _named(self, value: Any) -> str:
        name = f"v{len(self._names)}"
        self._names[name] = value
        return name

    def _value(self, field: JsonField) -> str:
        """Return the expression of a field's JSON value."""
        descriptor = field.descriptor
        read = f"m.{descriptor.name}"
        if field.is_map:
            return f"dict({read})"
        if descriptor.is_repeated:
            return self._list(field, read)
        if descriptor.message_type is not None:
            value = self._message_value(field, read)
            if field.options.default_value:
                return value
            return f"{value} if {_presence(descriptor)} else None"
        value = self._scalar(field, read)
        if _is_optional(descriptor):
            return f"{value} if {_presence(descriptor)} else None"
        return f"{value} if {read} else None" if field.options.null_if_empty else value

    def _list(self, field: JsonField, read: str) -> str:
        if field.descriptor.message_type is None:
            return f"[{self._scalar(field, 'each')} for each in {read}]"
        tag = field.options.type_tag
        item = f"{{{TYPE!r}: {tag!r}, **item}}" if tag else "item"
        converted = f"(item := {self._message_value(field, 'each')})"
        return f"[{item} for each in {read} if {converted} is not None]"

    def _message_value(self, field: JsonField, read: str) -> str:
        if field.message.full_name == TIMESTAMP:
            return f"{read}.ToJsonString()"
        if field.message is self._message:
            return f"convert({read})"
        return f"{self._named(converter_of(field.message))}({read})"

    def _scalar(self, field: JsonField, read: str) -> str:
        descriptor, options = field.descriptor, field.options
        if descriptor.enum_type is not None:
            words = self._named(dict(enum_words(descriptor.enum_type)))
            return f"{words}.get({read}, {options.default_value or None!r})"
        if options.embedded_json:
            return f"embedded_json({read} or {options.default_value!r})"
        if options.decimal_max:
            return f"(embedded_json({read}) if {read} else None)"
        if options.octal_digits:
            return f"format({read}, '0{options.octal_digits}o')"
        return f"base64({read})" if descriptor.type == FieldDescriptor.TYPE_BYTES else read


def _is_omitted(field: JsonField) -> bool:
    return bool(field.options.omit_if_empty)


def _presence(descriptor: FieldDescriptor) -> str:
    """Return the expression that says whether a field is set."""
    if descriptor.has_presence:
        return f"m.HasField({descriptor.name!r})"
    return f"m.{descriptor.name}"


def _is_optional(descriptor: FieldDescriptor) -> bool:
    """Return whether a scalar is declared `optional`, which protoc makes a oneof of its own."""
    oneof = descriptor.containing_oneof
    return oneof is not None and oneof.name == f"_{descriptor.name}"


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()
