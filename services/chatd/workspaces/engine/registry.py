"""The registry of nodes: they register, beat, drain, and are told what to do about workspaces.

A report is compared with one look at everything that it speaks of, and what follows from it is
written at once, however many workspaces a node has.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, Protocol

from chatd.workspaces.domain.commands import Command, Lapse, MarkNodeLost, Recover, Report
from chatd.workspaces.domain.nodes import Load, Node
from chatd.workspaces.domain.ports import Seen
from chatd.workspaces.domain.transitions import decide
from chatd.workspaces.domain.workspace import (
    USABLE,
    Failure,
    FailureKind,
    NodeId,
    State,
    Usage,
)

#: Something of a workspace runs on its node.
RUNNING: Final = frozenset({State.PREPARING, State.READY, State.BUSY})
FILES_GONE: Final = Failure(
    FailureKind.SOURCE, "Its node does not have its files any more. Start it to have it made anew."
)
BROKEN: Final = Failure(FailureKind.INTERNAL, "Its node cannot keep it. Start it again.")


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
        failure: Why it failed there; None unless it did.
    """

    workspace_id: str
    epoch: int
    state: State
    processes: int = 0
    usage: Usage | None = None
    used_at: datetime | None = None
    failure: Failure | None = None


class HostedWorkspaces(Protocol):
    """Workspaces as nodes change them."""

    async def hosted(
        self, node_id: str, workspace_ids: Collection[str], *, is_all: bool
    ) -> dict[str, Seen]:
        """Return those of some ids that exist; if these are all of a node, also what it lacks."""
        ...

    async def apply_all(self, commands: Iterable[tuple[Seen, Command]]) -> None:
        """Decide on workspaces that were just read, and write all of it at once."""
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
        return registered, await self._compare(node.id, hosted, is_all=True)

    async def heartbeat(
        self, node_id: str, registration_epoch: int, load: Load, hosted: Sequence[Hosted]
    ) -> tuple[Node, tuple[Order, ...]]:
        """Note that a node lives and what changed on it, and return what to do about that.

        Raises:
            StaleNode: it must register again, because it was given up meanwhile.
            NodeNotFound: it never registered.
        """
        node = await self._nodes.heartbeat(node_id, registration_epoch, load)
        return node, await self._compare(node.id, hosted, is_all=False)

    async def drain(
        self, node_id: str, registration_epoch: int, grace: timedelta, *, is_leaving: bool
    ) -> Node:
        """Take a node out.

        Raises:
            StaleNode: it registered anew since.
            NodeNotFound: it never registered.
        """
        return await self._nodes.drain(node_id, registration_epoch, grace, is_leaving=is_leaving)

    async def _compare(
        self, node_id: NodeId, hosted: Sequence[Hosted], *, is_all: bool
    ) -> tuple[Order, ...]:
        if not hosted and not is_all:
            return ()
        told = {each.workspace_id: each for each in hosted}
        known = await self._workspaces.hosted(node_id, told, is_all=is_all)
        orders: list[Order] = []
        commands: list[tuple[Seen, Command]] = [
            (seen, MarkNodeLost(node_id)) for each, seen in known.items() if each not in told
        ]
        for each in told.values():
            seen = known.get(each.workspace_id)
            instruction = _instruction(seen, node_id, each)
            if instruction is not None:
                orders.append(Order(each.workspace_id, each.epoch, instruction))
            elif seen is not None:
                commands += [(seen, command) for command in _news(seen, node_id, each)]
        await self._workspaces.apply_all(commands)
        return tuple(orders)


def _instruction(seen: Seen | None, node_id: NodeId, hosted: Hosted) -> Instruction | None:
    """Return what a node must do about what it has, None to leave it."""
    is_running = hosted.state in RUNNING
    if hosted.state is State.DELETED:
        return None
    if seen is None:
        # Nobody asked for it any more; files that nobody knows are not ours to remove.
        return Instruction.STOP if is_running else None
    workspace = seen.workspace
    if workspace.state is State.DELETED:
        return Instruction.REMOVE
    if workspace.node_id != node_id:
        return Instruction.REMOVE if hosted.epoch < workspace.epoch else None
    if hosted.epoch != workspace.epoch or not is_running:
        return None
    match workspace.state:
        case State.STOPPED:
            return Instruction.STOP
        case State.FAILED if not _is_found(seen, node_id, hosted):
            return Instruction.STOP
        case _:
            return None


def _news(seen: Seen, node_id: NodeId, hosted: Hosted) -> tuple[Command, ...]:
    """Return what a node's view of a workspace changes about it, none or one."""
    workspace = seen.workspace
    if workspace.node_id != node_id:
        return ()
    match hosted.state:
        case State.READY | State.BUSY if workspace.state is State.FAILED:
            return (Recover(node_id, hosted.epoch, hosted.state),)
        case State.STOPPED if _is_found(seen, node_id, hosted):
            return (Recover(node_id, hosted.epoch, hosted.state),)
        case State.STOPPED if workspace.is_usable:
            return (Lapse(hosted.epoch),)
        case State.FAILED if workspace.is_usable:
            return (Lapse(hosted.epoch, hosted.failure or BROKEN),)
        case State.DELETED if workspace.is_usable:
            return (Lapse(hosted.epoch, FILES_GONE),)
        case State.READY | State.BUSY | State.STOPPED | State.FAILED:
            busy = hosted.state in USABLE and hosted.processes > 0
            return (Report(hosted.epoch, busy, hosted.usage, hosted.used_at),)
        case _:
            return ()


def _is_found(seen: Seen, node_id: NodeId, hosted: Hosted) -> bool:
    """Return whether a workspace that was given up is there again."""
    if seen.workspace.state is not State.FAILED:
        return False
    again = Recover(node_id, hosted.epoch, hosted.state)
    return decide(seen.workspace, again, seen.at) is not seen.workspace
