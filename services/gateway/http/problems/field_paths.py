"""Maps proto field paths of other services to locations in the HTTP request.

Services behind the gateway report violations by the path of the proto field, such as
`content[0].file.file_id`. Clients sent JSON, a query, a path and headers, so the error contains the
JSON Pointer (`/content/0/file_id`) or the name of the parameter or header. A pointer into JSON that
a proto contains as text follows its field: `client_tools[0].input_schema_json#/type`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import inspect

#: Proto field -> parameters or headers that it may come from; the first that the route has is used.
PARAMETERS: Mapping[str, tuple[str, ...]] = {
    "page_size": ("limit",),
    "page_token": ("cursor",),
    "query": ("q", "query"),
    "condition.max_wait_ms": ("wait",),
    "condition.until": ("until",),
    "condition.pattern": ("pattern",),
    "since_cursor": ("cursor",),
    "budget.max_bytes": ("max_bytes",),
    "after_sequence": ("after",),
}
HEADERS: Mapping[str, str] = {
    "request_id": "Idempotency-Key",
    "authorization": "Authorization",
    "etag": "If-Match",
}

_STEP = re.compile(r"\[(?P<index>[^\]]*)\]|\.?(?P<name>[^.\[]+)")


@dataclass(frozen=True, slots=True)
class RouteInputs:
    """The inputs of a route.

    Attributes:
        path: The path, with its parameters in braces.
        query: Its query parameters.
        body: The type of its JSON body, if any.
    """

    path: str = ""
    query: tuple[str, ...] = ()
    body: type[msgspec.Struct] | None = None


#: Used before the route is known.
ANYTHING = RouteInputs()


@dataclass(frozen=True, slots=True)
class FieldLocation:
    """A location in a request: a pointer into the body, or the name of a parameter or header."""

    pointer: str | None = None
    parameter: str | None = None


def location_of(field: str, asked: RouteInputs) -> FieldLocation:
    """Return the location of a proto field in a request of this route.

    A field that the client did not send is reported as the whole body, if there is one.
    """
    field, _, inside = field.partition("_json#")
    last = field.rpartition(".")[2]
    if last in HEADERS:
        return FieldLocation(parameter=HEADERS[last])
    # The field `chat.id` of a message is the variable {chat_id} of a path.
    for name in PARAMETERS.get(field, (field, field.replace(".", "_"))):
        if name in asked.query or f"{{{name}}}" in asked.path:
            return FieldLocation(parameter=name)
    if f"{{{last}}}" in asked.path:
        return FieldLocation(parameter=last)
    if asked.body is None:
        return FieldLocation()
    steps = [found["name"] or found["index"].strip("'\"") for found in _STEP.finditer(field)]
    return FieldLocation(pointer=_pointer(inspect.type_info(asked.body), steps) + inside)


def pointer_of(path: str) -> str:
    """Convert a path like "content[0].text" to a JSON Pointer."""
    steps = path.replace("[", ".").replace("]", "").split(".")
    return "".join(f"/{escaped(step)}" for step in steps if step)


def escaped(step: str) -> str:
    """Escape the special characters of one JSON Pointer token."""
    return step.replace("~", "~0").replace("/", "~1")


def _pointer(kind: Any, steps: list[str]) -> str:
    """Return the pointer of the steps that exist in a body of this type; others are proto-only."""
    kinds = _members(kind)
    if not steps or not kinds:
        return ""
    step, rest = steps[0], steps[1:]
    for found in kinds:
        match found:
            case inspect.StructType(fields=fields):
                name = step.removesuffix("_json")
                inner = next((each.type for each in fields if each.encode_name == name), None)
                if inner is not None:
                    return f"/{escaped(name)}{_pointer(inner, rest)}"
            case inspect.VarTupleType(item_type=item) if step.isdigit():
                return f"/{step}{_pointer(item, rest)}"
            case inspect.DictType():
                # A key may contain dots itself.
                return f"/{escaped('.'.join(steps))}"
    return _pointer(kind, rest)


def _members(kind: Any) -> list[Any]:
    match kind:
        case inspect.Metadata(type=inner):
            return _members(inner)
        case inspect.UnionType(types=members):
            return [found for member in members for found in _members(member)]
        case inspect.StructType() | inspect.VarTupleType() | inspect.DictType():
            return [kind]
        case _:
            return []
