"""Reads the instruction files, skills and types of agents of a chat's workspace from its node."""

import asyncio
import logging
from collections.abc import Sequence
from itertools import islice
from pathlib import PurePosixPath
from typing import Final

import grpc

from chatd.content.domain.agent_types import (
    AGENT_TYPE_BYTES_MAX,
    AGENT_TYPE_DIRECTORIES,
    AGENT_TYPES_MAX,
    AgentType,
    AgentTypeRefused,
    parsed_agent_type,
)
from chatd.content.domain.instruction_imports import IMPORTS_MAX, imported_paths
from chatd.content.domain.instructions import (
    FILE_BYTES_MAX,
    HOME_FILE,
    HOME_PREFIX,
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
from chatd.workspaces.clients.failures import plain_problem
from chatd.workspaces.domain.ports import WorkspaceLocator
from parley.rpc import Channels

logger = logging.getLogger(__name__)

#: How long all skills of a workspace may take; afterwards there are none.
SKILLS_S: Final = 5.0
#: The reason with which a node refuses a path that no file can have.
INVALID_REQUEST: Final = "INVALID_REQUEST"


class NodeInstructionFiles:
    """Reads what workspaces say about working in them.

    Args:
        channels: The channels to nodes.
        locator: Finds the workspaces of chats.
        skills_s: How long all skills of a workspace may take.
    """

    def __init__(
        self, channels: Channels, locator: WorkspaceLocator, skills_s: float = SKILLS_S
    ) -> None:
        self._channels = channels
        self._locator = locator
        self._skills_s = skills_s

    async def read(self, chat_id: ChatId, owner: Owner) -> InstructionSet:
        """Return the instruction files, sanitized and bounded, and the skills of a workspace.

        Raises:
            ChatError: There is no workspace that can be read now.
        """
        where = (self._channels, self._locator, chat_id, owner)
        return await in_workspace(*where, self._instructions_of, absent=InstructionSet())

    async def _instructions_of(self, files: NodeFiles) -> InstructionSet:
        at_home = await files.text(HOME_FILE, FILE_BYTES_MAX, in_home=True)
        found = [(path, await files.text(path, FILE_BYTES_MAX)) for path in INSTRUCTION_FILES]
        ordered = [(f"{HOME_PREFIX}{HOME_FILE}", at_home), *found]
        kept = [ContextFile(path, *text) for path, text in ordered if text is not None]
        # Imported files are the last ones, so that they take only the size that the others leave.
        imported = await _imports_of(files, kept)
        return InstructionSet(bounded((*kept, *imported)), *await self._named_of(files))

    async def _named_of(self, files: NodeFiles) -> tuple[tuple[Skill, ...], tuple[AgentType, ...]]:
        """Return skills and types of agents; none if that fails while the node can be reached."""
        try:
            async with asyncio.timeout(self._skills_s):
                return await _skills_of(files), await _agent_types_of(files)
        except TimeoutError:
            logger.warning("the skills of a workspace take more than %s s", self._skills_s)
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.UNAVAILABLE:
                raise
            logger.warning("the skills of a workspace cannot be read: %s", error.code())
        return (), ()


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

    async def root_path(self, chat_id: ChatId) -> str:
        """Return the directory of a chat's files as its tools name it; empty if not known.

        Raises:
            ChatError: The workspace cannot be found now.
        """
        return (await self._locator.last_known(chat_id)).root_path

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


async def _imports_of(files: NodeFiles, kept: Sequence[ContextFile]) -> list[ContextFile]:
    """Return the files that those kept import and that are not among them, in the same order.

    Imports of imported files are not followed.
    """
    tried = {each.path for each in kept}
    tries_max = len(tried) + IMPORTS_MAX
    found: list[ContextFile] = []
    for each in kept:
        for path in imported_paths(each.path, each.content):
            if path in tried or len(tried) >= tries_max:
                continue
            tried.add(path)
            text = await _imported(files, path)
            if text is not None:
                found.append(ContextFile(path, *text))
    return found


async def _imported(files: NodeFiles, path: str) -> tuple[str, bool] | None:
    """Return the text of an imported file and whether a part of it is missing; None if none.

    A path that the node does not accept is none either: the text of a file must not keep the others
    from being read.
    """
    in_home = path.startswith(HOME_PREFIX)
    try:
        return await files.text(path.removeprefix(HOME_PREFIX), FILE_BYTES_MAX, in_home=in_home)
    except grpc.aio.AioRpcError as error:
        if plain_problem(error).reason == INVALID_REQUEST:
            return None
        raise


async def _skills_of(files: NodeFiles) -> tuple[Skill, ...]:
    """Return the skills of a workspace; files that are none are left out, but count as tried."""
    found = await _found_in(files, SKILL_DIRECTORIES, f"*/{SKILL_FILE}", depth=2)
    skills: dict[str, Skill] = {}
    for path in islice(found, WORKSPACE_SKILLS_MAX):
        directory = path.removesuffix(f"/{SKILL_FILE}")
        name = directory.rpartition("/")[2]
        if name in skills:
            continue
        text = await files.text(path, SKILL_BYTES_MAX)
        try:
            skill = parsed_skill("" if text is None else text[0])
        except SkillRefused:
            continue
        if skill.name == name:
            skills[name] = Skill(name, skill.description, directory)
    return tuple(skills.values())


async def _agent_types_of(files: NodeFiles) -> tuple[AgentType, ...]:
    """Return the types of agents; files that are none are left out, but count as tried."""
    types: dict[str, AgentType] = {}
    found = await _found_in(files, AGENT_TYPE_DIRECTORIES, "*.md", depth=1)
    for path in islice(found, AGENT_TYPES_MAX):
        text = await files.text(path, AGENT_TYPE_BYTES_MAX)
        try:
            described = parsed_agent_type(path, "" if text is None else text[0]).type
        except AgentTypeRefused:
            continue
        types.setdefault(described.name, described)
    return tuple(types.values())


async def _found_in(
    files: NodeFiles, directories: Sequence[str], pattern: str, *, depth: int
) -> list[str]:
    """Return the files that fit a pattern, so many levels below one of the directories."""
    return [
        path
        for directory in directories
        for path in await files.find(directory, pattern)
        if PurePosixPath(path).parents[depth - 1] == PurePosixPath(directory)
    ]
