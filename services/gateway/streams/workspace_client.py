"""The workspaces of chats as the gateway asks for them: by their chats, through chatd."""

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
    """Asks the process that a chat prefers; a workspace has the id of its chat."""

    def __init__(self, chatd: ChatdClient) -> None:
        self._chatd = chatd

    async def ask(
        self,
        user: User,
        chat_id: str,
        question: Callable[[WorkspaceAccessServiceStub], Awaitable[T]],
    ) -> T:
        """Return the answer.

        Raises:
            HttpProblem: There is no such chat for this user (404).
            UpstreamProblem: The answer is another problem, or there is none.
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
    """Return whether chatd says that there is no such chat, and not that its workspace is gone."""
    problem = refused.problem
    return problem.reason == WORKSPACE_NOT_FOUND and problem.metadata.get("workspace_id") == chat_id
