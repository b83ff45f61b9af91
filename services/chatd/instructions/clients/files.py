"""Reads the instruction files and skills of a chat's workspace from its node."""

from chatd.content.domain.instructions import (
    FILE_BYTES_MAX,
    INSTRUCTION_FILES,
    InstructionSet,
    bounded,
)
from chatd.content.domain.parts import ContextFile, Skill
from chatd.content.domain.skills import (
    SKILL_BYTES_MAX,
    SKILL_DIRECTORIES,
    SKILL_FILE,
    WORKSPACE_SKILLS_MAX,
    SkillRefused,
    parsed_skill,
)
from chatd.instructions.clients.node_files import NodeFiles, in_workspace
from chatd.primitives.domain.ids import ChatId, Owner
from chatd.workspaces.domain.ports import WorkspaceLocator
from parley.rpc import Channels


class NodeInstructionFiles:
    """Reads what workspaces say about working in them."""

    def __init__(self, channels: Channels, locator: WorkspaceLocator) -> None:
        self._channels = channels
        self._locator = locator

    async def read(self, chat_id: ChatId, owner: Owner) -> InstructionSet:
        """Return the instruction files, sanitized and bounded, and the skills of a workspace.

        Raises:
            ChatError: There is no workspace that can be read now.
        """
        where = (self._channels, self._locator, chat_id, owner)
        return await in_workspace(*where, _instructions_of, absent=InstructionSet())


class NodeSkillFiles:
    """Reads the files of skills."""

    def __init__(self, channels: Channels, locator: WorkspaceLocator) -> None:
        self._channels = channels
        self._locator = locator

    async def text(self, chat_id: ChatId, owner: Owner, path: str) -> str | None:
        """Return the text of a file, at most 64 KiB of it; None if there is none.

        Raises:
            ChatError: The workspace cannot be read now.
        """

        async def read(files: NodeFiles) -> str | None:
            found = await files.text(path, SKILL_BYTES_MAX)
            return None if found is None else found[0]

        return await in_workspace(self._channels, self._locator, chat_id, owner, read, absent=None)

    async def paths(self, chat_id: ChatId, owner: Owner, directory: str) -> tuple[str, ...]:
        """Return the paths of the files in a directory, relative to it.

        Raises:
            ChatError: The workspace cannot be read now.
        """

        async def find(files: NodeFiles) -> tuple[str, ...]:
            found = await files.find(directory, "**/*")
            return tuple(path.removeprefix(f"{directory}/") for path in found)

        where = (self._channels, self._locator, chat_id, owner)
        return await in_workspace(*where, find, absent=())


async def _instructions_of(files: NodeFiles) -> InstructionSet:
    found = [(path, await files.text(path, FILE_BYTES_MAX)) for path in INSTRUCTION_FILES]
    kept = (ContextFile(path, *text) for path, text in found if text is not None)
    return InstructionSet(bounded(kept), await _skills_of(files))


async def _skills_of(files: NodeFiles) -> tuple[Skill, ...]:
    """Return the skills of a workspace; files that are none are left out."""
    skills: dict[str, Skill] = {}
    for container in SKILL_DIRECTORIES:
        for path in await files.find(container, f"**/{SKILL_FILE}"):
            directory = path.removesuffix(f"/{SKILL_FILE}")
            parent, _, name = directory.rpartition("/")
            if parent != container or name in skills or len(skills) == WORKSPACE_SKILLS_MAX:
                continue
            found = await files.text(path, SKILL_BYTES_MAX)
            try:
                skill = parsed_skill("" if found is None else found[0])
            except SkillRefused:
                continue
            if skill.name == name:
                skills[name] = Skill(name, skill.description, directory)
    return tuple(skills.values())
