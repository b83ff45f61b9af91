"""Messages travel over the shared stream while there is one, and arrive in any case."""

import asyncio

import grpc

from gateway.streams.chatd_client import SEND
from gateway.streams.tunnel import CALL_BYTES_MAX
from parley.api.chat.v1 import chat_service_pb2 as api
from parley.rpc import Problem
from support.gateway.chats import new_chat
from support.gateway.stack import GatewayStack
from support.net.http_client import Reply

HELLO = {"content": [{"type": "text", "text": "hello"}]}


async def send(stack: GatewayStack, chat_id: str, text: str = "hello") -> Reply:
    body = {"content": [{"type": "text", "text": text}]}
    return await stack.owner.request("POST", f"/api/v1/chats/{chat_id}/messages", body)


async def test_a_message_travels_over_the_stream_that_stands(stack: GatewayStack) -> None:
    chat_id = await new_chat(stack)
    async with asyncio.timeout(10), stack.owner.stream(f"/api/v1/chats/{chat_id}/events"):
        await stack.chatd.subscriptions.get()
        reply = await send(stack, chat_id)
    assert (reply.status, reply.json()["message"]["id"]) == (202, 2)
    assert stack.chatd.tunnelled == [SEND]
    ((user, _),) = [
        call for call in stack.chatd.calls if isinstance(call[1], api.SendMessageRequest)
    ]
    assert user == stack.chatd.calls[0][0]
    assert user is not None


async def test_without_a_stream_it_is_a_call_of_its_own(stack: GatewayStack) -> None:
    chat_id = await new_chat(stack)
    assert (await send(stack, chat_id)).status == 202
    assert stack.chatd.tunnelled == []


async def test_a_large_message_does_not_hold_up_the_stream(stack: GatewayStack) -> None:
    chat_id = await new_chat(stack)
    async with asyncio.timeout(10), stack.owner.stream(f"/api/v1/chats/{chat_id}/events"):
        await stack.chatd.subscriptions.get()
        reply = await send(stack, chat_id, "x" * CALL_BYTES_MAX)
    assert reply.status == 202
    assert stack.chatd.tunnelled == []


async def test_a_refusal_is_told_as_if_it_had_been_a_call_of_its_own(stack: GatewayStack) -> None:
    chat_id = await new_chat(stack)
    refusal = Problem(
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        "QUEUE_FULL",
        "Wait until a message has left the queue.",
        {"queue_length_max": "20"},
        retry_after_s=3.0,
    )
    stack.chatd.refusal = refusal
    alone = await send(stack, chat_id)
    stack.chatd.refusal = None
    async with asyncio.timeout(10), stack.owner.stream(f"/api/v1/chats/{chat_id}/events"):
        await stack.chatd.subscriptions.get()
        stack.chatd.refusal = refusal
        tunnelled = await send(stack, chat_id)
    assert stack.chatd.tunnelled == [SEND]
    volatile = ("request_id", "trace_id")
    told = [
        {key: value for key, value in reply.json().items() if key not in volatile}
        for reply in (alone, tunnelled)
    ]
    assert told[0] == told[1]
    assert (tunnelled.status, tunnelled.headers["retry-after"]) == (429, "3")


async def test_a_stream_that_breaks_loses_no_message(stack: GatewayStack) -> None:
    chat_id = await new_chat(stack)
    async with asyncio.timeout(20), stack.owner.stream(f"/api/v1/chats/{chat_id}/events"):
        subscription = await stack.chatd.subscriptions.get()
        subscription.break_off()
        assert (await send(stack, chat_id)).status == 202
        await stack.chatd.subscriptions.get()
        assert (await send(stack, chat_id)).status == 202
    sent = stack.chatd.requests(api.SendMessageRequest)
    assert len({request.request_id for request in sent}) == 2
