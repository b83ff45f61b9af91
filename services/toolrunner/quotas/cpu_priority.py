"""Lower the priority of workspaces that use the CPU continuously.

Their processes get the highest nice value, and their control group becomes idle where there is one:
among groups, nice values of single processes do not count.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Protocol

from parley.clock import Clock
from toolrunner.primitives.domain import WorkspaceId
from toolrunner.primitives.threads import OwnThreads
from toolrunner.processes.scan import Member, Members, set_nice
from toolrunner.sandbox import NICE

#: Cores in use from which a workspace gets a lower priority, and below which it is restored.
BUSY_CORES: Final = 0.5
CALM_CORES: Final = 0.1
CALM_S: Final = 3.0
CROWD: Final = 64
NICEST: Final = 19


@dataclass
class CpuUse:
    """The CPU use of a workspace.

    Attributes:
        used_s: The CPU time of each of its processes at the last measurement, by pid.
        at_s: The time of that measurement.
        busy_s: When it was last busy.
        is_idle: Whether its priority is lowered.
    """

    used_s: dict[int, float] = field(default_factory=dict)
    at_s: float = 0.0
    busy_s: float = 0.0
    is_idle: bool = False

    def take(self, members: Iterable[Member], now_s: float) -> float:
        """Record a measurement; return the average cores since the last one."""
        before, elapsed_s = self.used_s, now_s - self.at_s
        self.used_s, self.at_s = {each.seen.pid: each.cpu_s for each in members}, now_s
        if not before or elapsed_s <= 0:
            return 0.0
        grown_s = sum(max(0.0, used - before.get(pid, 0.0)) for pid, used in self.used_s.items())
        return grown_s / elapsed_s


class GroupPriorities(Protocol):
    """Adjusts the priority of the control group of a workspace, where there is one."""

    async def give_way(self, workspace_id: WorkspaceId, *, yields: bool) -> None:
        """Let the processes of a workspace run only when no other needs the CPU, or as usual."""
        ...


@dataclass
class CpuPriorities:
    """Adjusts the priorities of workspaces."""

    clock: Clock
    groups: GroupPriorities
    cpu_uses: dict[WorkspaceId, CpuUse] = field(default_factory=dict)
    thread: OwnThreads = field(default_factory=partial(OwnThreads, "priorities"))

    async def look(self, members: Members) -> None:
        """Lower the priority of workspaces that use the CPU continuously."""
        now_s = self.clock.monotonic()
        for workspace_id in [each for each in self.cpu_uses if each not in members]:
            if self.cpu_uses.pop(workspace_id).is_idle:
                # What it starts next has the usual priority.
                await self.groups.give_way(workspace_id, yields=False)
        for workspace_id, own in members.items():
            pace = self.cpu_uses.setdefault(workspace_id, CpuUse())
            cores = pace.take(own, now_s)
            was_idle = pace.is_idle
            if len(own) > CROWD:
                # So many would wait for one another while holding locks that other processes need.
                pace.is_idle = False
            elif cores >= BUSY_CORES:
                pace.busy_s, pace.is_idle = now_s, True
            elif cores < CALM_CORES and now_s - pace.busy_s >= CALM_S:
                pace.is_idle = False
            if pace.is_idle or was_idle:
                nice = NICEST if pace.is_idle else min(NICEST, os.nice(0) + NICE)
                await self.thread.run(_give_way, own, nice)
                # Again at each look: what was just being started may have missed it.
                await self.groups.give_way(workspace_id, yields=pace.is_idle)


def _give_way(members: Iterable[Member], nice: int) -> None:
    for each in members:
        set_nice(each, nice)
