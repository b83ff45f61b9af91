"""Usage and cost of one model call."""

from dataclasses import dataclass

from chatd.models.domain.price import Price


@dataclass(frozen=True, slots=True)
class ModelUse:
    """Usage of the model call of a message."""

    model_id: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    context_limit_tokens: int = 0
    cost_micros: int | None = None  # None when no price is known, 0 when it is free.
    runtime_ms: int = 0
    model_runtime_ms: int = 0
    provider: str = ""  # Provider and model names at the time of the call.
    model_name: str = ""
    price: Price | None = None  # At the time of the call.
    is_estimate: bool = False  # Whether its provider did not report all of the tokens.
