from uuid import UUID

import grpc
import pytest

from gateway.api.transcoded_route import derived_id
from parley.api.chat.v1 import chat_service_pb2 as api
from parley.api.chat.v1 import message_pb2
from parley.identity import Role, User, UserId
from parley.rpc import Problem
from support.gateway.stack import GatewayStack

HELLO = {"content": [{"type": "text", "text": "hello"}]}


async def test_a_chat_is_created_read_and_written_to(stack: GatewayStack) -> None:
    me = (await stack.owner.request("GET", "/api/v1/me")).json()
    created = await stack.owner.request(
        "POST", "/api/v1/chats", HELLO | {"title": "Greetings"}, {"Idempotency-Key": '"key-1"'}
    )
    chat_id = created.json()["id"]
    read = await stack.owner.request("GET", f"/api/v1/chats/{chat_id}")
    sent = await stack.owner.request("POST", f"/api/v1/chats/{chat_id}/messages", HELLO)
    listed = await stack.owner.request("GET", f"/api/v1/chats/{chat_id}/messages?limit=10")

    assert chat_id == derived_id(UserId(me["id"]), "key-1")
    assert (created.status, created.headers["location"]) == (201, f"/api/v1/chats/{chat_id}")
    assert read.json() == created.json()
    assert (created.json()["title"], created.json()["status"]) == ("Greetings", "running")
    assert sent.status == 202
    assert sent.json()["message"]["content"] == [{"type": "text", "text": "hello"}]
    assert sent.json() | {"message": None} == {
        "message": None,
        "queued_message": None,
        "queued": False,
        "snapshot_version": 1,
        "answered_action_id": None,
    }
    assert [message["id"] for message in listed.json()["messages"]] == [1, 2]
    assert listed.json() | {"messages": []} == {
        "messages": [],
        "has_more": False,
        "queued_messages": [],
        "cursor": None,
        "has_newer": False,
    }


async def test_chatd_is_called_for_the_user_with_the_key_as_request_id(stack: GatewayStack) -> None:
    me = (await stack.owner.request("GET", "/api/v1/me")).json()

    await stack.owner.request("POST", "/api/v1/chats", HELLO, {"Idempotency-Key": "key-2"})

    user = User(UserId(me["id"]), Role.OWNER)
    expected = api.CreateChatRequest(
        request_id="key-2",
        chat_id=derived_id(user.id, "key-2"),
        content=[message_pb2.Part(text=message_pb2.TextPart(text="hello"))],
    )
    assert stack.chatd.calls == [(user, expected)]


async def test_without_a_key_every_request_makes_a_chat_of_its_own(stack: GatewayStack) -> None:
    first = await stack.owner.request("POST", "/api/v1/chats", HELLO)
    second = await stack.owner.request("POST", "/api/v1/chats", HELLO)

    assert first.json()["id"] != second.json()["id"]
    assert UUID(first.json()["id"]).version == 5


async def test_the_model_and_the_behaviour_that_are_asked_for_reach_chatd(
    stack: GatewayStack,
) -> None:
    created = await stack.owner.request("POST", "/api/v1/chats", HELLO | {"model_id": "first"})
    path = f"/api/v1/chats/{created.json()['id']}/messages"
    await stack.owner.request("POST", path, HELLO | {"model_id": "second"})
    await stack.owner.request("POST", path, HELLO | {"busy_behavior": "queue"})
    await stack.owner.request("POST", path, HELLO | {"busy_behavior": "interrupt"})

    (creation,) = stack.chatd.requests(api.CreateChatRequest)
    sent = stack.chatd.requests(api.SendMessageRequest)
    assert creation.model_id == "first"
    assert [(each.model_id, each.busy_behavior) for each in sent] == [
        ("second", api.BUSY_BEHAVIOR_QUEUE),
        ("", api.BUSY_BEHAVIOR_QUEUE),
        ("", api.BUSY_BEHAVIOR_INTERRUPT),
    ]


