import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from parley.clock import FakeClock
from toolrunner.directories.workspaces import WorkspaceOptions, Workspaces
from toolrunner.primitives.domain import Limits, ProcessId, Quota, WorkspaceId
from toolrunner.primitives.errors import QuotaExceeded
from toolrunner.processes.scan import Leader, Member, ProcessScan
from toolrunner.quotas.cpu_priority import CROWD, CpuPriorities, CpuUse
from toolrunner.quotas.disk import LOOK_AGAIN_S, LOOK_OVER_S, Space, Use, is_due, overrun
from toolrunner.spawner import Seen, descendants, running_processes
from toolrunner.spawner.control_groups import ControlGroups
from toolrunner.spawner.control_groups_v1 import ControlGroupsV1
from toolrunner.spawner.limits import PIDS_SPARE

QUOTA = Quota(disk_bytes=1000, inodes=100)
USE = Use(disk_bytes=400, inodes=40, space=Space(10_000, 1_000), at_s=100.0, took_s=0.1)


@pytest.mark.parametrize(
    ("use", "quota", "space", "now_s", "due"),
    [
        (None, QUOTA, Space(0, 0), 0.0, True),
        (None, Quota(), Space(0, 0), 0.0, False),
        (USE, QUOTA, Space(10_000, 1_000), 101.0, False),
        # As long as less is gone than it has left, it cannot be past its quota.
        (USE, QUOTA, Space(9_401, 941), 101.0, False),
        (USE, QUOTA, Space(9_400, 1_000), 101.0, True),
        (USE, QUOTA, Space(10_000, 940), 101.0, True),
        (USE, Quota(inodes=100), Space(0, 1_000), 101.0, False),
        (USE, QUOTA, Space(10_000, 1_000), 100.0 + LOOK_AGAIN_S, True),
        (replace(USE, took_s=10.0), QUOTA, Space(10_000, 1_000), 100.0 + LOOK_AGAIN_S, False),
        (replace(USE, took_s=10.0), QUOTA, Space(10_000, 1_000), 300.0, True),
        (replace(USE, disk_bytes=2000), QUOTA, Space(0, 0), 100.5, False),
        (replace(USE, disk_bytes=2000), QUOTA, Space(0, 0), 100.0 + LOOK_OVER_S, True),
    ],
)
def test_files_are_counted_when_a_quota_may_be_passed_and_now_and_then(
    use: Use | None, quota: Quota, space: Space, now_s: float, due: bool
) -> None:
    assert is_due(use, quota, space, now_s) is due


def test_an_overrun_says_what_of_and_how_much() -> None:
    assert overrun(USE, QUOTA) is None
    full = overrun(replace(USE, disk_bytes=1001), QUOTA)
    many = overrun(replace(USE, inodes=101), QUOTA)
    assert full is not None
    assert many is not None
    assert (full.dimension, full.used, full.limit) == ("disk_bytes", 1001, 1000)
    assert (many.dimension, many.used, many.limit) == ("inodes", 101, 100)


def member(pid: int, cpu_s: float) -> Member:
    return Member(Seen(pid, 1, pid, pid), ProcessId("p"), cpu_s, 0)


def test_the_pace_of_a_workspace_is_what_its_processes_used_since() -> None:
    pace = CpuUse()
    assert pace.take([member(1, 10.0)], 100.0) == 0.0
    assert pace.take([member(1, 11.0), member(2, 0.5)], 101.0) == 1.5
    # One that is gone takes nothing back.
    assert pace.take([member(2, 1.0)], 102.0) == 0.5


def test_a_quota_of_a_template_goes_before_that_of_the_node(tmp_path: Path) -> None:
    workspaces = Workspaces(tmp_path, quota=Quota(memory_bytes=8, disk_bytes=10, inodes=5))
    workspaces.options[WorkspaceId("w")] = WorkspaceOptions(quota=Quota(disk_bytes=3, pids=7))
    assert workspaces.quota_of(WorkspaceId("w")) == Quota(8, 3, 5, 7)
    assert workspaces.quota_of(WorkspaceId("w")).limits == Limits(
        file_bytes=3, memory_bytes=8, pids=7
    )
    assert workspaces.quota_of(WorkspaceId("other")) == workspaces.quota


