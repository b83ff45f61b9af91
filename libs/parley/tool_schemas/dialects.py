"""Makes a schema valid for the provider of a model, changing as little as that provider needs.

Anthropic accepts JSON Schema of draft 2020-12, with an object without alternatives at its top and
plain names of properties. OpenAI also needs properties in every object and items in every array.
Servers that are compatible with OpenAI, Google's among them, accept a smaller part of JSON Schema
without references.
"""

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final

import msgspec

from parley.tool_schemas.argument_names import safe_names
from parley.tool_schemas.compatible import plain
from parley.tool_schemas.keywords import (
    BY_NAME,
    DEFINITIONS,
    MANY,
    ONE,
    WITH_SCHEMAS,
    is_valid,
    modernised,
    types_of,
)
from parley.tool_schemas.merging import flattened
from parley.tool_schemas.references import (
    TOO_LARGE,
    Budget,
    ReferenceUnusable,
    SchemaUnusable,
    dereferenced,
    target_of,
)

#: Of a schema as a provider gets it, which its model reads for each answer.
SCHEMA_BYTES_MAX: Final = 128 * 1024


class SchemaDialect(StrEnum):
    """Which schemas a provider accepts."""

    ANTHROPIC = "anthropic"
    OPENAI = "openai"
    COMPATIBLE = "compatible"


@dataclass(frozen=True, slots=True)
class _Rules:
    """What a dialect needs.

    Attributes:
        keeps_references: Whether references to definitions may stay.
        is_plain: Whether only the keywords stay that most servers know.
        is_complete: Whether objects need properties, and arrays items.
        depth_max: How deep schemas may be inside of one another.
    """

    keeps_references: bool
    is_plain: bool
    is_complete: bool
    depth_max: int


_RULES: Final = {
    SchemaDialect.ANTHROPIC: _Rules(True, False, False, 32),
    SchemaDialect.OPENAI: _Rules(True, False, True, 32),
    SchemaDialect.COMPATIBLE: _Rules(False, True, True, 10),
}


def normalised(input_schema_json: str, dialect: SchemaDialect) -> dict[str, Any]:
    """Return the schema of a tool's arguments as a provider accepts it; never change the result.

    Raises:
        SchemaUnusable: It cannot be made valid.
    """
    made = outcome_of(input_schema_json, dialect)
    if isinstance(made, str):
        raise SchemaUnusable(made)
    return made


@lru_cache(maxsize=1024)
def outcome_of(input_schema_json: str, dialect: SchemaDialect) -> dict[str, Any] | str:
    """Return a schema as a provider accepts it, or why it cannot be made valid.

    The reason is kept as well: an unusable schema takes the longest to read.
    """
    try:
        schema = msgspec.json.decode(input_schema_json)
    except (ValueError, RecursionError):
        return "is not JSON"
    if not isinstance(schema, dict):
        return "is not an object"
    try:
        return _made(schema, dialect)
    except SchemaUnusable as unusable:
        return str(unusable)


def check_schema(schema: dict[str, Any], whole: Budget | None = None) -> None:
    """Check that a schema can be made valid for every provider.

    Args:
        schema: The schema of a tool's arguments.
        whole: The budget of all schemas that are checked together.

    Raises:
        SchemaUnusable: It cannot.
    """
    # One of these without references and one with definitions: others need less than they do.
    _made(schema, SchemaDialect.COMPATIBLE, whole)
    _made(schema, SchemaDialect.OPENAI, whole)


def _made(
    schema: dict[str, Any], dialect: SchemaDialect, whole: Budget | None = None
) -> dict[str, Any]:
    try:
        made = _Normaliser(schema, _RULES[dialect], Budget(whole=whole)).top()
        size_bytes = len(msgspec.json.encode(made))
    except SchemaUnusable:
        raise
    except RecursionError:
        raise SchemaUnusable("is nested too deeply") from None
    except (TypeError, ArithmeticError, ValueError):
        # Strangers write schemas: none may end the work on others.
        raise SchemaUnusable("has a value that cannot be used") from None
    if size_bytes > SCHEMA_BYTES_MAX:
        raise SchemaUnusable(TOO_LARGE)
    return made


