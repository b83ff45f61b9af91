"""Messages of a prompt."""

from dataclasses import dataclass

from chatd.content.domain.messages import Role
from chatd.content.domain.parts import FileReference, Part


@dataclass(frozen=True, slots=True)
class PromptMessage:
    """One message of a prompt: complete, without parts that only users see."""

    role: Role
    content: tuple[Part, ...]
    model_id: str = ""  # Model that wrote it; empty if none did.


def reference_text(reference: FileReference) -> str:
    """Return the lines of a file that a user refers to, as a model reads them."""
    lines = f"lines {reference.start_line} to {reference.end_line}"
    return f"{reference.file_name}, {lines}:\n```\n{reference.content}\n```"
