"""Requests that create and change chats."""

from typing import Any

from parley.api.chat.v1 import chat_service_pb2 as api
from parley.api.chat.v1 import message_pb2
from support.chatd.chats.chat_people import text


def create(**given: Any) -> api.CreateChatRequest:
    """Return a request for a chat that says hello."""
    return api.CreateChatRequest(request_id="r", content=[text("hello")], **given)


def update(chat_id: str, **given: Any) -> api.UpdateChatRequest:
    """Return a request that changes these fields of a chat."""
    request = api.UpdateChatRequest(request_id="r")
    request.chat.id = chat_id
    for name, value in given.items():
        if isinstance(value, list):
            getattr(request.chat, name).extend(value)
        else:
            setattr(request.chat, name, value)
        request.update_mask.paths.append(name)
    return request


def file_part(file_id: str) -> message_pb2.Part:
    """Return a part of a message that is a file."""
    return message_pb2.Part(file=message_pb2.FilePart(file_id=file_id))
