"""The registry of nodes: registration, heartbeats, draining, and orders about workspaces.

A report is compared with one read of all workspaces that it mentions, and the resulting changes are
written in one statement, however many workspaces a node has.
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

#: States in which processes of a workspace run on its node.
RUNNING: Final = frozenset({State.PREPARING, State.READY, State.BUSY})
FILES_GONE: Final = Failure(
    FailureKind.SOURCE, "Its node does not have its files any more. Start it to have it made anew."
)
BROKEN: Final = Failure(FailureKind.INTERNAL, "Its node cannot keep it. Start it again.")


class Instruction(StrEnum):
    """An order to a node whose state of a workspace differs from that in chatd."""

    STOP = "stop"
    REMOVE = "remove"


@dataclass(frozen=True, slots=True)
class Order:
    """An order about one workspace; the node ignores it if it has a higher epoch."""

    workspace_id: str
    epoch: int
    instruction: Instruction


@dataclass(frozen=True, slots=True)
class Hosted:
    """A workspace as its node reports it.

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
    """The store of workspaces as the registry uses it."""

    async def hosted(
        self, node_id: str, workspace_ids: Collection[str], *, is_all: bool
    ) -> dict[str, Seen]:
        """Return the existing workspaces of these ids; with `is_all`, also others of the node."""
        ...

    async def apply_all(self, commands: Iterable[tuple[Seen, Command]]) -> None:
        """Apply commands to workspaces that were just read, and write the results at once."""
        ...


class RegisteredNodes(Protocol):
    """The store of nodes."""

    async def register(self, node: Node, request_id: str) -> Node:
        """Register a node, or register it again."""
        ...

    async def heartbeat(self, node_id: str, registration_epoch: int, load: Load) -> Node:
        """Record a heartbeat of a node with its load."""
        ...

    async def drain(
        self, node_id: str, registration_epoch: int, grace: timedelta, *, is_leaving: bool
    ) -> Node:
        """Set a node to draining, so that it gets no more workspaces."""
        ...


class Registry:
    """Compares the workspaces that nodes report with their stored state."""

    def __init__(self, workspaces: HostedWorkspaces, nodes: RegisteredNodes) -> None:
        self._workspaces = workspaces
        self._nodes = nodes

    async def register(
        self, node: Node, hosted: Sequence[Hosted], request_id: str
    ) -> tuple[Node, tuple[Order, ...]]:
        """Register a node with all its workspaces, and return orders about these."""
        registered = await self._nodes.register(node, request_id)
        return registered, await self._compare(node.id, hosted, is_all=True)

    async def heartbeat(
        self, node_id: str, registration_epoch: int, load: Load, hosted: Sequence[Hosted]
    ) -> tuple[Node, tuple[Order, ...]]:
        """Record a heartbeat and the changed workspaces of a node, and return orders about these.

        Raises:
            StaleNode: it must register again, because it was marked as lost meanwhile.
            NodeNotFound: it never registered.
        """
        node = await self._nodes.heartbeat(node_id, registration_epoch, load)
        return node, await self._compare(node.id, hosted, is_all=False)

    async def drain(
        self, node_id: str, registration_epoch: int, grace: timedelta, *, is_leaving: bool
    ) -> Node:
        """Drain a node.

        Raises:
            StaleNode: it has registered again since.
            NodeNotFound: it never registered.
        """
        return await self._nodes.drain(node_id, registration_epoch, grace, is_leaving=is_leaving)

    async def _compare(
        self, node_id: NodeId, hosted: Sequence[Hosted], *, is_all: bool
    ) -> tuple[Order, ...]:
        if not hosted and not is_all:
            return ()
        reported = {each.workspace_id: each for each in hosted}
        known = await self._workspaces.hosted(node_id, reported, is_all=is_all)
        orders: list[Order] = []
        commands: list[tuple[Seen, Command]] = [
            (seen, MarkNodeLost(node_id)) for each, seen in known.items() if each not in reported
        ]
        for each in reported.values():
            seen = known.get(each.workspace_id)
            instruction = _instruction(seen, node_id, each)
            if instruction is not None:
                orders.append(Order(each.workspace_id, each.epoch, instruction))
            elif seen is not None:
                commands += [
                    (seen, command) for command in _commands_of_report(seen, node_id, each)
                ]
        await self._workspaces.apply_all(commands)
        return tuple(orders)


def _instruction(seen: Seen | None, node_id: NodeId, hosted: Hosted) -> Instruction | None:
    """Return the order about a reported workspace, None for no action."""
    is_running = hosted.state in RUNNING
    if hosted.state is State.DELETED:
        return None
    if seen is None:
        # The workspace is unknown: stop its processes, but keep files without a row in chatd.
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


def _commands_of_report(seen: Seen, node_id: NodeId, hosted: Hosted) -> tuple[Command, ...]:
    """Return the command that follows from a node's report of a workspace, at most one."""
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
    """Return whether a workspace that was marked as failed exists again."""
    if seen.workspace.state is not State.FAILED:
        return False
    again = Recover(node_id, hosted.epoch, hosted.state)
    return decide(seen.workspace, again, seen.at) is not seen.workspace
