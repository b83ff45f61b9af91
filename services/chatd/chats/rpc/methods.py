"""What all methods of ChatService have in common: stores, the worker, and the caller's rights."""

from collections.abc import Awaitable, Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

import grpc

from chatd.chats.domain.errors import ChatReadOnly
from chatd.chats.domain.prompt_hooks import NoPromptHooks, PromptHooks
from chatd.chats.rpc.admission import Admission, SpendAdmission
from chatd.chats.rpc.claims import Claims
from chatd.chats.rpc.convert import chat_to_proto
from chatd.chats.rpc.defaults import Defaults
from chatd.chats.rpc.references import References
from chatd.chats.store.creation import NewChat
from chatd.chats.store.reading import PageVersions
from chatd.chats.store.stores import Stores
from chatd.primitives.domain.errors import ChatNotFound
from chatd.primitives.domain.ids import ChatId, Owner
from chatd.primitives.domain.requests import ClientKey, Reader
from chatd.users.domain.groups import Groups
from chatd.users.rpc.callers import caller_as_reader
from parley.api.chat.v1 import chat_pb2
from parley.api.chat.v1.chat_service_pb2_grpc import ChatServiceServicer
from parley.tasks import Shielding

Context = grpc.aio.ServicerContext
M = TypeVar("M", bound="KnowsShares")
P = ParamSpec("P")
Response = TypeVar("Response")
Method = Callable[Concatenate[M, P], Coroutine[Any, Any, Response]]


class KnowsShares(Protocol):
    """Methods of chats that may be shared with the caller."""

    async def is_shared_with_caller(self, chat_id: ChatId) -> bool:
        """Return whether the caller may read a chat of another owner."""
        ...


async def shares_of(stores: Stores, groups: Groups, chat_id: ChatId) -> bool:
    """Return whether a chat of another owner is shared with the caller."""
    reader = await caller_as_reader(groups)
    try:
        chat = await stores.reading.get(chat_id, reader)
    except ChatNotFound:
        return False
    return chat.owner.id != reader.id


def ignore_event(new: NewChat) -> None:
    """Ignore a new chat."""


class ChatMethods(ChatServiceServicer):
    """The dependencies of all methods; errors are mapped to statuses by the server's table.

    Args:
        stores: The stores of chats.
        claims: The worker of this process, which runs the turns that its calls start.
        groups: The groups of users.
        tasks: Owns the work of calls that must not be cancelled with them: a command that claimed a
            chat must also start its runner.
        references: Rejects ids that do not exist.
        spending: Spend limits.
        created: Is called with every new chat.
        defaults: Completes requests from the configuration.
        changed: Is called with every chat whose turn setup may have changed.
        propose_title: Returns a title for a chat as it is now, or raises TitleUnavailable.
        fork_workspace: Copies the workspace of a chat, once for each key, and returns the id of the
            copy; empty if the chat has none.
        hooks: Hooks that see messages before they are accepted.
        cursor_after: Returns where the stream of a chat goes on after a page of its history.
    """

    def __init__(
        self,
        stores: Stores,
        *,
        claims: Claims,
        groups: Groups,
        tasks: Shielding,
        references: References,
        spending: SpendAdmission,
        defaults: Defaults,
        cursor_after: Callable[[ChatId, PageVersions], str],
        propose_title: Callable[[ChatId, Owner], Awaitable[str]],
        fork_workspace: Callable[[ChatId, Owner, ClientKey], Awaitable[str]],
        created: Callable[[NewChat], None] = ignore_event,
        changed: Callable[[ChatId], None] = lambda chat_id: None,
        hooks: PromptHooks | None = None,
    ) -> None:
        self._stores = stores
        self._claims = claims
        self._groups = groups
        self._tasks = tasks
        self._references = references
        self._admission = Admission(spending, groups, stores.keys)
        self._created = created
        self._defaults = defaults
        self._changed = changed
        self._hooks = hooks or NoPromptHooks()
        self._cursor_after = cursor_after
        self._propose_title = propose_title
        self._fork_workspace = fork_workspace

    async def is_shared_with_caller(self, chat_id: ChatId) -> bool:
        """Return whether the caller may read a chat of another owner."""
        return await shares_of(self._stores, self._groups, chat_id)

    async def _chat(self, chat_id: ChatId, owner: Owner) -> chat_pb2.Chat:
        return chat_to_proto(await self._stores.reading.get(chat_id, Reader(owner.id)))


def with_read_only_errors(method: Method[M, P, Response]) -> Method[M, P, Response]:
    """Let a method raise ChatReadOnly in place of ChatNotFound if the caller may read the chat."""

    @wraps(method)
    async def checked(self: M, /, *args: P.args, **kwargs: P.kwargs) -> Response:
        try:
            return await method(self, *args, **kwargs)
        except ChatNotFound as missing:
            if await self.is_shared_with_caller(ChatId(missing.chat_id)):
                raise ChatReadOnly(missing.chat_id) from None
            raise

    return checked
