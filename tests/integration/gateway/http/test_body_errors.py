"""Several kinds of errors in one request: a client is told of all of them in one answer."""

import json
from typing import Any

from support.gateway.chats import NO_CHAT
from support.gateway.stack import GatewayStack

CHATS = "/api/v1/chats"
HELLO = [{"type": "text", "text": "hello"}]
TOO_MANY_BYTES = {"a": "é" * 200}
BYTES_ERROR = {
    "pointer": "/labels/a",
    "code": "INVALID",
    "detail": "It must have at most 256 bytes.",
}


def pointed(reply: Any) -> list[tuple[str, str]]:
    """Return the place and the code of each error."""
    errors = reply.json()["errors"]
    return [(each.get("pointer") or each["parameter"], each["code"]) for each in errors]


async def test_unknown_fields_wrong_types_and_broken_limits_are_told_together(
    stack: GatewayStack,
) -> None:
    body = {
        "content": [{"type": "text", "text": 7}, {"type": "text", "text": "a\0b"}],
        "titel": "x",
        "title": "t" * 201,
        "labels": TOO_MANY_BYTES,
        "system_prompt": "é" * 70_000,
        "client_tools": [
            {"name": "a b", "description": "é" * 8192, "input_schema": {"a": "x" * 65_536}}
        ],
        "reasoning_effort": "huge",
    }

    # Characters beyond ASCII are sent as they are; escaped, they would take too many bytes.
    sent = json.dumps(body, ensure_ascii=False).encode()
    reply = await stack.owner.request("POST", CHATS, sent)

    assert (reply.status, reply.json()["code"]) == (422, "INVALID_REQUEST")
    assert pointed(reply) == [
        ("/titel", "UNKNOWN_FIELD"),
        ("/content/0/text", "WRONG_TYPE"),
        ("/title", "TOO_LONG"),
        ("/reasoning_effort", "NOT_A_CHOICE"),
        ("/client_tools/0/name", "WRONG_FORMAT"),
        ("/content/1/text", "NUL"),
        ("/labels/a", "INVALID"),
        ("/system_prompt", "INVALID"),
        ("/client_tools/0/description", "INVALID"),
        ("/client_tools/0/input_schema", "INVALID"),
    ]


async def test_a_broken_limit_is_told_in_the_same_words_alone_and_beside_others(
    stack: GatewayStack,
) -> None:
    alone = {"content": HELLO, "labels": TOO_MANY_BYTES}

    by_chatd = await stack.owner.request("POST", CHATS, alone)
    beside = await stack.owner.request("POST", CHATS, {**alone, "titel": "x"})

    assert (by_chatd.status, by_chatd.json()["errors"]) == (422, [BYTES_ERROR])
    assert (beside.status, beside.json()["errors"][1:]) == (422, [BYTES_ERROR])


async def test_errors_of_the_query_and_of_the_body_are_told_together(stack: GatewayStack) -> None:
    path = f"{CHATS}/{NO_CHAT}/messages?zzzz=1"

    reply = await stack.owner.request("POST", path, {"content": HELLO, "titel": "x"})
    without_body_errors = await stack.owner.request("POST", path, {"content": HELLO})

    assert reply.status == 422
    assert pointed(reply) == [("zzzz", "UNKNOWN_PARAMETER"), ("/titel", "UNKNOWN_FIELD")]
    assert pointed(without_body_errors) == [("zzzz", "UNKNOWN_PARAMETER")]
