"""Answers of nodes to requests of people, and their errors as these see them."""

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from chatd.primitives.domain.errors import RequestIdReused
from chatd.workspaces.clients.nodes import answered
from chatd.workspaces.domain.errors import WorkspaceNotReady
from chatd.workspaces.domain.workspace import State
from chatd.workspaces.rpc.access import AuthorizedAccess
from parley.rpc import Problem, Refusal, acting_for

REQUEST_ID_REUSED: Final = "REQUEST_ID_REUSED"
WORKSPACE_NOT_FOUND: Final = "WORKSPACE_NOT_FOUND"
WORKSPACE_NOT_READY: Final = "WORKSPACE_NOT_READY"
LACKING: Final = (
    "The machine of this chat's workspace does not have the workspace now; it may have been "
    "deleted just now. Try again."
)

R = TypeVar("R")


async def answered_by_node(access: AuthorizedAccess, ask: Callable[[], Awaitable[R]]) -> R:
    """Return a node's response to the caller's request.

    Raises:
        WorkspaceNotReady: The workspace is not created on the node yet.
        Refusal: The node refuses, lacks the method or the workspace, or does not respond.
    """
    with acting_for(access.user):
        call = ask()
    try:
        return await answered(call)
    except Refusal as refusal:
        raise problem_for_caller(access, refusal) from refusal


def problem_for_caller(access: AuthorizedAccess, refusal: Exception) -> Exception:
    """Convert an error for the caller; a node without the workspace does not mean no chat."""
    if not isinstance(refusal, Refusal) or refusal.problem.reason != WORKSPACE_NOT_FOUND:
        return refusal
    if not access.is_there:
        return WorkspaceNotReady(access.workspace_id, State.PREPARING)
    if not access.is_of_chat:
        return refusal
    metadata = {"workspace_id": access.workspace_id}
    return Refusal(Problem.of(WORKSPACE_NOT_READY, LACKING, metadata))


async def changed_by_node(
    access: AuthorizedAccess, request_id: str, ask: Callable[[], Awaitable[R]]
) -> R:
    """Return a node's response to a change; errors contain the caller's own request id.

    Raises:
        RequestIdReused: The caller used the id before, with another body.
        WorkspaceNotReady: The workspace is not created on the node yet.
        Refusal: The node refuses, does not implement this, or does not respond.
    """
    try:
        return await answered_by_node(access, ask)
    except Refusal as refusal:
        if refusal.problem.reason == REQUEST_ID_REUSED:
            raise RequestIdReused(request_id) from refusal
        raise
