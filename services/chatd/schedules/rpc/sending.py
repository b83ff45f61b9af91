"""Sends the messages of runs as their owners would, through the methods of ChatService.

Admission, spend limits, checks of ids and idempotency are those of every other request.
"""

from functools import partial
from typing import Any, Final, Protocol

from chatd.chats.rpc.convert import MODE
from chatd.chats.rpc.owner_calls import OwnerCalls
from chatd.content.domain.messages import MessageOrigin
from chatd.models.rpc.convert import EFFORT
from chatd.primitives.domain.ids import ChatId
from chatd.schedules.domain.schedule import Schedule
from parley.api.chat.v1 import chat_service_pb2 as api
from parley.api.chat.v1 import message_pb2

LABEL: Final = "schedule"
SERVICE: Final = "parley.api.chat.v1.ChatService"


class ChatMethods(Protocol):
    """Sending of ChatService, as runs call it."""

    async def create(self, request: api.CreateChatRequest, origin: MessageOrigin) -> Any:
        """Create a chat with its first message."""
        ...

    async def send(self, request: api.SendMessageRequest, origin: MessageOrigin) -> Any:
        """Send a message to a chat."""
        ...


class ChatSender:
    """Sends messages for the owners of schedules.

    Args:
        chats: ChatService of this process.
        calls: Calls it as the owners.
    """

    def __init__(self, chats: ChatMethods, calls: OwnerCalls) -> None:
        self._chats = chats
        self._calls = calls

    async def send(self, schedule: Schedule, request_id: str) -> ChatId:
        """Send the message of a run; a repeated request id sends nothing.

        Raises:
            CallRefused: It was refused.
            CallPostponed: Something that it needs is away.
        """
        method = "SendMessage" if schedule.task.chat_id else "CreateChat"
        return await self._calls.call(
            schedule.owner, f"{SERVICE}/{method}", partial(self._ask, schedule, request_id)
        )

    async def _ask(self, schedule: Schedule, request_id: str) -> ChatId:
        task = schedule.task
        content = [message_pb2.Part(text=message_pb2.TextPart(text=task.text))]
        if task.chat_id:
            sending = api.SendMessageRequest(
                request_id=request_id,
                chat_id=task.chat_id,
                content=content,
                model_id=task.model_id,
                reasoning_effort=EFFORT[task.reasoning_effort],
                brief=True,
            )
            await self._chats.send(sending, MessageOrigin.SCHEDULE)
            return ChatId(task.chat_id)
        creating = api.CreateChatRequest(
            request_id=request_id,
            content=content,
            title=schedule.name,
            model_id=task.model_id,
            reasoning_effort=EFFORT[task.reasoning_effort],
            mode=MODE[task.mode],
            workspace_id=task.workspace_id,
            unattended=task.is_unattended,
            labels={LABEL: schedule.id},
        )
        created = await self._chats.create(creating, MessageOrigin.SCHEDULE)
        return ChatId(created.chat.id)
