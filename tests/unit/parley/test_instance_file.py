import os
import subprocess
import sys
from pathlib import Path

from parley.instance_file import InstanceFile, dead_instances, instance_of_child

HOLD = """
import sys
from pathlib import Path
from parley.instance_file import InstanceFile
locked = InstanceFile.lock(Path(sys.argv[1]))
assert locked is not None
locked.name("worker-1")
print("named", flush=True)
sys.stdin.read()
"""


def held(path: Path) -> "subprocess.Popen[bytes]":
    """Start a process that holds the file and names itself."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"named\n"
    return holder


def killed(holder: "subprocess.Popen[bytes]") -> None:
    holder.kill()
    with holder:
        pass


def test_a_file_is_locked_as_long_as_its_process_lives(tmp_path: Path) -> None:
    path = tmp_path / "chatd-0.instance"
    holder = held(path)
    assert InstanceFile.lock(path) is None
    assert list(dead_instances(tmp_path)) == []
    killed(holder)
    locked = InstanceFile.lock(path)
    assert locked is not None
    assert locked.named == "worker-1"
    locked.close()


def test_a_stopped_process_is_not_dead(tmp_path: Path) -> None:
    holder = held(tmp_path / "chatd-0.instance")
    os.kill(holder.pid, 19)
    assert list(dead_instances(tmp_path)) == []
    killed(holder)
    assert [found.path.name for found in dead_instances(tmp_path)] == ["chatd-0.instance"]


def test_programs_that_the_process_starts_do_not_hold_the_file(tmp_path: Path) -> None:
    path = tmp_path / "chatd-0.instance"
    locked = InstanceFile.lock(path)
    assert locked is not None
    with subprocess.Popen(["sleep", "60"], close_fds=False) as started:
        locked.close()
        again = InstanceFile.lock(path)
        assert again is not None
        again.close()
        started.kill()


def test_a_file_that_was_cleared_tells_of_no_death(tmp_path: Path) -> None:
    locked = InstanceFile.lock(tmp_path / "chatd-0.instance")
    assert locked is not None
    locked.name("worker-1")
    locked.clear()
    locked.close()
    assert list(dead_instances(tmp_path)) == []


def test_a_parent_knows_its_child_by_the_id_that_the_child_wrote(tmp_path: Path) -> None:
    path = tmp_path / "chatd-0.instance"
    assert instance_of_child(path, 1) is None
    holder = held(path)
    killed(holder)
    assert instance_of_child(path, holder.pid) == "worker-1"
    assert instance_of_child(path, holder.pid + 1) is None
    path.write_bytes(b"\xff nonsense")
    assert instance_of_child(path, holder.pid) is None
