"""The process index: which running processes belong to a process or to a workspace.

Theory: a process is identified by the pid of its leader, which is also the id of its process group
and session, by the mark in its environment, by its control group, and by descent. Pids are reused.
Until a leader is reaped its pid identifies it alone. Afterwards the pid may have been reused: if a
process has that pid, it was reused; if none has it, members of that group or session belong to the
process, except those with the mark of another one.

These checks scan every process of the machine. Where processes cannot leave, less is enough: a
process in a namespace set is a descendant of a leader or of the set's first process, and a process
with a workspace's own user is a descendant of a process with that user, or of this program.
"""

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

from toolrunner.sandbox import NamespaceSets
from toolrunner.spawner.control_groups import ControlGroups
from toolrunner.spawner.kernel import (
    Seen,
    children_of,
    descendants,
    is_working_in,
    look,
    mark_of,
    mark_of_workspace,
    mark_on,
    owner_of,
    running_below,
    running_processes,
)

#: So many forgotten processes are kept before a scan removes those without descendants.
FORGOTTEN_MAX = 64


@dataclass(frozen=True)
class ProcessEntry:
    """An index entry of a process: its workspace and its leader."""

    workspace: str
    leader: int
    is_reaped: bool = False

    def is_of(self, workspace: str) -> bool:
        """Return whether its leader is not reaped and belongs to a workspace."""
        return self.workspace == workspace and not self.is_reaped and self.leader > 0


NO_PROCESS = ProcessEntry("", 0)


