"""Converts the protos of actions to this package's values and back."""

from datetime import UTC, datetime
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from parley.api.chat.v1 import action_pb2, event_pb2
from parley.api.chat.v1 import action_service_pb2 as api
from parley.client.actions import (
    Action,
    ActionAnswer,
    ActionKind,
    ActionPage,
    ActionState,
    EndedAction,
    Plan,
)

_KIND = {action_pb2.ActionKind.Value(f"ACTION_KIND_{kind.name}"): kind for kind in ActionKind}
_STATE = {action_pb2.ActionState.Value(f"ACTION_STATE_{each.name}"): each for each in ActionState}


def action_of(action: action_pb2.Action) -> Action:
    """Return an action, open or ended."""
    return Action(
        id=action.id,
        chat_id=action.chat_id,
        kind=_KIND.get(action.kind, ActionKind.UNSPECIFIED),
        tool_call_id=action.tool_call_id,
        tool_name=action.tool_name,
        args_json=action.args_json,
        reason=action.reason,
        state=_STATE.get(action.state, ActionState.UNSPECIFIED),
        deadline_at=time_of(action, "deadline_at"),
        asked_at=time_of(action, "asked_at"),
        ended_at=time_of(action, "ended_at"),
        ended_by=action.ended_by,
        answer_json=action.answer_json,
        chat_title=action.chat_title,
        arguments_digest=action.arguments_digest,
    )


def ended_action_of(action: event_pb2.EndedAction) -> EndedAction:
    """Return how an action ended."""
    return EndedAction(
        id=action.id,
        kind=_KIND.get(action.kind, ActionKind.UNSPECIFIED),
        tool_call_id=action.tool_call_id,
        tool_name=action.tool_name,
        state=_STATE.get(action.state, ActionState.UNSPECIFIED),
        ended_at=time_of(action, "ended_at"),
        ended_by=action.ended_by,
    )


def action_page_of(response: api.ListActionsResponse) -> ActionPage:
    """Return a page of open actions."""
    return ActionPage(tuple(map(action_of, response.actions)), response.next_page_token)


def answer_to_proto(answer: ActionAnswer) -> api.AnswerActionRequest:
    """Return an answer as the fields of its request."""
    decision = "UNSPECIFIED" if answer.decision is None else answer.decision.name
    return api.AnswerActionRequest(
        decision=api.ActionDecision.Value(f"ACTION_DECISION_{decision}"),
        remark=answer.remark,
        answers=[
            api.QuestionAnswer(selected=each.selected, text=each.text) for each in answer.answers
        ],
        plan=answer.plan,
        remember=answer.is_remembered,
        arguments_digest=answer.arguments_digest,
        content_json=answer.content_json,
    )


def plan_of(plan: api.Plan) -> Plan:
    """Return a plan."""
    return Plan(
        action_id=plan.action_id,
        title=plan.title,
        text=plan.text,
        state=_STATE.get(plan.state, ActionState.UNSPECIFIED),
        is_accepted=plan.accepted,
        proposed_at=time_of(plan, "proposed_at"),
    )


def time_of(message: Any, field: str) -> datetime | None:
    """Return a field that is a timestamp; None if it is absent."""
    if not message.HasField(field):
        return None
    timestamp: Timestamp = getattr(message, field)
    return timestamp.ToDatetime(UTC)
