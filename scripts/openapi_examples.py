"""Examples that satisfy a JSON Schema, for the OpenAPI document."""

from collections.abc import Mapping
from typing import Any

DEPTH_MAX = 6
TEXTS: Mapping[str, str] = {
    "uuid": "019a8f5e-7c1d-7000-8000-3f6a1f0f2b11",
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
    "name": "example",
    "url": "https://git.example/team/project.git",
    "base_url": "https://models.example/v1",
    "model_id": "019a8f5e-7c1d-7000-8000-3f6a1f0f2b12",
}


def example_of(
    schema: Mapping[str, Any], components: Mapping[str, Any], *, member: str = "", depth: int = 0
) -> Any:
    """Return a value of a schema, the same for the same schema."""
    if "$ref" in schema:
        inner = components[schema["$ref"].rpartition("/")[2]]
        return example_of(inner, components, member=member, depth=depth)
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return schema["enum"][0]
    for choice in ("oneOf", "anyOf"):
        if choice in schema:
            return example_of(schema[choice][0], components, member=member, depth=depth)
    if "allOf" in schema:
        found = [example_of(each, components, depth=depth) for each in schema["allOf"]]
        return {key: value for each in found for key, value in each.items()}
    kind = schema.get("type", "object")
    if isinstance(kind, list):
        kind = kind[0]
    match kind:
        case "object":
            return _object(schema, components, depth)
        case "array":
            return _array(schema, components, member, depth)
        case "string":
            return MEMBERS.get(member) or TEXTS.get(schema.get("format", ""), "example")
        case "boolean":
            return False
        case "null":
            return None
        case _:
            return max(1, schema.get("minimum", 1))


def _object(schema: Mapping[str, Any], components: Mapping[str, Any], depth: int) -> Any:
    required = schema.get("required", ())
    return {
        name: example_of(each, components, member=name, depth=depth + 1)
        for name, each in schema.get("properties", {}).items()
        if name in required or depth == 0
    }


def _array(
    schema: Mapping[str, Any], components: Mapping[str, Any], member: str, depth: int
) -> Any:
    if depth >= DEPTH_MAX and not schema.get("minItems"):
        return []
    return [example_of(schema.get("items", {}), components, member=member, depth=depth + 1)]
