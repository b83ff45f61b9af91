"""Actions and plans over HTTP, and what chatd is asked for them."""

from typing import Any

import grpc
import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from parley.api.chat.v1 import action_pb2, chat_pb2
from parley.api.chat.v1 import action_service_pb2 as api
from parley.api.chat.v1 import chat_service_pb2 as chats_api
from parley.identity import Role
from parley.rpc import Problem
from support.gateway.chats import HELLO, chat_json, last_request, new_chat
from support.gateway.stack import GatewayStack
from support.gateway.users import client_with

KEY = {"Idempotency-Key": "key-1"}
CHAT_ID = "00000000-0000-0000-0000-0000000000c2"
ACTION_ID = "00000000-0000-0000-0000-0000000000a1"
ACTION_PATH = f"/api/v1/chats/{CHAT_ID}/actions/{ACTION_ID}"
MOMENT = Timestamp(seconds=1767225600)
ACTION = action_pb2.Action(
    id=ACTION_ID,
    chat_id=CHAT_ID,
    kind=action_pb2.ACTION_KIND_APPROVAL,
    tool_call_id="call",
    tool_name="execute",
    args_json='{"command": "make"}',
    reason="a rule asks",
    state=action_pb2.ACTION_STATE_OPEN,
    deadline_at=MOMENT,
    asked_at=MOMENT,
    chat_title="A chat",
    arguments_digest="d1",
)
ACTION_JSON: dict[str, Any] = {
    "id": ACTION_ID,
    "chat_id": CHAT_ID,
    "kind": "approval",
    "tool_call_id": "call",
    "tool_name": "execute",
    "args": {"command": "make"},
    "reason": "a rule asks",
    "state": "open",
    "deadline_at": "2026-01-01T00:00:00Z",
    "asked_at": "2026-01-01T00:00:00Z",
    "ended_at": None,
    "ended_by": None,
    "answer": None,
    "chat_title": "A chat",
    "arguments_digest": "d1",
}


async def test_what_chats_wait_for_is_listed_page_by_page(stack: GatewayStack) -> None:
    stack.chatd.answers["ListActions"] = api.ListActionsResponse(
        actions=[ACTION], next_page_token="more"
    )

    listed = await stack.owner.request("GET", "/api/v1/actions?limit=5&cursor=here")

    assert listed.json() == {"items": [ACTION_JSON], "next_cursor": "more"}
    assert last_request(stack) == api.ListActionsRequest(page_size=5, page_token="here")


async def test_calls_that_may_have_run_are_listed(stack: GatewayStack) -> None:
    outcome = api.UnknownOutcome(
        chat_id=CHAT_ID,
        chat_title="A chat",
        message_id=17,
        tool_call_id="call",
        tool_name="execute",
        args_json='{"command": "make"}',
        ended_at=MOMENT,
        root_chat_id=ACTION_ID,
    )
    stack.chatd.answers["ListUnknownOutcomes"] = api.ListUnknownOutcomesResponse(outcomes=[outcome])

    listed = await stack.owner.request("GET", "/api/v1/unknown-outcomes")

    assert listed.json() == {
        "items": [
            {
                "chat_id": CHAT_ID,
                "chat_title": "A chat",
                "message_id": 17,
                "tool_call_id": "call",
                "tool_name": "execute",
                "args": {"command": "make"},
                "ended_at": "2026-01-01T00:00:00Z",
                "root_chat_id": ACTION_ID,
            }
        ]
    }
    assert last_request(stack) == api.ListUnknownOutcomesRequest()


async def test_one_action_is_read_as_it_ended(stack: GatewayStack) -> None:
    ended = action_pb2.Action(
        id=ACTION_ID,
        chat_id=CHAT_ID,
        kind=action_pb2.ACTION_KIND_QUESTION,
        tool_call_id="call",
        tool_name="ask_user_question",
        args_json='{"questions": []}',
        state=action_pb2.ACTION_STATE_ANSWERED,
        asked_at=MOMENT,
        ended_at=MOMENT,
        ended_by="ann",
        answer_json='{"text": "yes"}',
    )
    stack.chatd.answers["GetAction"] = api.GetActionResponse(action=ended)

    read = await stack.owner.request("GET", ACTION_PATH)

    assert read.json() == ACTION_JSON | {
        "kind": "question",
        "tool_name": "ask_user_question",
        "args": {"questions": []},
        "reason": None,
        "state": "answered",
        "deadline_at": None,
        "ended_at": "2026-01-01T00:00:00Z",
        "ended_by": "ann",
        "answer": {"text": "yes"},
        "chat_title": None,
        "arguments_digest": None,
    }
    assert last_request(stack) == api.GetActionRequest(chat_id=CHAT_ID, action_id=ACTION_ID)


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        (
            {"answers": [{"selected": ["a"]}, {"text": "next week"}], "remark": "well"},
            {
                "answers": [
                    api.QuestionAnswer(selected=["a"]),
                    api.QuestionAnswer(text="next week"),
                ],
                "remark": "well",
            },
        ),
        (
            {"decision": "accept", "plan": "# mine"},
            {"decision": api.ACTION_DECISION_ACCEPT, "plan": "# mine"},
        ),
        (
            {"decision": "accept", "remember": True, "arguments_digest": "d1"},
            {
                "decision": api.ACTION_DECISION_ACCEPT,
                "remember": True,
                "arguments_digest": "d1",
            },
        ),
        (
            {"decision": "refuse", "remark": "smaller steps"},
            {"decision": api.ACTION_DECISION_REFUSE, "remark": "smaller steps"},
        ),
        (
            {"decision": "accept", "content": {"branch": "main"}},
            {"decision": api.ACTION_DECISION_ACCEPT, "content_json": '{"branch":"main"}'},
        ),
    ],
)
async def test_an_answer_is_sent_with_its_key(
    stack: GatewayStack, body: dict[str, Any], fields: dict[str, Any]
) -> None:
    chat_id = await new_chat(stack)
    answered = api.AnswerActionResponse(action=ACTION, chat=stack.chatd.chats[chat_id])
    stack.chatd.answers["AnswerAction"] = answered

    reply = await stack.owner.request("POST", f"{ACTION_PATH}/answer", body, headers=KEY)

    assert (reply.status, reply.json()) == (
        202,
        {"action": ACTION_JSON, "chat": chat_json(stack, chat_id)},
    )
    assert last_request(stack) == api.AnswerActionRequest(
        request_id="key-1", chat_id=CHAT_ID, action_id=ACTION_ID, **fields
    )


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"decision": "perhaps"}, "/decision"),
        ({"answers": [{"selected": ["a"] * 5}]}, "/answers/0/selected"),
        ({"answers": [{}] * 5}, "/answers"),
        ({"answers": [{"text": "x" * 10001}]}, "/answers/0/text"),
        ({"remark": "x" * 10001}, "/remark"),
        ({"decision": "accept", "plan": "x" * 65537}, "/plan"),
        ({"decision": "accept", "option": 1}, "/option"),
    ],
)
async def test_an_answer_of_the_wrong_shape_does_not_reach_chatd(
    stack: GatewayStack, body: dict[str, Any], pointer: str
) -> None:
    reply = await stack.owner.request("POST", f"{ACTION_PATH}/answer", body, headers=KEY)

    assert (reply.status, reply.json()["code"]) == (422, "INVALID_REQUEST")
    assert [each["pointer"] for each in reply.json()["errors"]] == [pointer]
    assert stack.chatd.calls == []


