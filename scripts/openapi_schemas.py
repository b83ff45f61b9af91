"""JSON Schemas of the messages that the HTTP API returns, from their descriptors and comments."""

from collections.abc import Mapping
from typing import Any

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

from parley.contract.json_fields import JsonField, enum_words, is_tagged, json_fields

REFERENCE = "#/components/schemas/{}"
TIMESTAMP = "google.protobuf.Timestamp"
_NUMBERS = {
    FieldDescriptor.CPPTYPE_INT32: "integer",
    FieldDescriptor.CPPTYPE_INT64: "integer",
    FieldDescriptor.CPPTYPE_UINT32: "integer",
    FieldDescriptor.CPPTYPE_UINT64: "integer",
    FieldDescriptor.CPPTYPE_DOUBLE: "number",
    FieldDescriptor.CPPTYPE_FLOAT: "number",
}

Schema = dict[str, Any]


class Schemas:
    """The schemas of all messages that were asked for, by name."""

    def __init__(self, comments: Mapping[str, str]) -> None:
        self._comments = comments
        self._names: dict[str, Descriptor | EnumDescriptor] = {}
        self.components: dict[str, Schema] = {}

    def reference(self, message: Descriptor) -> Schema:
        """Return a reference to the schema of a message, which is added if it is new."""
        name = self._name(message)
        if name not in self.components:
            self.components[name] = {}
            tagged = is_tagged(message)
            self.components[name] = self._tagged(message) if tagged else self.object(message)
        return {"$ref": REFERENCE.format(name)}

    def choice(self, enum: EnumDescriptor) -> Schema:
        """Return a reference to the schema of an enum, which is added if it is new."""
        name = self._name(enum)
        if name not in self.components:
            words = enum_words(enum)
            meanings = [
                f"`{word}`: {comment}"
                for number, word in words.items()
                if (
                    comment := self.comment(
                        f"{enum.full_name}.{enum.values_by_number[number].name}"
                    )
                )
            ]
            text = " ".join((self.comment(enum.full_name), *meanings)).strip()
            self.components[name] = {
                "type": "string",
                "enum": [*words.values()],
                "description": text,
            }
        return {"$ref": REFERENCE.format(name)}

    def object(self, message: Descriptor) -> Schema:
        """Return the schema of the object that a message is written as."""
        properties, required = self._members(message)
        schema: Schema = {"type": "object", "properties": properties}
        if required:
            schema["required"] = required
        return self._described(schema, message.full_name)

    def field(self, field: JsonField) -> Schema:
        """Return the schema of a field's value."""
        schema = self._value(field)
        return self._described(schema, field.descriptor.full_name)

    def comment(self, name: str) -> str:
        """Return the comment of a message, field or method; empty for none."""
        return self._comments.get(name, "")

    def _described(self, schema: Schema, name: str) -> Schema:
        comment = self._comments.get(name)
        return {**schema, "description": comment} if comment else schema

    def _name(self, message: Descriptor | EnumDescriptor) -> str:
        """Return the name of a type; two of the same name get that of their package too."""
        name = message.name
        if self._names.setdefault(name, message) is not message:
            name = f"{message.file.package.split('.')[-2].capitalize()}{name}"
            assert self._names.setdefault(name, message) is message, name
        return name

    def _members(self, message: Descriptor) -> tuple[dict[str, Schema], list[str]]:
        properties: dict[str, Schema] = {}
        required: list[str] = []
        for field in json_fields(message):
            if not field.is_output:
                continue
            if field.options.flatten:
                inner, needed = self._members(field.message)
                properties |= inner
                required += needed
                continue
            properties[field.name] = self.field(field)
            if not field.options.omit_if_empty:
                required.append(field.name)
        return properties, required

    def _tagged(self, message: Descriptor) -> Schema:
        kinds: list[Schema] = []
        mapping: dict[str, str] = {}
        for field in json_fields(message):
            name = self._name(field.message)
            properties, required = self._members(field.message)
            kind: Schema = {
                "type": "object",
                "properties": {"type": {"type": "string", "const": field.name}, **properties},
                "required": ["type", *required],
            }
            self.components[name] = self._described(kind, field.message.full_name)
            reference = REFERENCE.format(name)
            kinds.append({"$ref": reference})
            mapping[field.name] = reference
        union: Schema = {
            "oneOf": kinds,
            "discriminator": {"propertyName": "type", "mapping": mapping},
        }
        return self._described(union, message.full_name)

    def _value(self, field: JsonField) -> Schema:
        descriptor, options = field.descriptor, field.options
        if field.is_map:
            value = field.message.fields_by_name["value"].cpp_type
            item = {"type": _NUMBERS.get(value, "string")}
            return {"type": "object", "additionalProperties": item}
        if descriptor.is_repeated:
            item = self._tagged_item(field) if options.type_tag else self._single(field)
            return {"type": "array", "items": item}
        single = self._single(field)
        return _nullable(single) if _may_be_null(field) else single

    def _tagged_item(self, field: JsonField) -> Schema:
        tag: Schema = {
            "type": "object",
            "properties": {"type": {"type": "string", "const": field.options.type_tag}},
            "required": ["type"],
        }
        return {"allOf": [tag, self._single(field)]}

    def _single(self, field: JsonField) -> Schema:
        descriptor, options = field.descriptor, field.options
        if descriptor.message_type is not None:
            if descriptor.message_type.full_name == TIMESTAMP:
                return {"type": "string", "format": "date-time"}
            return self.reference(descriptor.message_type)
        if descriptor.enum_type is not None:
            return self.choice(descriptor.enum_type)
        if options.embedded_json:
            return {}
        if options.decimal_max:
            return {"type": "number", "minimum": 0, "maximum": options.decimal_max}
        if descriptor.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
            return {"type": "boolean"}
        if options.octal_digits:
            return {"type": "string", "pattern": f"^[0-7]{{{options.octal_digits},}}$"}
        if descriptor.cpp_type in _NUMBERS:
            return {"type": _NUMBERS[descriptor.cpp_type]}
        if descriptor.type == FieldDescriptor.TYPE_BYTES:
            return {"type": "string", "contentEncoding": "base64"}
        rules = field.rules.items if descriptor.is_repeated else field.rules
        is_uuid = rules is not None and rules.is_uuid
        return {"type": "string", "format": "uuid"} if is_uuid else {"type": "string"}


def _may_be_null(field: JsonField) -> bool:
    descriptor, options = field.descriptor, field.options
    if options.omit_if_empty or options.embedded_json:
        return False
    if options.null_if_empty or options.decimal_max:
        return True
    if descriptor.message_type is not None or descriptor.enum_type is not None:
        return not options.default_value
    oneof = descriptor.containing_oneof
    return oneof is not None and oneof.name == f"_{descriptor.name}"


def _nullable(schema: Schema) -> Schema:
    if "$ref" in schema:
        return {"oneOf": [schema, {"type": "null"}]}
    return {**schema, "type": [schema["type"], "null"]}
