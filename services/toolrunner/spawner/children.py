"""Child processes of the spawner: start, keep, signal and reap."""

import errno
import json
import os
import selectors
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from toolrunner.sandbox import Confinement, Layer, SocketUse, is_readable, prepared_filter
from toolrunner.spawner.child import (
    STOP_SIGNALS,
    ChildDescriptors,
    ChildProcess,
    LaunchPlan,
    become,
    set_size,
)
from toolrunner.spawner.control_groups import ControlGroups
from toolrunner.spawner.control_groups_v1 import ControlGroupsV1
from toolrunner.spawner.frames import CHUNK_BYTES, FrameChannel
from toolrunner.spawner.kernel import Seen, children_of, freeze, has_mark, send, send_to_child
from toolrunner.spawner.limits import GROUP_ONLY, limit_group
from toolrunner.spawner.process_index import ProcessIndex

#: The read end of a pipe never becomes writable, so this event only signals that the report ended
#: (hang-up). The report is read then, and the loop wakes up only once for each start.
REPORT_OVER = selectors.EVENT_WRITE
#: How long adoption waits for children that are between fork and exec.
REPORT_S = 2.0
#: How long a child may take between fork and exec. It is in the pid namespace of its workspace by
#: then, whose processes may stop it.
START_S = 20.0
START_STAGE = "start"
#: The memory use is reported for at most this many sockets.
SOCKETS_TOLD = 1000


@dataclass
class Watch:
    """Processes whose end is to be reported, and those that were found at the last scan.

    A scan takes time proportional to the processes of the machine, so it is done only when it may
    find fewer. The exit of a process whose parent is this program, or another process of the watch,
    is never missed: either it is reaped here, or the other process is.
    """

    find: Callable[[], list[Seen]]
    seen: list[Seen]

    def may_be_over(self, reaped: set[int]) -> bool:
        """Return whether a scan is needed after some exits."""
        pids = {each.pid for each in self.seen}
        noticed = pids | {os.getpid()}
        is_touched = not pids.isdisjoint(reaped)
        return not pids or is_touched or any(each.parent not in noticed for each in self.seen)

    def look(self) -> bool:
        """Scan again; return whether any process is left."""
        self.seen = self.find()
        return bool(self.seen)


