"""Control groups v2, where this process may create them; forking does not leave a group.

One group for each process, below one for each workspace. Descendants of a process start in its
group, so that even those that fork twice, leave the session and clear the environment are found,
and one write kills all of them. Where no group can be created, the methods here find nothing and
return that.
"""

import os
import select
from contextlib import suppress

from toolrunner.sandbox import own_group
from toolrunner.spawner.limits import (
    CONTROLLERS,
    PIDS_SPARE,
    limit_group,
    pass_controllers_on,
    put,
    was_short_of_memory,
)

PROCS, KILL = "cgroup.procs", "cgroup.kill"
END_ROUND_S = 0.01
END_ROUNDS_MAX = 100
#: At this number of workspace groups, those without processes are removed.
WORKSPACES_MAX = 256


class ControlGroups:
    """The groups below one directory; an empty path means no groups."""

    def __init__(self, base: str) -> None:
        self.base = base
        self._workspaces: set[str] = set()
        self._bounds: dict[str, dict[str, int]] = {}

    @classmethod
    def made(cls, name: str) -> "ControlGroups":
        """Create a group below that of this process, if the kernel and the permissions allow it.

        An existing group of that name belongs to a spawner that was killed; its processes are
        killed.
        """
        with suppress(OSError):
            groups = cls(os.path.join(own_group(), name))
            os.makedirs(groups.base, exist_ok=True)
            for group in (os.path.dirname(groups.base), groups.base):
                pass_controllers_on(group)
            if os.path.exists(os.path.join(groups.base, KILL)):
                groups.kill()
                groups.remove_below()
                return groups
            os.rmdir(groups.base)
        return cls("")

    @classmethod
    def end(cls, name: str) -> None:
        """Kill the processes that a killed spawner left in its group."""
        with suppress(OSError):
            groups = cls(os.path.join(own_group(), name))
            for _ in range(END_ROUNDS_MAX):
                groups.kill()
                groups.remove()
                if not os.path.exists(groups.base):
                    return
                # Killed processes stay in the group until the kernel has released them.
                select.select([], [], [], END_ROUND_S)

    def lacking(self) -> frozenset[str]:
        """Return the controllers that workspace groups do not have."""
        if not self.base:
            return frozenset(CONTROLLERS)
        with suppress(OSError), open(os.path.join(self.base, "cgroup.controllers")) as file:
            return frozenset(CONTROLLERS) - {*file.read().split()}
        return frozenset(CONTROLLERS)

    def make(self, workspace: str, process_id: str) -> str:
        """Return the directory of a new group for a process, empty if there is none."""
        if not self.base:
            return ""
        directory = os.path.join(self.base, workspace, process_id)
        with suppress(OSError):
            if workspace not in self._workspaces:
                self._make_workspace(workspace)
            with suppress(FileExistsError):
                os.mkdir(directory)
            return directory
        return ""

    def bound(self, workspace: str, quota: dict[str, int]) -> None:
        """Apply the quota of a workspace to its group, as far as the group supports it."""
        if self.base and self._bounds.get(workspace) != quota:
            pids = quota["pids"] + PIDS_SPARE if quota["pids"] else 0
            group = os.path.join(self.base, workspace)
            limit_group(group, {**quota, "pids": pids}, dies_together=False)
            self._bounds[workspace] = quota

    def give_way(self, workspace: str, *, yields: bool) -> None:
        """Let the processes of a workspace give way to those of all other workspaces."""
        if workspace in self._workspaces:
            put(os.path.join(self.base, workspace), "cpu.idle", int(yields))

    def none_gives_way(self) -> None:
        """Let no workspace give way any more."""
        for workspace in self._workspaces:
            self.give_way(workspace, yields=False)

    def _make_workspace(self, workspace: str) -> None:
        """Create the group of a workspace; when there are many, empty ones are removed first."""
        if len(self._workspaces) >= WORKSPACES_MAX:
            for each in list(self._workspaces):
                self.remove(each)
        directory = os.path.join(self.base, workspace)
        os.makedirs(directory, exist_ok=True)
        pass_controllers_on(directory)
        self._workspaces.add(workspace)

    def was_short_of_memory(self, workspace: str, process_id: str) -> bool:
        """Return whether the OOM killer killed a process of the group."""
        return bool(self.base) and was_short_of_memory(
            os.path.join(self.base, workspace, process_id)
        )

    def pids(self, *names: str) -> set[int]:
        """Return all processes in a group and its subgroups."""
        if not self.base:
            return set()
        found: set[int] = set()
        for directory, _, _ in os.walk(os.path.join(self.base, *names)):
            with suppress(OSError), open(os.path.join(directory, PROCS)) as procs:
                found |= {int(line) for line in procs.read().split()}
        return found

    def kill(self, *names: str) -> None:
        """Kill a group and its subgroups."""
        if self.base:
            with suppress(OSError), open(os.path.join(self.base, *names, KILL), "w") as file:
                file.write("1")

    def remove(self, *names: str) -> None:
        """Remove a group and its subgroups, except those that still have processes."""
        if self.base:
            try:
                # Most have no subgroups.
                os.rmdir(os.path.join(self.base, *names))
            except FileNotFoundError:
                pass
            except OSError:
                self._remove_all(*names)
            if len(names) == 1 and not os.path.exists(os.path.join(self.base, *names)):
                self._workspaces.discard(names[0])
                self._bounds.pop(names[0], None)

    def _remove_all(self, *names: str) -> None:
        for directory, _, _ in os.walk(os.path.join(self.base, *names), topdown=False):
            with suppress(OSError):
                os.rmdir(directory)

    def remove_below(self) -> None:
        """Remove all workspace groups, except those that still have processes."""
        with suppress(OSError):
            for name in os.listdir(self.base):
                self.remove(name)


def join(directory: str) -> None:
    """Move this process to a group."""
    fd = os.open(os.path.join(directory, PROCS), os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, b"0")
    finally:
        os.close(fd)