def test_where_too_much_was_written_nothing_more_is(tmp_path: Path) -> None:
    workspaces = Workspaces(tmp_path)
    workspaces.check_space(WorkspaceId("w"))
    workspaces.overruns[WorkspaceId("w")] = QuotaExceeded("inodes", 7, 5)
    with pytest.raises(QuotaExceeded, match=r"uses 7 of 5 inodes.*rm"):
        workspaces.check_space(WorkspaceId("w"))


def stat(proc: Path, pid: int, parent: int, *, state: str = "S", namespace: str = "") -> None:
    directory = proc / str(pid)
    (directory / "ns").mkdir(parents=True)
    words = [state, parent, pid, pid, *([0] * 7), 100, 50, 25, 25, *([0] * 4), 77, 0, 3]
    (directory / "stat").write_text(f"{pid} (a) name) {' '.join(map(str, words))}")
    (directory / "ns" / "pid").symlink_to(f"pid:[{namespace or 'host'}]")


def children(proc: Path, pid: int, *found: int) -> None:
    directory = proc / str(pid) / "task" / str(pid)
    directory.mkdir(parents=True)
    (directory / "children").write_text(" ".join(map(str, found)))


@pytest.mark.parametrize(("tells_children", "strangers"), [(False, 0), (True, 0), (True, 20)])
def test_a_census_finds_everyone_below_the_spawner_and_nobody_else(
    tmp_path: Path, *, tells_children: bool, strangers: int
) -> None:
    spawner = 50
    stat(tmp_path, spawner, 1)
    stat(tmp_path, 60, spawner, namespace="cell")
    stat(tmp_path, 61, 60, namespace="cell")
    stat(tmp_path, 62, 61, state="Z")
    stat(tmp_path, 70, spawner, namespace="cell")
    stat(tmp_path, 71, 70, namespace="cell")
    stat(tmp_path, 80, spawner)
    stat(tmp_path, 90, 1)
    for stranger in range(strangers):
        stat(tmp_path, 100 + stranger, 1)
    if tells_children:
        children(tmp_path, spawner, 60, 70, 80)
        for pid, *below in ((60, 61), (61, 62), (62,), (70, 71), (71,), (80,)):
            children(tmp_path, pid, *below)
    scan = ProcessScan(spawner, dict, proc=str(tmp_path))
    found = scan.take({60: Leader(WorkspaceId("w"), ProcessId("p"))})
    told = {each.seen.pid: each.process_id for each in found[WorkspaceId("w")]}
    assert (set(found), told) == ({WorkspaceId("w")}, {60: "p", 61: "p", 70: "", 71: ""})
    [first] = [each for each in found[WorkspaceId("w")] if each.seen.pid == 60]
    assert (first.cpu_s, first.resident_bytes, first.seen.started) == (2.0, 3 * 4096, 77)


def test_a_census_of_few_looks_at_nobody_else_and_one_of_many_at_everybody(tmp_path: Path) -> None:
    stat(tmp_path, 50, 1)
    stat(tmp_path, 60, 50, namespace="cell")
    children(tmp_path, 50, 60)
    children(tmp_path, 60)
    # Of whom its parent does not tell, so that only who looks at it knows.
    stat(tmp_path, 100, 60, namespace="cell")
    for stranger in range(20):
        stat(tmp_path, 101 + stranger, 1)

    def found() -> set[int]:
        leaders = {60: Leader(WorkspaceId("w"), ProcessId("p"))}
        members = ProcessScan(50, dict, proc=str(tmp_path)).take(leaders)[WorkspaceId("w")]
        return {each.seen.pid for each in members}

    few = found()
    for thread in range(20):
        (tmp_path / "60" / "task" / str(1000 + thread)).mkdir()
    assert (few, found()) == ({60}, {60, 100})


