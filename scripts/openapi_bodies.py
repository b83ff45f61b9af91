"""JSON Schemas of request bodies: from the types that decode them, with the comments of protos."""

import json
from collections.abc import Iterator
from typing import Any

import msgspec
from google.protobuf.descriptor import Descriptor
from openapi_schemas import REFERENCE, Schema, Schemas

from gateway.api.json_input import nested_type
from gateway.api.transcoded_route import body_type_of
from parley.contract.bindings import WHOLE_BODY, HttpBinding, field_path
from parley.contract.json_fields import JsonField, enum_words, is_tagged, json_fields
from parley.contract.rules import UUID_PATTERN

EITHER = "x-either"
NULL: Schema = {"type": "null"}


class Bodies:
    """The schemas of the bodies of all bindings.

    Attributes:
        components: The schemas, by name.
    """

    def __init__(self, declared: tuple[HttpBinding, ...], schemas: Schemas) -> None:
        types: dict[str, type] = {}
        messages: dict[str, Descriptor] = {}
        self._choices: dict[str, type] = {}
        for binding in declared:
            body = None if binding.method.client_streaming else body_type_of(binding)
            if body is not None:
                types[binding.operation_id] = body.type
                messages[body.type.__name__] = _message_of(binding)
                self._choices[body.type.__name__] = body.type
        for message in [*messages.values()]:
            for name, inner in _nested(message):
                messages[name] = inner
                self._choices.setdefault(name, nested_type(inner))
        references, found = msgspec.json.schema_components(
            types.values(), ref_template=REFERENCE.format("{name}")
        )
        self._references = dict(zip(types, references, strict=True))
        self.components: dict[str, Schema] = {}
        self._enums = {REFERENCE.format(name) for name, each in found.items() if "enum" in each}
        for name, schema in found.items():
            plain = _plain(schema)
            if name in messages:
                plain = self._described(plain, messages[name], schemas)
                _limit_choice(plain, self._choices[name])
            self.components[name] = plain

    def of(self, binding: HttpBinding) -> Schema | None:
        """Return the schema of a binding's body; None without a body."""
        return self._references.get(binding.operation_id)

    def _described(self, schema: Schema, message: Descriptor, schemas: Schemas) -> Schema:
        """Return a schema with the comments of its message and fields."""
        fields = {field.name: field for field in _members(message)}
        for name, inner in schema.get("properties", {}).items():
            if name not in fields:
                continue
            field = fields[name]
            if field.descriptor.enum_type is not None:
                self._name_enum(inner, self._enum_of(field, schemas))
            comment = schemas.comment(field.descriptor.full_name)
            expected = inner.pop("description", "")
            # As a keyword it would make the member required in TypeScript.
            default = inner.pop("default", None)
            absent = "" if default is None else f"Absent it is `{json.dumps(default)}`."
            text = " ".join(filter(None, (comment, expected and f"Give {expected}.", absent)))
            if text:
                inner["description"] = text
        comment = schemas.comment(message.full_name)
        return {**schema, "description": comment} if comment else schema

    def _enum_of(self, field: JsonField, schemas: Schemas) -> str:
        """Return the reference to an enum as bodies accept it."""
        enum = field.descriptor.enum_type
        assert enum is not None
        reference: str = schemas.choice(enum)["$ref"]
        if not field.rules.excluded:
            return reference
        name = f"{reference.rpartition('/')[2]}Input"
        words = [w for number, w in enum_words(enum).items() if number not in field.rules.excluded]
        self.components[name] = {"type": "string", "enum": words}
        return REFERENCE.format(name)

    def _name_enum(self, schema: Any, reference: str) -> None:
        """Let references to the types that decode enums refer to the enums."""
        if isinstance(schema, dict):
            if schema.get("$ref") in self._enums:
                schema["$ref"] = reference
            for each in schema.values():
                self._name_enum(each, reference)
        elif isinstance(schema, list):
            for each in schema:
                self._name_enum(each, reference)


def _limit_choice(schema: Schema, decoded: type) -> None:
    """Say of which members of a body only one may be given."""
    names: tuple[str, ...] = getattr(decoded, "either", ())
    if names:
        schema[EITHER] = [*names]
        bound = "either" if getattr(decoded, "needs_either", False) else "at most one of"
        text = f"Give {bound} {' or '.join(names)}."
        schema["description"] = f"{schema.get('description', '')} {text}".strip()


def _message_of(binding: HttpBinding) -> Descriptor:
    message = binding.method.input_type
    if binding.body == WHOLE_BODY:
        return message
    found = field_path(message, binding.body)[-1].message_type
    assert found is not None
    return found


def _nested(message: Descriptor) -> Iterator[tuple[str, Descriptor]]:
    """Yield the messages inside a body by the names of their types."""
    for field in json_fields(message):
        inner = field.descriptor.message_type
        if not field.is_input or field.is_map or inner is None:
            continue
        if not is_tagged(inner):
            yield f"{inner.name}Input", inner
        yield from _nested(inner)


def _members(message: Descriptor) -> Iterator[JsonField]:
    for field in json_fields(message):
        if field.options.flatten:
            yield from _members(field.message)
        else:
            yield field


def _plain(schema: Any) -> Any:
    """Return a schema in the form that generators of clients read best."""
    if isinstance(schema, list):
        return [_plain(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {
        key: value if key in ("default", "properties") else _plain(value)
        for key, value in schema.items()
        if key != "title" and (key, value) not in (("default", None), ("required", []))
    }
    if "properties" in found:
        found["properties"] = {name: _plain(value) for name, value in found["properties"].items()}
    if "discriminator" in found:
        found["oneOf"] = found.pop("anyOf")
    if UUID_PATTERN in found.get("pattern", ""):
        del found["pattern"], found["description"]
        found["format"] = "uuid"
    if len(found.get("enum", ())) == 1:
        return {"type": "string", "const": found["enum"][0]}
    return _nullable(found)


def _nullable(schema: Schema) -> Schema:
    """Return `X or null` as one schema with two types, unless X is a reference."""
    inner, *rest = schema.get("anyOf", ({},))
    if rest != [NULL] or not isinstance(inner.get("type"), str):
        return schema
    others = {key: value for key, value in schema.items() if key != "anyOf"}
    return {**inner, "type": [inner["type"], "null"], **others}
