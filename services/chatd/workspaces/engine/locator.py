"""Locates the workspaces of chats: reads the location when it may have changed, or creates one.

A chat without a bound workspace uses a scratch workspace with the id of its root chat. It is
created at the first call of a tool, so a turn without tools costs nothing: such a turn's catalogue
uses the node that would get the workspace, by the cached list of nodes. Every write of a workspace
is published on the bus, so the location of a scratch workspace is read again only after a notice,
or when a node refuses a stale location. A bound workspace is read once in every turn.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final, Protocol
from weakref import WeakValueDictionary

from chatd.models.store.catalogue import ChatFacts
from chatd.primitives.domain.errors import ChatNotFound
from chatd.primitives.domain.ids import ChatId, Owner, OwnerId, WorkerId
from chatd.workspaces.domain.commands import Place
from chatd.workspaces.domain.errors import NodeLost, NoNode, WorkspaceNotReady
from chatd.workspaces.domain.nodes import NO_COMMANDS
from chatd.workspaces.domain.ports import ChatWorkspace, WorkspaceLocation
from chatd.workspaces.domain.spec import Kind, WorkspaceSpec
from chatd.workspaces.domain.templates import SCRATCH_ID, SCRATCH_NAME
from chatd.workspaces.domain.transitions import decide
from chatd.workspaces.domain.workspace import (
    DRIVEN,
    Lifetime,
    State,
    Workspace,
    WorkspaceId,
)
from chatd.workspaces.domain.workspace_text import workspace_description
from chatd.workspaces.engine.control import PREPARING_S
from chatd.workspaces.engine.driver import Driver
from chatd.workspaces.engine.node_list import NodeList
from chatd.workspaces.engine.watchers import Changes
from parley.cache import BoundedCache
from parley.clock import Clock

LOCATIONS_MAX: Final = 10_000
#: States from which a scratch workspace is started automatically.
AT_REST: Final = frozenset({State.STOPPED, State.FAILED, State.DELETED})
SCRATCH_LIFETIME: Final = Lifetime(ttl_ms=2 * 3_600_000)


class ChatWorkspaces(Protocol):
    """The store of workspaces as the locator uses it."""

    async def of_chat(self, chat_id: ChatId) -> ChatWorkspace | None:
        """Return the workspace of a chat, None if there is no such chat."""
        ...

    async def get(self, workspace_id: str) -> Workspace:
        """Return a workspace."""
        ...

    async def own(self, workspace_id: str, owner_id: OwnerId) -> Workspace:
        """Return a workspace of an owner."""
        ...

    async def add_scratch(
        self, workspace: Workspace, driver_id: WorkerId, lease_s: float
    ) -> Workspace:
        """Insert a chat's scratch workspace, claimed by a driver, or return the existing one."""
        ...

    async def restart_scratch(self, workspace_id: str) -> Workspace:
        """Start a scratch workspace that stopped or failed, and return it."""
        ...


class Facts(Protocol):
    """Cached facts about chats; they are read from the database only after changes."""

    async def chat(self, chat_id: ChatId) -> ChatFacts:
        """Return the facts about a chat that are not part of its history."""
        ...


@dataclass(slots=True)
class _Known:
    """The cached location of a chat.

    Attributes:
        location: The location.
        is_looked_up: Whether it was read in the current turn, or is unchanged, and can be used.
        is_fresh: Whether the turn has just begun and its tools were not listed yet.
        is_guessed: Whether the chat had no workspace, so that this is where one would be created.
    """

    location: WorkspaceLocation
    is_looked_up: bool = False
    is_fresh: bool = False
    is_guessed: bool = False


