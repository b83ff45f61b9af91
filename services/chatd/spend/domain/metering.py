"""Converts the usage that a provider reports to the stored usage of a call."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from chatd.models.domain.language_model import UsageReported
from chatd.models.domain.price import ModelUse, billed_micros, cost_micros, is_plausible
from chatd.models.domain.profile import ModelProfile

NOTHING = UsageReported()


@dataclass(frozen=True, slots=True)
class Metered:
    """The tokens of a call, and whether some of them are an estimate."""

    usage: UsageReported
    is_estimate: bool


def metered(
    reported: UsageReported | None, *, is_complete: bool, estimated: Callable[[], UsageReported]
) -> Metered:
    """Return the tokens of a call as reported, completed by an estimate where necessary.

    A provider that was stopped before the end may have reported its input and some of its output;
    implausible counts, and counts that are all zero, are ignored.

    Args:
        reported: The last report of the provider, if any.
        is_complete: Whether the answer was complete, so that the report is the final one.
        estimated: Returns an estimate from the data sent and received.
    """
    known = reported if reported is not None and _is_telling(reported) else None
    if known is not None and is_complete:
        return Metered(known, is_estimate=False)
    guess = estimated()
    if known is None:
        return Metered(guess, is_estimate=True)
    is_input_known = known.input_tokens + known.cache_read_tokens + known.cache_write_tokens > 0
    usage = replace(
        known,
        input_tokens=known.input_tokens if is_input_known else guess.input_tokens,
        output_tokens=max(known.written_tokens, guess.output_tokens),
        is_reasoning_apart=False,
    )
    return Metered(usage, is_estimate=True)


def model_use(profile: ModelProfile, call: Metered, *, alive_ms: int, model_ms: int) -> ModelUse:
    """Return the stored usage of a call."""
    usage = call.usage
    return ModelUse(
        model_id=profile.id,
        input_tokens=usage.input_tokens,
        output_tokens=usage.written_tokens,
        reasoning_tokens=usage.reasoning_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        context_limit_tokens=usage.context_limit_tokens or profile.context_limit_tokens,
        cost_micros=billed_micros(profile.price, usage),
        runtime_ms=alive_ms,
        model_runtime_ms=model_ms,
        provider=profile.provider,
        model_name=profile.name,
        price=profile.price,
        is_estimate=call.is_estimate,
        is_fallback=profile.is_fallback,
    )


def _is_telling(reported: UsageReported) -> bool:
    counted = reported.written_tokens + reported.input_tokens
    cached = reported.cache_read_tokens + reported.cache_write_tokens
    return is_plausible(reported) and counted + cached > 0


def doubt(profile: ModelProfile, reported: UsageReported | None) -> str | None:
    """Return why a provider's report cannot be stored unchanged, None if it can."""
    if reported is None:
        return None
    if not is_plausible(reported):
        return f"{profile.id} reported token counts that cannot be true: {reported}"
    micros = cost_micros(profile.price, reported)
    if micros != billed_micros(profile.price, reported):
        return f"a call of {profile.id} would cost {micros} micros, which cannot be true"
    return None
