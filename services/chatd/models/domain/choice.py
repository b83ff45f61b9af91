"""The model and reasoning effort that a message requests, as a value that is stored with it."""

from dataclasses import dataclass
from enum import StrEnum


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
