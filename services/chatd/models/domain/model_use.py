"""What one call of a model used and cost."""

from dataclasses import dataclass

from chatd.models.domain.price import Price


@dataclass(frozen=True, slots=True)
class ModelUse:
    """What the model call behind a message used."""

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
    provider: str = ""  # Its name, and below the model's, as they were when the call was made.
    model_name: str = ""
    price: Price | None = None  # Of that time too.
    is_estimate: bool = False  # Whether its provider did not report all of the tokens.
