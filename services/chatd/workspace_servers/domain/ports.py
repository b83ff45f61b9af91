"""The ports of workspace servers."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from chatd.primitives.domain.ids import ChatId, Owner, OwnerId
from chatd.workspace_servers.domain.definition import Definitions, ServerDefinition
from chatd.workspaces.domain.ports import WorkspaceLocation


@dataclass(frozen=True, slots=True)
class ServerPlace:
    """Where a server runs: for which chat, in which workspace, and how far confined.

    Attributes:
        turn_id: The turn that starts it; 0 outside of turns.
    """

    chat_id: ChatId
    owner: Owner
    location: WorkspaceLocation
    is_read_only: bool
    turn_id: int = 0


class ServerPipes(Protocol):
    """The standard input and output of a running server."""

    async def write(self, data: bytes) -> None:
        """Write to its input.

        Raises:
            ServerFailed: It ended, or does not read.
        """
        ...

    async def read(self) -> bytes:
        """Return the next piece of its output; empty at the end.

        Raises:
            ServerFailed: The node is gone.
        """
        ...


class ServerProcesses(Protocol):
    """Runs servers in workspaces."""

    def opened(
        self, place: ServerPlace, definition: ServerDefinition
    ) -> AbstractAsyncContextManager[ServerPipes]:
        """Start a server; it is ended, with all that it started, when the context ends.

        Raises:
            ServerFailed: It cannot be started.
        """
        ...


class LineReducer(Protocol):
    """Reduces large lines, so that decoding them takes little time."""

    async def reduced(self, line: bytes) -> bytes:
        """Return a line with few values; empty if it is not understood.

        Raises:
            ServerFailed: It takes too much time or memory.
        """
        ...


class DefinitionFiles(Protocol):
    """The definitions of servers in workspaces."""

    async def read(self, place: ServerPlace) -> Definitions:
        """Return the servers that a workspace defines now.

        Raises:
            NodeLost: Its node does not answer.
        """
        ...


class TrustedServers(Protocol):
    """The store of what owners trust."""

    async def trusted(self, workspace_id: str) -> Mapping[str, str]:
        """Return the digests of the trusted servers of a workspace, by name."""
        ...

    async def trust(self, workspace_id: str, name: str, digest: str, owner_id: OwnerId) -> None:
        """Trust a definition, in place of an earlier one of the same name."""
        ...

    async def untrust(self, workspace_id: str, name: str, owner_id: OwnerId) -> None:
        """Trust a server no longer."""
        ...
