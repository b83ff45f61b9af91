"""Messages, the queue and the turn over HTTP, and what chatd is asked for them."""

import grpc
import pytest

from parley.api.chat.v1 import chat_pb2, message_pb2
from parley.api.chat.v1 import chat_service_pb2 as api
from parley.rpc import Problem
from support.gateway.chats import HELLO, chat_json, last_request, new_chat
from support.gateway.fake_chatd import EDIT_REVERT_ID, QUEUED_ID
from support.gateway.stack import GatewayStack

KEY = {"Idempotency-Key": "key-1"}
HELLO_PARTS = [message_pb2.Part(text=message_pb2.TextPart(text="hello"))]
HELLO_JSON = [{"type": "text", "text": "hello"}]
QUEUED_JSON = {
    "id": QUEUED_ID,
    "content": HELLO_JSON,
    "model_id": None,
    "reasoning_effort": "low",
    "created_by": None,
    "created_by_name": None,
    "created_at": None,
    "origin": None,
}
NEW_MESSAGE_JSON = {
    "role": "user",
    "content": HELLO_JSON,
    "revision": 0,
    "created_by": None,
    "created_by_name": None,
    "model_id": None,
    "created_at": None,
    "usage": None,
    "runtime_ms": 0,
    "model_runtime_ms": 0,
    "compressed": False,
    "finish_reason": None,
    "origin": None,
}


def queued() -> chat_pb2.QueuedMessage:
    return chat_pb2.QueuedMessage(
        id=QUEUED_ID, content=HELLO_PARTS, reasoning_effort=chat_pb2.REASONING_EFFORT_LOW
    )


async def test_a_page_has_bounds_and_tells_the_queue(stack: GatewayStack) -> None:
    chat_id = await new_chat(stack)
    stack.chatd.queues[chat_id] = [queued()]

    reply = await stack.owner.request(
        "GET", f"/api/v1/chats/{chat_id}/messages?before_id=9&after_id=2&limit=3"
    )

    assert last_request(stack) == api.ListMessagesRequest(
        chat_id=chat_id, before_id=9, after_id=2, limit=3
    )
    assert reply.json() == {
        "messages": [{"id": 1, "chat_id": chat_id, **NEW_MESSAGE_JSON}],
        "has_more": False,
        "queued_messages": [QUEUED_JSON],
        "cursor": None,
        "has_newer": False,
    }


async def test_a_page_around_a_message_is_asked_for(stack: GatewayStack) -> None:
    chat_id = await new_chat(stack)

    reply = await stack.owner.request("GET", f"/api/v1/chats/{chat_id}/messages?around_id=17")

    assert last_request(stack) == api.ListMessagesRequest(chat_id=chat_id, around_id=17)
    assert reply.status == 200


async def test_a_queued_message_is_changed_and_moved(stack: GatewayStack) -> None:
    chat_id = await new_chat(stack)
    stack.chatd.queues[chat_id] = [queued()]

    reply = await stack.owner.request(
        "PATCH", f"/api/v1/chats/{chat_id}/queue/{QUEUED_ID}", HELLO | {"place": 2}, KEY
    )

    assert last_request(stack) == api.UpdateQueuedMessageRequest(
        request_id="key-1",
        chat_id=chat_id,
        queued_message_id=QUEUED_ID,
        content=HELLO_PARTS,
        place=2,
    )
    assert reply.json() == {"queued_messages": [QUEUED_JSON]}


async def test_a_title_is_proposed_or_regenerated(stack: GatewayStack) -> None:
    chat_id = await new_chat(stack)
    for verb, use in (("propose", False), ("regenerate", True)):
        reply = await stack.owner.request(
            "POST", f"/api/v1/chats/{chat_id}/title/{verb}", None, KEY
        )
        assert last_request(stack) == api.ProposeTitleRequest(
            request_id="key-1", chat_id=chat_id, use=use
        )
        assert reply.json() == {"title": "A better title"}


async def test_a_chat_is_forked_at_a_message(stack: GatewayStack) -> None:
    chat_id = await new_chat(stack)
    path = f"/api/v1/chats/{chat_id}/fork"

    reply = await stack.owner.request("POST", path, {"message_id": 3, "workspace": "copy"}, KEY)

    assert last_request(stack) == api.ForkChatRequest(
        request_id="key-1",
        chat_id=chat_id,
        message_id=3,
        workspace=api.FORK_WORKSPACE_USE_COPY,
    )
    assert (reply.status, reply.headers["location"]) == (201, f"/api/v1/chats/{chat_id}")
    assert (await stack.owner.request("POST", path, {"workspace": "all"}, KEY)).status == 422