class ChatWorkspaceLocator:
    """Finds and creates the workspaces of chats."""

    def __init__(
        self,
        workspaces: ChatWorkspaces,
        facts: Facts,
        nodes: NodeList,
        driver: Driver,
        changes: Changes,
        clock: Clock,
        *,
        made: Callable[[ChatId], None] = lambda _: None,
        waiting_s: float = PREPARING_S,
    ) -> None:
        self._workspaces = workspaces
        self._facts = facts
        self._told_of = made
        self._nodes = nodes
        self._driver = driver
        self._changes = changes
        self._clock = clock
        self._waiting_s = waiting_s
        self._known: BoundedCache[str, _Known] = BoundedCache(LOCATIONS_MAX)
        self._looking: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        changes.listen(self._heard)

    async def workspace_text(self, chat_id: ChatId, *, is_child: bool) -> str:
        """Begin a turn: return the description of its workspace for the prompt."""
        if not _is_chosen(await self._facts.chat(chat_id)):
            return workspace_description(None, self._clock.now(), is_child=is_child)
        found = await self._look(chat_id)
        with suppress(NoNode, NodeLost):  # Its tools will say so; the text is true without a node.
            self._keep(chat_id, await self._location(found), found).is_fresh = True
        return workspace_description(found.workspace, found.now, is_child=found.is_child)

    async def locate_for_turn(self, chat_id: ChatId) -> WorkspaceLocation:
        """Return the expected location of a turn's tools; creates nothing.

        Raises:
            NoNode: there is no suitable node.
            ChatNotFound: there is no such chat.
        """
        known = self._known.get(chat_id)
        if known is not None and known.is_fresh:
            known.is_fresh = False
            return known.location
        facts = await self._facts.chat(chat_id)
        # Another process may have created a workspace since it was guessed.
        is_unknown = known is None or known.is_guessed
        if _is_chosen(facts) or (is_unknown and facts.has_scratch):
            found = await self._look(chat_id)
            return self._keep(chat_id, await self._location(found), found).location
        if known is None:
            node = self._nodes.likely()
            known = self._keep(chat_id, WorkspaceLocation(node.address, chat_id), None)
        if known.location.workspace_id != chat_id:
            # The location of a chat that no longer has a workspace of its own.
            known.is_looked_up = False
        return known.location

    async def ensure_ready(self, chat_id: ChatId, owner: Owner) -> WorkspaceLocation:
        """Return the current location of a tool; a chat without a workspace gets a scratch one.

        Raises:
            WorkspaceNotReady: the workspace of the chat cannot be used; the error contains the next
                step.
            NodeLost: its node does not respond.
            ChatNotFound: there is no such chat.
        """
        known = self._known.get(chat_id)
        if known is not None and known.is_looked_up:
            return known.location
        # The first of several concurrent calls reads the location, and the others use its result.
        lock = self._looking.setdefault(chat_id, asyncio.Lock())
        async with lock:
            known = self._known.get(chat_id)
            is_found = known is not None and known.is_looked_up
            return (
                known.location if known is not None and is_found else await self._readied(chat_id)
            )

    async def _readied(self, chat_id: ChatId) -> WorkspaceLocation:
        found = await self._look(chat_id)
        workspace = found.workspace
        if workspace is None:
            workspace = await self._made(chat_id, found)
        elif workspace.is_scratch_of_chat:
            workspace = await self._restarted(workspace)
        workspace = await self._settled(workspace)
        if not workspace.is_usable:
            raise WorkspaceNotReady(workspace.id, workspace.state)
        if found.is_node_lost and workspace is found.workspace:
            raise NodeLost(workspace.node_id or "")
        location = WorkspaceLocation(
            await self._address(workspace, found),
            workspace.id,
            workspace.epoch,
            root_path=workspace.root_path,
        )
        known = self._keep(chat_id, location, found)
        known.is_looked_up = True
        return location

    async def _restarted(self, workspace: Workspace) -> Workspace:
        """Start a scratch workspace that is stopped, failed or deleted, or is being stopped."""
        if workspace.state is State.STOPPING:
            workspace = await self._settled(workspace)
        if workspace.state in AT_REST:
            workspace = await self._workspaces.restart_scratch(workspace.id)
            self._driver.poke(workspace)
        return workspace

    async def _settled(self, workspace: Workspace) -> Workspace:
        if workspace.state not in DRIVEN:
            return workspace
        return await self._changes.settled(
            workspace.id, lambda: self._workspaces.get(workspace.id), self._waiting_s
        )

    async def locate(self, chat_id: ChatId) -> WorkspaceLocation:
        """Read the location of a chat for a read-only request; creates nothing.

        Raises:
            ChatNotFound: there is no such chat.
            NoNode: there is no suitable node.
        """
        found = await self._look(chat_id)
        workspace = found.workspace
        is_made = workspace is not None and workspace.has_files and not workspace.is_gone
        return replace(await self._location(found), is_made=is_made)

    async def last_known(self, chat_id: ChatId) -> WorkspaceLocation:
        """Return the last location of a chat's tools; it is read only if it is not cached.

        Raises:
            ChatNotFound: there is no such chat.
            NoNode: there is no suitable node.
        """
        known = self._known.get(chat_id)
        return (
            known.location
            if known is not None and known.is_looked_up
            else await self.locate(chat_id)
        )

    async def ensure_scratch(self, chat_id: ChatId, owner: Owner) -> WorkspaceLocation:
        """Read the current location of a chat for a request outside of a turn.

        Raises:
            WorkspaceNotReady: the workspace of the chat cannot be used.
            NodeLost: its node does not respond.
            ChatNotFound: there is no such chat.
        """
        self.forget(chat_id)
        return await self.ensure_ready(chat_id, owner)

    async def locate_own(self, workspace_id: str, owner_id: OwnerId) -> WorkspaceLocation:
        """Return the location of a workspace of an owner.

        Raises:
            WorkspaceNotFound: the owner has no such workspace.
            WorkspaceNotReady: it has no node now.
            NodeLost: its node no longer exists.
        """
        workspace = await self._workspaces.own(workspace_id, owner_id)
        if workspace.node_id is None:
            raise WorkspaceNotReady(workspace.id, workspace.state)
        node = await self._nodes.find(workspace.node_id)
        if node is None:
            raise NodeLost(workspace.node_id)
        return WorkspaceLocation(node.address, workspace.id, workspace.epoch)

    async def node_addresses(self) -> Sequence[str]:
        """Return the addresses of all nodes."""
        return tuple(node.address for node in await self._nodes.list())

    def forget(self, chat_id: ChatId) -> None:
        """Read the location again at the next call."""
        known = self._known.get(chat_id)
        if known is not None:
            known.is_looked_up = False

    def _heard(self, workspace_id: str | None) -> None:
        """Invalidate the locations of a workspace's chats after a change; None for all."""
        # A scratch workspace has the id of its chat; a bound one is read in every turn anyway.
        all_known = (each for _, each in self._known.items())
        known = all_known if workspace_id is None else [self._known.get(workspace_id)]
        for each in known:
            if each is not None:
                each.is_looked_up = False

    async def _look(self, chat_id: ChatId) -> ChatWorkspace:
        found = await self._workspaces.of_chat(chat_id)
        if found is None:
            raise ChatNotFound(chat_id)
        return found

    async def _location(self, found: ChatWorkspace) -> WorkspaceLocation:
        workspace = found.workspace
        if workspace is None or workspace.node_id is None:
            return WorkspaceLocation(self._nodes.likely().address, found.scratch_id)
        address = await self._address(workspace, found)
        return WorkspaceLocation(
            address, workspace.id, workspace.epoch, root_path=workspace.root_path
        )

    async def _address(self, workspace: Workspace, found: ChatWorkspace) -> str:
        is_status_sent = (
            found.workspace is not None and found.workspace.node_id == workspace.node_id
        )
        if found.node_address and is_status_sent:
            return found.node_address
        node = None if workspace.node_id is None else await self._nodes.find(workspace.node_id)
        if node is None:
            raise NodeLost(workspace.node_id or "")
        return node.address

    async def _made(self, chat_id: ChatId, found: ChatWorkspace) -> Workspace:
        """Create the scratch workspace of a chat on the node of its catalogue, if possible."""
        known = self._known.get(chat_id)
        likely = self._nodes.at(known.location.address) if known is not None else None
        node = likely if likely is not None and not likely.load.problem else self._nodes.likely()
        if node.load.problem:
            raise NoNode(NO_COMMANDS)
        # The database time, which other processes compare with, and not that of this process.
        now = found.now
        pending = Workspace(
            id=WorkspaceId(found.scratch_id),
            name=f"chat-{found.scratch_id}",
            owner_id=found.owner_id,
            kind=Kind.SCRATCH,
            spec=WorkspaceSpec(Kind.SCRATCH),
            lifetime=SCRATCH_LIFETIME,
            created_at=now,
            last_used_at=now,
            template_id=SCRATCH_ID,
            template_name=SCRATCH_NAME,
            is_scratch_of_chat=True,
        )
        placed = decide(pending, Place(node.id), now)
        workspace = await self._workspaces.add_scratch(
            placed, self._driver.driver_id, self._driver.timing.lease_s
        )
        self._driver.poke(workspace)
        self._told_of(chat_id)
        return workspace

    def _keep(
        self, chat_id: ChatId, location: WorkspaceLocation, found: ChatWorkspace | None
    ) -> _Known:
        is_usable = found is not None and found.workspace is not None and found.workspace.is_usable
        known = _Known(
            location,
            is_looked_up=is_usable and not (found and found.is_node_lost),
            is_guessed=found is None,
        )
        self._known.put(chat_id, known)
        return known


def _is_chosen(facts: ChatFacts) -> bool:
    # The facts of a child do not contain the workspace that its root is bound to.
    return bool(facts.workspace_id) or facts.is_child