class _Normaliser:
    def __init__(self, root: dict[str, Any], rules: _Rules, budget: Budget) -> None:
        self._root = root
        self._rules = rules
        self._budget = budget

    def top(self) -> dict[str, Any]:
        """Return the whole schema, as an object without alternatives."""
        schema = flattened(self._root, self._root, self._budget)
        if "type" in schema and "object" not in types_of(schema["type"]):
            raise SchemaUnusable("does not describe an object")
        return self._schema({**schema, "type": "object"}, frozenset(), 0)

    def _schema(self, value: object, active: frozenset[str], depth: int) -> dict[str, Any]:
        if not isinstance(value, dict):
            return {"not": {}} if value is False and not self._rules.is_plain else {}
        reference = value.get("$ref")
        if isinstance(reference, str):
            if reference in active:
                self._budget.spend(value)
                stub = _stub(target_of(self._root, reference))
                self._budget.spend(stub)
                return self._completed(stub)
            if self._keeps(reference):
                target_of(self._root, reference)
            else:
                value, active = dereferenced(value, self._root, self._budget, active)
        self._budget.spend(value)
        value = modernised(value)
        if depth > self._rules.depth_max:
            return self._completed(_stub(value))
        made = self._keywords(value, active, depth)
        return self._completed(plain(made) if self._rules.is_plain else made)

    def _definition(self, value: object, active: frozenset[str], depth: int) -> dict[str, Any]:
        """Return a definition; anything fits one that cannot be resolved, if it is used at all."""
        try:
            return self._schema(value, active, depth)
        except ReferenceUnusable:
            return {}

    def _completed(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Return a schema with what the dialect needs in objects and arrays."""
        types = types_of(schema.get("type")) if self._rules.is_complete else ()
        if "object" in types:
            schema.setdefault("properties", {})
        if "array" in types:
            schema.setdefault("items", {})
        return schema

    def _keeps(self, reference: str) -> bool:
        """Return whether a reference may stay: what it names keeps its place."""
        step, _, name = reference.removeprefix("#/").partition("/")
        return self._rules.keeps_references and step in DEFINITIONS and "/" not in name

    def _keywords(
        self, schema: dict[str, Any], active: frozenset[str], depth: int
    ) -> dict[str, Any]:
        made: dict[str, Any] = {}
        given = schema.get("properties")
        properties: dict[str, Any] = given if isinstance(given, dict) else {}
        names = safe_names(properties)

        def inner(value: object) -> dict[str, Any]:
            return self._schema(value, active, depth + 1)

        for name, value in schema.items():
            if name == "properties":
                made[name] = {safe: inner(properties[each]) for each, safe in names.items()}
            elif name == "required":
                if required := _required(value, names):
                    made[name] = required
            elif name in DEFINITIONS:
                if self._rules.keeps_references and isinstance(value, dict):
                    made[name] = {
                        each: self._definition(found, active, depth + 1)
                        for each, found in value.items()
                    }
            elif name in BY_NAME and isinstance(value, dict):
                made[name] = {each: inner(found) for each, found in value.items()}
            elif name in ONE and isinstance(value, (dict, bool)):
                made[name] = value if isinstance(value, bool) else inner(value)
            elif name in MANY and isinstance(value, list) and value:
                made[name] = [inner(found) for found in value]
            elif name not in WITH_SCHEMAS and is_valid(name, value):
                made[name] = value
        return made


def _required(value: object, names: dict[str, str]) -> list[str]:
    listed = value if isinstance(value, list) else []
    named = (names.get(each, each) for each in listed if isinstance(each, str))
    return list(dict.fromkeys(named))


def _stub(schema: object) -> dict[str, Any]:
    """Return what is left of a schema that would go on for ever or is too deep: its kind."""
    if not isinstance(schema, dict):
        return {}
    kept = {name: schema[name] for name in ("type", "description") if name in schema}
    types = types_of(kept.pop("type", None))
    if types:
        kept["type"] = types[0] if len(types) == 1 else list(types)
    return {name: value for name, value in kept.items() if is_valid(name, value)}