@dataclass
class ProcessIndex:
    """Finds processes by group, session, mark and descent."""

    groups: ControlGroups
    known: dict[str, ProcessEntry] = field(default_factory=dict)
    known_max: int = FORGOTTEN_MAX
    namespace_sets: NamespaceSets = field(default_factory=NamespaceSets)
    #: The workspace of each user id other than ours; empty if several workspaces share it.
    users: dict[int, str] = field(default_factory=dict)
    #: User ids of children that were not reaped, by pid.
    owners: dict[int, int] = field(default_factory=dict)
    #: Workspaces with processes in namespace sets, and those with processes that may escape
    #: tracking.
    in_namespaces: set[str] = field(default_factory=set)
    loose: set[str] = field(default_factory=set)

    def enter(self, process_id: str, workspace: str, pid: int) -> None:
        """Add a process with its leader, which has not been reaped."""
        self.known[process_id] = ProcessEntry(workspace, pid)

    def hold(self, workspace: str, user: int = -1, *, has_cell: bool = False) -> None:
        """Record what contains a process of a workspace: a namespace set, a user id, or nothing."""
        if has_cell:
            self.in_namespaces.add(workspace)
        elif user < 0:
            self.loose.add(workspace)
        elif (owner := self.users.setdefault(user, workspace)) != workspace:
            self.users[user] = ""
            self.loose |= {workspace, owner} - {""}

    def reaped(self, process_id: str) -> None:
        """Record that the pid of a process may be reused."""
        known = self.known.get(process_id)
        if known is not None:
            self.known[process_id] = ProcessEntry(known.workspace, known.leader, is_reaped=True)

    def leader(self, process_id: str) -> int:
        """Return the pid of a process's leader, or 0 if it is not in the index."""
        return self.known.get(process_id, NO_PROCESS).leader

    def workspace(self, process_id: str) -> str:
        """Return the workspace of a process, empty if it is not in the index."""
        return self.known.get(process_id, NO_PROCESS).workspace

    def keep_only(self, process_ids: Collection[str]) -> None:
        """Remove all other processes from the index: they left no descendants."""
        for process_id in [each for each in self.known if each not in process_ids]:
            self.groups.remove(self.known.pop(process_id).workspace, process_id)
        present = {known.workspace for known in self.known.values()} | {""}
        present |= {key.workspace for key in self.namespace_sets.sets} | {
            *self.namespace_sets.dying.values()
        }
        self.in_namespaces &= present
        self.loose &= present
        for user in [user for user, owner in self.users.items() if owner not in present]:
            del self.users[user]

    def prune(self, process_ids: Collection[str]) -> None:
        """Remove other processes that left no descendants, when there are many."""
        if len(self.known) - len(process_ids) <= self.known_max:
            return
        seen = self.everything()
        numbers = {number for each in seen for number in (each.pid, each.group, each.session)}
        marks = {mark_of(each.pid) for each in seen}
        self.keep_only(
            {
                process_id
                for process_id, known in self.known.items()
                if process_id in process_ids
                or process_id in marks
                or known.leader in numbers
                or self.groups.pids(known.workspace, process_id)
            }
        )
        # A scan takes time proportional to the processes, so the threshold for the next one rises.
        self.known_max = max(FORGOTTEN_MAX, 2 * (len(self.known) - len(process_ids)))

    def everything(self) -> list[Seen]:
        """Return all running descendants, except the first processes of namespace sets."""
        firsts = self.namespace_sets.firsts
        seen = descendants(os.getpid(), running_processes())
        return [each for each in seen if each.pid not in firsts]

    def is_deserted(self, workspace: str, leaders: Mapping[int, str]) -> bool:
        """Return whether the namespace sets of a workspace have no processes left.

        A process that outlives its leader there becomes a child of the set's first process.
        """
        if any(self.workspace(process_id) == workspace for process_id in leaders.values()):
            return False
        return not any(
            children_of(namespace_set.first) for namespace_set in self.namespace_sets.of(workspace)
        )

    def members(self, process_id: str) -> list[Seen]:
        """Return the members of a process: by group, session or mark, and their descendants."""
        known = self.known.get(process_id, NO_PROCESS)
        held = self.groups.pids(known.workspace, process_id) if known.workspace else set()
        return self.found({process_id: known}, lambda each: each.pid in held)

    def inhabitants(self, workspace: str, directory: str) -> list[Seen]:
        """Return the processes of a workspace: by process, group, mark, or open files in it."""
        confined = self.confined(workspace)
        if confined is not None:
            return confined
        held = self.groups.pids(workspace)
        own = {id: known for id, known in self.known.items() if known.workspace == workspace}
        mark = mark_of_workspace(workspace)
        return self.found(
            own,
            lambda each: (
                each.pid in held or mark_on(each.pid) == mark or is_working_in(each.pid, directory)
            ),
        )

    def confined(self, workspace: str) -> list[Seen] | None:
        """Return the processes of a workspace that cannot be left; None if one may have left it."""
        users = {user for user, owner in self.users.items() if owner == workspace}
        if workspace in self.loose or not (users or workspace in self.in_namespaces):
            return None
        ours = children_of(os.getpid()) if users else set()
        if ours is None:
            return None
        roots = {known.leader for known in self.known.values() if known.is_of(workspace)}
        roots |= {pid for pid in ours if self._owner(pid) in users}
        firsts = {namespace_set.first for namespace_set in self.namespace_sets.of(workspace)}
        below = {each.pid: each for pid in roots | firsts for each in running_below(pid)}
        own = (look(pid) for pid in (roots | self.namespace_sets.dying_of(workspace)) - firsts)
        below |= {each.pid: each for each in own if each is not None}
        return list(below.values())

    def _owner(self, pid: int) -> int:
        """Return the user id of a child, which no longer changes once it is not ours."""
        owner = self.owners.get(pid, -1)
        if owner < 0:
            owner = owner_of(pid)
            if owner != os.geteuid():
                self.owners[pid] = owner
        return owner

    def found(self, own: dict[str, ProcessEntry], is_meant: Callable[[Seen], bool]) -> list[Seen]:
        """Return our descendants that are of `own` or match `is_meant`, with their descendants."""
        seen = running_processes()
        belongs = ProcessOwnership(own, self.known.keys(), seen)
        firsts = self.namespace_sets.firsts
        roots = [
            each
            for each in descendants(os.getpid(), seen)
            if each.pid not in firsts
            and (belongs.by_number(each) or belongs.by_mark(each) or is_meant(each))
        ]
        found = {each.pid: each for root in roots for each in descendants(root.pid, seen)}
        return list({**found, **{root.pid: root for root in roots}}.values())


class ProcessOwnership:
    """Decides whether a process belongs to some indexed processes."""

    def __init__(
        self,
        own: dict[str, ProcessEntry],
        all_ids: Collection[str],
        seen: Iterable[Seen],
        mark_of: Callable[[int], str | None] = mark_of,
    ) -> None:
        self._mark_of = mark_of
        pids = {each.pid for each in seen}
        self._own = own
        self._all_ids = all_ids
        self._living: set[int] = set()
        self._departed: set[int] = set()
        for known in own.values():
            if known.leader and not known.is_reaped:
                self._living.add(known.leader)
            elif known.leader and known.leader not in pids:
                self._departed.add(known.leader)

    def by_mark(self, each: Seen) -> bool:
        """Return whether it has the mark of one."""
        return self._mark_of(each.pid) in self._own

    def by_number(self, each: Seen) -> bool:
        """Return whether it is a leader, or its group or session id is the pid of one."""
        numbers = {each.pid, each.group, each.session}
        if not self._living.isdisjoint(numbers):
            return True
        if self._departed.isdisjoint(numbers):
            return False
        mark = self._mark_of(each.pid)
        return mark in self._own or mark not in self._all_ids
