"""What chats wait for, read and answered through the typed client."""

from datetime import UTC, datetime

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from parley.api.chat.v1 import action_pb2, chat_pb2, event_pb2
from parley.api.chat.v1 import action_service_pb2 as api
from parley.client import (
    Action,
    ActionAnswer,
    ActionDecision,
    ActionKind,
    ActionPage,
    ActionRequired,
    ActionState,
    ChatOptions,
    Parley,
    Plan,
    QuestionAnswer,
    RequiredAction,
)
from parley.client.conversion import chat_of, event_of
from support.client.chat_service import FakeChatd

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
CHAT_ID = "00000000-0000-0000-0000-0000000000c1"
ACTION_ID = "00000000-0000-0000-0000-0000000000a1"


def at_noon() -> Timestamp:
    timestamp = Timestamp()
    timestamp.FromDatetime(NOON)
    return timestamp


def action_proto() -> action_pb2.Action:
    return action_pb2.Action(
        id=ACTION_ID,
        chat_id=CHAT_ID,
        kind=action_pb2.ACTION_KIND_APPROVAL,
        tool_call_id="call",
        tool_name="execute",
        args_json='{"command": "make"}',
        reason="a rule asks",
        state=action_pb2.ACTION_STATE_OPEN,
        deadline_at=at_noon(),
        asked_at=at_noon(),
        chat_title="A chat",
        arguments_digest="d1",
    )


ACTION = Action(
    id=ACTION_ID,
    chat_id=CHAT_ID,
    kind=ActionKind.APPROVAL,
    tool_call_id="call",
    tool_name="execute",
    args_json='{"command": "make"}',
    reason="a rule asks",
    state=ActionState.OPEN,
    deadline_at=NOON,
    asked_at=NOON,
    chat_title="A chat",
    arguments_digest="d1",
)


async def test_actions_are_listed_and_read(parley: Parley, chatd: FakeChatd) -> None:
    chatd.actions.actions[ACTION_ID] = action_proto()

    listed = await parley.manage.list_actions(page_size=5, page_token="here")
    read = await parley.manage.get_action(CHAT_ID, ACTION_ID)

    assert listed == ActionPage((ACTION,), "more")
    assert (read, read.arguments) == (ACTION, {"command": "make"})
    assert chatd.actions.requests == [
        api.ListActionsRequest(page_size=5, page_token="here"),
        api.GetActionRequest(chat_id=CHAT_ID, action_id=ACTION_ID),
    ]


@pytest.mark.parametrize(
    ("answer", "request_"),
    [
        (
            ActionAnswer(
                answers=(QuestionAnswer(("a", "b")), QuestionAnswer(text="no")), remark="well"
            ),
            api.AnswerActionRequest(
                answers=[api.QuestionAnswer(selected=["a", "b"]), api.QuestionAnswer(text="no")],
                remark="well",
            ),
        ),
        (
            ActionAnswer(ActionDecision.ACCEPT, plan="# mine"),
            api.AnswerActionRequest(decision=api.ACTION_DECISION_ACCEPT, plan="# mine"),
        ),
        (
            ActionAnswer(ActionDecision.ACCEPT, is_remembered=True, arguments_digest="d1"),
            api.AnswerActionRequest(
                decision=api.ACTION_DECISION_ACCEPT, remember=True, arguments_digest="d1"
            ),
        ),
        (
            ActionAnswer(ActionDecision.ACCEPT, content_json='{"a": 1}'),
            api.AnswerActionRequest(decision=api.ACTION_DECISION_ACCEPT, content_json='{"a": 1}'),
        ),
        (
            ActionAnswer(ActionDecision.REFUSE, remark="smaller"),
            api.AnswerActionRequest(decision=api.ACTION_DECISION_REFUSE, remark="smaller"),
        ),
    ],
)
async def test_an_action_is_answered_under_a_request_id(
    parley: Parley, chatd: FakeChatd, answer: ActionAnswer, request_: api.AnswerActionRequest
) -> None:
    chatd.actions.actions[ACTION_ID] = action_proto()

    answered = await parley.manage.answer_action(CHAT_ID, ACTION_ID, answer, request_id="r")

    assert answered.state is ActionState.ANSWERED
    request_.MergeFrom(
        api.AnswerActionRequest(request_id="r", chat_id=CHAT_ID, action_id=ACTION_ID)
    )
    assert chatd.actions.requests == [request_]


async def test_the_plan_of_a_chat_is_read(parley: Parley, chatd: FakeChatd) -> None:
    chatd.actions.plan = api.Plan(
        action_id=ACTION_ID,
        title="Write it",
        text="# Write it",
        state=action_pb2.ACTION_STATE_ANSWERED,
        accepted=True,
        proposed_at=at_noon(),
    )
    assert await parley.manage.get_plan(CHAT_ID) == Plan(
        ACTION_ID, "Write it", "# Write it", ActionState.ANSWERED, True, NOON
    )


async def test_a_chat_begins_in_plan_mode_or_unattended(parley: Parley, chatd: FakeChatd) -> None:
    await parley.create_chat("hi", options=ChatOptions(is_planning=True))
    await parley.create_chat("hi", options=ChatOptions(is_unattended=True))
    assert [(each.mode, each.unattended) for each in chatd.chats.requests] == [
        (chat_pb2.CHAT_MODE_PLAN, False),
        (chat_pb2.CHAT_MODE_UNSPECIFIED, True),
    ]


def test_events_and_chats_have_the_actions_that_they_wait_for() -> None:
    required = chat_pb2.RequiredAction(actions=[action_proto()], deadline_at=at_noon())
    event = event_pb2.ActionRequiredEvent(actions=[action_proto()], deadline_at=at_noon())
    assert chat_of(chat_pb2.Chat(required_action=required)).required_action == RequiredAction(
        (), NOON, (ACTION,)
    )
    assert event_of(event_pb2.ChatEvent(cursor="1", action_required=event)) == ActionRequired(
        "1", (), NOON, (ACTION,)
    )


def test_a_kind_and_a_state_that_are_newer_than_this_client_are_unspecified() -> None:
    newer = action_pb2.Action(kind=999, state=999)  # type: ignore[arg-type]
    required = chat_pb2.RequiredAction(actions=[newer])
    waiting = chat_of(chat_pb2.Chat(required_action=required)).required_action
    assert waiting is not None
    (action,) = waiting.actions
    assert (action.kind, action.state) == (ActionKind.UNSPECIFIED, ActionState.UNSPECIFIED)
