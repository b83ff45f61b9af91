"""Examples that satisfy a JSON Schema, for the OpenAPI document."""

from collections.abc import Mapping
from typing import Any

from openapi_bodies import EITHER

DEPTH_MAX = 4
ID = "019a8f5e-7c1d-7000-8000-3f6a1f0f2b11"
FORMATS: Mapping[str, str] = {
    "uuid": ID,
    "date-time": "2026-01-31T12:00:00Z",
    "uri": "https://parley.example/problems/CHAT_NOT_FOUND",
}
#: Texts of well-known members.
MEMBERS: Mapping[str, str] = {
    "text": "Which files changed since yesterday?",
    "title": "Changes since yesterday",
    "login": "ada",
    "display_name": "Ada Lovelace",
    "email": "ada@example.com",
    "url": "https://git.example/team/project.git",
    "base_url": "https://models.example/v1",
    "password": "long purple sentences 42",
    "current_password": "long purple sentences 42",
    "new_password": "seven quiet engines wait",
}

Schema = Mapping[str, Any]


def example_of(schema: Schema, components: Mapping[str, Any]) -> Any:
    """Return a value of a schema, the same for the same schema."""
    return _Examples(components).value(schema, "", ())


class _Examples:
    def __init__(self, components: Mapping[str, Any]) -> None:
        self._components = components

    def value(self, schema: Schema, member: str, path: tuple[str, ...]) -> Any:
        """Return a value; `path` has the names of the schemas that contain it."""
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            return self.value(self._components[name], member, (*path, name))
        for fixed in ("const", "default"):
            if schema.get(fixed) is not None:
                return schema[fixed]
        if "enum" in schema:
            return schema["enum"][0]
        for choice in ("oneOf", "anyOf"):
            if choice in schema:
                return self._choice(schema[choice], member, path)
        if "allOf" in schema:
            found = [self.value(each, member, path) for each in schema["allOf"]]
            return {key: value for each in found for key, value in each.items()}
        return self._typed(schema, member, path)

    def _choice(self, choices: list[Schema], member: str, path: tuple[str, ...]) -> Any:
        """Return a value of the first choice; null for an object that may be null, to be short."""
        first = choices[0]
        component = self._components.get(first.get("$ref", "").rpartition("/")[2], {})
        if {"type": "null"} in choices and "properties" in component:
            return None
        return self.value(first, member, path)

    def _typed(self, schema: Schema, member: str, path: tuple[str, ...]) -> Any:
        kind = schema.get("type", "object")
        if isinstance(kind, list):
            kind = kind[0]
        match kind:
            case "object":
                return self._object(schema, path)
            case "array":
                return self._array(schema, member, path)
            case "string":
                return _text(schema, member)
            case "boolean":
                return False
            case _:
                return max(1, schema.get("minimum", 1))

    def _object(self, schema: Schema, path: tuple[str, ...]) -> Any:
        required = {*schema.get("required", ()), *schema.get(EITHER, ())[:1]}
        return {
            name: self.value(each, name, path)
            for name, each in schema.get("properties", {}).items()
            if name in required or (len(path) <= 1 and EITHER not in schema)
        }

    def _array(self, schema: Schema, member: str, path: tuple[str, ...]) -> Any:
        items = schema.get("items", {})
        name = items.get("$ref", "").rpartition("/")[2]
        if (name in path or len(path) >= DEPTH_MAX) and not schema.get("minItems"):
            return []
        return [self.value(items, member, path)] * max(1, schema.get("minItems", 1))


def _text(schema: Schema, member: str) -> str:
    if schema.get("format") in FORMATS:
        return FORMATS[schema["format"]]
    if schema.get("pattern", "").startswith("^[0-7]"):
        return "0644"
    if schema.get("contentEncoding"):
        return "aGVsbG8="
    text = "example" if schema.get("minLength", 0) <= len("example") else "An example of a text."
    return MEMBERS.get(member) or (ID if member.endswith("_id") else text)