@dataclass
class ChildProcesses:
    """All processes that were started here and are not forgotten.

    Attributes:
        service: The connection to the service, for answers and events.
        selector: Waits for the reports of children; each is registered with its `ChildProcess`.
        open_files: The limits on open files that children get.
    """

    service: FrameChannel
    selector: selectors.BaseSelector
    groups: ControlGroups
    open_files: tuple[int, int]
    process_index: ProcessIndex
    control_groups_v1: ControlGroupsV1 = field(default_factory=lambda: ControlGroupsV1({}))
    children: dict[str, ChildProcess] = field(default_factory=dict)
    starting: dict[str, ChildProcess] = field(
        default_factory=dict
    )  # Those without an answer, oldest first.
    leaders: dict[int, str] = field(default_factory=dict)  # Those that run, by pid.
    watched: dict[str, Watch] = field(default_factory=dict)
    #: Exit statuses of children whose start is not answered, or that are not identified yet.
    early: dict[int, int] = field(default_factory=dict)
    is_ending: bool = False

    def __post_init__(self) -> None:
        self.process_index.namespace_sets.on_listener = self.tell_listener

    def tell_listener(self, workspace: str, listener: int) -> None:
        """Send the listener of a namespace set to the service."""
        self.service.tell({"door": workspace, "descriptors": 1}, listener)

    @property
    def is_empty(self) -> bool:
        """Whether no process is kept and none runs."""
        return not self.children and not self.process_index.everything()

    def start(self, message: dict[str, Any]) -> None:
        """Fork; the answer follows when the child has executed the program, or failed."""
        opened: list[int] = []
        stage = "fork"
        try:
            descriptors, child = self.connections(message, opened)
            group = self.groups.make(message["workspace"], message["id"])
            self.groups.bound(message["workspace"], message["quota"])
            joined = [group] if group else []
            joined += self.control_groups_v1.make(message["workspace"], message["quota"])
            child.deaths_before = self.control_groups_v1.deaths(message["workspace"])
            stage = "namespaces"
            launch_plan = self.launch_plan(message["workspace"], message["confinement"])
            stage = "limits"
            child.has_memory_limit = self.limit(group, message, launch_plan)
            stage, parent = "fork", os.getpid()
            pid = launch_plan.fork()
        except OSError as error:
            for fd in opened:
                os.close(fd)
            self.groups.remove(message["workspace"], message["id"])
            self.leave(message["workspace"])
            self.service.tell({"number": message["number"], "stage": stage, "errno": error.errno})
            return
        if pid == 0:
            become(message, parent, descriptors, joined, self.open_files, launch_plan)
        for fd in {descriptors.input_fd, descriptors.output_fd, descriptors.report_fd} - {-1}:
            os.close(fd)
        child.pid, child.give_up_at = pid, time.monotonic() + START_S
        self.children[child.id] = self.starting[child.id] = child
        self.process_index.enter(child.id, child.workspace, pid)
        self.leaders[pid] = child.id
        self.selector.register(child.report_fd, REPORT_OVER, child)

    def limit(self, group: str, message: dict[str, Any], launch_plan: LaunchPlan) -> bool:
        """Limit a control group; return whether it enforces a memory limit.

        Raises:
            OSError: It cannot enforce a required limit that only a control group can enforce.
        """
        enforced = limit_group(group, message["limits"])
        if launch_plan.confinement is not None and launch_plan.confinement.counts_processes:
            enforced |= {"pids"}
        if not enforced.issuperset(each for each in message["required"] if each in GROUP_ONLY):
            raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))
        return "memory_bytes" in enforced

    def launch_plan(self, workspace: str, document: dict[str, Any] | None) -> LaunchPlan:
        """Prepare the confinement of a child, which then only has to apply it.

        Raises:
            OSError: The kernel refused.
        """
        if document is None:
            self.process_index.hold(workspace)
            return LaunchPlan()
        confinement = Confinement.of(document)
        has_cell = confinement.has(Layer.PID_NAMESPACE)
        self.process_index.hold(workspace, confinement.uid, has_cell=has_cell)
        launch_plan = LaunchPlan(confinement, prepared_filter(confinement))
        if has_cell:
            launch_plan.namespace_set, launch_plan.tree = self.process_index.namespace_sets.provide(
                workspace, confinement
            )
        return launch_plan

    def connections(
        self, message: dict[str, Any], opened: list[int]
    ) -> tuple[ChildDescriptors, ChildProcess]:
        """Make the pipes or the terminal of a child; each descriptor is added to `opened`."""

        def pair(make: Callable[[], tuple[int, int]]) -> tuple[int, int]:
            made = make()
            opened.extend(made)
            return made

        def pipe() -> tuple[int, int]:
            return os.pipe2(os.O_CLOEXEC)

        report_fd, report_end = pair(pipe)
        os.set_blocking(report_fd, False)
        if message["terminal"]:
            output_fd, output_end = pair(os.openpty)
            set_size(output_fd, *message["terminal"])
            input_end, input_fd = output_end, os.dup(output_fd)
            opened.append(input_fd)
        else:
            output_fd, output_end = pair(pipe)
            input_end, input_fd = pair(pipe) if message["has_input"] else (-1, -1)
        descriptors = ChildDescriptors(input_end, output_end, report_end, bool(message["terminal"]))
        child = ChildProcess(
            message["id"],
            message["workspace"],
            message["number"],
            0,
            output_fd,
            input_fd,
            report_fd,
        )
        return descriptors, child

    def settle(self, child: ChildProcess) -> None:
        """Answer a start when its report has ended: at exec, or after a failure."""
        if child.report_fd < 0:
            return
        with suppress(BlockingIOError):
            while piece := os.read(child.report_fd, CHUNK_BYTES):
                child.report += piece
                self.note(child)
            self.conclude(child)

    def conclude(self, child: ChildProcess) -> None:
        """Answer a start whose report has ended."""
        self.selector.unregister(child.report_fd)
        os.close(child.report_fd)
        child.report_fd = -1
        self.starting.pop(child.id, None)
        self.answer(child)
        self.catch_up(child)

    def end_late(self, now_s: float) -> float | None:
        """Kill children that did not reach exec in time; return when the next one expires.

        Other processes of its workspace can stop a child that has the same user.
        """
        while self.starting:
            child = next(iter(self.starting.values()))
            if child.give_up_at > now_s:
                return child.give_up_at
            # The report contains the pid of a child that entered a namespace set.
            self.settle(child)
            self.give_up(child)
        return None

    def give_up(self, child: ChildProcess) -> None:
        """Kill a child that has not reached exec."""
        if child.report_fd >= 0:
            child.failure = {"stage": START_STAGE, "errno": errno.ETIMEDOUT}
            send_to_child(child.pid, signal.SIGKILL)
            self.conclude(child)

    def catch_up(self, child: ChildProcess) -> None:
        """Report the exit of a process that was reaped before its start could be answered.

        The process outside of a namespace set reports the pid of the one inside, and exits. Both
        may be late: a short command can have exited by then.
        """
        if not self.early:
            return
        status = self.early.pop(child.pid, None)
        if status is not None and self.leaders.pop(child.pid, None) is not None:
            self.process_index.reaped(child.id)
            self.tell_exit(child, status)
        if not self.starting:
            self.early.clear()

    def tell_exit(self, child: ChildProcess, status: int) -> None:
        """Keep the exit status of a process, and report it."""
        child.status = status
        child.is_oom_killed = self.was_short_of_memory(child, status)
        self.service.tell(
            {"exited": child.id, "status": status, "is_oom_killed": child.is_oom_killed}
        )

    def note(self, child: ChildProcess) -> None:
        """Process the complete lines of a child's report."""
        *lines, child.report = child.report.split(b"\n")
        for document in map(json.loads, lines):
            match document:
                case {"pid": pid}:
                    self.leaders.pop(child.pid, None)
                    child.pid = pid
                    self.leaders[pid] = child.id
                    self.process_index.enter(child.id, child.workspace, pid)
                case {"layers": layers}:
                    child.layers = layers
                case {"stage": _, "errno": _}:
                    child.failure = document

    def answer(self, child: ChildProcess) -> None:
        """Send the result of a start to the service."""
        if child.failure is not None:
            self.leaders.pop(child.pid, None)
            self.service.tell({"number": child.number, **child.failure})
            return
        message = {"number": child.number, "pid": child.pid, "layers": child.layers}
        message["descriptors"] = len(child.descriptors)
        self.service.tell(message, *child.descriptors)

    def reap(self) -> None:
        """Reap all exited children, and report the exits that are waited for."""
        is_idle = False
        reaped: set[int] = set()
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                is_idle = True
                break
            if pid == 0:
                break
            reaped.add(pid)
            self.process_index.owners.pop(pid, None)
            process_id = self.leaders.get(pid, "")
            self.process_index.reaped(process_id)
            self.process_index.namespace_sets.lose(pid)
            child = self.children.get(process_id)
            if child is not None:
                self.settle(child)
            is_early = child is not None and child.pid == pid and child.report_fd >= 0
            if is_early or not process_id:
                self.early[pid] = status
            elif self.leaders.pop(pid, None) is not None and child is not None:
                self.tell_exit(child, status)
        if not self.starting:
            self.early.clear()
        due = [name for name, watch in self.watched.items() if watch.may_be_over(reaped)]
        for name in [name for name in due if not self.watched[name].look()]:
            del self.watched[name]
            self.process_index.namespace_sets.end(name)
            self.control_groups_v1.remove(name)
            self.service.tell({"gone": name})
        if self.is_ending and not is_idle and not self.process_index.everything():
            self.process_index.namespace_sets.end_all()
        if is_idle and self.is_ending:
            self.service.tell({"idle": True})

    def was_short_of_memory(self, child: ChildProcess, status: int) -> bool:
        """Return whether the OOM killer killed a process or one of its descendants."""
        if child.has_memory_limit and self.groups.was_short_of_memory(child.workspace, child.id):
            return True
        # Cgroup v1 counts the workspace as a whole; a process that exited with 0 was not killed.
        return status != 0 and self.control_groups_v1.deaths(child.workspace) > child.deaths_before

    def signal(self, message: dict[str, Any]) -> None:
        """Signal a process and its descendants, or only its leader while that is not reaped."""
        process_id, number = message["id"], message["signal"]
        if message["leader_only"]:
            leader = self.process_index.leader(process_id)
            count = int(self.leaders.get(leader) == process_id and send_to_child(leader, number))
        else:
            count = self.signal_all(lambda: self.process_index.members(process_id), number)
            if number == signal.SIGKILL and (workspace := self.process_index.workspace(process_id)):
                self.groups.kill(workspace, process_id)
        if message["tell_gone"]:
            left = self.process_index.members(process_id)
            self.watched[process_id] = Watch(lambda: self.process_index.members(process_id), left)
            self.wake(left, number)
        self.service.tell({"number": message["number"], "count": count})
        self.reap()

    def end_workspace(self, message: dict[str, Any]) -> None:
        """Signal all processes of a workspace."""
        workspace, directory = message["workspace"], message["directory"]

        def find() -> list[Seen]:
            return self.process_index.inhabitants(workspace, directory)

        self.give_way(workspace, yields=False)  # To end takes CPU time.
        if message["signal"] == signal.SIGKILL and self.process_index.namespace_sets.of(workspace):
            # The kernel kills all processes of a pid namespace at once; none has to be found first.
            count = len(find())
            self.process_index.namespace_sets.end(workspace)
        elif message["signal"] == signal.SIGKILL and self.groups.base:
            # Atomic, however fast they fork; the remaining ones were never in the group.
            count = len(self.groups.pids(workspace))
            self.groups.kill(workspace)
            count += self.signal_all(find, message["signal"])
        else:
            count = self.signal_all(find, message["signal"])
        if message["signal"] == signal.SIGKILL:
            self.groups.kill(workspace)
        if message["tell_gone"]:
            left = find()
            self.watched[workspace] = Watch(find, left)
            self.wake(left, message["signal"])
        self.service.tell({"number": message["number"], "count": count})
        self.reap()

    def give_way(self, workspace: str, *, yields: bool) -> None:
        """Let the processes of a workspace give way to all others, where there are groups."""
        self.groups.give_way(workspace, yields=yields)
        self.control_groups_v1.give_way(workspace, yields=yields)

    def signal_marked(self, message: dict[str, Any]) -> None:
        """Signal all processes of a workspace that have a mark."""

        def find() -> list[Seen]:
            present = self.process_index.inhabitants(message["workspace"], message["directory"])
            return [each for each in present if has_mark(each.pid, message["mark"])]

        count = self.signal_all(find, message["signal"])
        self.wake(find(), message["signal"])
        self.service.tell({"number": message["number"], "count": count})

    def end(self, message: dict[str, Any]) -> None:
        """Signal all processes, and report when none is left."""
        self.is_ending = True
        count = self.signal_all(self.process_index.everything, message["signal"])
        self.service.tell({"number": message["number"], "count": count})
        self.reap()

    def signal_all(self, find: Callable[[], list[Seen]], number: int) -> int:
        """Signal all processes found and return their number; before SIGKILL they are stopped."""
        found = freeze(find) if number == signal.SIGKILL else find()
        return sum(send(each, number) for each in found)

    def wake(self, stopped: list[Seen], number: int) -> None:
        """Send SIGCONT to stopped processes, which could not handle a stop signal otherwise."""
        if number in STOP_SIGNALS:
            for each in stopped:
                send(each, signal.SIGCONT)

    def tell_sockets(self, message: dict[str, Any]) -> None:
        """Report the memory use of the sockets of a workspace with its own network namespace."""
        uses = [
            namespace_set.socket_use()
            for namespace_set in self.process_index.namespace_sets.of(message["workspace"])
        ]
        largest = SocketUse(by_inode={k: v for use in uses for k, v in use.by_inode.items()})
        self.service.tell(
            {
                "number": message["number"],
                "total_bytes": sum(use.total_bytes for use in uses),
                "largest": [*largest.largest(SOCKETS_TOLD).items()],
            }
        )

    def leave(self, workspace: str) -> None:
        """Mark the namespace sets of a workspace as idle, if they have no processes."""
        if self.process_index.is_deserted(workspace, self.leaders):
            self.process_index.namespace_sets.rest(workspace, time.monotonic())

    def tell_kept(self) -> None:
        """Send all kept processes; those between fork and exec are waited for."""
        self.process_index.namespace_sets.show_listeners()
        until_s = time.monotonic() + REPORT_S
        for child in self.children.values():
            if child.report_fd >= 0:
                self.settle_until(child, until_s)
            document = {
                "adopted": child.id,
                "pid": child.pid,
                "status": child.status,
                "layers": child.layers,
                "is_oom_killed": child.is_oom_killed,
                "descriptors": len(child.descriptors),
            }
            self.service.tell({**document, **(child.failure or {})}, *child.descriptors)

    def settle_until(self, child: ChildProcess, until_s: float) -> None:
        """Wait for the end of a report."""
        while child.report_fd >= 0 and (left_s := until_s - time.monotonic()) > 0:
            is_readable(child.report_fd, left_s)
            self.settle(child)

    def unbind(self) -> None:
        """Clear the request numbers, so that earlier requests get no answer."""
        for child in self.children.values():
            child.number = 0

    def close_input(self, process_id: str) -> None:
        """Close the spawner's copy of a process's input.

        The process reads EOF once the service has closed its own copy too.
        """
        child = self.children.get(process_id)
        if child is not None and child.input_fd >= 0:
            os.close(child.input_fd)
            child.input_fd = -1

    def forget(self, process_id: str) -> None:
        """Drop a process; the process index keeps what is needed to find its descendants."""
        child = self.children.pop(process_id, None)
        if child is None:
            return
        if child.report_fd >= 0:
            # The caller has given up, so no caller would end the process.
            self.settle(child)
            self.give_up(child)
        for fd in child.descriptors:
            os.close(fd)
        self.groups.remove(child.workspace, process_id)
        self.leave(child.workspace)
        needed = {*self.children, *self.leaders.values()}
        children = children_of(os.getpid())
        if children is not None and children <= {
            *self.leaders,
            *self.process_index.namespace_sets.firsts,
        }:
            # No descendants were left behind.
            self.process_index.keep_only(needed)
        else:
            self.process_index.prune(needed)
