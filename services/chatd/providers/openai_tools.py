"""Tool schemas and reasoning efforts, shared by OpenAI's two wire formats."""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import msgspec

from chatd.models.domain.catalogue import ProviderType
from chatd.models.domain.profile import ReasoningEffort
from chatd.models.engine.target import Target
from chatd.providers.openai_addresses import config_error
from parley.tool_schemas import SchemaDialect, SchemaUnusable, normalised

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

_NO_PARAMETERS: Mapping[str, object] = {"type": "object", "properties": {}}
# The others are servers of third parties that accept requests of the same format.
_OPENAI = frozenset({ProviderType.OPENAI, ProviderType.AZURE})


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


def dialect_of(target: Target) -> SchemaDialect:
    """Return which schemas a provider accepts."""
    is_openai = target.provider_type in _OPENAI
    return SchemaDialect.OPENAI if is_openai else SchemaDialect.COMPATIBLE


@lru_cache(maxsize=1024)
def parameters_of(input_schema_json: str, dialect: SchemaDialect) -> msgspec.Raw:
    """Return the schema of a tool's arguments in a form that the provider accepts.

    Without a valid schema the tool accepts anything.
    """
    try:
        return msgspec.Raw(msgspec.json.encode(normalised(input_schema_json, dialect)))
    except SchemaUnusable:
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