async def test_an_unknown_chat_and_an_impossible_id_look_the_same(stack: GatewayStack) -> None:
    absent = await stack.owner.request("GET", "/api/v1/chats/00000000-0000-0000-0000-000000000001")
    impossible = await stack.owner.request("GET", "/api/v1/chats/nonsense/messages")

    shown = ("title", "status", "detail", "code")
    assert [absent.json()[name] for name in shown] == [impossible.json()[name] for name in shown]
    assert absent.json()["code"] == "CHAT_NOT_FOUND"


async def test_a_refusal_of_chatd_becomes_a_problem_document(stack: GatewayStack) -> None:
    stack.chatd.refusal = Problem(
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        "QUEUE_FULL",
        "The queue is full.",
        {"queue_length_max": "20", "internal": "x"},
        retry_after_s=3,
    )

    reply = await stack.owner.request("POST", "/api/v1/chats", HELLO, {"X-Request-Id": "request-1"})

    problem = reply.json()
    trace_id = problem.pop("trace_id")
    assert len(trace_id) == 32
    assert reply.status == 429
    assert reply.headers["content-type"] == "application/problem+json"
    assert (reply.headers["retry-after"], reply.headers["x-request-id"]) == ("3", "request-1")
    assert problem == {
        "type": "http://parley.test:8080/problems/QUEUE_FULL",
        "title": "Queue full",
        "status": 429,
        "detail": "The queue is full.",
        "instance": "/api/v1/chats",
        "code": "QUEUE_FULL",
        "request_id": "request-1",
        "retryable": True,
        "retry_after_ms": 3000,
        "queue_length_max": 20,
    }


async def test_bad_bodies_are_refused_with_the_place_of_the_fault(stack: GatewayStack) -> None:
    async def refused(body: object) -> tuple[int, str, object]:
        reply = await stack.owner.request("POST", "/api/v1/chats", body)
        errors = reply.json().get("errors", [{}])
        return reply.status, reply.json()["code"], errors[0].get("pointer")

    nul = {"content": [{"type": "text", "text": "a\0b"}]}
    assert await refused(nul) == (422, "INVALID_REQUEST", "/content/0/text")
    assert await refused(HELLO | {"titel": "x"}) == (422, "INVALID_REQUEST", "/titel")
    assert await refused(b"{") == (400, "INVALID_JSON", None)
    assert await refused(b"[" * 200_000) == (400, "INVALID_JSON", None)
    assert await refused(b'"' + b"x" * 300_000 + b'"') == (413, "BODY_TOO_LARGE", None)
    assert stack.chatd.calls == []


@pytest.mark.parametrize("size", [1_000_000, 6_000_000])
async def test_a_client_that_sends_far_too_much_reads_the_answer(
    stack: GatewayStack, size: int
) -> None:
    reply = await stack.owner.request("POST", "/api/v1/chats", b" " * size)

    assert (reply.status, reply.json()["code"]) == (413, "BODY_TOO_LARGE")
    assert reply.headers["connection"] == "close"


async def test_a_body_that_is_not_json_by_its_type_is_refused(stack: GatewayStack) -> None:
    reply = await stack.owner.request(
        "POST", "/api/v1/chats", HELLO, {"Content-Type": "text/plain"}
    )

    assert (reply.status, reply.json()["code"]) == (415, "UNSUPPORTED_MEDIA_TYPE")


async def test_unknown_query_parameters_are_refused(stack: GatewayStack) -> None:
    path = "/api/v1/chats/00000000-0000-0000-0000-000000000001/messages?befor_id=3"

    reply = await stack.owner.request("GET", path)

    assert (reply.status, reply.json()["errors"]) == (
        422,
        [
            {
                "parameter": "befor_id",
                "code": "UNKNOWN_PARAMETER",
                "detail": "Unknown. Did you mean 'before_id'? "
                "Known: before_id, after_id, limit, around_id.",
            }
        ],
    )
