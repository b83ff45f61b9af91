"""Messages of a prompt."""

from dataclasses import dataclass

from chatd.content.domain.messages import Role
from chatd.content.domain.parts import Part


@dataclass(frozen=True, slots=True)
class PromptMessage:
    """One message of a prompt: complete, without parts that only users see."""

    role: Role
    content: tuple[Part, ...]
    model_id: str = ""  # Model that wrote it; empty if none did.
