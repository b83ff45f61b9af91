"""Messages of a prompt."""

from dataclasses import dataclass

from chatd.content.domain.messages import Role
from chatd.content.domain.parts import FileReference, HookContext, Part
from chatd.content.domain.sanitizing import sanitized


@dataclass(frozen=True, slots=True)
class PromptMessage:
    """One message of a prompt: complete, without parts that only users see."""

    role: Role
    content: tuple[Part, ...]
    model_id: str = ""  # Model that wrote it; empty if none did.


def hook_context_text(context: HookContext) -> str:
    """Return what a hook adds, as a model reads it; the text cannot end its block."""
    name = " ".join(sanitized(context.hook_name).split()).replace('"', "'")
    return (
        f'<hook_context event="{context.event}" hook="{name}">\n'
        "A hook that an administrator of this installation set up adds the following. The user did "
        f"not write it.\n\n{sanitized(context.text)}\n</hook_context>"
    )


def reference_text(reference: FileReference) -> str:
    """Return the lines of a file that a user refers to, as a model reads them."""
    lines = f"lines {reference.start_line} to {reference.end_line}"
    return f"{reference.file_name}, {lines}:\n```\n{reference.content}\n```"
