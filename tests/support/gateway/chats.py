"""Chats over HTTP for tests: made quickly, compared whole."""

import json
from typing import Any

import msgspec

from gateway.api.json_output import to_json
from gateway.api.user_names import name_fields
from parley.api.chat.v1 import chat_pb2
from support.gateway.stack import GatewayStack

HELLO: dict[str, Any] = {"content": [{"type": "text", "text": "hello"}]}
NO_CHAT = "00000000-0000-0000-0000-000000000001"


async def new_chat(stack: GatewayStack, **fields: Any) -> str:
    """Create a chat of the owner's and return its id."""
    created = await stack.owner.request("POST", "/api/v1/chats", HELLO | fields)
    assert created.status == 201, created.body
    chat_id: str = created.json()["id"]
    return chat_id


def chat_json(stack: GatewayStack, chat_id: str) -> Any:
    """Return a chat of the owner's as it is now behind the gateway, as JSON shows it."""
    shown = chat_pb2.Chat()
    shown.CopyFrom(stack.chatd.chats[chat_id])
    owner_id = shown.owner_id
    name_fields(shown.DESCRIPTOR).fill(shown, lambda each: "Owner" if each == owner_id else "")
    return json.loads(msgspec.json.encode(to_json(shown)))


def last_request(stack: GatewayStack) -> Any:
    """Return what chatd was asked last."""
    return stack.chatd.calls[-1][1]
