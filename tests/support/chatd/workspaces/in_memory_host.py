"""A fake node that hosts workspaces."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from datetime import UTC, datetime

from chatd.workspaces.domain.nodes import Node
from chatd.workspaces.domain.ports import (
    HostAway,
    HostRefused,
    LogLine,
    NotPrepared,
    Prepared,
    Progress,
)
from chatd.workspaces.domain.workspace import Failure, FailureKind, Workspace


class InMemoryHost:
    """Hosts workspaces in a dictionary; the fake behind `Host`.

    It has the state of a node: one outcome for each request id, the highest epoch of each
    workspace, and files that are kept after a stop. Tests make it slow, unresponsive or failing.

    Attributes:
        epochs: The highest placement of each workspace.
        running: Workspaces that are prepared.
        files: Workspaces that have files.
        made: How often each placement was really prepared.
        away: How many of the next requests get no response, by method.
        lost: How many of the next requests are executed but get no response, by method.
        failures: The failures of preparations, by workspace.
        refusals: The refusal of the next request of a method.
        parent_epochs: The placement of its parent that each fork was created from.
        policies: The policy versions that were applied to each workspace.
        gate: Preparations wait for it.
    """

    def __init__(self) -> None:
        self.epochs: dict[str, int] = {}
        self.running: set[str] = set()
        self.files: set[str] = set()
        self.made: Counter[tuple[str, int]] = Counter()
        self.away: Counter[str] = Counter()
        self.lost: Counter[str] = Counter()
        self.failures: dict[str, Failure] = {}
        self.refusals: dict[str, HostRefused] = {}
        self.parent_epochs: dict[str, int] = {}
        self.policies: defaultdict[str, list[int]] = defaultdict(list)
        self.gate = asyncio.Event()
        self.gate.set()
        self.asked = asyncio.Event()

    async def prepare(
        self, node: Node, workspace: Workspace, after_line: int = 0
    ) -> AsyncIterator[Progress]:
        """Create a workspace once for each placement."""
        self._arrive("prepare", workspace)
        self._check_parent(workspace)
        self.asked.set()
        if after_line < 1:
            yield LogLine(1, datetime(2026, 1, 1, tzinfo=UTC), "copy", "making it")
        await self.gate.wait()
        if workspace.id in self.failures:
            yield NotPrepared(self.failures[workspace.id])
            return
        if workspace.has_files and workspace.id not in self.files:
            yield NotPrepared(Failure(FailureKind.SOURCE, "its files are gone"))
            return
        placement = (workspace.id, workspace.epoch)
        if not self.made[placement]:
            self.made[placement] += 1
            self.running.add(workspace.id)
            self.files.add(workspace.id)
        self._leave("prepare")
        yield Prepared("/workspace", workspace.spec.source.branch, "landlock")

    async def stop(self, node: Node, workspace: Workspace) -> None:
        """End its processes."""
        self._arrive("stop", workspace)
        self.running.discard(workspace.id)
        self._leave("stop")

    async def remove(self, node: Node, workspace: Workspace) -> None:
        """Remove everything but the epoch."""
        self._arrive("remove", workspace)
        self.running.discard(workspace.id)
        self.files.discard(workspace.id)
        self._leave("remove")

    async def update_policy(self, node: Node, workspace: Workspace) -> None:
        """Record the applied policy."""
        self._arrive("update_policy", workspace)
        self.policies[workspace.id].append(workspace.policy)
        self._leave("update_policy")

    def _arrive(self, method: str, workspace: Workspace) -> None:
        if self.away[method]:
            self.away[method] -= 1
            raise HostAway(f"{method} is away")
        if method in self.refusals:
            raise self.refusals.pop(method)
        highest = self.epochs.get(workspace.id, 0)
        if workspace.epoch < highest:
            raise HostRefused("STALE_PLACEMENT", f"epoch {highest} is newer")
        self.epochs[workspace.id] = workspace.epoch

    def _check_parent(self, workspace: Workspace) -> None:
        """Refuse a fork of another placement of its parent than the current one."""
        source = workspace.spec.source
        if workspace.id in self.files or source.parent_id not in self.epochs:
            return
        here = self.epochs[source.parent_id]
        if source.parent_epoch < here:
            raise HostRefused("STALE_PLACEMENT", f"epoch {here} of its parent is newer")
        self.parent_epochs[workspace.id] = source.parent_epoch

    def _leave(self, method: str) -> None:
        if self.lost[method]:
            self.lost[method] -= 1
            raise HostAway(f"the answer to {method} got lost")
