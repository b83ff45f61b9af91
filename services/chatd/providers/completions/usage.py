"""Normalises and validates the usage that an endpoint reports."""

from collections.abc import Mapping

from chatd.models.domain.language_model import UsageReported

# No model has a window of this size; larger counts are errors.
TOKENS_MAX = 100_000_000


def usage_of(counts: object) -> UsageReported | None:
    """Return the usage; None when nothing is reported."""
    if not isinstance(counts, Mapping):
        return None
    prompt = _first(counts, "prompt_tokens", "input_tokens")
    output = _first(counts, "completion_tokens", "output_tokens")
    details = _details(counts, "prompt_tokens_details", "input_tokens_details")
    read = _first(details, "cached_tokens") or _first(
        counts, "prompt_cache_hit_tokens", "cached_tokens", "cache_read_input_tokens"
    )
    written = _first(details, "cache_write_tokens", "cache_creation_tokens") or _first(
        counts, "cache_creation_input_tokens"
    )
    output_details = _details(counts, "completion_tokens_details", "output_tokens_details")
    reasoning = _first(output_details, "reasoning_tokens") or _first(counts, "reasoning_tokens")
    # Some, xAI among them, count reasoning beside the output; detected by the total.
    is_apart = bool(reasoning) and _first(counts, "total_tokens") == prompt + output + reasoning
    usage = UsageReported(
        input_tokens=max(0, prompt - read - written),
        output_tokens=output,
        reasoning_tokens=reasoning,
        cache_read_tokens=read,
        cache_write_tokens=written,
        is_reasoning_apart=is_apart,
    )
    return None if usage == UsageReported() else usage


def _details(counts: Mapping[object, object], *names: str) -> Mapping[object, object]:
    for name in names:
        details = counts.get(name)
        if isinstance(details, Mapping):
            return details
    return {}


def _first(counts: Mapping[object, object], *names: str) -> int:
    """Return the first of these counts that is not zero."""
    for name in names:
        count = _count(counts.get(name))
        if count:
            return count
    return 0


def _count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    return int(value) if 0 < value <= TOKENS_MAX else 0
