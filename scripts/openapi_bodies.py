"""JSON Schemas of request bodies: from the types that decode them, with the comments of protos."""

import json
from collections.abc import Iterator
from typing import Any

import msgspec
from google.protobuf.descriptor import Descriptor
from openapi_schemas import REFERENCE, Schema, Schemas

from gateway.api.json_input import either_of
from gateway.api.transcoded_route import body_type_of
from parley.contract.bindings import WHOLE_BODY, HttpBinding, field_path
from parley.contract.json_fields import JsonField, is_tagged, json_fields
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
        for binding in declared:
            body = None if binding.options.served_by_gateway else body_type_of(binding)
            if body is not None:
                types[binding.operation_id] = body.type
                messages[body.type.__name__] = _message_of(binding)
        for message in [*messages.values()]:
            messages |= dict(_nested(message))
        references, found = msgspec.json.schema_components(
            types.values(), ref_template=REFERENCE.format("{name}")
        )
        self._references = dict(zip(types, references, strict=True))
        self.components: dict[str, Schema] = {}
        for name, schema in found.items():
            self.components[name] = _described(_plain(schema), messages.get(name), schemas)

    def of(self, binding: HttpBinding) -> Schema | None:
        """Return the schema of a binding's body; None without a body."""
        return self._references.get(binding.operation_id)


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


def _described(schema: Schema, message: Descriptor | None, schemas: Schemas) -> Schema:
    """Return a schema with the comments of its message and fields."""
    if message is None:
        return schema
    fields = {field.name: field for field in _members(message)}
    for name, inner in schema.get("properties", {}).items():
        if name not in fields:
            continue
        comment = schemas.comment(fields[name].descriptor.full_name)
        expected = inner.pop("description", "")
        # As a keyword it would make the member required in TypeScript.
        default = inner.pop("default", None)
        absent = "" if default is None else f"Absent it is `{json.dumps(default)}`."
        text = " ".join(filter(None, (comment, expected and f"Give {expected}.", absent)))
        if text:
            inner["description"] = text
    comment = schemas.comment(message.full_name)
    either = either_of(message)
    if either and {*either} <= schema["properties"].keys():
        schema[EITHER] = [*either]
        comment = f"{comment} Give either {' or '.join(either)}.".strip()
    return {**schema, "description": comment} if comment else schema


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
