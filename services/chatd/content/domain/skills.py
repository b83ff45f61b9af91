"""Skills: texts that a model reads when it needs them, known to it by name and description.

A skill is a file SKILL.md that begins with its name and description between two lines of dashes.
Those of a workspace are directories with more files; those of a user are single texts.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from chatd.content.domain.front_matter import parsed_file
from chatd.content.domain.parts import Skill

SKILL_FILE: Final = "SKILL.md"
#: Directories of a workspace that contain skills; of equal names the first one counts.
SKILL_DIRECTORIES: Final = (".agents/skills", ".claude/skills", ".codex/skills", "skills")
SKILL_BYTES_MAX: Final = 64 * 1024
SKILLS_MAX: Final = 100
WORKSPACE_SKILLS_MAX: Final = 50
DESCRIPTION_CHARACTERS_MAX: Final = 1024
SKILL_NAME: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
NAME_CHARACTERS_MAX: Final = 64
PERSONAL: Final = "personal"
WORKSPACE: Final = "workspace"


class SkillRefused(Exception):
    """A text that is no skill; the message says what to change."""


@dataclass(frozen=True, slots=True)
class SkillText:
    """A skill with its text.

    Attributes:
        body: What the model reads when it uses the skill.
    """

    name: str
    description: str
    body: str


def parsed_skill(content: str) -> SkillText:
    """Return the skill in the content of a SKILL.md.

    Raises:
        SkillRefused: It is none.
    """
    if len(content.encode()) > SKILL_BYTES_MAX:
        raise SkillRefused(f"has more than {SKILL_BYTES_MAX} bytes")
    found = parsed_file(content)
    if found is None:
        raise SkillRefused("does not begin with name and description between lines of ---")
    fields = found.fields
    name, description = fields.get("name", ""), fields.get("description", "")
    if not SKILL_NAME.fullmatch(name) or len(name) > NAME_CHARACTERS_MAX:
        raise SkillRefused(f"needs a name of at most {NAME_CHARACTERS_MAX} letters, digits and -")
    if not 1 <= len(description) <= DESCRIPTION_CHARACTERS_MAX:
        raise SkillRefused(f"needs a description of 1 to {DESCRIPTION_CHARACTERS_MAX} characters")
    if not found.body:
        raise SkillRefused("has no text after the description")
    return SkillText(name, description, found.body)


def offered_skills(personal: Iterable[Skill], workspace: Iterable[Skill]) -> tuple[Skill, ...]:
    """Return all skills by the names that the model uses, sorted by them.

    Where a personal one and one of the workspace have the same name, both have longer ones.
    """
    sources = [(PERSONAL, each) for each in personal] + [(WORKSPACE, each) for each in workspace]
    counts = Counter(skill.name for _, skill in sources)
    named = (
        msgspec.structs.replace(skill, name=f"{source}/{skill.name}")
        if counts[skill.name] > 1
        else skill
        for source, skill in sources
    )
    return tuple(sorted(named, key=lambda skill: skill.name))


def chosen_skill(skills: Sequence[Skill], name: str) -> Skill | None:
    """Return the skill that a model names; None if there is none or there are two."""
    return next((skill for skill in skills if skill.name == name.strip()), None)


def own_name(skill: Skill) -> str:
    """Return the name of a skill without its source."""
    return skill.name.rpartition("/")[2]


def is_inside(path: str) -> bool:
    """Return whether a path names a file of a skill: relative, without hidden names or `..`."""
    parts = path.split("/")
    return all(part and not part.startswith(".") and "\\" not in part for part in parts)