def test_the_group_of_a_workspace_holds_all_of_it_together(tmp_path: Path) -> None:
    groups = ControlGroups(str(tmp_path))
    (tmp_path / "w").mkdir()
    for name in ("memory.max", "pids.max", "cpu.max", "memory.oom.group"):
        (tmp_path / "w" / name).write_text("")
    quota = {"memory_bytes": 1024, "pids": 9, "cpu_millicores": 500}
    groups.bound("w", quota)
    found = {each.name: each.read_text() for each in (tmp_path / "w").iterdir()}
    # Whoever has most is killed, not everybody.
    assert found == {
        "memory.max": "1024",
        "pids.max": str(9 + PIDS_SPARE),
        "cpu.max": "50000 100000",
        "memory.oom.group": "",
    }


def control_groups_v1(directory: Path) -> ControlGroupsV1:
    groups = ControlGroupsV1({name: str(directory / name) for name in ("pids", "memory", "cpu")})
    files = {
        "pids": ("pids.max",),
        "memory": ("memory.limit_in_bytes", "memory.oom_control"),
        "cpu": ("cpu.shares", "cpu.cfs_period_us", "cpu.cfs_quota_us", "cgroup.procs"),
        "cpu-yielding": ("cpu.shares", "cpu.cfs_period_us", "cpu.cfs_quota_us", "cgroup.procs"),
    }
    for controller, names in files.items():
        (directory / controller / "w").mkdir(parents=True)
        for name in names:
            (directory / controller / "w" / name).write_text("")
    return groups


def test_old_control_groups_hold_a_whole_workspace(tmp_path: Path) -> None:
    groups = control_groups_v1(tmp_path)
    quota = {"memory_bytes": 1024, "pids": 9, "cpu_millicores": 500}
    joined = groups.make("w", quota)
    assert joined == [str(tmp_path / name / "w") for name in ("pids", "memory", "cpu")]
    found = {each.name: each.read_text() for each in tmp_path.glob("*/w/*") if each.read_text()}
    assert found == {
        "pids.max": str(9 + PIDS_SPARE),
        "memory.limit_in_bytes": "1024",
        "cpu.shares": "512",
        "cpu.cfs_period_us": "100000",
        "cpu.cfs_quota_us": "50000",
    }


def test_a_workspace_that_gives_way_has_its_processes_in_the_idle_group(tmp_path: Path) -> None:
    groups = control_groups_v1(tmp_path)
    usual, yielding = tmp_path / "cpu" / "w", tmp_path / "cpu-yielding" / "w"
    (tmp_path / "cpu-yielding" / "cpu.idle").write_text("")
    groups.prepare_yielding()
    assert (tmp_path / "cpu-yielding" / "cpu.idle").read_text() == "1"

    quota = {"memory_bytes": 0, "pids": 0, "cpu_millicores": 500}
    assert groups.make("w", quota)[-1] == str(usual)
    (usual / "cgroup.procs").write_text("77\n")
    groups.give_way("w", yields=True)
    assert (yielding / "cgroup.procs").read_text() == "77"
    assert (yielding / "cpu.cfs_quota_us").read_text() == "50000"
    # What it starts now begins there.
    assert groups.make("w", quota)[-1] == str(yielding)

    groups.none_gives_way()
    assert groups.make("w", quota)[-1] == str(usual)
    # A workspace that has no groups yet begins as usual.
    groups.give_way("other", yields=True)
    assert groups.make("other", quota)[-1] == str(tmp_path / "cpu" / "other")