async def test_earlier_prompts_are_read(stack: GatewayStack) -> None:
    chat_id = await new_chat(stack)

    reply = await stack.owner.request("GET", f"/api/v1/chats/{chat_id}/prompts?limit=3")

    assert last_request(stack) == api.ListPromptsRequest(chat_id=chat_id, limit=3)
    assert reply.json() == {"prompts": [{"id": 7, "text": "again"}]}


async def test_the_to_do_list_is_read(stack: GatewayStack) -> None:
    chat_id = await new_chat(stack)

    reply = await stack.owner.request("GET", f"/api/v1/chats/{chat_id}/todos")

    assert last_request(stack) == api.ListTodosRequest(chat_id=chat_id)
    assert reply.json() == {"items": [{"id": 1, "text": "look", "status": "in_progress"}]}


async def test_words_are_searched_in_all_chats_or_in_one(stack: GatewayStack) -> None:
    chat_id = await new_chat(stack)
    hit = api.SearchHit(
        chat_id=chat_id,
        root_chat_id=chat_id,
        owner_id="o",
        title="A chat",
        excerpt=[
            api.ExcerptPart(text="blue ", match=False),
            api.ExcerptPart(text="pens", match=True),
        ],
    )
    stack.chatd.answers["SearchMessages"] = api.SearchMessagesResponse(
        hits=[hit], next_page_token="more"
    )

    reply = await stack.owner.request(
        "GET", f"/api/v1/search?q=blue%20pens&chat_id={chat_id}&limit=5&cursor=c"
    )

    assert last_request(stack) == api.SearchMessagesRequest(
        query="blue pens", chat_id=chat_id, page_size=5, page_token="c"
    )
    assert reply.json() == {
        "items": [
            {
                "chat_id": chat_id,
                "root_chat_id": chat_id,
                "owner_id": "o",
                "owner_name": None,
                "title": "A chat",
                "archived": False,
                "message_id": None,
                "role": None,
                "at": None,
                "excerpt": [{"text": "blue ", "match": False}, {"text": "pens", "match": True}],
            }
        ],
        "next_cursor": "more",
    }
    assert (await stack.owner.request("GET", "/api/v1/search")).status == 422
    assert (await stack.owner.request("GET", "/api/v1/search?q=a&limit=51")).status == 422


async def test_a_message_is_sent_with_its_model_and_effort(stack: GatewayStack) -> None:
    chat_id = await new_chat(stack)
    body = HELLO | {"model_id": "m", "reasoning_effort": "max", "busy_behavior": "interrupt"}

    reply = await stack.owner.request("POST", f"/api/v1/chats/{chat_id}/messages", body, KEY)

    assert last_request(stack) == api.SendMessageRequest(
        request_id="key-1",
        chat_id=chat_id,
        content=HELLO_PARTS,
        busy_behavior=api.BUSY_BEHAVIOR_INTERRUPT,
        model_id="m",
        reasoning_effort=chat_pb2.REASONING_EFFORT_MAX,
        brief=True,
    )
    assert reply.status == 202
    assert "idempotency-replayed" not in reply.headers
    assert reply.json() == {
        "message": {"id": 2, "chat_id": chat_id, **NEW_MESSAGE_JSON},
        "queued_message": None,
        "queued": False,
        "snapshot_version": 1,
        "answered_action_id": None,
    }


async def test_one_message_is_read_by_its_id(stack: GatewayStack) -> None:
    chat_id = await new_chat(stack)

    reply = await stack.owner.request("GET", f"/api/v1/chats/{chat_id}/messages/1")

    assert last_request(stack) == api.GetMessageRequest(chat_id=chat_id, message_id=1)
    assert (reply.status, reply.json()) == (200, {"id": 1, "chat_id": chat_id, **NEW_MESSAGE_JSON})


async def test_a_message_that_waits_and_was_sent_before_says_both(stack: GatewayStack) -> None:
    chat_id = await new_chat(stack)
    stack.chatd.answers["SendMessage"] = api.SendMessageResponse(
        queued_message=queued(),
        queued=True,
        snapshot_version=8,
        replayed=True,
    )

    reply = await stack.owner.request("POST", f"/api/v1/chats/{chat_id}/messages", HELLO, KEY)

    assert (reply.status, reply.headers["idempotency-replayed"]) == (202, "true")
    assert reply.json() == {
        "message": None,
        "queued_message": QUEUED_JSON,
        "queued": True,
        "snapshot_version": 8,
        "answered_action_id": None,
    }


