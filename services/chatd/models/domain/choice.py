"""Which model a message asks for and how hard it shall think, as a value that is stored with it."""

from dataclasses import dataclass
from enum import StrEnum


class ReasoningEffort(StrEnum):
    """How hard a model thinks; ordered."""

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
    """A model and an effort; what is empty is left to the chat, and then to the installation."""

    model_id: str = ""
    reasoning_effort: ReasoningEffort = ReasoningEffort.DEFAULT

    def over(self, fallback: "ModelChoice") -> "ModelChoice":
        """Return this choice with what it leaves open taken from another."""
        return ModelChoice(
            self.model_id or fallback.model_id,
            self.reasoning_effort or fallback.reasoning_effort,
        )


NO_CHOICE = ModelChoice()
