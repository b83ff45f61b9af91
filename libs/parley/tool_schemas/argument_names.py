"""Names of arguments: those that a provider refuses are replaced, and put back in calls."""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec

from parley.tool_schemas.references import Budget, SchemaUnusable, dereferenced

NAME_CHARACTERS_MAX: Final = 64
HASH_CHARACTERS: Final = 8
_FOREIGN: Final = re.compile(r"[^A-Za-z0-9_.-]")
_ALTERNATIVES: Final = ("allOf", "anyOf", "oneOf")


def safe_names(names: Iterable[str]) -> dict[str, str]:
    """Return the name under which a provider accepts each argument of an object."""
    every = list(names)
    taken = {name for name in every if _is_safe(name)}
    safe = {}
    for name in every:
        given = name
        if not _is_safe(name):
            given = _FOREIGN.sub("_", name) or "_"
            if len(given) > NAME_CHARACTERS_MAX or given in taken:
                digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
                room = NAME_CHARACTERS_MAX - HASH_CHARACTERS - 1
                given = f"{given[:room]}_{digest[:HASH_CHARACTERS]}"
            taken.add(given)
        safe[name] = given
    return safe


def original_arguments(arguments_json: bytes, input_schema_json: bytes) -> bytes:
    """Return the arguments of a call under the names of the tool."""
    if not _has_unsafe_names(input_schema_json):
        return arguments_json
    schema = msgspec.json.decode(input_schema_json)
    arguments = msgspec.json.decode(arguments_json)
    try:
        restored = _restored(arguments, schema, schema, Budget())
    except (SchemaUnusable, RecursionError):
        return arguments_json
    return arguments_json if restored == arguments else msgspec.json.encode(restored)


def _is_safe(name: str) -> bool:
    return 0 < len(name) <= NAME_CHARACTERS_MAX and _FOREIGN.search(name) is None


@lru_cache(maxsize=1024)
def _has_unsafe_names(input_schema_json: bytes) -> bool:
    try:
        schema = msgspec.json.decode(input_schema_json or b"{}")
    except (ValueError, RecursionError):
        return False
    waiting = [schema]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            properties = value.get("properties")
            if isinstance(properties, dict) and not all(map(_is_safe, properties)):
                return True
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
    return False


def _restored(value: Any, schema: Any, root: Any, budget: Budget) -> Any:
    if not isinstance(schema, dict):
        return value
    if isinstance(value, list):
        items = dereferenced(schema, root, budget)[0].get("items")
        return [_restored(each, items, root, budget) for each in value]
    if not isinstance(value, dict):
        return value
    known: dict[str, Any] = {}
    originals: dict[str, str] = {}
    for properties in _objects(schema, root, budget, frozenset()):
        known = {**properties, **known}
        originals = {safe: name for name, safe in safe_names(properties).items()} | originals
    restored: dict[str, Any] = {}
    for name, inner in value.items():
        original = name if name in known else originals.get(str(name), str(name))
        place = name if original in value else original
        restored[place] = _restored(inner, known.get(place), root, budget)
    return restored


def _objects(
    schema: Mapping[str, Any], root: Any, budget: Budget, active: frozenset[str]
) -> Iterator[dict[str, Any]]:
    """Yield the properties of an object and of its alternatives."""
    schema, active = dereferenced(dict(schema), root, budget, active)
    budget.spend(schema)
    properties = schema.get("properties")
    if isinstance(properties, dict):
        yield properties
    for alternatives in (schema.get(name) for name in _ALTERNATIVES):
        for each in alternatives if isinstance(alternatives, list) else ():
            if isinstance(each, dict):
                yield from _objects(each, root, budget, active)
