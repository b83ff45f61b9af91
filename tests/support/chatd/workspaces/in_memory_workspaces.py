"""Workspaces in a dictionary, by the clock of a test: the fake behind the ports of the engine."""

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from chatd.primitives.domain.errors import WorkspaceNotFound
from chatd.primitives.domain.ids import ChatId, OwnerId, WorkerId
from chatd.workspaces.domain.commands import Command, Start
from chatd.workspaces.domain.errors import NodeNotFound, WorkspaceNotReady
from chatd.workspaces.domain.lifetime import WARNING, is_due
from chatd.workspaces.domain.nodes import LOST_AFTER_HEARTBEATS, Load, Node, NodeState
from chatd.workspaces.domain.ports import ChatWorkspace, LogLine, Seen
from chatd.workspaces.domain.transitions import decide
from chatd.workspaces.domain.workspace import (
    DRIVEN,
    USABLE,
    State,
    Workspace,
    WorkspaceId,
)
from parley.clock import Clock


class Crash(BaseException):
    """The process dies here."""


@dataclass(slots=True)
class CrashPlan:
    """Says before or after which of the following writes a process dies; never by itself."""

    writes_left: int = -1
    is_before: bool = True

    def before(self) -> None:
        """Die before a write if it is the one."""
        if self.writes_left == 0 and self.is_before:
            raise Crash

    def after(self) -> None:
        """Die after a write if it is the one."""
        if self.writes_left == 0:
            raise Crash
        self.writes_left -= 1


@dataclass(slots=True)
class InMemoryWorkspaces:
    """What the store does, without a database."""

    clock: Clock
    rows: dict[str, Workspace] = field(default_factory=dict)
    claims: dict[str, tuple[WorkerId | None, datetime]] = field(default_factory=dict)
    logs: dict[tuple[str, int], dict[int, LogLine]] = field(default_factory=dict)
    working: dict[WorkerId, list[str]] = field(default_factory=dict)
    chats: dict[str, ChatWorkspace] = field(default_factory=dict)
    states: list[State] = field(default_factory=list)
    lost: set[str] = field(default_factory=set)
    suspended: dict[OwnerId, bool] = field(default_factory=dict)
    reads: int = 0
    lookups: int = 0
    crash: CrashPlan = field(default_factory=CrashPlan)

    async def add_scratch(
        self, workspace: Workspace, driver_id: WorkerId, lease_s: float
    ) -> Workspace:
        if workspace.id not in self.rows:
            self.crash.before()
            self.rows[workspace.id] = workspace
            self.claims[workspace.id] = (driver_id, self._in(lease_s))
            self.crash.after()
        return self.rows[workspace.id]

    async def get(self, workspace_id: str) -> Workspace:
        if workspace_id not in self.rows:
            raise WorkspaceNotFound(workspace_id)
        return self.rows[workspace_id]

    async def apply(self, workspace_id: str, command: Command) -> tuple[Workspace, Workspace]:
        before = await self.get(workspace_id)
        after = decide(before, command, self.clock.now())
        if after is not before:
            self.crash.before()
            self.rows[workspace_id] = after
            self.states.append(after.state)
            self.crash.after()
        return before, after

    async def own(self, workspace_id: str, owner_id: OwnerId) -> Workspace:
        found = await self.get(workspace_id)
        if found.owner_id != owner_id:
            raise WorkspaceNotFound(workspace_id)
        return found

    async def restart_scratch(self, workspace_id: str) -> Workspace:
        return (await self.apply(workspace_id, Start()))[1]

    async def apply_all(self, commands: Iterable[tuple[Seen, Command]]) -> None:
        for seen, command in commands:
            with suppress(WorkspaceNotReady):
                await self.apply(seen.workspace.id, command)

    async def claim(
        self, driver_id: WorkerId, lease_s: float, rows_max: int
    ) -> tuple[Workspace, ...]:
        waiting = [row for row in self.rows.values() if row.state in DRIVEN and self._free(row.id)]
        for row in waiting[:rows_max]:
            self.claims[row.id] = (driver_id, self._in(lease_s))
        return tuple(waiting[:rows_max])

    async def claim_one(
        self, driver_id: WorkerId, workspace_id: str, lease_s: float
    ) -> Workspace | None:
        row = self.rows.get(workspace_id)
        holder = self.claims.get(workspace_id, (None, None))[0]
        if row is None or row.state not in DRIVEN:
            return None
        if holder != driver_id and not self._free(workspace_id):
            return None
        self.claims[workspace_id] = (driver_id, self._in(lease_s))
        return row

    async def renew(
        self, driver_id: WorkerId, workspace_id: str, lease_s: float
    ) -> Workspace | None:
        if self.claims[workspace_id][0] != driver_id:
            return None
        self.claims[workspace_id] = (driver_id, self._in(lease_s))
        return self.rows[workspace_id]

    async def release(self, driver_id: WorkerId, workspace_id: str, rest_s: float) -> None:
        if self.claims.get(workspace_id, (None, None))[0] == driver_id:
            self.claims[workspace_id] = (None, self._in(rest_s))

    async def log(self, workspace_id: str, epoch: int, lines: Sequence[LogLine]) -> None:
        known = self.logs.setdefault((workspace_id, epoch), {})
        for line in lines:
            known.setdefault(line.sequence, line)

    async def lines(
        self, workspace_id: str, epoch: int, after: int, lines_max: int = 500
    ) -> tuple[LogLine, ...]:
        known = self.logs.get((workspace_id, epoch), {})
        later = [line for number, line in sorted(known.items()) if number > after]
        return tuple(later[:lines_max])

    async def due(self, rows_max: int) -> tuple[Seen, ...]:
        now = self.clock.now()
        return self._seen(
            lambda row: (
                (
                    row.state in USABLE
                    and (
                        is_due(row.deadline_at, now)
                        or is_warning_due(row.deadline_at, row.warned_for, now)
                    )
                )
                or (row.state is State.STOPPED and is_due(row.delete_at, now))
            )
        )

    async def just_orphaned(self, rows_max: int) -> tuple[Seen, ...]:
        return ()

    async def orphaned(self, rows_max: int) -> tuple[Seen, ...]:
        return ()

    async def of_suspended(self, rows_max: int) -> tuple[tuple[Seen, bool], ...]:
        found = self._seen(
            lambda row: row.owner_id in self.suspended and row.state is not State.DELETED
        )
        return tuple((seen, self.suspended[seen.workspace.owner_id]) for seen in found)

    async def on_node(self, node_id: str) -> tuple[Seen, ...]:
        return self._seen(lambda row: row.node_id == node_id and row.state is not State.DELETED)

    async def idle_scratch(self, idle: timedelta) -> tuple[Seen, ...]:
        return ()

    async def unpublished(self, rows_max: int) -> tuple[Seen, ...]:
        return self._seen(lambda row: row.state in USABLE and row.policy > row.policy_told)

    async def on_lost_nodes(self, rows_max: int) -> tuple[Seen, ...]:
        return self._seen(lambda row: row.node_id in self.lost and row.state in (*USABLE, *DRIVEN))

    async def hosted(
        self, node_id: str, workspace_ids: Collection[str], *, is_all: bool
    ) -> dict[str, Seen]:
        self.reads += 1
        found = self._seen(
            lambda row: (
                row.id in workspace_ids
                or (is_all and row.node_id == node_id and row.state in USABLE)
            )
        )
        return {seen.workspace.id: seen for seen in found}

    async def used_by_worker(self, worker_id: WorkerId) -> tuple[Seen, ...]:
        ids = self.working.get(worker_id, [])
        return self._seen(lambda row: row.id in ids and row.state in USABLE)

    async def of_chat(self, chat_id: ChatId) -> ChatWorkspace | None:
        self.lookups += 1
        known = self.chats.get(chat_id)
        if known is not None:
            return replace(known, workspace=known.workspace and self.rows[known.workspace.id])
        return ChatWorkspace(
            workspace=self.rows.get(chat_id),
            scratch_id=WorkspaceId(chat_id),
            owner_id=OwnerId("00000000-0000-0000-0000-00000000000a"),
            is_child=False,
            is_bound=False,
            node_address="",
            is_node_lost=False,
            now=self.clock.now(),
        )

    def _seen(self, is_wanted: Callable[[Workspace], bool]) -> tuple[Seen, ...]:
        return tuple(Seen(row, self.clock.now()) for row in self.rows.values() if is_wanted(row))

    def _free(self, workspace_id: str) -> bool:
        claim = self.claims.get(workspace_id)
        return claim is None or claim[1] <= self.clock.now()

    def _in(self, span_s: float) -> datetime:
        return self.clock.now() + timedelta(seconds=span_s)


