"""Which keywords of JSON Schema (draft 2020-12) have a value that they may have."""

from collections.abc import Callable, Mapping
from typing import Any, Final

TYPES: Final = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})
#: Keywords with schemas by name, with one schema or a flag, and with a list of schemas.
BY_NAME: Final = frozenset({"properties", "patternProperties", "dependentSchemas"})
DEFINITIONS: Final = frozenset({"$defs", "definitions"})
ONE: Final = frozenset(
    {
        "items",
        "additionalProperties",
        "not",
        "if",
        "then",
        "else",
        "contains",
        "propertyNames",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)
MANY: Final = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
WITH_SCHEMAS: Final = BY_NAME | ONE | MANY
#: Larger numbers are left out: not every program can read them.
NUMBER_MAX: Final = 2**63 - 1


def _is_number(value: Any) -> bool:
    """Return whether a value is a number that every provider can read."""
    is_one = isinstance(value, int | float) and not isinstance(value, bool)
    return is_one and abs(value) <= NUMBER_MAX


def _is_count(value: Any) -> bool:
    is_whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return _is_number(value) and is_whole and value >= 0


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


_CHECKS: Final[Mapping[str, Callable[[Any], bool]]] = {
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _is_number),
    "multipleOf": lambda value: _is_number(value) and value > 0,
    **dict.fromkeys(
        (
            "minLength",
            "maxLength",
            "minItems",
            "maxItems",
            "minProperties",
            "maxProperties",
            "minContains",
            "maxContains",
        ),
        _is_count,
    ),
    **dict.fromkeys(("pattern", "format", "title", "description", "$comment"), _is_text),
    **dict.fromkeys(("uniqueItems", "deprecated", "readOnly", "writeOnly"), _is_flag),
    "examples": _is_list,
    "enum": lambda value: _is_list(value) and bool(value),
}


def is_valid(name: str, value: Any) -> bool:
    """Return whether a keyword may have this value; unknown keywords may have any."""
    check = _CHECKS.get(name)
    return check is None or check(value)


def types_of(value: Any) -> tuple[str, ...]:
    """Return the known ones of the types that the keyword `type` names, each once."""
    named = value if isinstance(value, list) else [value]
    return tuple(dict.fromkeys(each for each in named if isinstance(each, str) and each in TYPES))


def modernised(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema whose keywords of older drafts and of OpenAPI are those of today."""
    made = dict(schema)
    if isinstance(made.get("items"), list):
        made.setdefault("prefixItems", made["items"])
        del made["items"]
        if "additionalItems" in made:
            made["items"] = made["additionalItems"]
    made.pop("additionalItems", None)
    for bound, exclusive in (
        ("minimum", "exclusiveMinimum"),
        ("maximum", "exclusiveMaximum"),
    ):
        if made.get(exclusive) is True and _is_number(made.get(bound)):
            made[exclusive] = made.pop(bound)
    types = types_of(made.pop("type", None))
    if made.pop("nullable", None) is True and types and "null" not in types:
        types = (*types, "null")
    if types:
        made["type"] = types[0] if len(types) == 1 else list(types)
    return made
