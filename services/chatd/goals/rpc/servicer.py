"""GoalService: the goals of the caller's chats."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime

import grpc

from chatd.chats.rpc.defaults import Defaults
from chatd.chats.rpc.methods import with_read_only_errors
from chatd.chats.rpc.reference_checks import ReferenceChecks
from chatd.goals.domain.goal import SECONDS_MAX, TURNS_MAX, Goal, GoalState, paused, resumed
from chatd.goals.store.goals import PostgresGoals
from chatd.models.domain.profile import ModelChoice
from chatd.models.rpc.administration import made_id
from chatd.primitives.domain.ids import ChatId, OwnerId
from chatd.primitives.rpc import fields
from chatd.primitives.rpc.times import time_to_proto
from chatd.users.rpc.callers import caller_as_owner
from parley.api.chat.v1 import goal_pb2
from parley.api.chat.v1 import goal_service_pb2 as api
from parley.api.chat.v1.goal_service_pb2_grpc import GoalServiceServicer

Context = grpc.aio.ServicerContext

STATE = {each: goal_pb2.GoalState.Value(f"GOAL_STATE_{each.name}") for each in GoalState}


@dataclass(frozen=True, slots=True)
class GoalPorts:
    """The dependencies of GoalService.

    Attributes:
        require_owner: Raises ChatNotFound unless a user owns a chat.
        is_shared: Returns whether the caller may read a chat of another owner.
        defaults: Finds models by their names.
        now: Returns the current time.
        changed: Is called when there may be something to do.
    """

    store: PostgresGoals
    require_owner: Callable[[ChatId, OwnerId], Awaitable[object]]
    is_shared: Callable[[ChatId], Awaitable[bool]]
    defaults: Defaults
    now: Callable[[], datetime]
    changed: Callable[[], None]


class GoalServicer(GoalServiceServicer):
    """Serves goals; the server's error table converts errors to problems."""

    def __init__(self, ports: GoalPorts) -> None:
        self._ports = ports
        self._store = ports.store

    async def is_shared_with_caller(self, chat_id: ChatId) -> bool:
        """Return whether the caller may read a chat of another owner."""
        return await self._ports.is_shared(chat_id)

    async def ListGoals(
        self, request: api.ListGoalsRequest, context: Context
    ) -> api.ListGoalsResponse:
        """List the goal of a chat, if it has one."""
        found = await self._store.find(*await self._chat_of(request.chat_id))
        return api.ListGoalsResponse(goals=[] if found is None else [goal_to_proto(found)])

    async def GetGoal(self, request: api.GetGoalRequest, context: Context) -> api.GetGoalResponse:
        """Read the goal of a chat."""
        return api.GetGoalResponse(goal=await self._shown(*await self._chat_of(request.chat_id)))

    @with_read_only_errors
    async def SetGoal(self, request: api.SetGoalRequest, context: Context) -> api.SetGoalResponse:
        """Set the goal of a chat in place of an earlier one."""
        chat_id, owner_id = await self._chat_of(request.chat_id)
        key, given = fields.client_key_of(request, request.request_id), request.goal
        checks, owner = ReferenceChecks(), caller_as_owner()
        if not given.text.strip():
            checks.refuse("goal.text", "is empty; say what to achieve")
        if not given.check_command.strip() and not given.judge_model_id:
            problem = "is empty; give a command, or a model in judge_model_id"
            checks.refuse("goal.check_command", problem)
        judge_model_id = given.judge_model_id
        if judge_model_id:
            wanted = ModelChoice(judge_model_id)
            found = self._ports.defaults.choice(wanted)
            judge_model_id = (await checks.model(found, "goal.judge_model_id", wanted)).model_id
        checks.finish()
        goal = Goal(
            id=made_id(request, f"{chat_id} {key.key}", owner),
            chat_id=chat_id,
            owner=owner,
            text=fields.storable(given.text, "goal.text"),
            check_command=fields.storable(given.check_command.strip(), "goal.check_command"),
            turns_max=given.turns_max or TURNS_MAX,
            seconds_max=given.seconds_max or SECONDS_MAX,
            cost_max_micros=given.cost_max_micros,
            state=GoalState.ACTIVE,
            created_at=self._ports.now(),
            judge_model_id=judge_model_id,
        )
        await self._store.set(goal, key.body_hash)
        self._ports.changed()
        return api.SetGoalResponse(goal=await self._shown(chat_id, owner_id))

    @with_read_only_errors
    async def PauseGoal(
        self, request: api.PauseGoalRequest, context: Context
    ) -> api.PauseGoalResponse:
        """Pause the goal of a chat."""
        chat_id, owner_id = await self._chat_of(request.chat_id)
        await self._store.change(chat_id, owner_id, lambda goal, _: paused(goal))
        return api.PauseGoalResponse(goal=await self._shown(chat_id, owner_id))

    @with_read_only_errors
    async def ResumeGoal(
        self, request: api.ResumeGoalRequest, context: Context
    ) -> api.ResumeGoalResponse:
        """Resume the goal of a chat."""
        chat_id, owner_id = await self._chat_of(request.chat_id)
        await self._store.change(chat_id, owner_id, resumed)
        self._ports.changed()
        return api.ResumeGoalResponse(goal=await self._shown(chat_id, owner_id))

    @with_read_only_errors
    async def EndGoal(self, request: api.EndGoalRequest, context: Context) -> api.EndGoalResponse:
        """Remove the goal of a chat."""
        await self._store.delete(*await self._chat_of(request.chat_id))
        return api.EndGoalResponse()

    async def _chat_of(self, text: str) -> tuple[ChatId, OwnerId]:
        """Return a chat of the caller and the caller.

        Raises:
            ChatNotFound: The caller has no such chat.
        """
        chat_id, owner_id = fields.chat_id_of(text), caller_as_owner().id
        await self._ports.require_owner(chat_id, owner_id)
        return chat_id, owner_id

    async def _shown(self, chat_id: ChatId, owner_id: OwnerId) -> goal_pb2.Goal:
        return goal_to_proto(await self._store.get(chat_id, owner_id))


def goal_to_proto(goal: Goal) -> goal_pb2.Goal:
    """Return a goal as chatd tells it."""
    return goal_pb2.Goal(
        chat_id=goal.chat_id,
        text=goal.text,
        check_command=goal.check_command,
        turns_max=goal.turns_max,
        seconds_max=goal.seconds_max,
        cost_max_micros=goal.cost_max_micros,
        state=STATE[goal.state],
        reason=goal.reason,
        turns_count=goal.turns_count,
        cost_micros=goal.cost_micros,
        check_output=goal.check_output,
        created_at=time_to_proto(goal.created_at),
        judge_model_id=goal.judge_model_id,
        verdict=goal.verdict,
    )
