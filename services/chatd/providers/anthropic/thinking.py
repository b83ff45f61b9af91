"""Converts the reasoning effort into the thinking fields of each generation of models.

The newest models decide themselves how much to think and are only given the effort; for some of
them thinking cannot be disabled. Older ones are given a token budget, the oldest none.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

THINKING_TOKENS_MIN = 1024
NO_EFFORT = "none"

_NAME = re.compile(r"claude-([a-z]+)-(\d{1,2}|preview)(?:[-.](\d{1,2}))?(?!\d)")
_OLD_NAME = re.compile(r"claude-(\d)(?:[-.](\d))?-[a-z]+|claude-(?:2|instant)")
_NO_VERSION: Final[tuple[int, int]] = (0, 0)
# The versions since which thinking of a model series cannot be disabled.
_ALWAYS_THINKING = {"fable": (0, 0), "mythos": (0, 0), "opus": (5, 5), "sonnet": (5, 5)}

BUDGETS: Mapping[str, int] = {
    "minimal": THINKING_TOKENS_MIN,
    "low": 4096,
    "medium": 10240,
    "high": 20480,
    "xhigh": 28672,
    "max": 31744,
}
EFFORTS: Mapping[str, str] = {"minimal": "low"} | {
    each: each for each in ("low", "medium", "high", "xhigh", "max")
}


class Thinking(StrEnum):
    """How thinking can be requested from a model."""

    NEVER = "never"
    BUDGET = "budget"
    ADAPTIVE = "adaptive"
    ALWAYS = "always"


@dataclass(frozen=True, slots=True)
class ThinkingModel:
    """The thinking capabilities of a model, derived from its name."""

    thinking: Thinking
    has_xhigh: bool = False


def thinking_model(model_name: str) -> ThinkingModel:
    """Return how a model thinks, by its name; an unknown name has a budget."""
    name = model_name.lower()
    if (old := _OLD_NAME.search(name)) is not None:
        is_thinking = (old[1], old[2]) >= ("3", "7") if old[2] else False
        return ThinkingModel(Thinking.BUDGET if is_thinking else Thinking.NEVER)
    found = _NAME.search(name)
    if found is None:
        return ThinkingModel(Thinking.ADAPTIVE if "claude-" in name else Thinking.BUDGET, True)
    version = (int(found[2]), int(found[3] or 0)) if found[2].isdigit() else _NO_VERSION
    if found[1] in _ALWAYS_THINKING and version >= _ALWAYS_THINKING[found[1]]:
        return ThinkingModel(Thinking.ALWAYS, True)
    if version < (4, 6):
        return ThinkingModel(Thinking.BUDGET)
    return ThinkingModel(Thinking.ADAPTIVE, has_xhigh=version > (4, 6))


def thinking_fields(model_name: str, effort: str, output_tokens_max: int) -> dict[str, object]:
    """Return the body fields for an effort; none for an unknown effort.

    Args:
        model_name: The provider's name of the model.
        effort: The chosen effort; empty leaves it to the model.
        output_tokens_max: The limit of thinking and answer together.
    """
    model = thinking_model(model_name)
    if effort == NO_EFFORT:
        return _none(model)
    if effort not in BUDGETS:
        return {}
    match model.thinking:
        case Thinking.NEVER:
            return {}
        case Thinking.BUDGET:
            return _budget(BUDGETS[effort], output_tokens_max)
        case Thinking.ADAPTIVE | Thinking.ALWAYS:
            chosen = "high" if effort == "xhigh" and not model.has_xhigh else EFFORTS[effort]
            # Without `display`, the newest models send empty thinking blocks.
            thinking = {"type": "adaptive", "display": "summarized"}
            return {"thinking": thinking, "output_config": {"effort": chosen}}


def is_budgeted(fields: Mapping[str, object]) -> bool:
    """Return whether the body requests thinking with a budget, which has its own rules."""
    thinking = fields.get("thinking")
    return isinstance(thinking, dict) and thinking.get("type") == "enabled"


def _none(model: ThinkingModel) -> dict[str, object]:
    match model.thinking:
        case Thinking.NEVER | Thinking.BUDGET:
            return {}
        case Thinking.ADAPTIVE:
            return {"thinking": {"type": "disabled"}}
        case Thinking.ALWAYS:
            return {"output_config": {"effort": "low"}}


def _budget(wanted_tokens: int, output_tokens_max: int) -> dict[str, object]:
    """Return a budget that leaves tokens for the answer; nothing if too few are left."""
    budget_tokens = min(wanted_tokens, output_tokens_max * 3 // 4)
    if budget_tokens < THINKING_TOKENS_MIN:
        return {}
    return {"thinking": {"type": "enabled", "budget_tokens": budget_tokens}}
