"""Converts stored actions to protos."""

import json

from chatd.actions.domain.action import StoredAction, UnknownCall
from chatd.approvals.domain.judgement import arguments_digest
from chatd.chats.rpc.convert import ACTION_KIND, ACTION_STATE
from chatd.content.domain.truncation import truncated_json
from chatd.primitives.rpc.times import optional_time
from parley.api.chat.v1 import action_pb2, action_service_pb2

# Of each of the at most hundred calls that are sent together.
UNKNOWN_ARGUMENTS_BYTES_MAX = 16 * 1024


def action_to_proto(action: StoredAction) -> action_pb2.Action:
    """Return an action, open or ended."""
    return action_pb2.Action(
        id=action.id,
        chat_id=action.chat_id,
        kind=ACTION_KIND[action.kind],
        tool_call_id=action.tool_call_id,
        tool_name=action.tool_name,
        args_json=action.args_json,
        reason=action.reason,
        state=ACTION_STATE[action.outcome],
        deadline_at=optional_time(action.deadline_at),
        asked_at=optional_time(action.asked_at),
        ended_at=optional_time(action.ended_at),
        ended_by=action.ended_by,
        answer_json=action.answer_json,
        chat_title=action.chat_title,
        arguments_digest=arguments_digest(action.call),
    )


def unknown_to_proto(call: UnknownCall) -> action_service_pb2.UnknownOutcome:
    """Return a call of which it is not known whether it ran."""
    return action_service_pb2.UnknownOutcome(
        chat_id=call.chat_id,
        chat_title=call.chat_title,
        message_id=call.message_id,
        tool_call_id=call.tool_call_id,
        tool_name=call.tool_name,
        args_json=_bounded(call.args_json),
        ended_at=optional_time(call.ended_at),
        root_chat_id=call.root_chat_id,
    )


def _bounded(args_json: str) -> str:
    """Return arguments that fit the limit, the longest text cut in its middle."""
    try:
        cut = truncated_json(args_json, UNKNOWN_ARGUMENTS_BYTES_MAX)
    except (ValueError, RecursionError):  # The model wrote no JSON, or a deep one.
        cut = args_json
    if len(cut.encode()) <= UNKNOWN_ARGUMENTS_BYTES_MAX:
        return cut
    # Images do not count there, but do here.
    return truncated_json(json.dumps({"output": args_json}), UNKNOWN_ARGUMENTS_BYTES_MAX)


def plan_to_proto(action: StoredAction) -> action_service_pb2.Plan:
    """Return a plan: as a person edited it, else as it was proposed."""
    asked = json.loads(action.args_json)
    answer = json.loads(action.answer_json) if action.answer_json else {}
    return action_service_pb2.Plan(
        action_id=action.id,
        title=asked.get("title", ""),
        text=answer.get("plan") or asked["plan"],
        state=ACTION_STATE[action.outcome],
        accepted=bool(answer.get("accepted")),
        proposed_at=optional_time(action.asked_at),
    )
