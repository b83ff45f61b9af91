"""Validates JSON schemas of tool arguments."""

import json
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jsonschema import ValidationError

# How many problems of one schema are reported.
PROBLEMS_MAX = 20
# Keywords whose values are data, not schemas.
DATA_KEYWORDS = frozenset({"const", "default", "enum", "examples"})
TYPES = "array, boolean, integer, null, number, object, string"


@lru_cache(maxsize=1024)
def schema_problems(text: str) -> tuple[tuple[str, str], ...]:
    """Return the problems of a JSON text as the schema of a tool's arguments.

    Each problem has the JSON Pointer to its place in the schema. The result is cached, because
    clients declare the same tools for every chat.
    """
    # Imported lazily, because it is slow and most processes never need it.
    from jsonschema import Draft202012Validator
    from jsonschema.validators import validator_for

    schema = json.loads(text)
    if not isinstance(schema, dict):
        return (("", "is not a JSON object"),)
    if not isinstance(schema.get("$schema", ""), str):
        return (("/$schema", "is not a string"),)
    kind = validator_for(schema, default=Draft202012Validator)
    found: dict[str, str] = {}
    try:
        for error in kind(kind.META_SCHEMA).iter_errors(schema):
            found.setdefault(_pointer(error.absolute_path), _problem(error))
        for pointer, reference in _references(schema, ""):
            if not _leads_somewhere(schema, reference):
                found.setdefault(pointer, "leads to nothing in this schema")
    except RecursionError:
        return (("", "is no JSON schema: it is nested too deeply"),)
    if schema.get("type", "object") != "object":
        found["/type"] = 'is not "object", which the arguments of a tool are'
    return tuple(sorted(found.items())[:PROBLEMS_MAX])


def _problem(error: "ValidationError") -> str:
    """Return the problem at one place, by the JSON Schema rule that it violates."""
    last, rule = str(error.absolute_path[-1]) if error.absolute_path else "", error.validator_value
    match error.validator:
        case "anyOf" if last == "type":
            return f"is no type; give one of {TYPES}, or a list of them"
        case "enum":
            return f"is none of the choices; give one of {', '.join(map(str, rule))}"
        case "type":
            kinds = rule if isinstance(rule, list) else [rule]
            return f"is of the wrong type; give {' or '.join(map(str, kinds))}"
        case "minimum":
            return f"is less than {rule}"
        case "exclusiveMinimum":
            return f"is not more than {rule}"
        case "minItems":
            return f"has too few items; give at least {rule}"
        case "uniqueItems":
            return "has the same item more than once"
        case "pattern":
            return f"does not match the pattern {rule}"
        case _:
            return "is no value that JSON Schema allows here"


def _references(value: Any, pointer: str) -> Iterator[tuple[str, str]]:
    """Yield every reference within the same schema, with the pointer to it."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _references(item, f"{pointer}/{index}")
    elif isinstance(value, dict) and not (pointer and "$id" in value):
        # One with an id is a separate schema, and its references are resolved within it.
        for key, item in value.items():
            at = pointer + _pointer([key])
            if key == "$ref" and isinstance(item, str) and item.startswith("#"):
                yield at, item
            elif key not in DATA_KEYWORDS or pointer.endswith("/properties"):
                yield from _references(item, at)


def _leads_somewhere(schema: dict[str, Any], reference: str) -> bool:
    from referencing import Registry, Resource
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import DRAFT202012

    resource = Resource.from_contents(schema, default_specification=DRAFT202012)
    try:
        Registry().with_resource("", resource).resolver().lookup(reference)
    except (Unresolvable, TypeError, ValueError):
        return False
    return True


def _pointer(steps: Sequence[str | int]) -> str:
    return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in steps)
