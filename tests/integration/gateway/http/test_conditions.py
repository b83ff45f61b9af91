"""If-Match over HTTP: which routes take it, and what a chat that was changed meanwhile answers."""

import re

import pytest

from gateway.http.application import UserRoute
from parley.api.chat.v1 import chat_service_pb2 as api
from support.gateway.chats import NO_CHAT, new_chat
from support.gateway.routes import every_route
from support.gateway.stack import GatewayStack

CHATS = "/api/v1/chats"
CHANGING = ("POST", "PUT", "PATCH", "DELETE")


async def test_every_route_that_is_described_so_takes_a_condition_and_no_other(
    stack: GatewayStack,
) -> None:
    # A weak tag never matches, so whoever looks at it refuses before it looks at anything else.
    weak = {"If-Match": 'W/"1"'}
    conditional = []
    for route in every_route():
        if isinstance(route, UserRoute) and route.method in CHANGING and not route.uploads:
            path = re.sub(r"\{\w+\}", NO_CHAT, route.path)
            reply = await stack.owner.request(route.method, path, {}, weak)
            assert (reply.status == 412) == route.conditional, route
            conditional += [route] if route.conditional else []
    assert len(conditional) > 5


async def test_a_chat_is_changed_and_deleted_only_as_it_was_read(stack: GatewayStack) -> None:
    path = f"{CHATS}/{await new_chat(stack)}"
    read = await stack.owner.request("GET", path)
    condition = {"If-Match": read.headers["etag"]}

    changed = await stack.owner.request("PATCH", path, {"title": "One"}, condition)
    late = await stack.owner.request("PATCH", path, {"title": "Two"}, condition)
    not_deleted = await stack.owner.request("DELETE", path, None, condition)
    newest = {"If-Match": changed.headers["etag"]}
    deleted = await stack.owner.request("DELETE", path, None, newest)

    assert (changed.status, changed.headers["etag"]) == (200, f'"{changed.json()["etag"]}"')
    for refused in (late, not_deleted):
        assert (refused.status, refused.json()["code"]) == (412, "VERSION_CONFLICT")
        assert refused.json()["detail"] == "Somebody changed it meanwhile; read it and try again."
    assert deleted.status == 204
    sent = [request.chat.etag for request in stack.chatd.requests(api.UpdateChatRequest)]
    assert sent == [read.json()["etag"], read.json()["etag"]]


async def test_a_chat_is_put_away_and_taken_back_only_as_it_was_read(stack: GatewayStack) -> None:
    path = f"{CHATS}/{await new_chat(stack)}"
    read = await stack.owner.request("GET", path)
    condition = {"If-Match": read.headers["etag"]}

    away = await stack.owner.request("POST", f"{path}/archive", None, condition)
    late = await stack.owner.request("POST", f"{path}/unarchive", None, condition)
    newest = {"If-Match": away.headers["etag"]}
    back = await stack.owner.request("POST", f"{path}/unarchive", None, newest)
    again = await stack.owner.request("POST", f"{path}/archive", None, newest)

    assert [each.status for each in (away, late, back, again)] == [200, 412, 200, 412]
    assert (away.json()["archived"], back.json()["archived"]) == (True, False)
    assert late.json()["code"] == "VERSION_CONFLICT"
    sent = [request.etag for request in stack.chatd.requests(api.SetArchivedRequest)]
    assert sent == [read.json()["etag"], read.json()["etag"], *[away.json()["etag"]] * 2]


async def test_what_happens_near_a_chat_makes_another_document_but_no_conflict(
    stack: GatewayStack,
) -> None:
    chat_id = await new_chat(stack)
    read = await stack.owner.request("GET", f"{CHATS}/{chat_id}")
    stack.chatd.chats[chat_id].has_unread = True
    again = await stack.owner.request("GET", f"{CHATS}/{chat_id}")
    condition = {"If-Match": read.headers["etag"]}

    changed = await stack.owner.request("PATCH", f"{CHATS}/{chat_id}", {"title": "x"}, condition)

    assert (again.status, changed.status) == (200, 200)
    assert again.headers["etag"] != read.headers["etag"]


@pytest.mark.parametrize(
    ("condition", "status"),
    [
        ("*", 200),
        ("7", 422),
        ('"1" "2"', 422),
        (",", 422),
        # Patterns that match commas in several ways would take for ever.
        ('"1"' + "," * 5000 + "x", 422),
        (", ".join(f'"{number}"' for number in range(11)), 422),
        ('""', 422),
        ('"8", "9"', 412),
        ('W/"1"', 412),
        ('W/"1", W/"2"', 412),
        ('".1"', 412),
    ],
)
async def test_a_condition_is_a_list_of_tags_or_any(
    stack: GatewayStack, condition: str, status: int
) -> None:
    path = f"{CHATS}/{await new_chat(stack)}"

    reply = await stack.owner.request("PATCH", path, {"title": "x"}, {"If-Match": condition})

    assert reply.status == status


async def test_of_several_tags_one_has_to_match(stack: GatewayStack) -> None:
    path = f"{CHATS}/{await new_chat(stack)}"
    etag = (await stack.owner.request("GET", path)).headers["etag"]
    condition = {"If-Match": f'"stale,tag" ,, W/{etag},{etag} , "other"'}

    changed = await stack.owner.request("PATCH", path, {"title": "One"}, condition)
    late = await stack.owner.request("PATCH", path, {"title": "Two"}, condition)

    assert (changed.status, changed.json()["title"]) == (200, "One")
    assert (late.status, late.json()["code"]) == (412, "VERSION_CONFLICT")
    sent = stack.chatd.requests(api.UpdateChatRequest)
    version = etag.strip('"').partition(".")[0]
    assert [each.chat.etag for each in sent[:2]] == ["stale,tag", version]
    assert sent[0].request_id != sent[1].request_id