async def test_an_edit_replaces_a_message_and_tells_what_went(stack: GatewayStack) -> None:
    chat_id = await new_chat(stack)
    await stack.owner.request("POST", f"/api/v1/chats/{chat_id}/messages", HELLO)
    body = HELLO | {"model_id": "m", "reasoning_effort": "minimal"}
    stack.chatd.queues[chat_id] = [queued()]

    reply = await stack.owner.request("PATCH", f"/api/v1/chats/{chat_id}/messages/1", body, KEY)

    assert last_request(stack) == api.EditMessageRequest(
        request_id="key-1",
        chat_id=chat_id,
        message_id=1,
        content=HELLO_PARTS,
        model_id="m",
        reasoning_effort=chat_pb2.REASONING_EFFORT_MINIMAL,
    )
    assert (reply.status, reply.json()) == (
        202,
        {
            "message": {"id": 3, "chat_id": chat_id, **NEW_MESSAGE_JSON},
            "deleted_message_ids": [1, 2],
            "dropped_queued_messages": [QUEUED_JSON],
            "snapshot_version": 1,
            "revert_id": EDIT_REVERT_ID,
        },
    )


async def test_what_cannot_be_a_message_is_none(stack: GatewayStack) -> None:
    chat_id = await new_chat(stack)
    for message_id in ("0", "-1", "x", "%00", "99999999999999999"):
        path = f"/api/v1/chats/{chat_id}/messages/{message_id}"
        reply = await stack.owner.request("PATCH", path, HELLO)
        assert (reply.status, reply.json()["code"]) == (404, "MESSAGE_NOT_FOUND")
    path = f"/api/v1/chats/{chat_id}/queue/nonsense"
    for method, suffix in (("DELETE", ""), ("POST", "/promote")):
        reply = await stack.owner.request(method, path + suffix)
        assert (reply.status, reply.json()["code"]) == (404, "QUEUED_MESSAGE_NOT_FOUND")


async def test_a_message_that_waits_is_dropped_or_promoted(stack: GatewayStack) -> None:
    chat_id = await new_chat(stack)
    path = f"/api/v1/chats/{chat_id}/queue/{QUEUED_ID}"

    promoted = await stack.owner.request("POST", f"{path}/promote", None, KEY)
    dropped = await stack.owner.request("DELETE", path, None, {"Idempotency-Key": "k2"})

    named = {"chat_id": chat_id, "queued_message_id": QUEUED_ID}
    assert [request for _, request in stack.chatd.calls[1:]] == [
        api.PromoteQueuedMessageRequest(request_id="key-1", **named),
        api.DeleteQueuedMessageRequest(request_id="k2", **named),
    ]
    assert (promoted.status, promoted.json()) == (202, chat_json(stack, chat_id))
    assert (dropped.status, dropped.json()) == (200, chat_json(stack, chat_id))


async def test_a_turn_is_interrupted_compacted_and_repaired(stack: GatewayStack) -> None:
    chat_id = await new_chat(stack)
    path = f"/api/v1/chats/{chat_id}"

    stopped = await stack.owner.request("POST", f"{path}/interrupt", None, KEY)
    named = await stack.owner.request("POST", f"{path}/interrupt", {"turn_message_id": 1}, KEY)
    compacted = await stack.owner.request("POST", f"{path}/compact", None, KEY)
    repaired = await stack.owner.request("POST", f"{path}/reconcile", {}, KEY)

    assert [request for _, request in stack.chatd.calls[1:]] == [
        api.InterruptRequest(request_id="key-1", chat_id=chat_id),
        api.InterruptRequest(request_id="key-1", chat_id=chat_id, turn_message_id=1),
        api.RequestCompactionRequest(request_id="key-1", chat_id=chat_id),
        api.ReconcileChatRequest(request_id="key-1", chat_id=chat_id),
    ]
    replies = (stopped, named, compacted, repaired)
    assert [(reply.status, reply.json()["status"]) for reply in replies] == [
        (202, "interrupting"),
        (202, "interrupting"),
        (202, "interrupting"),
        (200, "error"),
    ]


async def test_results_of_client_tools_keep_the_json_they_were_written_in(
    stack: GatewayStack,
) -> None:
    chat_id = await new_chat(stack)
    body = (
        b'{"results": [{"tool_call_id": "a", "output": {"n": 1.50}},'
        b' {"tool_call_id": "b", "output": null, "is_error": true}]}'
    )

    reply = await stack.owner.request("POST", f"/api/v1/chats/{chat_id}/tool-results", body, KEY)

    assert last_request(stack) == api.SubmitToolResultsRequest(
        request_id="key-1",
        chat_id=chat_id,
        results=[
            api.ClientToolResult(tool_call_id="a", output_json='{"n": 1.50}'),
            api.ClientToolResult(tool_call_id="b", output_json="null", is_error=True),
        ],
    )
    assert (reply.status, reply.json()) == (202, chat_json(stack, chat_id))


