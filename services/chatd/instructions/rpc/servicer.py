"""ContextService: the context of chats, for their owners."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

import grpc

from chatd.chats.domain.chat import Message
from chatd.chats.rpc.methods import with_read_only_errors
from chatd.content.domain.tools import Tools
from chatd.instructions.domain.breakdown import ContextPart, context_breakdown
from chatd.instructions.engine.pins import InstructionPins
from chatd.instructions.rpc.skills import SkillMethods
from chatd.instructions.store.skills import PostgresSkills
from chatd.models.domain.estimates import estimated_tokens
from chatd.models.domain.language_model import ModelError
from chatd.models.store.catalogue import ChatFacts
from chatd.primitives.domain.errors import ChatError, InvalidRequest
from chatd.primitives.domain.ids import ChatId, Owner, OwnerId
from chatd.primitives.rpc import fields
from chatd.turns.domain.ports import Setups
from chatd.users.rpc.callers import caller_as_owner
from parley.api.chat.v1 import context_service_pb2 as api

logger = logging.getLogger(__name__)

KINDS: Final = {
    ContextPart.SYSTEM_PROMPT: api.CONTEXT_PART_KIND_SYSTEM_PROMPT,
    ContextPart.INSTRUCTIONS: api.CONTEXT_PART_KIND_INSTRUCTIONS,
    ContextPart.SKILLS: api.CONTEXT_PART_KIND_SKILLS,
    ContextPart.TOOLS: api.CONTEXT_PART_KIND_TOOLS,
    ContextPart.SUMMARY: api.CONTEXT_PART_KIND_SUMMARY,
    ContextPart.HISTORY: api.CONTEXT_PART_KIND_HISTORY,
}


@dataclass(frozen=True, slots=True)
class ContextPorts:
    """The dependencies of ContextService.

    Attributes:
        require_owner: Raises ChatNotFound unless a user owns a chat.
        is_shared: Returns whether the caller may read a chat of another owner.
        history: Returns the live messages of a chat.
        facts: Returns the facts of a chat, with its pinned files.
        pins: Pins instruction files.
        setups: Prepare turns.
        tools: The tools of all executors.
        skills: The skills of users.
    """

    require_owner: Callable[[ChatId, OwnerId], Awaitable[object]]
    is_shared: Callable[[ChatId], Awaitable[bool]]
    history: Callable[[ChatId], Awaitable[Sequence[Message]]]
    facts: Callable[[ChatId], Awaitable[ChatFacts]]
    pins: InstructionPins
    setups: Setups
    tools: Tools
    skills: PostgresSkills


class ContextServicer(SkillMethods):
    """Serves the context of chats."""

    def __init__(self, ports: ContextPorts) -> None:
        super().__init__(ports.skills)
        self._ports = ports

    async def is_shared_with_caller(self, chat_id: ChatId) -> bool:
        """Return whether the caller may read a chat of another owner."""
        return await self._ports.is_shared(chat_id)

    async def GetChatContext(
        self, request: api.GetChatContextRequest, context: grpc.aio.ServicerContext
    ) -> api.GetChatContextResponse:
        """Tell what the next prompt of a chat consists of."""
        owner, chat_id = caller_as_owner(), fields.chat_id_of(request.chat_id)
        await self._ports.require_owner(chat_id, owner.id)
        told = await self._context(chat_id, owner)
        told.instructions_drifted = await self._have_drifted(chat_id, owner)
        return api.GetChatContextResponse(context=told)

    @with_read_only_errors
    async def RefreshInstructions(
        self, request: api.RefreshInstructionsRequest, context: grpc.aio.ServicerContext
    ) -> api.RefreshInstructionsResponse:
        """Pin the current instruction files."""
        owner, chat_id = caller_as_owner(), fields.chat_id_of(request.chat_id)
        await self._ports.require_owner(chat_id, owner.id)
        await self._ports.pins.renew(chat_id, owner)
        return api.RefreshInstructionsResponse(context=await self._context(chat_id, owner))

    async def _context(self, chat_id: ChatId, owner: Owner) -> api.ChatContext:
        try:
            setup = await self._ports.setups.prepare(chat_id, owner)
        except ModelError as unusable:
            raise InvalidRequest("chat_id", f"has no usable model: {unusable}") from unusable
        tools = await self._ports.tools.list_tools(setup.context(chat_id, owner))
        parts = context_breakdown(await self._ports.history(chat_id), setup.system_prompt, tools)
        pinned = (await self._ports.facts(chat_id)).instructions
        return api.ChatContext(
            parts=[api.ContextPart(kind=KINDS[kind], tokens=parts[kind]) for kind in ContextPart],
            context_limit_tokens=setup.context_limit_tokens,
            instruction_files=[
                api.InstructionFile(
                    path=file.path,
                    size_bytes=len(file.content.encode()),
                    tokens=estimated_tokens((file,)),
                    truncated=file.truncated,
                )
                for file in setup.system_prompt.instruction_files
            ],
            skills=[
                api.OfferedSkill(
                    name=skill.name,
                    description=skill.description,
                    directory=skill.directory,
                )
                for skill in setup.system_prompt.skills
            ],
            agent_types=[
                api.AgentType(
                    name=each.name,
                    description=each.description,
                    path=each.path,
                    tool_names=each.tool_names or (),
                    model=each.model,
                    explores=each.is_explorer,
                )
                for each in setup.agent_types
            ],
            instructions_version=0 if pinned is None else pinned.version,
            instructions_digest="" if pinned is None else pinned.digest,
        )

    async def _have_drifted(self, chat_id: ChatId, owner: Owner) -> bool:
        facts = await self._ports.facts(chat_id)
        try:
            return await self._ports.pins.compare(chat_id, owner, facts)
        except ChatError as unknown:
            logger.info("the instruction files of a chat cannot be compared: %s", unknown)
            return False
