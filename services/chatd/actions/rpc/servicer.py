"""ActionService: what chats wait for, and the answers of their owners."""

import json
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from chatd.actions.domain.action import ActionEnded, StoredAction
from chatd.actions.domain.answers import (
    AnswerToQuestion,
    GivenAnswer,
    checked,
    not_run,
    result_of,
    supplied_by,
)
from chatd.actions.engine.dispatching import CallDispatcher, NotPermitted, Permitted
from chatd.actions.rpc.convert import action_to_proto, plan_to_proto, unknown_to_proto
from chatd.actions.store.actions import Actions
from chatd.chats.domain.commands import AnswerAction, Approved, Resolved, Supplied
from chatd.chats.domain.errors import ActionNotOpen, TransitionNotAllowed
from chatd.chats.rpc.claims import Claims, reserved
from chatd.chats.rpc.convert import chat_to_proto
from chatd.chats.rpc.methods import Context, shares_of, with_read_only_errors
from chatd.chats.store.stores import Stores
from chatd.content.domain.messages import ChatMode
from chatd.content.domain.tools import SUSPENDED, PendingKind
from chatd.primitives.domain.errors import InvalidRequest
from chatd.primitives.domain.ids import ChatId, ExecutionId, Owner
from chatd.primitives.domain.requests import ClientKey, Reader
from chatd.primitives.rpc import fields
from chatd.primitives.rpc.page_tokens import length_of, place_of, token_of
from chatd.users.domain.groups import Groups
from chatd.users.rpc.callers import caller_as_owner, caller_as_reader
from parley.api.chat.v1 import action_service_pb2 as api
from parley.api.chat.v1.action_service_pb2_grpc import ActionServiceServicer
from parley.tasks import Shielding


class _Place(msgspec.Struct):
    """The last action of a page."""

    action_id: str


@dataclass(frozen=True, slots=True)
class ActionPorts:
    """The dependencies of ActionService.

    Attributes:
        claims: The worker of this process, which runs the turns that answers resume.
        tasks: Owns the work of calls that must not be cancelled with them.
        changed: Is called with every chat whose mode changed.
        remembered: Is called with every chat that got a rule.
    """

    actions: Actions
    stores: Stores
    dispatcher: CallDispatcher
    claims: Claims
    groups: Groups
    tasks: Shielding
    changed: Callable[[ChatId], None]
    remembered: Callable[[ChatId], None]


