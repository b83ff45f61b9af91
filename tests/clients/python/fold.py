"""Creates a chat with the generated client, sends a second message and folds the chat's stream.

Usage: fold.py http://host:port api-key first-message second-message
"""

import json
import sys
from collections.abc import Iterator
from typing import Any
from uuid import UUID

from parley_client import AuthenticatedClient
from parley_client.api.chat import create_chat, get_chat, send_message
from parley_client.models import (
    Chat,
    ChatHistoryResetEvent,
    ChatMessageEvent,
    ChatStatusEvent,
    CreateChatBody,
    Message,
    Problem,
    SendMessageBody,
    SendMessageResponse,
    TextPart,
    TextPartInput,
)

EVENTS = {
    "message": ChatMessageEvent,
    "status": ChatStatusEvent,
    "history_reset": ChatHistoryResetEvent,
}


def main() -> None:
    """Print the messages of the chat."""
    base_url, key, first, second = sys.argv[1:]
    with AuthenticatedClient(base_url, token=key, timeout=60.0) as client:
        body = CreateChatBody(content=[TextPartInput(type_="text", text=first)])
        chat = create_chat.sync(client=client, body=body, idempotency_key="created-in-python")
        assert isinstance(chat, Chat), chat
        more = SendMessageBody(content=[TextPartInput(type_="text", text=second)])
        sent = send_message.sync(chat.id, client=client, body=more)
        assert isinstance(sent, SendMessageResponse), sent
        messages = folded(client, chat.id)
        read = get_chat.sync(chat.id, client=client)
        assert isinstance(read, Chat), read
        missing = get_chat.sync(UUID("00000000-0000-4000-8000-000000000000"), client=client)
        assert isinstance(missing, Problem), missing
    found = {
        "status": read.status,
        "messages": [[message.role, text_of(message)] for message in messages],
        "problem": missing.code,
    }
    print(json.dumps(found))


def folded(client: AuthenticatedClient, chat_id: UUID) -> list[Message]:
    """Read the stream of a chat until both messages are answered, and return its messages."""
    messages: dict[int, Message] = {}
    for event in events(client, chat_id):
        match event:
            case ChatHistoryResetEvent():
                messages.clear()
            case ChatMessageEvent(message=message):
                messages[message.id] = message
            case ChatStatusEvent(status=status):
                answers = [each for each in messages.values() if each.role == "assistant"]
                if status.status == "waiting" and len(answers) == 2:
                    return [*messages.values()]
    raise AssertionError("the stream ended early")


def events(client: AuthenticatedClient, chat_id: UUID) -> Iterator[Any]:
    """Yield the events of a chat."""
    path = f"/api/v1/chats/{chat_id}/events"
    with client.get_httpx_client().stream("GET", path) as response:
        for line in response.iter_lines():
            if line.startswith("data: "):
                document = json.loads(line.removeprefix("data: "))
                if document["type"] in EVENTS:
                    yield EVENTS[document["type"]].from_dict(document)


def text_of(message: Message) -> str:
    """Return the text of a message."""
    return "".join(part.text for part in message.content if isinstance(part, TextPart))


if __name__ == "__main__":
    main()
