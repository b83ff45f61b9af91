"""Instruction files of a workspace: which ones are read, and what is removed from them."""

import hashlib
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import msgspec

from chatd.content.domain.parts import ContextFile, Skill
from chatd.content.domain.truncation import truncated

#: In the order in which a model reads them.
INSTRUCTION_FILES: Final = ("AGENTS.md", "CLAUDE.md", ".cursorrules")
FILE_BYTES_MAX: Final = 64 * 1024
TOTAL_BYTES_MAX: Final = 128 * 1024
_ZERO_WIDTH_NON_JOINER: Final = "\u200c"  # Part of the spelling of several languages.
_KEPT_CONTROLS: Final = "\n\t"
_SELECTORS: Final = re.compile("[\U000e0100-\U000e01ef]")
_MANY_BREAKS: Final = re.compile(r"\n{3,}")
#: Tags that mark blocks of the system prompt; a file must not be able to end its block.
_BLOCK_TAGS: Final = re.compile(r"<(?=\s*/?\s*(?:user_)?instructions)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class InstructionSet:
    """What a workspace says about working in it.

    Attributes:
        files: Its instruction files, sanitized.
        skills: Its skills, by name.
    """

    files: tuple[ContextFile, ...] = ()
    skills: tuple[Skill, ...] = ()


@dataclass(frozen=True, slots=True)
class PinnedInstructions:
    """The instruction files that the prompts of a chat contain.

    Attributes:
        version: Counts the different contents that were pinned, from 1.
        digest: SHA-256 of the files, to compare them with those of the workspace.
        found: The files and skills that were found.
    """

    version: int
    digest: str
    found: InstructionSet = InstructionSet()


def sanitized(text: str) -> str:
    """Remove what a person does not see in a text, and what would end its block in a prompt."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    visible = "".join(character for character in lines if _is_visible(character))
    plain = _BLOCK_TAGS.sub("&lt;", _SELECTORS.sub("", visible))
    return _MANY_BREAKS.sub("\n\n", plain).strip()


def bounded(files: Iterable[ContextFile]) -> tuple[ContextFile, ...]:
    """Return files as they are pinned: sanitized, each content once, within the size limits."""
    kept: list[ContextFile] = []
    left_bytes = TOTAL_BYTES_MAX
    for file in files:
        content = sanitized(file.content)
        if not content or any(content == each.content for each in kept):
            continue
        shortened = truncated(content, min(FILE_BYTES_MAX, left_bytes)) if left_bytes > 0 else ""
        is_cut = file.truncated or shortened != content
        kept.append(ContextFile(file.path, shortened, is_cut))
        left_bytes -= len(shortened.encode())
    return tuple(kept)


def digest_of(found: InstructionSet) -> str:
    """Return the SHA-256 of what a workspace says about working in it."""
    parts = (found.files, found.skills) if found.skills else found.files
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()


def _is_visible(character: str) -> bool:
    if character.isascii():
        return character.isprintable() or character in _KEPT_CONTROLS
    is_format = unicodedata.category(character) in ("Cf", "Cc", "Co", "Cn", "Cs")
    return not is_format or character == _ZERO_WIDTH_NON_JOINER
