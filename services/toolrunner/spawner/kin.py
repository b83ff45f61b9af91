"""Who belongs to whom: which running processes are those of a process or of a workspace.

Theory: a process is known by the pid of its leader, which names its group and its session too, by
the mark in its variables, by its control group, and by descent. Pids come again. Until a leader is
reaped its number means it and nobody else. Afterwards the number may have been given anew: if there
is someone with that pid it has, and if there is nobody, whoever bears the mark of another is that
other's.
"""

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

from toolrunner.sandbox import Cells
from toolrunner.spawner.control_groups import ControlGroups
from toolrunner.spawner.kernel import (
    Seen,
    children_of,
    descendants,
    is_working_in,
    mark_of,
    owner_of,
    running_below,
    running_processes,
)

#: So many that are forgotten may be known before it is looked who of them is still there.
FORGOTTEN_MAX = 64


@dataclass(frozen=True)
class Known:
    """A process as it is found again: its workspace and its leader."""

    workspace: str
    leader: int
    is_reaped: bool = False


NOBODY = Known("", 0)


@dataclass
class Kin:
    """Finds processes by group, session, mark and descent."""

    groups: ControlGroups
    known: dict[str, Known] = field(default_factory=dict)
    known_max: int = FORGOTTEN_MAX
    cells: Cells = field(default_factory=Cells)

    def enter(self, process_id: str, workspace: str, pid: int) -> None:
        """Know a process by its leader, which has not been reaped."""
        self.known[process_id] = Known(workspace, pid)

    def reaped(self, process_id: str) -> None:
        """Know that the number of a process may be given anew."""
        known = self.known.get(process_id)
        if known is not None:
            self.known[process_id] = Known(known.workspace, known.leader, is_reaped=True)

    def leader(self, process_id: str) -> int:
        """Return the pid of a process's leader, or 0 if nothing is known of it."""
        return self.known.get(process_id, NOBODY).leader

    def workspace(self, process_id: str) -> str:
        """Return the workspace of a process, empty if nothing is known of it."""
        return self.known.get(process_id, NOBODY).workspace

    def keep_only(self, process_ids: Collection[str]) -> None:
        """Know no others any more: nobody was left behind by them."""
        for process_id in [each for each in self.known if each not in process_ids]:
            self.groups.remove(self.known.pop(process_id).workspace, process_id)

    def prune(self, process_ids: Collection[str]) -> None:
        """Know of the others only those who left somebody behind, when there are many."""
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
        # Looking takes as long as there are processes, so it is done the more rarely.
        self.known_max = max(FORGOTTEN_MAX, 2 * (len(self.known) - len(process_ids)))

    def everything(self) -> list[Seen]:
        """Return all that was ever started here and still runs, save those who hold a cell."""
        firsts = self.cells.firsts
        seen = descendants(os.getpid(), running_processes())
        return [each for each in seen if each.pid not in firsts]

    def is_deserted(self, workspace: str, leaders: Mapping[int, str]) -> bool:
        """Tell whether nobody is left in the cells of a workspace.

        Whoever outlives a leader there becomes a child of the cell's first process.
        """
        if any(self.workspace(process_id) == workspace for process_id in leaders.values()):
            return False
        return not any(children_of(cell.first) for cell in self.cells.of(workspace))

    def members(self, process_id: str) -> list[Seen]:
        """Return those of a process: by group, session or mark, and what these started."""
        known = self.known.get(process_id, NOBODY)
        held = self.groups.pids(known.workspace, process_id) if known.workspace else set()
        return self.found({process_id: known}, lambda each: each.pid in held)

    def inhabitants(self, workspace: str, directory: str) -> list[Seen]:
        """Return those of a workspace: of its processes, of its group, or at work in its files."""
        held = self.groups.pids(workspace)
        own = {id: known for id, known in self.known.items() if known.workspace == workspace}
        return self.found(own, lambda each: each.pid in held or is_working_in(each.pid, directory))

    def of_users(self, users: Collection[int]) -> list[Seen]:
        """Return those of ours that run as some users."""
        firsts = self.cells.firsts
        below = running_below(os.getpid())
        return [each for each in below if each.pid not in firsts and owner_of(each.pid) in users]

    def found(self, own: dict[str, Known], is_meant: Callable[[Seen], bool]) -> list[Seen]:
        """Return those of ours that are of some processes or meant, and what these started."""
        seen = running_processes()
        belongs = Belonging(own, self.known.keys(), seen)
        firsts = self.cells.firsts
        roots = [
            each
            for each in descendants(os.getpid(), seen)
            if each.pid not in firsts
            and (belongs.by_number(each) or belongs.by_mark(each) or is_meant(each))
        ]
        found = {each.pid: each for root in roots for each in descendants(root.pid, seen)}
        return list({**found, **{root.pid: root for root in roots}}.values())


class Belonging:
    """Tells whether a process is of some that are known."""

    def __init__(
        self,
        own: dict[str, Known],
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
        """Tell whether it bears the mark of one."""
        return self._mark_of(each.pid) in self._own

    def by_number(self, each: Seen) -> bool:
        """Tell whether it is a leader, or has the number of one for its group or session."""
        numbers = {each.pid, each.group, each.session}
        if not self._living.isdisjoint(numbers):
            return True
        if self._departed.isdisjoint(numbers):
            return False
        mark = self._mark_of(each.pid)
        return mark in self._own or mark not in self._all_ids
