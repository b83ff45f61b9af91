"""The part of JSON Schema that most servers which are compatible with OpenAI accept."""

import json
from typing import Any, Final

from parley.tool_schemas.keywords import types_of

_KEPT: Final = frozenset(
    {
        "type",
        "title",
        "description",
        "properties",
        "required",
        "items",
        "anyOf",
        "enum",
        "default",
        "format",
        "pattern",
        "minimum",
        "maximum",
        "minItems",
        "maxItems",
        "minLength",
        "maxLength",
    }
)
#: Others are refused by some.
_FORMATS: Final = frozenset({"date-time", "enum", "int32", "int64", "float", "double"})
_NULL: Final = {"type": "null"}


def plain(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema with widely known keywords only; schemas inside of it are plain already.

    It accepts what the whole one does, and more: the tool itself still checks its arguments.
    """
    made = {name: value for name, value in schema.items() if name in _KEPT}
    made = _all_of([made, *schema.get("allOf", ())])
    if isinstance(schema.get("additionalProperties"), bool):
        made["additionalProperties"] = schema["additionalProperties"]
    _choose(made, schema)
    _name_types(made)
    _name_values(made, schema)
    if made.get("format") not in _FORMATS:
        made.pop("format", None)
    if not isinstance(made.get("items", {}), dict):
        del made["items"]
    if "prefixItems" in schema and "items" not in made:
        several = [part for part in schema["prefixItems"] if part]
        made["items"] = several[0] if len(several) == 1 else {"anyOf": several} if several else {}
    if "required" in made:
        known = made.get("properties", {})
        made["required"] = [name for name in made["required"] if name in known]
        if not made["required"]:
            del made["required"]
    return made


def _all_of(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Return one schema for what fits all parts, as far as that can be said; the first decides."""
    made: dict[str, Any] = {}
    properties: dict[str, Any] = {}
    for part in reversed(parts):
        made.update(part)
        properties.update(part.get("properties", {}))
    required = dict.fromkeys(name for part in parts for name in part.get("required", ()))
    if "properties" in made:
        made["properties"] = properties
    if required:
        made["required"] = list(required)
    return made


def _choose(made: dict[str, Any], schema: dict[str, Any]) -> None:
    """Replace `oneOf` by `anyOf`; an alternative that is null, or the only one, needs none."""
    several = [*schema.get("anyOf", ()), *schema.get("oneOf", ())]
    made.pop("anyOf", None)
    several = [each for each in several if each != _NULL]
    if len(several) == 1:
        for name, value in several[0].items():
            made.setdefault(name, value)
    elif several:
        made["anyOf"] = several


def _name_types(made: dict[str, Any]) -> None:
    """Name one type; what may be null may be left out instead."""
    types = [each for each in types_of(made.get("type")) if each != "null"]
    if len(types) == 1:
        made["type"] = types[0]
    elif types:
        del made["type"]
        made.setdefault("anyOf", [{"type": each} for each in types])


def _name_values(made: dict[str, Any], schema: dict[str, Any]) -> None:
    """Keep values that are texts as `enum`, and describe others."""
    given = schema.get("enum", [schema["const"]] if "const" in schema else [])
    values = [each for each in given if each is not None]
    if values and all(isinstance(each, str) for each in values):
        made["enum"] = values
        made.setdefault("type", "string")
    else:
        made.pop("enum", None)
    if values and "enum" not in made:
        told = ", ".join(json.dumps(each, ensure_ascii=False) for each in values[:20])
        made["description"] = f"{made.get('description', '')} One of: {told}.".strip()
