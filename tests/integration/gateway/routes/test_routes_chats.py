"""Creating, listing, arranging and removing chats over HTTP, and what chatd is asked for it."""

import gzip
from typing import Any
from uuid import UUID

import grpc
from google.protobuf.field_mask_pb2 import FieldMask

from parley.api.chat.v1 import chat_pb2, message_pb2
from parley.api.chat.v1 import chat_service_pb2 as api
from parley.rpc import Problem, Violation
from support.gateway.chats import HELLO, NO_CHAT, chat_json, last_request, new_chat
from support.gateway.stack import GatewayStack

CHATS = "/api/v1/chats"
KEY = {"Idempotency-Key": "key-1"}
FILE, WORKSPACE, SERVER, USER, GROUP = (str(UUID(int=number)) for number in range(1, 6))


async def test_everything_that_can_be_asked_of_a_new_chat_reaches_chatd(
    stack: GatewayStack,
) -> None:
    body: dict[str, Any] = {
        "content": [
            {"type": "text", "text": "look"},
            {"type": "file", "file_id": FILE},
            {
                "type": "file-reference",
                "file_name": "a.py",
                "start_line": 3,
                "end_line": 4,
                "content": "x = 1",
            },
        ],
        "title": "Looking",
        "model_id": "m",
        "reasoning_effort": "high",
        "mode": "plan",
        "workspace_id": WORKSPACE,
        "mcp_server_ids": [SERVER],
        "labels": {"team": "core"},
        "system_prompt": "be brief",
        "client_tools": [{"name": "ask", "description": "asks", "input_schema": {"maximum": 1.50}}],
    }

    reply = await stack.owner.request("POST", CHATS, body, KEY)

    reference = message_pb2.FileReferencePart(
        file_name="a.py", start_line=3, end_line=4, content="x = 1"
    )
    assert last_request(stack) == api.CreateChatRequest(
        request_id="key-1",
        chat_id=reply.json()["id"],
        content=[
            message_pb2.Part(text=message_pb2.TextPart(text="look")),
            message_pb2.Part(file=message_pb2.FilePart(file_id=FILE)),
            message_pb2.Part(file_reference=reference),
        ],
        title="Looking",
        model_id="m",
        reasoning_effort=chat_pb2.REASONING_EFFORT_HIGH,
        mode=chat_pb2.CHAT_MODE_PLAN,
        workspace_id=WORKSPACE,
        mcp_servers=chat_pb2.McpServerChoice(mcp_server_ids=[SERVER]),
        labels={"team": "core"},
        system_prompt="be brief",
        client_tools=[
            chat_pb2.ClientTool(name="ask", description="asks", input_schema_json='{"maximum":1.5}')
        ],
    )


async def test_chats_are_listed_in_pages_with_filters(stack: GatewayStack) -> None:
    first, second = await new_chat(stack), await new_chat(stack)

    page = await stack.owner.request(
        "GET",
        f"{CHATS}?q=title:%22a%20b%22&label=team:core&label=x:y:z&limit=1&cursor=abc"
        "&archived=false&shared_with_me=true",
    )
    whole = await stack.owner.request("GET", CHATS)

    listed, unfiltered = stack.chatd.requests(api.ListChatsRequest)
    assert listed == api.ListChatsRequest(
        page_size=1,
        page_token="abc",
        query='title:"a b"',
        labels={"team": "core", "x": "y:z"},
        shared_with_me=True,
    )
    assert unfiltered == api.ListChatsRequest()
    assert page.json() == {"items": [chat_json(stack, first)], "next_cursor": "more"}
    assert whole.json() == {
        "items": [chat_json(stack, first), chat_json(stack, second)],
        "next_cursor": None,
    }


async def test_whoever_has_a_chat_or_a_list_already_is_told_so(stack: GatewayStack) -> None:
    chat_id = await new_chat(stack)
    for path in (CHATS, f"{CHATS}/{chat_id}"):
        read = await stack.owner.request("GET", path)
        known = {"If-None-Match": f'"other", {read.headers["etag"]}'}
        same = await stack.owner.request("GET", path, None, known)
        await stack.owner.request("POST", f"{CHATS}/{chat_id}/archive")
        changed = await stack.owner.request("GET", f"{CHATS}/{chat_id}", None, known)
        await stack.owner.request("POST", f"{CHATS}/{chat_id}/unarchive")

        assert (same.status, same.headers["etag"], same.body) == (304, read.headers["etag"], b"")
        assert (changed.status, changed.json()["archived"]) == (200, True)
        assert changed.headers["etag"] != read.headers["etag"]


IMPOSSIBLE_LISTS = (
    ("label=team", "label"),
    ("label=-:x", "label"),
    ("label=a:1&label=a:2", "label"),
    ("archived=yes", "archived"),
    ("limit=0", "limit"),
    ("limit=201", "limit"),
    ("cursor=%00", "cursor"),
    ("cursor=%C3%A9", "cursor"),
    ("q=" + "x" * 4097, "q"),
    ("page=2", "page"),
)


