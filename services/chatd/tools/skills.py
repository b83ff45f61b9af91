"""The tools with which a model reads skills and their files."""

from typing import Annotated, Final, Protocol

import msgspec

from chatd.content.domain.parts import Skill
from chatd.content.domain.sanitizing import sanitized
from chatd.content.domain.skills import (
    SKILL_FILE,
    SkillRefused,
    chosen_skill,
    is_inside,
    own_name,
    parsed_skill,
)
from chatd.content.domain.tools import (
    Execution,
    Executor,
    Found,
    InputRequired,
    NeverSeen,
    Outcome,
    ToolSpec,
)
from chatd.content.domain.truncation import truncated
from chatd.content.domain.turn_context import TurnContext
from chatd.primitives.domain.errors import ChatError
from chatd.primitives.domain.ids import ChatId, Owner, OwnerId
from chatd.tools.workspace.arguments import BadArguments, Input, read, schema_of
from chatd.tools.workspace.results import failed, misused, succeeded

#: What is left of the budget of a result for its fields.
FIELDS_BYTES: Final = 4096

_Name = Annotated[
    str, msgspec.Meta(min_length=1, max_length=256, description="The name in the list of skills.")
]


class ReadSkillInput(Input, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of `read_skill`."""

    name: _Name


class ReadSkillFileInput(Input, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of `read_skill_file`."""

    name: _Name
    path: Annotated[
        str,
        msgspec.Meta(
            min_length=1, max_length=1024, description="A path from the files of read_skill."
        ),
    ]


SPECS: Final = (
    ToolSpec(
        "read_skill",
        "Read a skill of the list of skills before you do what it is for.",
        schema_of(ReadSkillInput),
        Executor.CHATD,
    ),
    ToolSpec(
        "read_skill_file",
        "Read a file that belongs to a skill of the workspace.",
        schema_of(ReadSkillFileInput),
        Executor.CHATD,
    ),
)


class PersonalSkills(Protocol):
    """The skills of users."""

    async def body(self, owner_id: OwnerId, name: str) -> str:
        """Return the text of a skill.

        Raises:
            ChatError: It is gone.
        """
        ...


class SkillFiles(Protocol):
    """The files of skills of workspaces."""

    async def text(self, chat_id: ChatId, owner: Owner, path: str) -> str | None:
        """Return the text of a file; None if there is none.

        Raises:
            ChatError: The workspace cannot be read now.
        """
        ...

    async def paths(self, chat_id: ChatId, owner: Owner, directory: str) -> tuple[str, ...]:
        """Return the paths of the files in a directory, relative to it.

        Raises:
            ChatError: The workspace cannot be read now.
        """
        ...


class SkillTools:
    """Offers the tools for skills.

    Args:
        personal: The skills of users.
        files: The files of skills of workspaces.
    """

    names = frozenset(spec.name for spec in SPECS)

    def __init__(self, personal: PersonalSkills, files: SkillFiles) -> None:
        self._personal = personal
        self._files = files

    async def list_tools(self, context: TurnContext) -> tuple[ToolSpec, ...]:
        """Return the tools, if there are skills."""
        return SPECS if context.skills else ()

    async def execute(self, execution: Execution) -> Outcome | InputRequired:
        """Execute a call; every refusal is its result."""
        call, skills = execution.dispatch.call, execution.context.skills
        try:
            if call.tool_name == "read_skill":
                given = read(ReadSkillInput, call.args_json)
                return await self._read(execution, _named(skills, given.name))
            of_file = read(ReadSkillFileInput, call.args_json)
            return await self._read_file(execution, _named(skills, of_file.name), of_file.path)
        except BadArguments as error:
            return misused(error)
        except ChatError as error:
            return failed(str(error), "SKILL_UNAVAILABLE", "Go on without the skill.")

    async def find(self, execution: Execution) -> Found:
        """Return that a call may be made again: it only reads."""
        return NeverSeen()

    async def cancel(self, execution: Execution) -> None:
        """Do nothing: nothing is left of a call."""

    async def _read(self, execution: Execution, skill: Skill) -> Outcome:
        if not skill.directory:
            body = await self._personal.body(OwnerId(execution.owner.id), own_name(skill))
            return _told(execution, skill, {}, body)
        where = (execution.chat_id, execution.owner)
        try:
            content = await self._files.text(*where, f"{skill.directory}/{SKILL_FILE}")
            body = parsed_skill(content or "").body
        except SkillRefused as refusal:
            problem = f"The skill is gone or cannot be read any more: it {refusal}."
            return failed(problem, "SKILL_UNAVAILABLE", "Go on without the skill.")
        paths = await self._files.paths(*where, skill.directory)
        files = [path for path in paths if is_inside(path) and path != SKILL_FILE]
        return _told(execution, skill, {"directory": skill.directory, "files": files}, body)

    async def _read_file(self, execution: Execution, skill: Skill, path: str) -> Outcome:
        if not skill.directory:
            raise BadArguments(f"{skill.name} has no files", "read_skill has all of it")
        if not is_inside(path):
            raise BadArguments("path leads out of the skill", "use a path from read_skill")
        where = (execution.chat_id, execution.owner)
        content = await self._files.text(*where, f"{skill.directory}/{path}")
        if content is None:
            raise BadArguments(f"there is no text file {path}", "use a path from read_skill")
        return _told(execution, skill, {"path": path}, sanitized(content), "content")


def _told(
    execution: Execution,
    skill: Skill,
    fields: dict[str, object],
    text: str,
    name: str = "body",
) -> Outcome:
    """Return the result, with as much of a text as fits."""
    shown = truncated(text, max(FIELDS_BYTES, execution.budget_bytes - FIELDS_BYTES))
    return succeeded({"name": skill.name, **fields, name: shown})


def _named(skills: tuple[Skill, ...], name: str) -> Skill:
    """Return the skill with a name.

    Raises:
        BadArguments: There is none, or it is not the whole name.
    """
    skill = chosen_skill(skills, name)
    if skill is None:
        near = [each.name for each in skills if own_name(each) == name.strip()]
        hint = f"it is one of {', '.join(near)}" if near else "use a name of the list of skills"
        raise BadArguments("no skill has this name", hint)
    return skill