@dataclass(slots=True)
class InMemoryNodes:
    """Nodes in a dictionary; those that fall silent are told to the workspaces.

    Attributes:
        unlisted: Nodes that are found by their id only.
    """

    clock: Clock
    rows: dict[str, Node] = field(default_factory=dict)
    lost: set[str] = field(default_factory=set)
    unlisted: dict[str, Node] = field(default_factory=dict)

    async def list(self) -> Sequence[Node]:
        return tuple(node for node in self.rows.values() if node.state is not NodeState.GONE)

    async def get(self, node_id: str) -> Node:
        if node_id not in self.rows:
            raise NodeNotFound(node_id)
        return self.rows[node_id]

    async def find(self, node_id: str) -> Node | None:
        return self.rows.get(node_id) or self.unlisted.get(node_id)

    async def lose(self) -> Sequence[Node]:
        silent = [
            node
            for node in self.rows.values()
            if node.state in (NodeState.ACTIVE, NodeState.DRAINING)
            and node.last_seen_at is not None
            and self.clock.now() - node.last_seen_at > LOST_AFTER_HEARTBEATS
        ]
        for node in silent:
            self.rows[node.id] = replace(node, state=NodeState.LOST)
            self.lost.add(node.id)
        return silent

    async def drained(self) -> Sequence[Node]:
        return [
            node
            for node in self.rows.values()
            if node.state is NodeState.DRAINING
            and node.drain_at is not None
            and node.drain_at <= self.clock.now()
        ]

    async def leave(self, node_id: str) -> None:
        self.rows[node_id] = replace(self.rows[node_id], state=NodeState.GONE)

    async def register(self, node: Node, request_id: str) -> Node:
        before = self.rows.get(node.id)
        epoch = 1 if before is None else before.registration_epoch + 1
        seen = replace(node, registration_epoch=epoch, last_seen_at=self.clock.now())
        self.rows[node.id] = seen
        self.lost.discard(node.id)
        return seen

    async def heartbeat(self, node_id: str, registration_epoch: int, load: Load) -> Node:
        node = replace(self.rows[node_id], load=load, last_seen_at=self.clock.now())
        self.rows[node_id] = node
        return node

    async def drain(
        self, node_id: str, registration_epoch: int, grace: timedelta, *, is_leaving: bool
    ) -> Node:
        node = replace(
            self.rows[node_id],
            state=NodeState.DRAINING,
            drain_at=self.clock.now() + grace,
            is_leaving=is_leaving,
        )
        self.rows[node_id] = node
        return node


def is_warning_due(deadline: datetime | None, warned_for: datetime | None, now: datetime) -> bool:
    """Return whether users must be warned now of the autostop; once per deadline."""
    return deadline is not None and warned_for != deadline and deadline - now <= WARNING
