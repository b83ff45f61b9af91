"""The calls of an internal caller to chatd."""

import asyncio
import random  # noqa: TID251 (only the type; chance is an argument)
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from uuid import UUID, uuid5

from parley.api.chat.v1 import chat_pb2, stream_service_pb2
from parley.api.chat.v1 import chat_service_pb2 as api
from parley.client.chats import (
    Chat,
    ChatOptions,
    ChatStatus,
    Content,
    MessagePage,
    Role,
    SentMessage,
)
from parley.client.conversion import (
    chat_of,
    client_tool_to_proto,
    content_to_proto,
    page_of,
    sent_of,
)
from parley.client.errors import AnswerFailed, AnswerNeedsAction, AnswerTimeout
from parley.client.event_stream import Follower
from parley.client.events import (
    ChatEvent,
    HistoryReset,
    MessageCommitted,
    Resync,
    StatusChanged,
)
from parley.client.management import Management
from parley.client.replicas import Replicas
from parley.client.retries import Calls, Patience
from parley.clock import Clock

ANSWER_WITHIN_S = 600.0


class Parley:
    """Chats, over connections that `connect` opened.

    Every change has a request id, so that a retry is not applied twice. Pass `request_id` to make a
    change safe to repeat across restarts of the caller too.

    Attributes:
        manage: Lists, actions, edits, reverts, queues, compaction, archive and deletion.
    """

    def __init__(
        self,
        replicas: Replicas,
        *,
        user_id: str | None,
        patience: Patience,
        clock: Clock,
        rng: random.Random,
        new_id: Callable[[], str],
    ) -> None:
        """Construct a client of open connections; use `connect` instead."""
        self._replicas = replicas
        self._user_id = user_id
        self._patience = patience
        self._clock = clock
        self._rng = rng
        self._new_id = new_id
        self._calls = Calls(replicas, patience=patience, clock=clock, rng=rng)
        self.manage = Management(self._calls, new_id)

    async def create_chat(
        self,
        content: Content,
        *,
        options: ChatOptions | None = None,
        request_id: str | None = None,
    ) -> Chat:
        """Create a chat with its first message and start its turn.

        Raises:
            CallFailed: See the tree in `errors`.
        """
        request_id = request_id or self._new_id()
        options = options or ChatOptions()
        chat_id = "" if self._user_id is None else str(uuid5(UUID(self._user_id), request_id))
        request = api.CreateChatRequest(
            request_id=request_id,
            chat_id=chat_id,
            content=content_to_proto(content),
            title=options.title,
            model_id=options.model_id,
            workspace_id=options.workspace_id,
            mcp_servers=_chosen(options.mcp_server_ids),
            labels=options.labels,
            system_prompt=options.system_prompt,
            client_tools=map(client_tool_to_proto, options.client_tools),
            mode=(
                chat_pb2.CHAT_MODE_PLAN if options.is_planning else chat_pb2.CHAT_MODE_UNSPECIFIED
            ),
            unattended=options.is_unattended,
        )
        response = await self._calls.make(
            chat_id or request_id,
            lambda replica, deadline_s: replica.chats.CreateChat(request, timeout=deadline_s),
        )
        return chat_of(response.chat)

    async def get_chat(self, chat_id: str) -> Chat:
        """Read one chat.

        Raises:
            CallFailed: See the tree in `errors`.
        """
        request = api.GetChatRequest(chat_id=chat_id)
        response = await self._calls.make(
            chat_id,
            lambda replica, deadline_s: replica.chats.GetChat(request, timeout=deadline_s),
        )
        return chat_of(response.chat)

    async def list_messages(
        self, chat_id: str, *, before_id: int = 0, after_id: int = 0, limit: int = 0
    ) -> MessagePage:
        """Read a page of the history, newest first, or oldest first with only `after_id`.

        Raises:
            CallFailed: See the tree in `errors`.
        """
        request = api.ListMessagesRequest(
            chat_id=chat_id, before_id=before_id, after_id=after_id, limit=limit
        )
        response = await self._calls.make(
            chat_id,
            lambda replica, deadline_s: replica.chats.ListMessages(request, timeout=deadline_s),
        )
        return page_of(response)

    async def send_message(
        self,
        chat_id: str,
        content: Content,
        *,
        is_urgent: bool = False,
        model_id: str = "",
        request_id: str | None = None,
    ) -> SentMessage:
        """Send one message; a busy chat queues it, or is interrupted for an urgent one.

        Raises:
            CallFailed: See the tree in `errors`.
        """
        request = api.SendMessageRequest(
            request_id=request_id or self._new_id(),
            chat_id=chat_id,
            content=content_to_proto(content),
            busy_behavior=api.BUSY_BEHAVIOR_INTERRUPT if is_urgent else api.BUSY_BEHAVIOR_QUEUE,
            model_id=model_id,
        )
        response = await self._calls.make(
            chat_id,
            lambda replica, deadline_s: replica.chats.SendMessage(request, timeout=deadline_s),
        )
        return sent_of(response)

    async def interrupt(
        self, chat_id: str, *, turn_message_id: int = 0, request_id: str | None = None
    ) -> Chat:
        """Stop the turn of a message, or the one that runs; it is no error if it is over.

        Raises:
            CallFailed: See the tree in `errors`.
        """
        request = api.InterruptRequest(
            request_id=request_id or self._new_id(),
            chat_id=chat_id,
            turn_message_id=turn_message_id,
        )
        response = await self._calls.make(
            chat_id,
            lambda replica, deadline_s: replica.chats.Interrupt(request, timeout=deadline_s),
        )
        return chat_of(response.chat)

    def follow(
        self, chat_id: str, *, cursor: str = "", after_id: int = 0
    ) -> AsyncGenerator[ChatEvent, None]:
        """Yield the messages of a chat and its events, without end.

        A lost stream is resumed where it was lost. Leaving the loop closes the stream.

        Args:
            chat_id: The chat.
            cursor: The cursor of an earlier event, to go on after it.
            after_id: Without a cursor, only messages after this one.

        Raises:
            CallFailed: The chat cannot be followed, or no replica could be reached for too long.
        """
        follower = Follower(
            self._replicas,
            stream_service_pb2.SubscribeRequest(chat_id=chat_id, cursor=cursor, after_id=after_id),
            backoff=self._patience.streams,
            clock=self._clock,
            rng=self._rng,
        )
        return follower.events()

    async def answer(
        self, chat_id: str, *, after_id: int = 0, within_s: float = ANSWER_WITHIN_S
    ) -> str:
        """Wait until the chat is idle and return the text of its last answer.

        Raises:
            CallFailed: See the tree in `errors`.
            NoAnswer: The turn failed, needs the client's tools, or takes longer than `within_s`.
        """
        try:
            async with asyncio.timeout(within_s):
                return await self._last_text(chat_id, after_id)
        except TimeoutError:
            raise AnswerTimeout(chat_id, within_s) from None

    async def ask(
        self,
        content: Content,
        *,
        chat_id: str | None = None,
        options: ChatOptions | None = None,
        within_s: float = ANSWER_WITHIN_S,
    ) -> str:
        """Run one turn, in a new chat or in `chat_id`, and return the text of its answer.

        `options` are for a new chat. A message that was queued is answered when the queue is empty
        again.

        Raises:
            CallFailed: See the tree in `errors`.
            NoAnswer: The turn failed, needs the client's tools, or takes longer than `within_s`.
        """
        if chat_id is None:
            created = await self.create_chat(content, options=options)
            return await self.answer(created.id, within_s=within_s)
        sent = await self.send_message(chat_id, content)
        after_id = 0 if sent.message is None else sent.message.id
        return await self.answer(chat_id, after_id=after_id, within_s=within_s)

    async def _last_text(self, chat_id: str, after_id: int) -> str:
        text = ""
        async with aclosing(self.follow(chat_id, after_id=after_id)) as events:
            async for event in events:
                match event:
                    case MessageCommitted(message=message):
                        if message.role is Role.ASSISTANT and not message.is_compressed:
                            text = message.text
                    case HistoryReset() | Resync():
                        text = ""
                    case StatusChanged(status=ChatStatus.WAITING):
                        return text
                    case StatusChanged(status=ChatStatus.REQUIRES_ACTION):
                        raise AnswerNeedsAction(chat_id)
                    case StatusChanged(status=ChatStatus.ERROR):
                        break
                    case _:
                        pass
        raise AnswerFailed(chat_id, (await self.get_chat(chat_id)).last_error)


def _chosen(server_ids: tuple[str, ...] | None) -> chat_pb2.McpServerChoice | None:
    return None if server_ids is None else chat_pb2.McpServerChoice(mcp_server_ids=server_ids)
