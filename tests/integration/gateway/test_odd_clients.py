"""Row F15: clients of another time, of another version, and with other methods than are usual."""

import asyncio

import pytest

from parley.api.chat.v1 import chat_pb2, event_pb2
from support.gateway.stack import GatewayStack
from support.net.http_client import Reply

HELLO = {"content": [{"type": "text", "text": "hello"}]}
PAST, FUTURE = "Thu, 01 Jan 1970 00:00:00 GMT", "Fri, 01 Jan 2100 00:00:00 GMT"


async def new_chat(stack: GatewayStack) -> str:
    created = await stack.owner.request("POST", "/api/v1/chats", HELLO)
    return str(created.json()["id"])


async def asked(stack: GatewayStack, request: str) -> tuple[int, dict[str, str], bytes]:
    """Send a whole request as it stands and return the answer up to the end of the connection."""
    port, key = stack.gateway.http.port, stack.owner_key.reveal()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = f"{request}\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {key}\r\n\r\n"
    writer.write(head.encode())
    async with asyncio.timeout(10):
        answer = await reader.read()
    writer.close()
    lines, _, body = answer.partition(b"\r\n\r\n")
    status, *headers = lines.decode().split("\r\n")
    named = dict(line.lower().split(": ", 1) for line in headers)
    return int(status.split()[1]), named, body


async def test_an_old_client_gets_a_whole_answer_and_the_end_of_the_connection(
    stack: GatewayStack,
) -> None:
    status, headers, body = await asked(stack, "GET /healthz HTTP/1.0")
    assert (status, body) == (200, b'{"status":"ok"}')
    assert (headers["connection"], headers["content-length"]) == ("close", str(len(body)))
    assert "transfer-encoding" not in headers


async def test_an_old_client_is_told_that_streams_are_not_for_it(stack: GatewayStack) -> None:
    chat_id = await new_chat(stack)
    path = f"/api/v1/chats/{chat_id}/events"
    status, headers, body = await asked(stack, f"GET {path} HTTP/1.0")
    subscription = await stack.chatd.subscriptions.get()
    async with asyncio.timeout(10):
        await subscription.ended.wait()
    assert status == 505
    assert headers["content-type"] == "application/problem+json"
    assert b'"HTTP_VERSION_TOO_OLD"' in body


async def test_a_stream_has_no_head_without_a_body(stack: GatewayStack) -> None:
    chat_id = await new_chat(stack)
    reply: Reply = await stack.owner.request("HEAD", f"/api/v1/chats/{chat_id}/events")
    assert (reply.status, reply.headers["allow"]) == (405, "GET")
    assert stack.chatd.subscriptions.empty()


async def test_the_head_of_anything_else_is_told_alone(stack: GatewayStack) -> None:
    reply: Reply = await stack.owner.request("HEAD", "/healthz")
    assert (reply.status, reply.headers["content-length"]) == (200, "15")


@pytest.mark.parametrize(
    "method", ["OPTIONS", "TRACE", "POST", "PUT", "DELETE", "PROPFIND", "M-SEARCH"]
)
async def test_other_methods_are_told_what_a_stream_answers(
    stack: GatewayStack, method: str
) -> None:
    chat_id = await new_chat(stack)
    reply = await stack.owner.request(method, f"/api/v1/chats/{chat_id}/events")
    assert (reply.status, reply.headers["allow"]) == (405, "GET")
    assert reply.json()["code"] == "METHOD_NOT_ALLOWED"


@pytest.mark.parametrize("method", ["BREW", "get", "X" * 100])
async def test_what_is_no_method_is_a_bad_request(stack: GatewayStack, method: str) -> None:
    status, _, body = await asked(stack, f"{method} /healthz HTTP/1.1")
    assert (status, b'"BAD_REQUEST"' in body) == (400, True)


@pytest.mark.parametrize("date", [PAST, FUTURE, "yesterday"])
async def test_what_time_a_client_believes_it_is_changes_nothing(
    stack: GatewayStack, date: str
) -> None:
    skewed = {"Date": date, "If-Modified-Since": date, "If-Unmodified-Since": date}
    created = await stack.owner.request("POST", "/api/v1/chats", HELLO, skewed)
    chat_id = created.json()["id"]
    path = f"/api/v1/chats/{chat_id}"
    got = await stack.owner.request("GET", path, headers=skewed)
    async with (
        asyncio.timeout(10),
        stack.owner.stream(f"{path}/events", skewed | {"Last-Event-ID": "1.1.0.1.1.1"}) as stream,
    ):
        subscription = await stack.chatd.subscriptions.get()
        waiting = event_pb2.StatusEvent(status=chat_pb2.CHAT_STATUS_WAITING)
        subscription.send(event_pb2.ChatEvent(cursor="2.2.0.2.0.0", status=waiting))
        event = await stream.event()
    assert (created.status, got.status, stream.reply.status) == (201, 200, 200)
    assert subscription.request.cursor == "1.1.0.1.1.1"
    assert event is not None
    assert event.id == "2.2.0.2.0.0"
