"""The client of chats' workspaces: by the ids of their chats, through chatd."""

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from gateway.api.path_parameters import chat_not_found
from gateway.http.problems.errors import UpstreamProblem
from gateway.streams.chatd_client import ChatdClient
from parley.api.workspace.v1.workspace_access_service_pb2_grpc import WorkspaceAccessServiceStub
from parley.identity import User

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
        try:
            answer, _ = await self._chatd.ask(
                user, chat_id, lambda stubs: question(stubs.workspaces)
            )
        except UpstreamProblem as refused:
            if is_chat_missing(refused, chat_id):
                raise chat_not_found() from None
            raise
        return answer


def is_chat_missing(refused: UpstreamProblem, chat_id: str) -> bool:
    """Return whether chatd reports that the chat, and not its workspace, does not exist."""
    problem = refused.problem
    return problem.reason == WORKSPACE_NOT_FOUND and problem.metadata.get("workspace_id") == chat_id