async def test_a_list_that_cannot_be_is_refused(stack: GatewayStack) -> None:
    for query, parameter in IMPOSSIBLE_LISTS:
        reply = await stack.owner.request("GET", f"{CHATS}?{query}")

        assert (reply.status, reply.json()["code"]) == (422, "INVALID_REQUEST")
        assert reply.json()["errors"][0]["parameter"] == parameter
    assert stack.chatd.calls == []


async def test_a_search_that_chatd_cannot_read_is_told_by_our_name_of_it(
    stack: GatewayStack,
) -> None:
    stack.chatd.refusal = Problem(
        grpc.StatusCode.INVALID_ARGUMENT,
        "INVALID_REQUEST",
        "query has no key colour",
        violations=(Violation("query", "has no key colour"),),
    )

    reply = await stack.owner.request("GET", f"{CHATS}?q=colour:red")

    assert (reply.status, reply.json()["errors"]) == (
        422,
        [{"parameter": "q", "code": "INVALID", "detail": "It has no key colour."}],
    )


async def test_a_patch_changes_what_it_names_and_null_takes_away(stack: GatewayStack) -> None:
    chat_id = await new_chat(stack)
    path = f"{CHATS}/{chat_id}"
    body: dict[str, Any] = {
        "title": "New",
        "model_id": "m",
        "reasoning_effort": "none",
        "mode": "plan",
        "workspace_id": WORKSPACE,
        "mcp_server_ids": [SERVER],
        "labels": {"a": "b"},
        "pin_order": 2,
    }

    changed = await stack.owner.request("PATCH", path, body, KEY)
    merge_patch = {"Content-Type": "application/merge-patch+json", "Idempotency-Key": "key-2"}
    cleared = await stack.owner.request("PATCH", path, {"mode": None, "labels": None}, merge_patch)

    first, second = stack.chatd.requests(api.UpdateChatRequest)
    assert first == api.UpdateChatRequest(
        request_id="key-1",
        chat=chat_pb2.Chat(
            id=chat_id,
            title="New",
            labels={"a": "b"},
            pin_order=2,
            mode=chat_pb2.CHAT_MODE_PLAN,
            model_id="m",
            reasoning_effort=chat_pb2.REASONING_EFFORT_NONE,
            workspace_id=WORKSPACE,
            mcp_server_ids=[SERVER],
        ),
        update_mask=FieldMask(paths=list(body)),
    )
    assert second == api.UpdateChatRequest(
        request_id="key-2",
        chat=chat_pb2.Chat(id=chat_id),
        update_mask=FieldMask(paths=["mode", "labels"]),
    )
    assert (changed.status, cleared.status) == (200, 200)
    assert changed.json() | body == changed.json()
    assert cleared.json() == chat_json(stack, chat_id)
    assert (cleared.json()["mode"], cleared.json()["labels"]) == (None, {})


IMPOSSIBLE_PATCHES: tuple[tuple[object, str], ...] = (
    ({}, ""),
    ({"title": ""}, "/title"),
    ({"title": None}, "/title"),
    ({"title": "a\0"}, "/title"),
    ({"archived": True}, "/archived"),
    ({"mode": "explore"}, "/mode"),
    ({"pin_order": -1}, "/pin_order"),
    ({"labels": {"a": ""}}, "/labels/a"),
    ({"reasoning_effort": "much"}, "/reasoning_effort"),
)


async def test_a_patch_that_cannot_be_is_refused(stack: GatewayStack) -> None:
    for body, pointer in IMPOSSIBLE_PATCHES:
        reply = await stack.owner.request("PATCH", f"{CHATS}/{NO_CHAT}", body)

        assert (reply.status, reply.json()["code"]) == (422, "INVALID_REQUEST")
        assert reply.json()["errors"][0]["pointer"] == pointer
    assert stack.chatd.calls == []


async def test_a_field_that_chatd_refuses_is_pointed_at_where_the_client_wrote_it(
    stack: GatewayStack,
) -> None:
    chat_id = await new_chat(stack)
    stack.chatd.refusal = Problem(
        grpc.StatusCode.INVALID_ARGUMENT,
        "INVALID_REQUEST",
        "chat.title is blank",
        violations=(Violation("chat.title", "is blank"),),
    )

    reply = await stack.owner.request("PATCH", f"{CHATS}/{chat_id}", {"title": "x"})

    assert reply.json()["errors"] == [
        {"pointer": "/title", "code": "INVALID", "detail": "It is blank."}
    ]


