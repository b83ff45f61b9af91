"""Local references of JSON Schemas; nothing is ever fetched."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import unquote

import msgspec

from parley.tool_schemas.keywords import DEFINITIONS, WITH_SCHEMAS

#: What may be read of one schema after its references are resolved: schemas, their entries,
#: references that are followed, and each 100 bytes of other values.
NODES_MAX: Final = 3000
NODE_BYTES: Final = 100
#: References that lead to one another.
REFERENCES_MAX: Final = 256
TOO_LARGE: Final = "is too large when its references are resolved"


class SchemaUnusable(ValueError):
    """No provider can be given this schema; the text completes the sentence `It ...`."""


class ReferenceUnusable(SchemaUnusable):
    """A reference names nothing that the schema has."""


class Budget:
    """How much of a schema is read: references could multiply it without end.

    Args:
        nodes_max: How much may be read.
        whole: The budget of all schemas that are read together, which this one is a part of.
    """

    def __init__(self, nodes_max: int = NODES_MAX, whole: "Budget | None" = None) -> None:
        self._left = nodes_max
        self._whole = whole

    @property
    def is_spent(self) -> bool:
        """Whether nothing is left."""
        return self._left <= 0

    def spend(self, schema: Mapping[str, Any]) -> None:
        """Count a schema and the number of those inside of it, each of which is counted itself.

        Raises:
            SchemaUnusable: It is one too many.
        """
        size_bytes, entries = 0, 0
        for name, value in schema.items():
            size_bytes += len(name)
            if name not in NOT_COUNTED:
                size_bytes += len(msgspec.json.encode(value))
            elif isinstance(value, (list, dict)):
                entries += len(value)
                size_bytes += sum(map(len, value)) if isinstance(value, dict) else 0
        self.take(1 + entries + size_bytes // NODE_BYTES)

    def take(self, nodes: int) -> None:
        """Count work on a schema.

        Raises:
            SchemaUnusable: It is too much.
        """
        self._left -= nodes
        if self._whole is not None:
            self._whole._left -= nodes
        if self._left < 0:
            raise SchemaUnusable(TOO_LARGE)


NOT_COUNTED: Final = WITH_SCHEMAS | DEFINITIONS


def target_of(root: object, reference: str) -> Any:
    """Return what a reference names inside of a schema.

    Raises:
        ReferenceUnusable: It names something elsewhere, or nothing.
    """
    if not reference.startswith("#"):
        raise ReferenceUnusable("refers to another document")
    found = root
    for step in reference[1:].split("/")[1:]:
        name = unquote(step).replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict) and name in found:
            found = found[name]
        elif isinstance(found, list) and _is_place(name, found):
            found = found[int(name)]
        else:
            raise ReferenceUnusable("refers to a part that it does not have")
    if reference != "#" and found is root:
        raise ReferenceUnusable("refers to a part by a name, which is not supported")
    return found


def _is_place(name: str, found: list[Any]) -> bool:
    """Return whether a step names an entry of a list; longer numbers are not even read."""
    is_number = name.isascii() and name.isdecimal() and len(name) <= len(str(len(found)))
    return is_number and int(name) < len(found)


def dereferenced(
    schema: dict[str, Any], root: object, budget: Budget, active: frozenset[str] = frozenset()
) -> tuple[dict[str, Any], frozenset[str]]:
    """Return a schema that is no reference itself, and the references that led to it.

    Keywords beside a reference override those of its target. A reference that leads back to
    itself is left out.

    Raises:
        SchemaUnusable: A reference cannot be resolved, or they are too many.
    """
    followed = set(active)
    while isinstance(reference := schema.get("$ref"), str):
        budget.spend(schema)
        beside = {name: value for name, value in schema.items() if name != "$ref"}
        if reference in followed:
            schema = beside
            break
        followed.add(reference)
        if len(followed) > REFERENCES_MAX:
            raise SchemaUnusable("has too many references that lead to one another")
        target = target_of(root, reference)
        schema = {**target, **beside} if isinstance(target, dict) else beside
    return schema, active if len(followed) == len(active) else frozenset(followed)