@pytest.mark.parametrize(
    ("path", "code"),
    [
        (f"/api/v1/chats/{CHAT_ID}/actions/no-id", "ACTION_NOT_FOUND"),
        (f"/api/v1/chats/no-id/actions/{ACTION_ID}", "CHAT_NOT_FOUND"),
        ("/api/v1/chats/no-id/plan", "CHAT_NOT_FOUND"),
    ],
)
async def test_an_id_that_cannot_be_one_is_not_found(
    stack: GatewayStack, path: str, code: str
) -> None:
    reply = await stack.owner.request("GET", path)
    assert (reply.status, reply.json()["code"]) == (404, code)


async def test_the_second_answer_is_told_that_it_is_too_late(stack: GatewayStack) -> None:
    stack.chatd.refusal = Problem(
        grpc.StatusCode.FAILED_PRECONDITION, "ACTION_ENDED", "It was answered."
    )

    reply = await stack.owner.request(
        "POST", f"{ACTION_PATH}/answer", {"decision": "accept"}, headers=KEY
    )

    assert (reply.status, reply.json()["code"]) == (409, "ACTION_ENDED")


async def test_the_plan_of_a_chat_is_a_document(stack: GatewayStack) -> None:
    plan = api.Plan(
        action_id=ACTION_ID,
        title="Write it",
        text="# Write it",
        state=action_pb2.ACTION_STATE_ANSWERED,
        accepted=True,
        proposed_at=MOMENT,
    )
    stack.chatd.answers["GetPlan"] = api.GetPlanResponse(plan=plan)

    reply = await stack.owner.request("GET", f"/api/v1/chats/{CHAT_ID}/plan")

    assert reply.json() == {
        "action_id": ACTION_ID,
        "title": "Write it",
        "text": "# Write it",
        "state": "answered",
        "accepted": True,
        "proposed_at": "2026-01-01T00:00:00Z",
    }
    assert last_request(stack) == api.GetPlanRequest(chat_id=CHAT_ID)


async def test_a_chat_begins_in_plan_mode_or_unattended(stack: GatewayStack) -> None:
    for body in ({"mode": "plan"}, {"unattended": True}):
        await stack.owner.request("POST", "/api/v1/chats", HELLO | body)

    asked = stack.chatd.requests(chats_api.CreateChatRequest)
    assert [(each.mode, each.unattended) for each in asked] == [
        (chat_pb2.CHAT_MODE_PLAN, False),
        (chat_pb2.CHAT_MODE_UNSPECIFIED, True),
    ]


@pytest.mark.parametrize(
    ("role", "statuses"),
    [
        (Role.OWNER, (200, 200, 200, 202)),
        (Role.ADMIN, (200, 200, 200, 202)),
        (Role.MEMBER, (200, 200, 200, 202)),
        (Role.AUDITOR, (403, 403, 403, 403)),
    ],
)
async def test_whoever_has_chats_reads_and_answers_what_they_wait_for(
    stack: GatewayStack, identity_database: str, role: Role, statuses: tuple[int, ...]
) -> None:
    client = await client_with(stack, identity_database, role)
    stack.chatd.answers["GetAction"] = api.GetActionResponse(action=ACTION)
    stack.chatd.answers["AnswerAction"] = api.AnswerActionResponse(action=ACTION)

    replies = (
        await client.request("GET", "/api/v1/actions"),
        await client.request("GET", ACTION_PATH),
        await client.request("GET", f"/api/v1/chats/{CHAT_ID}/plan"),
        await client.request("POST", f"{ACTION_PATH}/answer", {"decision": "accept"}, headers=KEY),
    )

    assert tuple(reply.status for reply in replies) == statuses
