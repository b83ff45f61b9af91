"""The model that a message requests, and a model as it is configured for a turn."""

from dataclasses import dataclass
from enum import StrEnum

from chatd.models.domain.price import Price

THRESHOLD_PERCENT = 70
THRESHOLD_NEVER_PERCENT = 100


class ReasoningEffort(StrEnum):
    """Reasoning efforts, in ascending order."""

    DEFAULT = ""
    NONE = "none"
    MINIMAL = "minimal"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    XHIGH = "xhigh"
    MAX = "max"


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A model and an effort; empty ones are taken from the chat, and then the installation."""

    model_id: str = ""
    reasoning_effort: ReasoningEffort = ReasoningEffort.DEFAULT

    def over(self, fallback: "ModelChoice") -> "ModelChoice":
        """Return this choice with its empty fields taken from another."""
        return ModelChoice(
            self.model_id or fallback.model_id,
            self.reasoning_effort or fallback.reasoning_effort,
        )


NO_CHOICE = ModelChoice()


@dataclass(frozen=True, slots=True)
class ModelProfile:
    """A model as it is configured; a window of 0 is not known."""

    id: str
    context_limit_tokens: int = 0
    price: Price | None = None
    output_tokens_max: int | None = None
    reasoning_effort: str = ""
    provider: str = ""  # As the ledger names it.
    provider_id: str = ""
    name: str = ""  # As the provider names it.
    takes_tools: bool = True  # False only where an administrator says so.
    is_fallback: bool = False  # Whether it answers in place of the model that was chosen.
