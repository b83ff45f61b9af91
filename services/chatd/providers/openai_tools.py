"""Tool schemas and reasoning efforts, shared by OpenAI's two wire formats."""

import json
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import msgspec

from chatd.models.domain.profile import ReasoningEffort
from chatd.models.engine.target import Target
from chatd.providers.openai_addresses import config_error

# From the least to the most.
EFFORTS = tuple(effort for effort in ReasoningEffort if effort)

_NOT_THINKING = re.compile(r"(gpt-3|gpt-4|chatgpt-|gpt-5(\.\d+)?-chat|davinci|babbage)")
# The efforts that model series accept, first match; they reject all others.
_FAMILIES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"o\d|gpt-oss|codex-"), "low medium high"),
    (re.compile(r"gpt-5-pro"), "high"),
    (re.compile(r"gpt-5(\.\d+)?-pro"), "medium high xhigh"),
    (re.compile(r"gpt-5\.1-codex-max"), "low medium high xhigh"),
    (re.compile(r"gpt-5(\.1)?-codex"), "low medium high"),
    (re.compile(r"gpt-5\.[2-5]-codex"), "low medium high xhigh"),
    (re.compile(r"gpt-5\.1(?!\d)"), "none low medium high"),
    (re.compile(r"gpt-5\.[2-5](?!\d)"), "none low medium high xhigh"),
    (re.compile(r"gpt-5(?!\.)"), "minimal low medium high"),
    (re.compile(r"gpt-(5\.|[6-9])"), "none low medium high xhigh max"),
    (re.compile(r""), "none low medium high"),
)

# Where a schema contains schemas: by name, as one, in a list.
_SCHEMAS_BY_NAME = frozenset({"properties", "patternProperties", "$defs", "definitions"})
_SCHEMA = frozenset({"items", "additionalProperties", "not", "if", "then", "else", "contains"})
_SCHEMAS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_REFUSED_AT_TOP = ("anyOf", "oneOf", "allOf", "not", "enum")
_NO_PARAMETERS: Mapping[str, object] = {"type": "object", "properties": {}}


def thinks(target: Target) -> bool:
    """Return whether the model reasons, according to its name or the option `efforts`."""
    return bool(_efforts(target))


def effort_of(target: Target, effort: str) -> str:
    """Return the nearest effort that the model accepts; empty to leave it to the model.

    The requested effort is never exceeded, unless it is below the model's lowest.

    Raises:
        ModelError: The option `efforts` is not a list of efforts.
    """
    if effort not in EFFORTS:
        return ""
    able = _efforts(target)
    wanted = EFFORTS.index(ReasoningEffort(effort))
    fitting = [each for each in able if EFFORTS.index(each) <= wanted] or able[:1]
    return fitting[-1] if fitting else ""


def flag_option(target: Target, name: str, *, default: bool) -> bool:
    """Return a boolean option.

    Raises:
        ModelError: It is not a boolean.
    """
    value = target.options.get(name, default)
    if not isinstance(value, bool):
        raise config_error(target, f"has an option {name} that is neither true nor false.")
    return value


def tool_option(target: Target, name: str) -> Mapping[str, object] | None:
    """Return the settings of a provider's tool that an option enables; None if it is off.

    Raises:
        ModelError: It is neither true, false nor settings.
    """
    value = target.options.get(name)
    if value is None or value is False:
        return None
    if value is True:
        return {}
    if not isinstance(value, Mapping):
        raise config_error(target, f"has an option {name} that is neither true nor settings.")
    return value


def with_extra_body(body: dict[str, Any], target: Target) -> dict[str, Any]:
    """Return a body merged with `extra_body`: lists grow, objects merge, others are replaced.

    Raises:
        ModelError: It is not an object.
    """
    extra = target.options.get("extra_body")
    if extra is None:
        return body
    if not isinstance(extra, Mapping):
        raise config_error(target, "has an option extra_body that is not an object.")
    merged = dict(body)
    for name, value in extra.items():
        ours = merged.get(name)
        if isinstance(ours, list) and isinstance(value, list):
            merged[name] = [*ours, *value]
        elif isinstance(ours, Mapping) and isinstance(value, Mapping):
            merged[name] = {**ours, **value}
        else:
            merged[name] = value
    return merged


@lru_cache(maxsize=1024)
def parameters_of(input_schema_json: str) -> msgspec.Raw:
    """Return the schema of a tool's arguments in a form that OpenAI accepts.

    It is an object without alternatives at its top; no object in it lacks properties or has an
    empty list of required ones. Without a valid schema the tool accepts anything.
    """
    try:
        schema = json.loads(input_schema_json)
        if isinstance(schema, dict):
            return msgspec.Raw(msgspec.json.encode(_normal(_as_object(schema))))
    except (ValueError, RecursionError):
        pass
    return msgspec.Raw(msgspec.json.encode(_NO_PARAMETERS))


def _efforts(target: Target) -> tuple[ReasoningEffort, ...]:
    """Return the efforts that the model accepts, from the least to the most."""
    accepted = target.options.get("efforts")
    if accepted is None:
        name = target.model_name.lower().rpartition("/")[2].removeprefix("ft:")
        if _NOT_THINKING.match(name):
            return ()
        accepted = next(efforts for family, efforts in _FAMILIES if family.match(name)).split()
    if not isinstance(accepted, Iterable) or not all(each in EFFORTS for each in accepted):
        raise config_error(target, f"has an option efforts that is not some of {_words()}.")
    return tuple(each for each in EFFORTS if each in accepted)


def _words() -> str:
    return ", ".join(EFFORTS)


def _as_object(schema: Mapping[str, object]) -> dict[str, object]:
    """Return a top schema that is an object; properties of alternatives become optional."""
    made = {name: value for name, value in schema.items() if name not in _REFUSED_AT_TOP}
    properties: dict[str, object] = {}
    for alternatives in (schema.get(name) for name in ("anyOf", "oneOf", "allOf")):
        for each in alternatives if isinstance(alternatives, list) else ():
            if isinstance(each, dict) and isinstance(each.get("properties"), dict):
                properties |= each["properties"]
    own = schema.get("properties")
    made["properties"] = properties | (own if isinstance(own, dict) else {})
    made["type"] = "object"
    return made


def _normal(schema: object) -> object:
    """Return a schema with its objects normalised, recursively."""
    if not isinstance(schema, dict):
        return schema
    made: dict[str, object] = {}
    for name, value in schema.items():
        if name in _SCHEMAS_BY_NAME:
            named = value if isinstance(value, dict) else {}
            made[name] = {each: _normal(inner) for each, inner in named.items()}
        elif name in _SCHEMAS and isinstance(value, list):
            made[name] = [_normal(inner) for inner in value]
        elif name in _SCHEMA:
            made[name] = _normal(value)
        elif name != "required" or value:
            made[name] = value
    if made.get("type") == "object":
        made.setdefault("properties", {})
    return made
