"""Forms that running calls ask people to fill in: flat objects of simple fields, as in MCP."""

from collections.abc import Mapping
from typing import Any

FIELDS_MAX = 100
NAME_CHARACTERS_MAX = 64
#: Of an answer.
FIELD = "content"
_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
    "array": (list,),
}


def form_faults(
    schema: Mapping[str, Any], content: Mapping[str, Any]
) -> tuple[tuple[str, str], ...]:
    """Return the fields of a content that do not satisfy the schema of a form, each with why.

    Only what MCP allows in forms is checked here: names, types, choices and lengths. Everything
    else is the server's to check. A field is named as the answer has it, by a JSON Pointer.
    """
    fields = schema.get("properties", {})
    if len(content) > FIELDS_MAX:
        return ((FIELD, f"has more than {FIELDS_MAX} fields"),)
    missing = [str(name) for name in schema.get("required") or () if name not in content]
    faults = [(_place(name), "is missing") for name in missing]
    for name, value in content.items():
        is_asked = name in fields
        problem = _field_problem(fields[name], value) if is_asked else "is not asked for"
        if problem is not None:
            faults.append((_place(name), problem))
    return tuple(faults)


def _place(name: str) -> str:
    """Return where a field of the form is in an answer."""
    return f"{FIELD}_json#/" + name[:NAME_CHARACTERS_MAX].replace("~", "~0").replace("/", "~1")


def _field_problem(field: object, value: object) -> str | None:
    if not isinstance(field, Mapping):
        return None
    wanted = field.get("type")
    kinds = _TYPES.get(wanted) if isinstance(wanted, str) else None
    is_flag = isinstance(value, bool)
    if kinds is not None and (not isinstance(value, kinds) or (is_flag and wanted != "boolean")):
        return f"is no {wanted}"
    choices = _choices(field)
    if choices is not None and value not in choices:
        return "is none of the choices"
    if isinstance(value, str):
        return _bound_problem(len(value), field, "minLength", "maxLength", "characters")
    if isinstance(value, int | float) and not is_flag:
        return _bound_problem(value, field, "minimum", "maximum", "")
    if isinstance(value, list):
        return _list_problem(field, value)
    return None


def _choices(field: Mapping[str, Any]) -> list[object] | None:
    if isinstance(field.get("enum"), list):
        return list(field["enum"])
    titled = field.get("oneOf") or field.get("anyOf")
    if not isinstance(titled, list):
        return None
    return [each.get("const") for each in titled if isinstance(each, Mapping)]


def _bound_problem(
    value: float, field: Mapping[str, Any], low: str, high: str, unit: str
) -> str | None:
    at_least, at_most = field.get(low), field.get(high)
    if isinstance(at_least, int | float) and value < at_least:
        return f"is less than {at_least} {unit}".rstrip()
    if isinstance(at_most, int | float) and value > at_most:
        return f"is more than {at_most} {unit}".rstrip()
    return None


def _list_problem(field: Mapping[str, Any], values: list[object]) -> str | None:
    problem = _bound_problem(len(values), field, "minItems", "maxItems", "choices")
    if problem is not None:
        return problem
    problems = (_field_problem(field.get("items"), each) for each in values)
    return next((problem for problem in problems if problem is not None), None)
