"""Where the children of the spawner are born: in their cell by one fork, where that is allowed."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from support.toolrunner.sandboxes import offered
from toolrunner.sandbox import Level

PROGRAM = """
import json, os, signal, sys
sys.path[:0] = sys.argv[1].split(":")
from toolrunner.sandbox import Confinement, Layer, Level, Network, Profile
from toolrunner.sandbox.namespaces import BIRTH, NamespaceSet, make_namespaces

def where(fork):
    read, write = os.pipe()
    forked = fork()
    pid = forked if isinstance(forked, int) else forked.pid
    if pid == 0:
        os.write(write, os.readlink("/proc/self/ns/pid").encode())
        os._exit(0)
    os.close(write)
    there = os.read(read, 100).decode()
    os.waitpid(pid, 0)
    with open(f"/proc/self/task/{os.getpid()}/children") as file:
        left = len(file.read().split())
    return there, None if isinstance(forked, int) else forked.is_inside, left

names = (Layer.USER_NAMESPACE, Layer.PID_NAMESPACE, Layer.MOUNT_NAMESPACE)
cell = make_namespaces(Confinement(
    level=Level.NS, layers=names, profile=Profile.WORKSPACE_WRITE, network=Network.OPEN,
    root="/", home="/", temporary="/",
))
own, inside = os.readlink("/proc/self/ns/pid"), os.readlink(f"/proc/{cell.first}/ns/pid")
nothing = os.open("/dev/null", os.O_RDONLY)
told = {
    "in": {own: "own", inside: "cell"},
    "cell": where(cell.fork),
    "own": where(os.fork),
    "refused": where(NamespaceSet(cell.first, (nothing,) * (BIRTH + 1)).fork),
}
os.kill(cell.first, signal.SIGKILL)
os.waitpid(cell.first, 0)
try:
    cell.fork()
except OSError:
    told["dead"] = "refused"
told["after"] = where(os.fork)
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def told() -> dict[str, Any]:
    """Have a program of its own fork, and return what it told."""
    if Level.NS not in offered():
        pytest.skip("this machine does not offer level ns")
    if os.geteuid() != 0:
        pytest.skip("only root says where children are born")
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, ":".join(sys.path)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    found: dict[str, Any] = json.loads(ended.stdout)
    return found


@pytest.mark.parametrize(
    ("fork", "place", "is_inside"),
    [
        ("cell", "cell", True),
        # Only that one: the next is born where it always was.
        ("own", "own", None),
        ("refused", "own", False),
    ],
)
def test_a_child_is_born_in_its_cell_by_one_fork(
    told: dict[str, Any], fork: str, place: str, is_inside: bool | None
) -> None:
    there, was_inside, left = told[fork]
    # One is left of all: the first process of the cell.
    assert (told["in"][there], was_inside, left) == (place, is_inside, 1)


def test_nobody_is_born_in_a_cell_that_is_no_more(told: dict[str, Any]) -> None:
    there, _, left = told["after"]
    assert (told["dead"], told["in"][there], left) == ("refused", "own", 0)
