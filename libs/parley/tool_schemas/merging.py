"""Alternatives at the top of a schema become properties of one object."""

from typing import Any, Final

import msgspec

from parley.tool_schemas.references import NODE_BYTES, Budget, dereferenced

#: Different schemas of one property in alternatives.
EITHER_MAX: Final = 16
_ALTERNATIVES: Final = ("allOf", "anyOf", "oneOf")
_REFUSED_AT_TOP: Final = frozenset({*_ALTERNATIVES, "not", "enum", "const"})


def flattened(
    schema: dict[str, Any], root: object, budget: Budget, active: frozenset[str] = frozenset()
) -> dict[str, Any]:
    """Return a schema without alternatives and references at its top.

    Properties of all parts are kept; required are those that every alternative requires.

    Raises:
        SchemaUnusable: A reference cannot be resolved, or the alternatives are too many.
    """
    schema, active = dereferenced(schema, root, budget, active)
    budget.spend(schema)
    made = {name: value for name, value in schema.items() if name not in _REFUSED_AT_TOP}
    parts = {
        name: [
            flattened(each, root, budget, active) for each in schema[name] if isinstance(each, dict)
        ]
        for name in _ALTERNATIVES
        if isinstance(schema.get(name), list)
    }
    properties = dict(_properties(schema))
    for part in (part for several in parts.values() for part in several):
        budget.take(len(_properties(part)))
        for name, found in _properties(part).items():
            properties[name] = (
                _either(properties[name], found, budget) if name in properties else found
            )
    required = [*_required(schema)]
    for name, several in parts.items():
        required += _required_of(several, is_all=name == "allOf")
    if properties or isinstance(schema.get("properties"), dict):
        made["properties"] = properties
    if required:
        made["required"] = list(dict.fromkeys(required))
    return made


def _required_of(parts: list[dict[str, Any]], *, is_all: bool) -> list[str]:
    lists = [_required(part) for part in parts]
    if is_all:
        return list(dict.fromkeys(name for each in lists for name in each))
    common = set.intersection(*map(set, lists)) if lists else set()
    return [name for name in lists[0] if name in common] if common else []


def _properties(schema: dict[str, Any]) -> dict[str, Any]:
    found = schema.get("properties")
    return found if isinstance(found, dict) else {}


def _required(schema: dict[str, Any]) -> list[str]:
    found = schema.get("required")
    return [each for each in found if isinstance(each, str)] if isinstance(found, list) else []


def _either(one: Any, other: Any, budget: Budget) -> Any:
    """Return a schema of what fits one or the other; of too many, one that anything fits."""
    if one is other or one == {}:
        return one
    budget.take(len(msgspec.json.encode(other)) // NODE_BYTES)
    if one == other:
        return one
    several = one.get("anyOf") if isinstance(one, dict) and set(one) == {"anyOf"} else None
    known = several if isinstance(several, list) else [one]
    if len(known) >= EITHER_MAX:
        return {}
    return {"anyOf": known if other in known else [*known, other]}
