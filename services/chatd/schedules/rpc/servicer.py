"""ScheduleService: the schedules of the caller."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

import grpc

from chatd.chats.rpc.defaults import Defaults
from chatd.chats.rpc.methods import with_read_only_errors
from chatd.chats.rpc.reference_checks import ReferenceChecks
from chatd.chats.rpc.references import References
from chatd.models.domain.profile import ModelChoice
from chatd.models.rpc.administration import made_id, page_of
from chatd.models.rpc.fields import masked, version_of
from chatd.primitives.domain.ids import ChatId, OwnerId
from chatd.primitives.rpc import fields
from chatd.schedules.domain.runs import paused, resumed
from chatd.schedules.domain.schedule import Schedule
from chatd.schedules.rpc.convert import (
    FIELDS,
    edited_schedule,
    merged_schedule,
    new_schedule,
    run_to_proto,
    schedule_to_proto,
)
from chatd.schedules.store.schedules import PostgresSchedules
from chatd.users.rpc.callers import caller_as_owner
from parley.api.chat.v1 import schedule_pb2
from parley.api.chat.v1 import schedule_service_pb2 as api
from parley.api.chat.v1.schedule_service_pb2_grpc import ScheduleServiceServicer

Context = grpc.aio.ServicerContext


@dataclass(frozen=True, slots=True)
class SchedulePorts:
    """The dependencies of ScheduleService.

    Attributes:
        require_owner: Raises ChatNotFound unless a user owns a chat.
        is_shared: Returns whether the caller may read a chat of another owner.
        references: Checks workspaces.
        defaults: Finds models by their names.
        now: Returns the current time.
        changed: Is called when a schedule may be due sooner.
    """

    store: PostgresSchedules
    require_owner: Callable[[ChatId, OwnerId], Awaitable[object]]
    is_shared: Callable[[ChatId], Awaitable[bool]]
    references: References
    defaults: Defaults
    now: Callable[[], datetime]
    changed: Callable[[], None]


class ScheduleServicer(ScheduleServiceServicer):
    """Serves schedules; the server's error table converts errors to problems."""

    def __init__(self, ports: SchedulePorts) -> None:
        self._ports = ports
        self._store = ports.store

    async def is_shared_with_caller(self, chat_id: ChatId) -> bool:
        """Return whether the caller may read a chat of another owner."""
        return await self._ports.is_shared(chat_id)

    async def ListSchedules(
        self, request: api.ListSchedulesRequest, context: Context
    ) -> api.ListSchedulesResponse:
        """List the caller's schedules."""
        listed = await self._store.of_owner(caller_as_owner().id)
        page, token = page_of(listed, lambda each: each.id, request.page_size, request.page_token)
        return api.ListSchedulesResponse(
            schedules=map(schedule_to_proto, page), next_page_token=token
        )

    @with_read_only_errors
    async def CreateSchedule(
        self, request: api.CreateScheduleRequest, context: Context
    ) -> api.CreateScheduleResponse:
        """Make a schedule; a repeated request returns the first one."""
        owner, now = caller_as_owner(), self._ports.now()
        key = fields.client_key_of(request, request.request_id)
        schedule_id = made_id(request, key.key, owner)
        if not await self._store.find(owner.id, schedule_id, key.body_hash):
            schedule = await self._checked(
                request.schedule,
                owner.id,
                lambda: new_schedule(request.schedule, schedule_id, owner, now),
            )
            await self._store.add(schedule, key.body_hash)
            self._ports.changed()
        return api.CreateScheduleResponse(schedule=await self._shown(owner.id, schedule_id))

    async def GetSchedule(
        self, request: api.GetScheduleRequest, context: Context
    ) -> api.GetScheduleResponse:
        """Read a schedule."""
        owner_id, schedule_id = caller_as_owner().id, _id_of(request.schedule_id)
        return api.GetScheduleResponse(schedule=await self._shown(owner_id, schedule_id))

    @with_read_only_errors
    async def UpdateSchedule(
        self, request: api.UpdateScheduleRequest, context: Context
    ) -> api.UpdateScheduleResponse:
        """Change the fields of a mask."""
        owner_id = caller_as_owner().id
        schedule_id = fields.uuid_of(request.schedule.id, "schedule.id")
        changed = masked(tuple(request.update_mask.paths), FIELDS)
        version = version_of(request.schedule.etag, "schedule.etag")
        now, before = self._ports.now(), await self._store.get(owner_id, schedule_id)
        checked = await self._checked(
            merged_schedule(before, request.schedule, changed),
            owner_id,
            lambda: edited_schedule(before, request.schedule, changed, now),
        )

        def decide(stored: Schedule) -> Schedule:
            # Of the same version, but runs may have advanced it.
            after = edited_schedule(stored, request.schedule, changed, now)
            return replace(after, task=checked.task)

        expected = before.version if version is None else version
        await self._store.edit(owner_id, schedule_id, decide, expected)
        self._ports.changed()
        return api.UpdateScheduleResponse(schedule=await self._shown(owner_id, schedule_id))

    async def ListScheduleRuns(
        self, request: api.ListScheduleRunsRequest, context: Context
    ) -> api.ListScheduleRunsResponse:
        """List the newest runs of a schedule."""
        runs = await self._store.runs(caller_as_owner().id, _id_of(request.schedule_id))
        return api.ListScheduleRunsResponse(runs=map(run_to_proto, runs))

    async def PauseSchedule(
        self, request: api.PauseScheduleRequest, context: Context
    ) -> api.PauseScheduleResponse:
        """Pause a schedule."""
        owner_id, schedule_id = caller_as_owner().id, _id_of(request.schedule_id)
        await self._store.change(owner_id, schedule_id, paused)
        return api.PauseScheduleResponse(schedule=await self._shown(owner_id, schedule_id))

    async def ResumeSchedule(
        self, request: api.ResumeScheduleRequest, context: Context
    ) -> api.ResumeScheduleResponse:
        """Resume a schedule."""
        owner_id, schedule_id = caller_as_owner().id, _id_of(request.schedule_id)
        await self._store.change(owner_id, schedule_id, partial(resumed, now=self._ports.now()))
        self._ports.changed()
        return api.ResumeScheduleResponse(schedule=await self._shown(owner_id, schedule_id))

    async def DeleteSchedule(
        self, request: api.DeleteScheduleRequest, context: Context
    ) -> api.DeleteScheduleResponse:
        """Delete a schedule."""
        await self._store.delete(caller_as_owner().id, _id_of(request.schedule_id))
        return api.DeleteScheduleResponse()

    async def _checked(
        self, given: schedule_pb2.Schedule, owner_id: OwnerId, make: Callable[[], Schedule]
    ) -> Schedule:
        """Return a schedule whose chat, workspace and model exist for its owner.

        Args:
            given: It as a request describes it.
            owner_id: Its owner.
            make: Makes it, or raises InvalidRequest.

        Raises:
            InvalidRequest: Its times or options are invalid; it also has the problems of ids.
            ChatNotFound: The owner has no such chat.
            UnknownIds: The owner has no such workspace or chat, and perhaps there is no such model.
            ModelNotFound: There is no such model.
        """
        checks, wanted = ReferenceChecks(), ModelChoice(given.model_id.strip())
        schedule = checks.value(make)
        if given.chat_id:
            chat_id = fields.chat_id_of(given.chat_id)
            check = self._ports.require_owner(chat_id, owner_id)
            await checks.chat(check, "schedule.chat_id")
        else:
            workspace_id = fields.optional_uuid(given.workspace_id, "schedule.workspace_id")
            check = self._ports.references.require_workspace(
                workspace_id, owner_id, "schedule.workspace_id"
            )
            await checks.run(check, None)
        found = self._ports.defaults.choice(wanted)
        choice = await checks.model(found, "schedule.model_id", wanted)
        checks.finish()
        assert schedule is not None  # Otherwise its faults were raised.
        return replace(schedule, task=replace(schedule.task, model_id=choice.model_id))

    async def _shown(self, owner_id: OwnerId, schedule_id: str) -> schedule_pb2.Schedule:
        return schedule_to_proto(await self._store.get(owner_id, schedule_id))


def _id_of(text: str) -> str:
    return fields.uuid_of(text, "schedule_id")