def test_groups_that_cannot_be_removed_keep_the_quota_and_the_priority(tmp_path: Path) -> None:
    groups = control_groups_v1(tmp_path)
    quota = {"memory_bytes": 0, "pids": 0, "cpu_millicores": 500}
    groups.make("w", quota)
    groups.give_way("w", yields=True)
    # Its files stand for its processes here; only the memory group has none.
    for path in (tmp_path / "memory" / "w").iterdir():
        path.unlink()
    groups.remove("w")
    assert not (tmp_path / "memory" / "w").exists()
    ends = ("pids/w", "memory/w", "cpu-yielding/w")
    assert groups.make("w", quota) == [str(tmp_path / end) for end in ends]
    assert (tmp_path / "memory" / "w").is_dir()
    groups.none_gives_way()
    assert groups.make("w", quota)[-1] == str(tmp_path / "cpu" / "w")

    for path in tmp_path.glob("*/w/*"):
        path.unlink()
    groups.give_way("w", yields=True)
    groups.remove("w")
    # Then the next processes begin as usual.
    assert groups.make("w", quota)[-1] == str(tmp_path / "cpu" / "w")


def test_who_was_killed_for_want_of_memory_in_an_old_group_is_counted(tmp_path: Path) -> None:
    groups = control_groups_v1(tmp_path)
    assert groups.deaths("w") == 0
    control = tmp_path / "memory" / "w" / "memory.oom_control"
    control.write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n")
    assert (groups.deaths("w"), ControlGroupsV1({}).deaths("w")) == (3, 0)


def sleeping() -> "subprocess.Popen[bytes]":
    return subprocess.Popen(["sleep", "7902"])


class ToldGroups:
    """Notes which workspaces are told to give way, and which no longer."""

    def __init__(self) -> None:
        self.told: list[tuple[str, bool]] = []

    async def give_way(self, workspace_id: WorkspaceId, *, yields: bool) -> None:
        self.told.append((workspace_id, yields))


async def test_e3_who_computes_without_pause_gives_way_to_everybody() -> None:
    clock = FakeClock()
    groups = ToldGroups()
    shares = CpuPriorities(clock, groups)
    with sleeping() as busy, sleeping() as calm:

        def nice(process: "subprocess.Popen[bytes]") -> int:
            return os.getpriority(os.PRIO_PROCESS, process.pid)

        usual = nice(calm)
        try:
            for used_s in (0.0, 0.6):
                told = {
                    WorkspaceId("busy"): (member(busy.pid, used_s),),
                    WorkspaceId("calm"): (member(calm.pid, used_s / 2),),
                }
                await shares.look(told)
                clock.advance(1.0)
            assert (nice(busy), nice(calm)) == (19, usual)
            assert groups.told == [("busy", True)]
            # A crowd is bounded otherwise: it would wait for itself, and all for what it holds.
            crowd = (member(calm.pid, 9.0), *(member(pid, 9.0) for pid in range(-CROWD, 0)))
            await shares.look({WorkspaceId("calm"): crowd})
            assert nice(calm) == usual
            # What it starts after all of it has ended begins with the usual priority.
            assert groups.told == [("busy", True), ("busy", False)]
        finally:
            busy.kill()
            calm.kill()


def test_a_process_whose_first_thread_ended_is_counted_with_its_memory() -> None:
    script = """
import ctypes, sys, threading
data = bytearray(64 << 20)
def stay():
    print("ready", flush=True)
    sys.stdin.read()
threading.Thread(target=stay).start()
ctypes.CDLL(None).pthread_exit(None)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdout.readline()
        while Path(f"/proc/{process.pid}/stat").read_text().split()[2] != "Z":
            os.sched_yield()
        leaders = {process.pid: Leader(WorkspaceId("w"), ProcessId("p"))}
        found = ProcessScan(os.getpid(), dict).take(leaders)
        seen = [each.pid for each in descendants(os.getpid(), running_processes())]
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()
    (member,) = found[WorkspaceId("w")]
    assert member.seen.pid == process.pid
    assert member.resident_bytes > 64 << 20
    assert process.pid in seen
