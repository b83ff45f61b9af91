"""The client of chats' workspaces: by the ids of their chats, through chatd."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

from gateway.api.parameters import not_found
from gateway.http.problems.errors import UpstreamProblem
from gateway.streams.chatd_client import ChatdClient
from parley.api.workspace.v1 import workspace_access_service_pb2 as api
from parley.api.workspace.v1.workspace_access_service_pb2_grpc import WorkspaceAccessServiceStub
from parley.identity import User

CHAT_NOT_FOUND: Final = "CHAT_NOT_FOUND"
WORKSPACE_NOT_FOUND: Final = "WORKSPACE_NOT_FOUND"

T = TypeVar("T")


class Workspaces:
    """Sends requests to the process that a chat prefers; the chat id names the workspace."""

    def __init__(self, chatd: ChatdClient) -> None:
        self._chatd = chatd

    async def ask(
        self,
        user: User,
        chat_id: str,
        question: Callable[[WorkspaceAccessServiceStub], Awaitable[T]],
    ) -> T:
        """Return the response.

        Raises:
            HttpProblem: There is no such chat for this user (404).
            UpstreamProblem: The response is another error, or no process responds.
        """
        with workspace_of(chat_id):
            answer, _ = await self._chatd.ask(
                user, chat_id, lambda stubs: question(stubs.workspaces)
            )
        return answer

    async def wait_output(
        self, user: User, request: api.WaitWorkspaceOutputRequest
    ) -> api.WaitWorkspaceOutputResponse:
        """Wait for the output of a process, over the stream that all clients share.

        Raises:
            HttpProblem: There is no such chat for this user (404).
            UpstreamProblem: The response is another error, or no shared stream is connected.
        """
        with workspace_of(request.workspace_id):
            answer, _ = await self._chatd.ask(
                user, request.workspace_id, lambda stubs: stubs.wait_output(request)
            )
        return answer


@contextmanager
def workspace_of(chat_id: str) -> Iterator[None]:
    """Report the chat as missing where chatd reports the workspace that the chat id names.

    Raises:
        HttpProblem: There is no such chat for this user (404).
    """
    try:
        yield
    except UpstreamProblem as refused:
        missing = refused.problem.metadata.get("workspace_id")
        if refused.problem.reason == WORKSPACE_NOT_FOUND and missing == chat_id:
            raise not_found(CHAT_NOT_FOUND) from None
        raise
