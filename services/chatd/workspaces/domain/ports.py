"""The ports of the control plane of workspaces."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from chatd.primitives.domain.ids import ChatId, Owner, OwnerId
from chatd.workspaces.domain.nodes import Node
from chatd.workspaces.domain.workspace import Failure, NodeId, Workspace, WorkspaceId


@dataclass(frozen=True, slots=True)
class Seen:
    """A workspace as read, with the database time of the read."""

    workspace: Workspace
    at: datetime


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line of the log of a workspace's preparation."""

    sequence: int
    logged_at: datetime
    stage: str
    text: str


@dataclass(frozen=True, slots=True)
class Prepared:
    """A node has created a workspace."""

    root_path: str = ""
    git_branch: str = ""
    sandbox_level: str = ""


@dataclass(frozen=True, slots=True)
class NotPrepared:
    """A node could not create a workspace."""

    failure: Failure


Progress = LogLine | Prepared | NotPrepared


class HostAway(Exception):
    """A node does not respond; whether the request arrived is unknown, so it is repeated."""

    def __init__(self, cause: str) -> None:
        super().__init__(f"the node does not answer: {cause}; ask again")
        self.cause = cause


class HostRefused(Exception):
    """A node refuses definitively; repeating the request has the same result."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


class Host(Protocol):
    """Creates, stops and removes workspaces on nodes; request ids derive from the placement."""

    def prepare(
        self, node: Node, workspace: Workspace, after_line: int = 0
    ) -> AsyncIterator[Progress]:
        """Create or start a workspace; a repeated request for the same placement attaches.

        Ends with `Prepared` or `NotPrepared`; if it ends without either, the connection to the node
        was lost.

        Raises:
            HostAway: the node does not respond.
        """
        ...

    async def stop(self, node: Node, workspace: Workspace) -> None:
        """End all processes of a workspace; its files are kept.

        Raises:
            HostAway: the node does not respond.
            HostRefused: the node has a newer placement, or none.
        """
        ...

    async def remove(self, node: Node, workspace: Workspace) -> None:
        """Remove a workspace with its files; does nothing if it is absent.

        Raises:
            HostAway: the node does not respond.
            HostRefused: the node has a newer placement.
        """
        ...


class Nodes(Protocol):
    """The nodes of the installation."""

    async def list(self) -> Sequence[Node]:
        """Return the current nodes."""
        ...

    async def find(self, node_id: NodeId) -> Node | None:
        """Return a node in any state."""
        ...


@dataclass(frozen=True, slots=True)
class ChatWorkspace:
    """The workspace in which a chat's tools run.

    Attributes:
        workspace: The workspace, None if there is none yet.
        scratch_id: The id that the scratch workspace of the chat has or would have.
        is_bound: Whether the workspace was chosen explicitly.
        node_address: The address of its node; empty if the node is not registered.
        is_node_lost: Whether its node is lost.
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
    """The location of a chat's tools: the node, the workspace and its placement.

    Attributes:
        is_made: Whether it has files; one that is being created for the first time has none.
        root_path: The directory of its files as its processes see it; empty if not known yet.
    """

    address: str
    workspace_id: str
    epoch: int = 0
    is_made: bool = True
    root_path: str = field(default="", compare=False)


class WorkspaceLocator(Protocol):
    """Finds the location of chats' tools, once in a turn."""

    async def locate_for_turn(self, chat_id: ChatId) -> WorkspaceLocation:
        """Return the expected location of a turn's tools; creates nothing.

        Raises:
            ChatError: it cannot be determined.
        """
        ...

    async def ensure_ready(self, chat_id: ChatId, owner: Owner) -> WorkspaceLocation:
        """Return the current location of a tool; a chat without a workspace gets a scratch one.

        Raises:
            ChatError: there is no usable workspace; the error contains the next step.
        """
        ...

    async def locate(self, chat_id: ChatId) -> WorkspaceLocation:
        """Read the location of a chat for a read-only request; creates nothing.

        Raises:
            ChatError: it cannot be determined.
        """
        ...

    async def last_known(self, chat_id: ChatId) -> WorkspaceLocation:
        """Return the last location of a chat's tools; it is read only if it is not cached.

        Raises:
            ChatError: it cannot be determined.
        """
        ...

    async def node_addresses(self) -> Sequence[str]:
        """Return the addresses of all nodes."""
        ...

    def forget(self, chat_id: ChatId) -> None:
        """Read the location again at the next call, because the cached one seems to be stale."""
        ...
