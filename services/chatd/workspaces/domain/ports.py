"""What the control plane of workspaces needs from the world, as small as it can be said."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from chatd.primitives.domain.ids import ChatId, Owner, OwnerId
from chatd.workspaces.domain.nodes import Node
from chatd.workspaces.domain.workspace import Failure, NodeId, Workspace, WorkspaceId


@dataclass(frozen=True, slots=True)
class Seen:
    """A workspace as it was read, and when, by the time of record."""

    workspace: Workspace
    at: datetime


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line of what preparing a workspace printed."""

    sequence: int
    logged_at: datetime
    stage: str
    text: str


@dataclass(frozen=True, slots=True)
class Prepared:
    """A node made a workspace."""

    root_path: str = ""
    git_branch: str = ""
    sandbox_level: str = ""


@dataclass(frozen=True, slots=True)
class NotPrepared:
    """A node could not make a workspace."""

    failure: Failure


Progress = LogLine | Prepared | NotPrepared


class HostAway(Exception):
    """A node could not be asked; whether the request arrived is not known, so it is repeated."""

    def __init__(self, cause: str) -> None:
        super().__init__(f"the node does not answer: {cause}; ask again")
        self.cause = cause


class HostRefused(Exception):
    """A node refuses for certain; repeating changes nothing."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


class Host(Protocol):
    """Makes, stops and removes workspaces on nodes; every request is named for its placement."""

    def prepare(
        self, node: Node, workspace: Workspace, after_line: int = 0
    ) -> AsyncIterator[Progress]:
        """Have a workspace made or started; the same placement attaches.

        Ends with `Prepared` or `NotPrepared`; without either the node went away.

        Raises:
            HostAway: the node does not answer.
        """
        ...

    async def stop(self, node: Node, workspace: Workspace) -> None:
        """Have everything in a workspace ended; its files stay.

        Raises:
            HostAway: the node does not answer.
            HostRefused: the node has a newer placement, or none.
        """
        ...

    async def remove(self, node: Node, workspace: Workspace) -> None:
        """Have a workspace removed with its files; an absent one is left alone.

        Raises:
            HostAway: the node does not answer.
            HostRefused: the node has a newer placement.
        """
        ...


class Nodes(Protocol):
    """The nodes that are known now."""

    async def list(self) -> Sequence[Node]:
        """Return them."""
        ...

    async def find(self, node_id: NodeId) -> Node | None:
        """Return one, wherever it is in its life."""
        ...


@dataclass(frozen=True, slots=True)
class ChatWorkspace:
    """Where a chat's tools work.

    Attributes:
        workspace: The workspace, None if there is none yet.
        scratch_id: The id that the scratch workspace of the chat has or would have.
        is_bound: Whether somebody chose the workspace.
        node_address: Where it is; empty if its node is not registered.
        is_node_lost: Whether its node fell silent.
    """

    workspace: Workspace | None
    scratch_id: WorkspaceId
    owner_id: OwnerId
    is_child: bool
    is_bound: bool
    node_address: str
    is_node_lost: bool
    now: datetime


@dataclass(frozen=True, slots=True)
class WorkspaceLocation:
    """Where calls of a chat's tools go: which node, which workspace, which placement of it.

    Attributes:
        is_made: Whether there is something in it; one that is made for the first time has nothing.
    """

    address: str
    workspace_id: str
    epoch: int = 0
    is_made: bool = True


class WorkspaceLocator(Protocol):
    """Finds where the tools of chats work, once in a turn."""

    async def begin(self, chat_id: ChatId) -> WorkspaceLocation:
        """Return where a turn's tools will work, as far as that is known; makes nothing.

        Raises:
            ChatError: nobody can tell.
        """
        ...

    async def ready(self, chat_id: ChatId, owner: Owner) -> WorkspaceLocation:
        """Return where a tool works now; a chat without a workspace gets a scratch one.

        Raises:
            ChatError: there is no workspace that can be used; the error says what to do.
        """
        ...

    async def seen(self, chat_id: ChatId) -> WorkspaceLocation:
        """Return where a chat works, looked up now, for somebody who only looks; makes nothing.

        Raises:
            ChatError: nobody can tell.
        """
        ...

    async def recent(self, chat_id: ChatId) -> WorkspaceLocation:
        """Return where a chat's tools worked last, looked up only if nobody knows.

        Raises:
            ChatError: nobody can tell.
        """
        ...

    def forget(self, chat_id: ChatId) -> None:
        """Look again at the next call, because what is known seems to be over."""
        ...
