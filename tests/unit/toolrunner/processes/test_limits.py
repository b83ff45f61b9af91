from pathlib import Path

from toolrunner.primitives.domain import Limits
from toolrunner.spawner.control_groups import ControlGroups
from toolrunner.spawner.limits import limit_group, pass_controllers_on

WANTED = {"memory_bytes": 4096, "pids": 7, "cpu_millicores": 1500}


def test_the_narrower_limit_holds_and_none_is_no_limit() -> None:
    node = Limits(open_files=100, memory_bytes=50, pids=0)
    asked = Limits(memory_bytes=80, pids=3, cpu_millicores=500)
    assert node.narrowed(asked) == Limits(
        open_files=100, memory_bytes=50, pids=3, cpu_millicores=500
    )
    assert asked.given == ("memory_bytes", "pids", "cpu_millicores")


def test_a_control_group_keeps_what_it_has_controllers_for(tmp_path: Path) -> None:
    for name in ("memory.max", "memory.oom.group", "cpu.max"):
        (tmp_path / name).touch()
    assert limit_group(str(tmp_path), WANTED) == {"memory_bytes", "cpu_millicores"}
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "memory.max": "4096",
        "memory.oom.group": "1",
        "cpu.max": "150000 100000",
    }


def test_without_a_group_nothing_is_kept_by_one() -> None:
    assert limit_group("", WANTED) == frozenset()


def test_a_group_lets_those_below_it_have_limits(tmp_path: Path) -> None:
    (tmp_path / "cgroup.subtree_control").touch()
    pass_controllers_on(str(tmp_path))
    assert (tmp_path / "cgroup.subtree_control").read_text() == "+cpu"


def test_a_kill_for_want_of_memory_is_told(tmp_path: Path) -> None:
    groups = ControlGroups(str(tmp_path))
    group = tmp_path / "w1" / "p1"
    group.mkdir(parents=True)
    assert not groups.was_short_of_memory("w1", "p1")
    (group / "memory.events").write_text("low 0\noom 1\noom_kill 2\n")
    assert groups.was_short_of_memory("w1", "p1")
    assert not ControlGroups("").was_short_of_memory("w1", "p1")
