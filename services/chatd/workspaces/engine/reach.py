"""What the judgement of tool calls has to know of the workspaces of chats."""

from typing import Final, Protocol

from chatd.approvals.domain.taint import Workspace
from chatd.models.store.catalogue import Snapshot
from chatd.primitives.domain.ids import ChatId
from chatd.workspaces.domain.errors import NoNode
from chatd.workspaces.domain.ports import ChatWorkspace
from chatd.workspaces.domain.spec import Kind, Network
from chatd.workspaces.engine.node_list import NodeList

#: Levels at which a node cannot keep processes from the network.
UNCONFINED_LEVELS: Final = frozenset(("none", "uid"))
CLONED_KINDS: Final = frozenset((Kind.GIT, Kind.FORK))


class WorkspacesOfChats(Protocol):
    """The store of workspaces."""

    async def of_chat(self, chat_id: ChatId) -> ChatWorkspace | None:
        """Return the workspace of a chat, None if there is no such chat."""
        ...


class Configuration(Protocol):
    """The current configuration; cached while nothing changed."""

    async def current(self) -> Snapshot:
        """Return the catalogue with the settings of the installation."""
        ...


class WorkspaceReach:
    """Tells whether a chat's workspace reaches other hosts, and whether its files are cloned.

    Args:
        workspaces: The store of workspaces.
        nodes: The cached nodes.
        configuration: The cached settings of the installation.
    """

    def __init__(
        self,
        workspaces: WorkspacesOfChats,
        nodes: NodeList,
        configuration: Configuration,
    ) -> None:
        self._workspaces = workspaces
        self._nodes = nodes
        self._configuration = configuration

    async def are_repositories_outside(self) -> bool:
        """Return whether files of cloned repositories count as content from outside."""
        snapshot = await self._configuration.current()
        return snapshot.catalogue.settings.untrusted_repositories

    async def of_chat(self, chat_id: ChatId) -> Workspace:
        """Return what is known of the workspace of a chat, or of the one that it would get."""
        found = await self._workspaces.of_chat(chat_id)
        workspace = None if found is None else found.workspace
        is_outside = await self.are_repositories_outside()
        if workspace is None:
            has_egress = self._scratch_level() in UNCONFINED_LEVELS
            return Workspace(has_egress, are_clones_outside=is_outside)
        has_egress = (
            workspace.spec.network.access is not Network.NONE
            or workspace.sandbox_level in UNCONFINED_LEVELS
        )
        is_proxied = workspace.spec.network.access is Network.PROXY
        is_cloned = workspace.kind in CLONED_KINDS
        return Workspace(has_egress, is_cloned and is_outside, is_outside, is_proxied)

    def _scratch_level(self) -> str:
        try:
            return self._nodes.likely().sandbox_level
        except NoNode:
            return ""