class ActionServicer(ActionServiceServicer):
    """Shows and answers what chats wait for."""

    def __init__(self, ports: ActionPorts) -> None:
        self._ports = ports

    async def is_shared_with_caller(self, chat_id: ChatId) -> bool:
        """Return whether the caller may read a chat of another owner."""
        return await shares_of(self._ports.stores, self._ports.groups, chat_id)

    async def ListActions(
        self, request: api.ListActionsRequest, context: Context
    ) -> api.ListActionsResponse:
        """List what the caller's chats wait for."""
        length = length_of(request.page_size)
        place = place_of(request.page_token, _Place)
        after = None if place is None else fields.uuid_of(place.action_id, "page_token")
        found = await self._ports.actions.list_open(
            caller_as_owner().id, after=after, actions_max=length + 1
        )
        page = found[:length]
        is_more = len(found) > length
        return api.ListActionsResponse(
            actions=map(action_to_proto, page),
            next_page_token=token_of(_Place(page[-1].id)) if is_more else "",
        )

    async def ListUnknownOutcomes(
        self, request: api.ListUnknownOutcomesRequest, context: Context
    ) -> api.ListUnknownOutcomesResponse:
        """List the calls in the caller's chats that may have run."""
        found = await self._ports.actions.list_unknown(caller_as_owner().id)
        return api.ListUnknownOutcomesResponse(outcomes=map(unknown_to_proto, found))

    async def GetAction(
        self, request: api.GetActionRequest, context: Context
    ) -> api.GetActionResponse:
        """Return one action."""
        chat_id = fields.chat_id_of(request.chat_id)
        action_id = fields.uuid_of(request.action_id, "action_id")
        reader = await caller_as_reader(self._ports.groups)
        await self._ports.stores.reading.get(chat_id, reader)
        action = await self._ports.actions.find(chat_id, reader, action_id)
        return api.GetActionResponse(action=action_to_proto(action))

    async def GetPlan(self, request: api.GetPlanRequest, context: Context) -> api.GetPlanResponse:
        """Return the newest plan of a chat."""
        chat_id = fields.chat_id_of(request.chat_id)
        reader = await caller_as_reader(self._ports.groups)
        await self._ports.stores.reading.get(chat_id, reader)
        return api.GetPlanResponse(
            plan=plan_to_proto(await self._ports.actions.plan(chat_id, reader))
        )

    @with_read_only_errors
    async def AnswerAction(
        self, request: api.AnswerActionRequest, context: Context
    ) -> api.AnswerActionResponse:
        """Store an answer; the last one resumes the turn."""
        owner = caller_as_owner()
        chat_id = fields.chat_id_of(request.chat_id)
        action_id = fields.uuid_of(request.action_id, "action_id")
        key = fields.client_key_of(request, request.request_id)
        given = _given(request)
        await self._ports.stores.ownership.require(chat_id, owner.id)
        action = await self._ports.actions.find(chat_id, Reader(owner.id), action_id)
        if action.kind is PendingKind.CLIENT:
            raise InvalidRequest("action_id", "is a client's tool; submit its result instead")
        if action.kind is PendingKind.AGENTS:
            raise InvalidRequest("action_id", "waits for agents; interrupt the chat to end it")
        if action.outcome is not None:
            await self._ports.stores.keys.require_used(chat_id, key, ActionEnded(action))
        else:
            await self._ports.tasks.complete(self._answer(action, given, owner, key))
        chat = await self._ports.stores.reading.get(chat_id, Reader(owner.id))
        ended = await self._ports.actions.find(chat_id, Reader(owner.id), action_id)
        return api.AnswerActionResponse(action=action_to_proto(ended), chat=chat_to_proto(chat))

    async def _answer(
        self, action: StoredAction, given: GivenAnswer, owner: Owner, key: ClientKey
    ) -> None:
        """Store an answer once, and run the chat here if it was claimed by it.

        Raises:
            ActionEnded: Somebody answered it in the same moment, or it expired.
            InvalidRequest: The answer does not fit.
        """
        said = checked(action, given)
        permitted = await self._permitted(action, given, owner)
        answer = _answer_of(action, said, permitted)
        with reserved(self._ports.claims, owner) as reservation:
            command = AnswerAction(
                ExecutionId(action.id),
                answer,
                json.dumps(said, ensure_ascii=False),
                owner.id,
                reservation.claimed_by,
            )
            try:
                applied = await self._ports.stores.keys.once(action.chat_id, command, key)
            except (ActionNotOpen, TransitionNotAllowed):
                ended = await self._ports.actions.find(action.chat_id, Reader(owner.id), action.id)
                if ended.outcome is None:
                    raise
                raise ActionEnded(ended) from None
            if isinstance(answer, Resolved) and answer.mode is not None:
                # Before the turn resumes, which reads the mode.
                self._ports.changed(action.chat_id)
            if isinstance(answer, Approved) and answer.remembered is not None:
                # Before the turn resumes, which may make the same call again.
                self._ports.remembered(answer.remembered.root_chat_id)
            if applied is not None:
                reservation.start(applied.state)

    async def _permitted(
        self, action: StoredAction, given: GivenAnswer, owner: Owner
    ) -> Permitted | NotPermitted | None:
        """Return whether a call that the person allows may run; None for other answers."""
        if action.kind not in (PendingKind.APPROVAL, PendingKind.LOOP) or not given.is_accepted:
            return None
        return await self._ports.dispatcher.dispatch(
            action, owner, is_remembered=given.is_remembered
        )


def _answer_of(
    action: StoredAction, said: dict[str, object], permitted: Permitted | NotPermitted | None
) -> Approved | Resolved | Supplied:
    if action.kind in SUSPENDED:
        return supplied_by(said)
    match permitted:
        case Permitted(dispatch, remembered):
            return Approved(action.message_id, dispatch, remembered)
        case NotPermitted(problem):
            return Resolved(not_run(action, problem))
        case None:
            is_plan = action.kind is PendingKind.PLAN and said.get("accepted") is True
            return Resolved(result_of(action, said), ChatMode.ORDINARY if is_plan else None)


def _given(request: api.AnswerActionRequest) -> GivenAnswer:
    match request.decision:
        case api.ACTION_DECISION_UNSPECIFIED:
            is_accepted = None
        case api.ACTION_DECISION_ACCEPT | api.ACTION_DECISION_REFUSE:
            is_accepted = request.decision == api.ACTION_DECISION_ACCEPT
        case _:
            raise InvalidRequest("decision", "is not known; send accept or refuse")
    return GivenAnswer(
        is_accepted,
        request.remark,
        tuple(AnswerToQuestion(tuple(each.selected), each.text) for each in request.answers),
        request.plan,
        request.remember,
        request.arguments_digest,
        request.content_json,
    )
