"""Local references of JSON Schemas; nothing is ever fetched."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import unquote

import msgspec

from parley.tool_schemas.keywords import DEFINITIONS, WITH_SCHEMAS

#: Schemas inside of one after its references are resolved, each with 100 bytes of other values.
NODES_MAX: Final = 5000
NODE_BYTES: Final = 100


class SchemaUnusable(ValueError):
    """No provider can be given this schema; the text completes the sentence `It ...`."""


class Budget:
    """How much of a schema is read: references could multiply it without end."""

    def __init__(self) -> None:
        self._left = NODES_MAX

    def spend(self, schema: Mapping[str, Any]) -> None:
        """Count a schema without those inside of it.

        Raises:
            SchemaUnusable: It is one too many.
        """
        values = (value for name, value in schema.items() if name not in NOT_COUNTED)
        self._left -= 1 + sum(len(msgspec.json.encode(value)) for value in values) // NODE_BYTES
        if self._left < 0:
            raise SchemaUnusable("is too large when its references are resolved")


NOT_COUNTED: Final = WITH_SCHEMAS | DEFINITIONS


def target_of(root: object, reference: str) -> Any:
    """Return what a reference names inside of a schema.

    Raises:
        SchemaUnusable: It names something elsewhere, or nothing.
    """
    if not reference.startswith("#"):
        raise SchemaUnusable("refers to another document")
    found = root
    for step in reference[1:].split("/")[1:]:
        name = unquote(step).replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict) and name in found:
            found = found[name]
        elif isinstance(found, list) and name.isdecimal() and int(name) < len(found):
            found = found[int(name)]
        else:
            raise SchemaUnusable("refers to a part that it does not have")
    if reference != "#" and found is root:
        raise SchemaUnusable("refers to a part by a name, which is not supported")
    return found


def dereferenced(
    schema: dict[str, Any], root: object, active: frozenset[str] = frozenset()
) -> tuple[dict[str, Any], frozenset[str]]:
    """Return a schema that is no reference itself, and the references that led to it.

    What stands beside a reference counts more than its target. A reference that leads back to
    itself is left out.

    Raises:
        SchemaUnusable: A reference cannot be resolved.
    """
    while isinstance(reference := schema.get("$ref"), str):
        beside = {name: value for name, value in schema.items() if name != "$ref"}
        if reference in active:
            return beside, active
        active = active | {reference}
        target = target_of(root, reference)
        schema = {**target, **beside} if isinstance(target, dict) else beside
    return schema, active
