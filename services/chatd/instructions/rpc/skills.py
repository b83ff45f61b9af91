"""Methods of ContextService about the personal skills of the caller."""

import grpc

from chatd.content.domain.skills import SkillRefused, parsed_skill
from chatd.instructions.store.skills import PostgresSkills, StoredSkill
from chatd.primitives.domain.errors import InvalidRequest
from chatd.users.rpc.callers import caller_as_owner
from parley.api.chat.v1 import context_service_pb2 as api
from parley.api.chat.v1.context_service_pb2_grpc import ContextServiceServicer

Context = grpc.aio.ServicerContext


class SkillMethods(ContextServiceServicer):
    """Serves the skills of users."""

    def __init__(self, skills: PostgresSkills) -> None:
        self._skills = skills

    async def ListSkills(
        self, request: api.ListSkillsRequest, context: Context
    ) -> api.ListSkillsResponse:
        """Return the skills of the caller, without their texts."""
        found = await self._skills.skills(caller_as_owner().id)
        return api.ListSkillsResponse(items=list(map(_to_proto, found)))

    async def GetSkill(
        self, request: api.GetSkillRequest, context: Context
    ) -> api.GetSkillResponse:
        """Return one with its text."""
        found = await self._skills.get(caller_as_owner().id, request.name)
        return api.GetSkillResponse(skill=_to_proto(found))

    async def SetSkill(
        self, request: api.SetSkillRequest, context: Context
    ) -> api.SetSkillResponse:
        """Store one in place of that of its name."""
        try:
            skill = parsed_skill(request.content)
        except SkillRefused as refusal:
            raise InvalidRequest("content", str(refusal)) from None
        if skill.name != request.name:
            raise InvalidRequest("content", f"has the name {skill.name}, not {request.name}")
        stored = await self._skills.set(caller_as_owner().id, skill)
        return api.SetSkillResponse(skill=_to_proto(stored))

    async def DeleteSkill(
        self, request: api.DeleteSkillRequest, context: Context
    ) -> api.DeleteSkillResponse:
        """Delete one."""
        await self._skills.delete(caller_as_owner().id, request.name)
        return api.DeleteSkillResponse()


def _to_proto(skill: StoredSkill) -> api.Skill:
    told = api.Skill(
        name=skill.name,
        description=skill.description,
        body=skill.body,
        size_bytes=skill.size_bytes,
    )
    told.updated_at.FromDatetime(skill.updated_at)
    return told
