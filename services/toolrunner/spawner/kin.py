"""Who belongs to whom: which running processes are those of a process or of a workspace."""

import os
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from toolrunner.spawner.control_groups import ControlGroups
from toolrunner.spawner.kernel import (
    Seen,
    descendants,
    is_marked,
    is_working_in,
    running_processes,
)


@dataclass
class Kin:
    """Finds processes by group, session, mark and descent."""

    groups: ControlGroups
    pids: dict[str, tuple[str, int]] = field(default_factory=dict)  # Workspace and leader.

    def enter(self, process_id: str, workspace: str, pid: int) -> None:
        """Know a process by its leader; a pid that comes again is no longer what it was."""
        self.pids = {id: known for id, known in self.pids.items() if known[1] != pid}
        self.pids[process_id] = (workspace, pid)

    def leader(self, process_id: str) -> int:
        """Return the pid of a process's leader, or 0 if nothing is known of it."""
        return self.pids.get(process_id, ("", 0))[1]

    def workspace(self, process_id: str) -> str:
        """Return the workspace of a process, empty if nothing is known of it."""
        return self.pids.get(process_id, ("", 0))[0]

    def keep_only(self, process_ids: Collection[str]) -> None:
        """Know no others any more."""
        self.pids = {id: known for id, known in self.pids.items() if id in process_ids}

    def everything(self) -> list[Seen]:
        """Return all that was ever started here and still runs."""
        return descendants(os.getpid(), running_processes())

    def members(self, process_id: str) -> list[Seen]:
        """Return those of a process: by group, session or mark, and what these started."""
        workspace, leader = self.pids.get(process_id, ("", 0))
        held = self.groups.pids(workspace, process_id) if workspace else set()
        return self.found(
            lambda each: (
                each.pid in held
                or leader in (each.pid, each.group, each.session)
                or is_marked(each.pid, process_id)
            )
        )

    def inhabitants(self, workspace: str, directory: str) -> list[Seen]:
        """Return those of a workspace: of its processes, of its group, or at work in its files."""
        held = self.groups.pids(workspace)
        own = {id: leader for id, (of, leader) in self.pids.items() if of == workspace}
        leaders = set(own.values())
        return self.found(
            lambda each: (
                each.pid in held
                or not leaders.isdisjoint((each.pid, each.group, each.session))
                or any(is_marked(each.pid, id) for id in own)
                or is_working_in(each.pid, directory)
            )
        )

    def found(self, is_meant: Callable[[Seen], bool]) -> list[Seen]:
        """Return those of ours that are meant, and what these started."""
        seen = running_processes()
        roots = [each for each in descendants(os.getpid(), seen) if is_meant(each)]
        found = {each.pid: each for root in roots for each in descendants(root.pid, seen)}
        return list({**found, **{root.pid: root for root in roots}}.values())
