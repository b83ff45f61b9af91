"""A user's own model for one purpose, as it is stored."""

from dataclasses import dataclass
from enum import StrEnum

from chatd.models.domain.profile import ModelChoice, ReasoningEffort


class OwnPurpose(StrEnum):
    """A use of models for which a user may have an own model."""

    ROOT = "root"  # Chats for which no model was chosen.
    GENERAL = "general"  # Agents.
    EXPLORE = "explore"  # Agents that only read and search.


class OwnMode(StrEnum):
    """Where the model of a purpose comes from."""

    INSTALLATION_DEFAULT = "installation_default"
    CHAT_DEFAULT = "chat_default"
    MODEL = "model"


@dataclass(frozen=True, slots=True)
class OwnModel:
    """A user's own model for one purpose; only the mode MODEL has a model."""

    mode: OwnMode
    model_id: str = ""
    reasoning_effort: ReasoningEffort = ReasoningEffort.DEFAULT

    @property
    def choice(self) -> ModelChoice:
        """Return the model and its effort; empty if the mode names none."""
        return ModelChoice(self.model_id, self.reasoning_effort)


CHAT_DEFAULT = OwnModel(OwnMode.CHAT_DEFAULT)
INSTALLATION_DEFAULT = OwnModel(OwnMode.INSTALLATION_DEFAULT)
