"""From what a provider reports to what is stored of a call."""

from chatd.domain.chat import ModelUse
from chatd.domain.cost import billed_micros, cost_micros, is_plausible
from chatd.domain.model import UsageReported
from chatd.domain.turn import ModelProfile

NOTHING = UsageReported()


def model_use(
    profile: ModelProfile, reported: UsageReported | None, *, alive_ms: int, model_ms: int
) -> ModelUse:
    """Return what a call used; counts that cannot be true are as good as none."""
    is_known = reported is not None and is_plausible(reported)
    usage = reported if reported is not None and is_known else NOTHING
    return ModelUse(
        model_id=profile.id,
        input_tokens=usage.input_tokens,
        output_tokens=usage.written_tokens,
        reasoning_tokens=usage.reasoning_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        context_limit_tokens=usage.context_limit_tokens or profile.context_limit_tokens,
        cost_micros=billed_micros(profile.price, usage) if is_known else None,
        runtime_ms=alive_ms,
        model_runtime_ms=model_ms,
        provider=profile.provider,
        model_name=profile.name,
        price=profile.price,
    )


def doubt(profile: ModelProfile, reported: UsageReported | None) -> str | None:
    """Return what about a provider's report cannot be stored as it is, None if nothing."""
    if reported is None:
        return None
    if not is_plausible(reported):
        return f"{profile.id} reported token counts that cannot be true: {reported}"
    micros = cost_micros(profile.price, reported)
    if micros != billed_micros(profile.price, reported):
        return f"a call of {profile.id} would cost {micros} micros, which cannot be true"
    return None