async def test_a_chat_is_archived_taken_back_and_deleted(stack: GatewayStack) -> None:
    chat_id = await new_chat(stack)
    path = f"{CHATS}/{chat_id}"

    archived = await stack.owner.request("POST", f"{path}/archive", None, KEY)
    listed = await stack.owner.request("GET", f"{CHATS}?archived=true")
    back = await stack.owner.request("POST", f"{path}/unarchive", {}, {"Idempotency-Key": "k2"})
    deleted = await stack.owner.request("DELETE", path, None, {"Idempotency-Key": "k3"})
    gone = await stack.owner.request("GET", path)

    assert stack.chatd.requests(api.SetArchivedRequest) == [
        api.SetArchivedRequest(request_id="key-1", chat_id=chat_id, archived=True),
        api.SetArchivedRequest(request_id="k2", chat_id=chat_id, archived=False),
    ]
    assert stack.chatd.requests(api.DeleteChatRequest) == [
        api.DeleteChatRequest(request_id="k3", chat_id=chat_id)
    ]
    assert (archived.status, archived.json()["archived"]) == (200, True)
    assert [chat["id"] for chat in listed.json()["items"]] == [chat_id]
    assert (back.status, back.json()["archived"]) == (200, False)
    assert (deleted.status, deleted.body) == (204, b"")
    assert (gone.status, gone.json()["code"]) == (404, "CHAT_NOT_FOUND")


async def test_the_read_mark_moves(stack: GatewayStack) -> None:
    chat_id = await new_chat(stack)

    reply = await stack.owner.request("PUT", f"{CHATS}/{chat_id}/read", {"last_message_id": 5}, KEY)

    assert last_request(stack) == api.MarkReadRequest(
        request_id="key-1", chat_id=chat_id, last_message_id=5
    )
    assert (reply.status, reply.json()) == (200, {"last_message_id": 5})


async def test_a_chat_is_shared_with_users_and_groups(stack: GatewayStack) -> None:
    chat_id = await new_chat(stack)
    path = f"{CHATS}/{chat_id}/shares"
    body = {"shares": [{"user_id": USER}, {"group_id": GROUP}]}
    shares = [api.Share(user_id=USER), api.Share(group_id=GROUP)]
    shown = {
        "shares": [
            {"user_id": USER, "group_id": None, "created_at": None},
            {"user_id": None, "group_id": GROUP, "created_at": None},
        ]
    }

    put = await stack.owner.request("PUT", path, body, KEY)
    asked = last_request(stack)
    stack.chatd.answers["GetShares"] = api.GetSharesResponse(shares=shares)
    got = await stack.owner.request("GET", path)
    neither = await stack.owner.request("PUT", path, {"shares": [{}]})

    assert asked == api.SetSharesRequest(request_id="key-1", chat_id=chat_id, shares=shares)
    assert (put.status, put.json()) == (200, shown)
    assert (got.status, got.json()) == (200, shown)
    assert (neither.status, neither.json()["errors"][0]["pointer"]) == (422, "/shares/0")


ROUTES_OF_A_CHAT: tuple[tuple[str, str, object], ...] = (
    ("GET", "", None),
    ("PATCH", "", {"title": "x"}),
    ("DELETE", "", None),
    ("POST", "/archive", None),
    ("POST", "/unarchive", None),
    ("PUT", "/read", {"last_message_id": 1}),
    ("GET", "/export", None),
    ("GET", "/shares", None),
    ("PUT", "/shares", {"shares": []}),
    ("GET", "/messages", None),
    ("POST", "/messages", HELLO),
    ("PATCH", "/messages/1", HELLO),
    ("DELETE", f"/queue/{NO_CHAT}", None),
    ("POST", f"/queue/{NO_CHAT}/promote", None),
    ("POST", "/interrupt", None),
    ("POST", "/compact", None),
    ("POST", "/tool-results", {"results": [{"tool_call_id": "t", "output": 1}]}),
    ("POST", "/reconcile", None),
    ("GET", "/events", None),
)


async def test_an_absent_chat_and_an_impossible_one_look_the_same_everywhere(
    stack: GatewayStack,
) -> None:
    for method, path, body in ROUTES_OF_A_CHAT:
        absent = await stack.owner.request(method, f"{CHATS}/{NO_CHAT}{path}", body)
        impossible = await stack.owner.request(method, f"{CHATS}/nonsense{path}", body)

        shown = ("title", "status", "detail", "code")
        told = [absent.json()[name] for name in shown]
        assert (absent.status, absent.json()["code"]) == (404, "CHAT_NOT_FOUND"), (method, path)
        assert told == [impossible.json()[name] for name in shown], (method, path)


async def test_a_list_is_compressed_for_clients_that_accept_it(stack: GatewayStack) -> None:
    for _ in range(5):
        await new_chat(stack)
    plain = await stack.owner.request("GET", "/api/v1/chats")
    packed = await stack.owner.request("GET", "/api/v1/chats", headers={"Accept-Encoding": "gzip"})
    assert packed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(packed.body) == plain.body
    assert packed.headers["etag"] == plain.headers["etag"]
    assert "content-encoding" not in plain.headers
