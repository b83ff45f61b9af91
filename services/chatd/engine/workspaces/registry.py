"""The registry of nodes: they register, beat, drain, and are told what to do about workspaces."""

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol

from chatd.domain.errors import WorkspaceNotFound
from chatd.domain.workspaces.commands import Command, FindAgain, LoseNode, Report
from chatd.domain.workspaces.errors import WorkspaceNotReady
from chatd.domain.workspaces.nodes import Load, Node
from chatd.domain.workspaces.workspace import (
    USABLE,
    NodeId,
    State,
    Usage,
    Workspace,
)


class Instruction(StrEnum):
    """What a node must do with a workspace that it and chatd see differently."""

    STOP = "stop"
    REMOVE = "remove"


@dataclass(frozen=True, slots=True)
class Order:
    """What to do about one workspace; a higher epoch on the node is left alone."""

    workspace_id: str
    epoch: int
    instruction: Instruction


@dataclass(frozen=True, slots=True)
class Hosted:
    """A workspace as its node sees it.

    Attributes:
        used_at: When it was last used by a call, an attachment or a wait; None for unknown.
    """

    workspace_id: str
    epoch: int
    state: State
    processes: int = 0
    usage: Usage | None = None
    used_at: datetime | None = None


class HostedWorkspaces(Protocol):
    """Workspaces as nodes change them."""

    async def apply(self, workspace_id: str, command: Command) -> tuple[Workspace, Workspace]:
        """Decide and write."""
        ...

    async def many(self, workspace_ids: Collection[str]) -> dict[str, Workspace]:
        """Return those that exist by their ids."""
        ...

    async def on_node(self, node_id: str) -> Sequence[Workspace]:
        """Return what is on a node."""
        ...


class RegisteredNodes(Protocol):
    """Where nodes are stored."""

    async def register(self, node: Node, request_id: str) -> Node:
        """Make a node known, or known again."""
        ...

    async def heartbeat(self, node_id: str, registration_epoch: int, load: Load) -> Node:
        """Note that a node lives and what it holds."""
        ...

    async def drain(
        self, node_id: str, registration_epoch: int, grace: timedelta, *, is_leaving: bool
    ) -> Node:
        """Give a node nothing more."""
        ...


class Registry:
    """Brings together what nodes have and what workspaces should be."""

    def __init__(self, workspaces: HostedWorkspaces, nodes: RegisteredNodes) -> None:
        self._workspaces = workspaces
        self._nodes = nodes

    async def register(
        self, node: Node, hosted: Sequence[Hosted], request_id: str
    ) -> tuple[Node, tuple[Order, ...]]:
        """Make a node known with everything it has, and return what to do about that."""
        registered = await self._nodes.register(node, request_id)
        orders = await self._compare(node.id, hosted)
        has = {each.workspace_id for each in hosted}
        for workspace in await self._workspaces.on_node(node.id):
            if workspace.state in USABLE and workspace.id not in has:
                await self._apply(workspace.id, LoseNode(node.id))
        return registered, orders

    async def beat(
        self, node_id: str, registration_epoch: int, load: Load, hosted: Sequence[Hosted]
    ) -> tuple[Node, tuple[Order, ...]]:
        """Note that a node lives and what changed on it, and return what to do about that.

        Raises:
            StaleNode: it must register again, because it was given up meanwhile.
            NodeNotFound: it never registered.
        """
        node = await self._nodes.heartbeat(node_id, registration_epoch, load)
        return node, await self._compare(node.id, hosted)

    async def drain(
        self, node_id: str, registration_epoch: int, grace: timedelta, *, is_leaving: bool
    ) -> Node:
        """Take a node out.

        Raises:
            StaleNode: it registered anew since.
            NodeNotFound: it never registered.
        """
        return await self._nodes.drain(node_id, registration_epoch, grace, is_leaving=is_leaving)

    async def _compare(self, node_id: NodeId, hosted: Sequence[Hosted]) -> tuple[Order, ...]:
        if not hosted:
            return ()
        known = await self._workspaces.many([each.workspace_id for each in hosted])
        orders: list[Order] = []
        for each in hosted:
            instruction = _instruction(known.get(each.workspace_id), node_id, each)
            if instruction is not None:
                orders.append(Order(each.workspace_id, each.epoch, instruction))
            elif each.workspace_id in known:
                await self._hear(known[each.workspace_id], node_id, each)
        return tuple(orders)

    async def _hear(self, workspace: Workspace, node_id: NodeId, hosted: Hosted) -> None:
        if workspace.state is State.FAILED:
            await self._apply(workspace.id, FindAgain(node_id, hosted.epoch, hosted.state))
        elif workspace.is_usable and hosted.state in USABLE:
            told = Report(hosted.epoch, hosted.processes > 0, hosted.usage, hosted.used_at)
            await self._apply(workspace.id, told)

    async def _apply(self, workspace_id: str, command: Command) -> None:
        # It moved meanwhile; the next heartbeat is compared with what it is then.
        with suppress(WorkspaceNotReady, WorkspaceNotFound):
            await self._workspaces.apply(workspace_id, command)


def _instruction(
    workspace: Workspace | None, node_id: NodeId, hosted: Hosted
) -> Instruction | None:
    """Return what a node must do about what it has, None to leave it."""
    is_live = hosted.state in (State.PREPARING, State.READY, State.BUSY)
    if workspace is None:
        # Nobody asked for it any more; files that nobody knows are not ours to remove.
        return Instruction.STOP if is_live else None
    if workspace.state is State.DELETED:
        return Instruction.REMOVE
    if workspace.node_id != node_id:
        return Instruction.REMOVE if hosted.epoch < workspace.epoch else None
    if workspace.state is State.STOPPED and hosted.epoch == workspace.epoch and is_live:
        return Instruction.STOP
    return None
