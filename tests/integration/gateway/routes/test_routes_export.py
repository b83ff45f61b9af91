"""Whole chats over HTTP, in each format."""

import json

import pytest

from parley.api.chat.v1 import chat_service_pb2 as api
from parley.api.chat.v1 import message_pb2
from support.gateway.chats import HELLO, chat_json, last_request, new_chat
from support.gateway.stack import GatewayStack


async def chat_with_two_messages(stack: GatewayStack) -> str:
    chat_id = await new_chat(stack, title="Two\nlines")
    call = message_pb2.ToolCallPart(tool_call_id="t", tool_name="x", args_json='"```"')
    stack.chatd.messages[chat_id].append(
        message_pb2.Message(
            id=2,
            chat_id=chat_id,
            role=message_pb2.ROLE_ASSISTANT,
            content=[
                message_pb2.Part(reasoning=message_pb2.ReasoningPart(text="hm\nso")),
                message_pb2.Part(text=message_pb2.TextPart(text="hi")),
                message_pb2.Part(tool_call=call),
            ],
        )
    )
    return chat_id


async def test_an_export_is_one_document_with_every_message(stack: GatewayStack) -> None:
    chat_id = await chat_with_two_messages(stack)

    reply = await stack.owner.request("GET", f"/api/v1/chats/{chat_id}/export")
    page = await stack.owner.request("GET", f"/api/v1/chats/{chat_id}/messages")

    assert stack.chatd.calls[1][1] == api.ExportChatRequest(chat_id=chat_id)
    assert (reply.status, reply.headers["content-type"]) == (200, "application/json")
    assert reply.headers["content-disposition"] == (f'attachment; filename="chat-{chat_id}.json"')
    assert reply.json() == {
        "chat": chat_json(stack, chat_id),
        "messages": page.json()["messages"],
        "message_count": 2,
    }


async def test_an_export_can_be_lines_of_json(stack: GatewayStack) -> None:
    chat_id = await chat_with_two_messages(stack)

    reply = await stack.owner.request("GET", f"/api/v1/chats/{chat_id}/export?format=jsonl")
    page = await stack.owner.request("GET", f"/api/v1/chats/{chat_id}/messages")

    assert reply.headers["content-type"] == "application/jsonl"
    assert [json.loads(line) for line in reply.body.splitlines()] == [
        {"chat": chat_json(stack, chat_id)},
        *({"message": message} for message in page.json()["messages"]),
        {"complete": {"message_count": 2}},
    ]


async def test_an_export_can_be_read_by_people(stack: GatewayStack) -> None:
    chat_id = await chat_with_two_messages(stack)

    reply = await stack.owner.request("GET", f"/api/v1/chats/{chat_id}/export?format=md")

    assert reply.headers["content-type"] == "text/markdown; charset=utf-8"
    assert reply.body.decode() == (
        "# Two lines\n"
        "\n## User (1)\n\nhello\n"
        "\n## Assistant (2)\n\n> hm\n> so\n\nhi\n"
        '\n```json\n{\n  "type": "tool-call",\n  "tool_call_id": "t",\n  "tool_name": "x",\n'
        '  "args": "\\u0060\\u0060\\u0060"\n}\n```\n'
        "\n---\n\n2 messages\n"
    )


@pytest.mark.parametrize("format", ["json", "jsonl", "md"])
async def test_an_export_says_that_an_answer_was_cut(stack: GatewayStack, format: str) -> None:
    chat_id = await new_chat(stack)
    part = message_pb2.Part(text=message_pb2.TextPart(text="Half an"))
    reason = message_pb2.FINISH_REASON_LENGTH
    cut = message_pb2.Message(
        id=2,
        chat_id=chat_id,
        role=message_pb2.ROLE_ASSISTANT,
        content=[part],
        finish_reason=reason,
        usage=message_pb2.Usage(input_tokens=1, is_estimate=True),
    )
    stack.chatd.messages[chat_id].append(cut)

    reply = await stack.owner.request("GET", f"/api/v1/chats/{chat_id}/export?format={format}")

    told = {
        "json": '"finish_reason":"length"',
        "jsonl": '"finish_reason":"length"',
        "md": "\nHalf an\n\n*Cut: the length limit was reached.*\n",
    }
    assert told[format] in reply.body.decode()
    assert ('"is_estimate":true' in reply.body.decode()) == (format != "md")


@pytest.mark.parametrize("format", ["json", "jsonl", "md"])
async def test_an_export_says_who_sent_a_message(stack: GatewayStack, format: str) -> None:
    chat_id = await new_chat(stack)
    part = message_pb2.Part(text=message_pb2.TextPart(text="Go on."))
    sent = message_pb2.Message(
        id=2,
        chat_id=chat_id,
        role=message_pb2.ROLE_USER,
        content=[part],
        origin=message_pb2.MESSAGE_ORIGIN_GOAL,
    )
    stack.chatd.messages[chat_id].append(sent)

    reply = await stack.owner.request("GET", f"/api/v1/chats/{chat_id}/export?format={format}")

    told = {
        "json": '"origin":"goal"',
        "jsonl": '"origin":"goal"',
        "md": "\n## User (2)\n\n*Origin: goal*\n\nGo on.\n",
    }
    assert told[format] in reply.body.decode()


async def test_an_export_in_no_known_format_is_refused(stack: GatewayStack) -> None:
    chat_id = await new_chat(stack)

    reply = await stack.owner.request("GET", f"/api/v1/chats/{chat_id}/export?format=pdf")

    assert (reply.status, reply.json()["errors"]) == (
        422,
        [{"parameter": "format", "code": "INVALID", "detail": "Give one of json, jsonl, md."}],
    )
    assert last_request(stack).content[0].text.text == HELLO["content"][0]["text"]


async def test_an_export_that_breaks_off_is_cut_rather_than_ended(stack: GatewayStack) -> None:
    chat_id = await new_chat(stack)
    stack.chatd.is_cut_off = True

    # The client waits for the last chunk and meets the end of the connection.
    with pytest.raises(ValueError, match="base 16: b''"):
        await stack.owner.request("GET", f"/api/v1/chats/{chat_id}/export?format=jsonl")
