"""Instruction files of a workspace: which ones are read, and what is removed from them."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import msgspec

from chatd.content.domain.agent_types import AgentType
from chatd.content.domain.parts import ContextFile, Skill
from chatd.content.domain.sanitizing import sanitized
from chatd.content.domain.truncation import truncated

#: In the order in which a model reads them, after that of the home of the workspace's processes.
INSTRUCTION_FILES: Final = ("AGENTS.md", "CLAUDE.md", ".cursorrules")
HOME_FILE: Final = "AGENTS.md"
#: Precedes the path of the file in the home wherever it is shown.
HOME_PREFIX: Final = "~/"
FILE_BYTES_MAX: Final = 64 * 1024
TOTAL_BYTES_MAX: Final = 128 * 1024


@dataclass(frozen=True, slots=True)
class InstructionSet:
    """What a workspace says about working in it.

    Attributes:
        files: Its instruction files, sanitized.
        skills: Its skills, by name.
        agent_types: Its types of agents, by name.
    """

    files: tuple[ContextFile, ...] = ()
    skills: tuple[Skill, ...] = ()
    agent_types: tuple[AgentType, ...] = ()


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
    # What is not there is left out, so that digests stay the same as those that are stored.
    parts: object = (found.files, found.skills) if found.skills else found.files
    if found.agent_types:
        parts = (parts, found.agent_types)
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()
