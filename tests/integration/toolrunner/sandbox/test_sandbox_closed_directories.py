"""Level `landlock` as root with everything of the service in a closed directory.

Users of workspaces keep one capability then, to walk to their files; it gives them nothing else.
"""

import errno
import json
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from support.toolrunner import attacks
from support.toolrunner.jail import Jail
from support.toolrunner.sandboxes import judged, requires
from support.toolrunner.victims import SECRET, Service, service
from support.toolrunner.worker_users import WORKER_USERS
from toolrunner.primitives.domain import Limits
from toolrunner.sandbox import Layer, Level

FIRST = WORKER_USERS.first

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="only root gives workspaces a user of their own"),
    requires(Level.LANDLOCK),
]


@pytest.fixture
def directory() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="parley-jail-"))
    assert path.stat().st_mode & 0o777 == 0o700
    yield path
    shutil.rmtree(path)


@pytest.fixture
async def jail(directory: Path) -> AsyncIterator[Jail]:
    async with Jail.opened(directory, Level.LANDLOCK, is_closed=True, has_groups=False) as opened:
        yield opened


@pytest.fixture
async def victim(directory: Path) -> AsyncIterator[Service]:
    async with service(directory) as opened:
        yield opened


async def test_a_workspace_in_a_closed_directory_has_a_user_of_its_own(jail: Jail) -> None:
    script = (
        "id -u; echo made > $HOME/made; test -w $HOME/made && echo w; "
        "git init -q r && cd r && git config user.name x && git status -s && echo git; "
        "cd $TMPDIR && touch there && echo temporary"
    )
    ran = await jail.shell(script)
    assert ran.text.splitlines() == [str(FIRST), "w", "git", "temporary"]
    assert Layer.UID in ran.layers


async def test_it_has_one_capability_and_gains_none(jail: Jail) -> None:
    script = """
import ctypes, json, os, sys
libc = ctypes.CDLL(None, use_errno=True)
# What the kernel says of itself: /proc is closed.
held = [number for number in range(41) if libc.prctl(47, 1, number, 0, 0) == 1]
bound = [number for number in range(41) if libc.prctl(23, number, 0, 0, 0) == 1]
print(json.dumps([held, bound, libc.prctl(39, 0, 0, 0, 0), os.getresuid(), os.getgroups()]))
"""
    ran = await jail.python(script)
    user = [FIRST, FIRST, FIRST]
    assert json.loads(ran.text) == [[jail.sandbox.report.kept_capability], [], 1, user, []]


async def test_e10_it_watches_no_directory_of_others(jail: Jail) -> None:
    other = jail.workspace("w2")
    keys = jail.directory / "keys"
    keys.mkdir(mode=0o700)
    own = (other.directory, other.root, other.home, other.temporary, other.logs, other.undo)
    targets = [str(path) for path in (jail.directory, keys, *own, Path("/root"), Path("/tmp"))]
    ran = await jail.python(attacks.WATCHING, json.dumps(targets))
    assert judged("E10, watching from a closed directory", jail.level, ran.text) == {}


async def test_e10_it_reads_and_writes_nothing_of_others(jail: Jail, victim: Service) -> None:
    other = jail.put("secret", SECRET, workspace="w2", mode=0o666)
    private = jail.directory / "private"
    private.write_text(SECRET)
    private.chmod(0o600)
    targets = {
        "read": [
            str(other),
            str(other.parent.parent / "home"),
            str(private),
            str(jail.directory),
            str(jail.workspace().undo),
            str(Path.home()),
            "/root",
            "/etc/shadow",
            "/etc/ssh",
            "/var/lib",
            "/proc/1/environ",
            f"/proc/{victim.pid}/environ",
            f"/proc/{jail.spawner_pid}/fd",
        ],
        "write": [
            str(other),
            str(private),
            "/etc/passwd",
            "/usr/bin/hacked",
            str(jail.workspace().logs / "hacked"),
            str(jail.workspace().undo / "hacked"),
        ],
        "make": [str(other.parent), str(jail.directory), "/usr", "/", "/etc"],
    }
    ran = await jail.python(attacks.READING, json.dumps(targets))
    assert judged("E10 in a closed directory", jail.level, ran.text) == {}
    assert other.read_text() == private.read_text() == SECRET


async def test_e18_and_e19_it_calls_nothing_dangerous_and_meddles_with_nobody(
    jail: Jail, victim: Service
) -> None:
    _, pid = await jail.begin("sleep", "60", workspace="w2")
    targets = json.dumps({"victim": [victim.pid, os.getpid(), jail.spawner_pid, pid]})
    ran = await jail.python(attacks.CALLING, targets)
    assert judged("E18, E19 in a closed directory", jail.level, ran.text) == {}
    await jail.stop("w2")


async def test_e10_it_changes_the_attributes_of_nothing_of_others(jail: Jail) -> None:
    # What its owner lets everybody write can be touched by whoever knows its path.
    other = jail.put("secret", SECRET, workspace="w2", mode=0o644)
    private = jail.directory / "private"
    private.write_text(SECRET)
    targets = [str(other), str(private), str(jail.directory), "/usr", "/etc/passwd", "/root"]
    before = [attacks.attributes(path) for path in targets]
    ran = await jail.python(attacks.CHANGING, json.dumps(targets))
    assert judged("E10, attributes, in a closed directory", jail.level, ran.text) == {}
    assert [attacks.attributes(path) for path in targets] == before


async def test_the_kernel_counts_its_processes_without_any_control_group(jail: Jail) -> None:
    script = """
import os, signal
started = []
try:
    while len(started) < 20:
        pid = os.fork()
        if pid == 0: signal.pause()
        started.append(pid)
except OSError as error:
    print(len(started), error.errno)
for pid in started: os.kill(pid, signal.SIGKILL)
"""
    ran = await jail.python(script, limits=Limits(pids=8))
    assert ran.text == f"7 {errno.EAGAIN}\n"


async def test_stopping_it_finds_everybody_by_its_user(jail: Jail) -> None:
    hidden = "for i in 1 2 3; do (cd / && exec env -i setsid sleep 99) & done; wait"
    await jail.begin("bash", "-c", hidden)
    await jail.begin("sleep", "99", workspace="w2")
    await jail.stop()
    ran = await jail.shell("echo fine")
    assert ran.text == "fine\n"
    left = [uid for uid in jail.users_below() if uid == FIRST]
    others = [uid for uid in jail.users_below() if uid == FIRST + 1]
    await jail.stop("w2")
    assert (left, others) == ([], [FIRST + 1])
