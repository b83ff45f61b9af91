"""RaceService: races, for their owners."""

import uuid
from dataclasses import dataclass, replace
from typing import Final

import grpc

from chatd.chats.domain.prompt_hooks import PromptHooks
from chatd.chats.rpc.admission import Admission
from chatd.chats.rpc.content import title_of
from chatd.chats.rpc.convert import FINISH_REASON
from chatd.chats.rpc.defaults import Defaults
from chatd.chats.rpc.origins import origin_of_caller
from chatd.chats.rpc.references import References
from chatd.chats.store.access.ownership import Ownership
from chatd.content.domain.parts import HookContext, Notice, Text
from chatd.primitives.domain.ids import ChatId, Owner
from chatd.primitives.rpc import fields
from chatd.races.domain.race import Candidate, CandidateStatus, Race
from chatd.races.engine.races import Races
from chatd.races.rpc.requests import RaceRequests
from chatd.races.store.races import PostgresRaces
from chatd.users.rpc.callers import caller_as_owner
from chatd.workspaces.clients.merges import report_to_proto, strategy_of
from chatd.workspaces.domain.merges import MergeRequest
from parley.api.chat.v1 import race_service_pb2 as api
from parley.api.chat.v1.race_service_pb2_grpc import RaceServiceServicer

Context = grpc.aio.ServicerContext

STATUS: Final = {
    CandidateStatus.STARTING: api.CANDIDATE_STATUS_STARTING,
    CandidateStatus.RUNNING: api.CANDIDATE_STATUS_RUNNING,
    CandidateStatus.DONE: api.CANDIDATE_STATUS_DONE,
    CandidateStatus.FAILED: api.CANDIDATE_STATUS_FAILED,
}


@dataclass(frozen=True, slots=True)
class RaceServicerPorts:
    """The dependencies of RaceService.

    Attributes:
        races: Runs races.
        store: Reads them.
        admission: Admits requests within spend limits.
        references: Rejects workspaces that do not exist.
        defaults: Finds models.
        ownership: The owners of chats.
        hooks: Hooks that see the task before it is accepted.
    """

    races: Races
    store: PostgresRaces
    admission: Admission
    references: References
    defaults: Defaults
    ownership: Ownership
    hooks: PromptHooks


class RaceServicer(RaceServiceServicer):
    """Serves races."""

    def __init__(self, ports: RaceServicerPorts) -> None:
        self._ports = ports
        self._requests = RaceRequests(ports.references, ports.defaults)

    async def CreateRace(
        self, request: api.CreateRaceRequest, context: Context
    ) -> api.CreateRaceResponse:
        """Start a race."""
        owner = caller_as_owner()
        key = fields.client_key_of(request, request.request_id)
        race_id = ChatId(str(uuid.uuid5(uuid.UUID(owner.id), f"race-{key.key}")))
        group_ids = await self._ports.admission.to_new_chat(race_id, owner, key)
        asked = await self._requests.race_of(request, race_id, owner, group_ids)
        new = replace(asked, origin=origin_of_caller())
        task = (Text(new.prompt),)
        content = await self._ports.hooks.submitted(race_id, owner, key.key, task)
        if content != task:
            prompt = "\n".join(part.text for part in content if isinstance(part, Text))
            added = tuple(part for part in content if isinstance(part, HookContext | Notice))
            new = replace(new, prompt=prompt, title=title_of(content), added=added)
        await self._ports.races.start(new, key)
        self._ports.ownership.learn(race_id, owner.id)
        return api.CreateRaceResponse(race=await self._race(race_id, owner))

    async def GetRace(self, request: api.GetRaceRequest, context: Context) -> api.GetRaceResponse:
        """Read a race."""
        race_id = ChatId(fields.uuid_of(request.race_id, "race_id"))
        return api.GetRaceResponse(race=await self._race(race_id, caller_as_owner()))

    async def ListRaces(
        self, request: api.ListRacesRequest, context: Context
    ) -> api.ListRacesResponse:
        """List the caller's races."""
        races = await self._ports.store.races(caller_as_owner().id)
        return api.ListRacesResponse(items=map(race_to_proto, races))

    async def CheckRace(
        self, request: api.CheckRaceRequest, context: Context
    ) -> api.CheckRaceResponse:
        """Check candidates."""
        race_id = ChatId(fields.uuid_of(request.race_id, "race_id"))
        race = await self._ports.races.check(race_id, caller_as_owner())
        return api.CheckRaceResponse(race=race_to_proto(race))

    async def CancelRace(
        self, request: api.CancelRaceRequest, context: Context
    ) -> api.CancelRaceResponse:
        """Stop all candidates."""
        race_id = ChatId(fields.uuid_of(request.race_id, "race_id"))
        race = await self._ports.races.cancel(race_id, caller_as_owner())
        return api.CancelRaceResponse(race=race_to_proto(race))

    async def ApplyRace(
        self, request: api.ApplyRaceRequest, context: Context
    ) -> api.ApplyRaceResponse:
        """Apply the changes of one candidate."""
        owner = caller_as_owner()
        key = fields.client_key_of(request, request.request_id)
        race_id = ChatId(fields.uuid_of(request.race_id, "race_id"))
        merge = MergeRequest(
            str(uuid.uuid5(uuid.UUID(race_id), f"apply-{key.key}")), strategy_of(request.strategy)
        )
        race, report = await self._ports.races.apply(race_id, owner, request.position, merge)
        return api.ApplyRaceResponse(race=race_to_proto(race), report=report_to_proto(report))

    async def _race(self, race_id: ChatId, owner: Owner) -> api.Race:
        return race_to_proto(await self._ports.store.get(race_id, owner.id))


def race_to_proto(race: Race) -> api.Race:
    """Convert a race."""
    told = api.Race(
        id=race.id,
        title=race.title,
        workspace_id=race.workspace_id,
        check_command=race.check_command,
        applied_chat_id=race.applied_chat_id,
        candidates=map(_candidate, race.candidates),
    )
    told.created_at.FromDatetime(race.created_at)
    if race.cancelled_at is not None:
        told.cancelled_at.FromDatetime(race.cancelled_at)
    return told


def _candidate(candidate: Candidate) -> api.RaceCandidate:
    told = api.RaceCandidate(
        position=candidate.position,
        chat_id=candidate.chat_id,
        model=candidate.model,
        model_id=candidate.model_id,
        status=STATUS[candidate.status],
        answer=candidate.answer,
        error=candidate.error,
        duration_ms=round(candidate.duration.total_seconds() * 1000),
        cost_micros=candidate.cost_micros,
        cut=FINISH_REASON[candidate.cut],
    )
    if candidate.check is not None:
        told.check.passed = candidate.check.is_passed
        told.check.output = candidate.check.output
        if candidate.check.exit_code is not None:
            told.check.exit_code = candidate.check.exit_code
    return told