IMPOSSIBLE_BODIES: tuple[tuple[str, object, str], ...] = (
    ("/messages", {}, "/content"),
    ("/messages", HELLO | {"busy_behavior": "wait"}, "/busy_behavior"),
    ("/messages", {"content": [{"type": "text", "text": ""}]}, "/content/0/text"),
    ("/messages", {"content": [{"type": "file"}]}, "/content/0/file_id"),
    ("/messages", HELLO | {"efort": "low"}, "/efort"),
    ("/interrupt", {"turn": 1}, "/turn"),
    ("/interrupt", {"turn_message_id": -1}, "/turn_message_id"),
    ("/compact", {"now": True}, "/now"),
    ("/tool-results", {"results": []}, "/results"),
    ("/tool-results", {"results": [{"tool_call_id": "a"}]}, "/results/0/output"),
    (
        "/tool-results",
        {"results": [{"tool_call_id": "a", "output": "\0"}]},
        "/results/0/output",
    ),
)


async def test_a_body_that_cannot_be_is_refused_before_chatd_hears_of_it(
    stack: GatewayStack,
) -> None:
    for path, body, pointer in IMPOSSIBLE_BODIES:
        chat_id = await new_chat(stack)
        stack.chatd.calls.clear()

        reply = await stack.owner.request("POST", f"/api/v1/chats/{chat_id}{path}", body)

        assert (reply.status, reply.json()["code"]) == (422, "INVALID_REQUEST")
        assert reply.json()["errors"][0]["pointer"] == pointer
        assert stack.chatd.calls == []


@pytest.mark.parametrize(
    ("problem", "status", "facts"),
    [
        (
            Problem(
                grpc.StatusCode.FAILED_PRECONDITION,
                "TRANSITION_NOT_ALLOWED",
                "wait",
                {"status": "running", "command": "compact"},
            ),
            409,
            {"chat_status": "running"},
        ),
        (
            Problem(
                grpc.StatusCode.FAILED_PRECONDITION,
                "CHAT_ARCHIVED",
                "take it back",
                {"chat_id": "x"},
            ),
            409,
            {},
        ),
        (
            Problem(
                grpc.StatusCode.FAILED_PRECONDITION,
                "NOT_EDITABLE",
                "only users'",
                {"role": "assistant"},
            ),
            409,
            {"role": "assistant"},
        ),
        (Problem(grpc.StatusCode.FAILED_PRECONDITION, "NOTHING_TO_COMPACT", "no"), 409, {}),
        (
            Problem(
                grpc.StatusCode.INVALID_ARGUMENT,
                "BAD_TOOL_RESULT",
                "send one",
                {"tool_call_id": "t", "problem": "missing"},
            ),
            422,
            {"tool_call_id": "t", "problem": "missing"},
        ),
        (
            Problem(
                grpc.StatusCode.RESOURCE_EXHAUSTED,
                "USAGE_LIMIT",
                "wait",
                {"spent_micros": "9", "limit_micros": "5", "resets_at": "2026-02-01T00:00:00Z"},
            ),
            429,
            {"spent_micros": 9, "limit_micros": 5, "resets_at": "2026-02-01T00:00:00Z"},
        ),
        (
            Problem(
                grpc.StatusCode.RESOURCE_EXHAUSTED, "TOO_MANY_FILES", "fewer", {"files_max": "50"}
            ),
            409,
            {"files_max": 50},
        ),
        (Problem(grpc.StatusCode.UNAVAILABLE, "DRAINING", "elsewhere"), 503, {}),
    ],
    ids=lambda value: value.reason if isinstance(value, Problem) else "",
)
async def test_what_chatd_refuses_keeps_its_reason_and_its_remedy(
    stack: GatewayStack, problem: Problem, status: int, facts: dict[str, object]
) -> None:
    chat_id = await new_chat(stack)
    stack.chatd.refusal = problem

    reply = await stack.owner.request("POST", f"/api/v1/chats/{chat_id}/messages", HELLO)

    document = reply.json()
    assert (reply.status, document["code"], document["detail"]) == (
        status,
        problem.reason,
        f"{problem.message.capitalize()}.",
    )
    assert document | facts == document
    assert document["retryable"] is (status in (429, 503))
