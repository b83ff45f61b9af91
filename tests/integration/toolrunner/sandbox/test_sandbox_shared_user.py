"""Level `landlock` where commands have the service's own user: it does not count as isolation.

What the kernel lets be closed there is closed all the same.
"""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from parley.clock import SystemClock
from support.host.forked_user import USER
from support.toolrunner.jail import Jail
from support.toolrunner.sandboxes import requires, tell
from toolrunner.primitives.domain import WorkspaceId
from toolrunner.primitives.errors import SandboxTooWeak
from toolrunner.processes.node_sandbox import SERVICES
from toolrunner.processes.scan import ProcessScan
from toolrunner.sandbox import Layer, Level, Profile
from toolrunner.spawner import descendants, running_processes

WITHIN_S = 60


#: Leaves nothing by which a process is usually known: parent, session, directory, files, variables.
DAEMON = """
import os, resource, signal
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
try: resource.setrlimit(10, (7, 7))
except (OSError, ValueError): pass
os.chdir("/")
os.closerange(0, 4096)
for number in (signal.SIGTERM, signal.SIGHUP): signal.signal(number, signal.SIG_IGN)
os.execve("/bin/sleep", ["sleep", "600"], {})
"""


@pytest.fixture
def directory() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="parley-jail-"))
    path.chmod(0o711)
    yield path
    shutil.rmtree(path)


@pytest.fixture
async def shared(directory: Path) -> AsyncIterator[Jail]:
    """Workspaces that have the service's user, without control groups to find processes by."""
    async with Jail.opened(
        directory, Level.LANDLOCK, (Layer.UID,), minimum=Level.NONE, has_groups=False
    ) as opened:
        yield opened


def daemons(jail: Jail) -> set[int]:
    below = descendants(jail.spawner_pid, running_processes())
    return {each.pid for each in below if command_of(each.pid) == b"sleep\x00600\x00"}


def command_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


async def until(is_so: Callable[[], bool]) -> None:
    clock = SystemClock()
    async with asyncio.timeout(WITHIN_S):
        while not is_so():
            await clock.sleep(0.01)


async def begun(jail: Jail, workspace: str) -> int:
    """Start a daemon in a workspace; return its pid."""
    before = daemons(jail)
    await jail.python(DAEMON, workspace=workspace)
    await until(lambda: len(daemons(jail)) > len(before))
    (pid,) = daemons(jail) - before
    return pid


@requires(Level.LANDLOCK)
async def test_a_daemon_that_hides_where_it_came_from_ends_with_its_workspace(
    shared: Jail,
) -> None:
    own, other = await begun(shared, "w1"), await begun(shared, "w2")
    await shared.stop("w1")
    left = daemons(shared)
    tell("E23 of a shared user", shared.level, int(own in left), 1)
    assert left == {other}
    await shared.stop("w2")
    assert daemons(shared) == set()


@requires(Level.LANDLOCK)
async def test_a_daemon_that_hides_where_it_came_from_counts_for_its_workspace(
    shared: Jail,
) -> None:
    own, other = await begun(shared, "w1"), await begun(shared, "w2")
    workspaces = shared.workspaces
    found = ProcessScan(shared.spawner_pid, workspaces.by_user, workspaces.by_mark).take({})
    told = {name: {each.seen.pid for each in members} for name, members in found.items()}
    assert told == {WorkspaceId("w1"): {own}, WorkspaceId("w2"): {other}}
    await shared.stop("w1")
    await shared.stop("w2")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a directory of the service's own user")
@requires(Level.LANDLOCK)
async def test_a_directory_of_the_services_user_is_refused_at_a_minimum_of_landlock(
    directory: Path,
) -> None:
    async with Jail.opened(directory, Level.LANDLOCK) as jail:
        paths = jail.workspace("w1")
        os.chown(paths.root, os.geteuid(), os.getegid())
        with pytest.raises(SandboxTooWeak) as refused:
            jail.sandbox.confined(paths, profile=Profile.FULL, network=None)
    assert (refused.value.level, refused.value.required) == ("none", "landlock")
    assert "TOOLRUNNER_SANDBOX_MINIMUM=none" in str(refused.value)


AS_ANOTHER_USER = """
import asyncio, json, os, subprocess, sys
sys.path[:0] = json.loads(sys.argv[1])
from pathlib import Path
from support.toolrunner import attacks
from support.toolrunner.jail import Jail
from support.host.forked_user import USER
from toolrunner.sandbox import BelowMinimum, Layer, Level

SLOWING = '''
import ctypes, json, os
libc = ctypes.CDLL(None, use_errno=True)
told = {}
def attempt(name, result):
    told[name] = [result == 0, os.strerror(ctypes.get_errno())]
attempt("priority of the user", libc.setpriority(2, 0, 19))
attempt("priority of the user by number", libc.setpriority(2, os.getuid(), 19))
attempt("input and output of the user", libc.syscall(251 if X86 else 30, 3, 0, 3 << 13))
attempt("own priority refused", 0 if libc.setpriority(0, 0, 19) else 1)
for id in range(VICTIM, VICTIM + 1):
    attempt(f"shared memory {id}", libc.shmctl(id, 0, None))
print(json.dumps(told))
'''

async def main():
    directory = Path(sys.argv[2])
    key = directory / "keys"
    key.mkdir(mode=0o700)
    private = key / "signing.pem"
    private.touch(mode=0o600)
    import ctypes
    libc = ctypes.CDLL(None, use_errno=True)
    segment = libc.shmget(0, 4096, 0o1600)
    victim = subprocess.Popen(["sleep", "600"])
    try:
        try:
            async with Jail.opened(directory, Level.LANDLOCK):
                refused = ""
        except BelowMinimum as error:
            refused = str(error)
        async with Jail.opened(directory, Level.LANDLOCK, minimum=Level.NONE) as jail:
            report = jail.sandbox.report
            other = jail.workspace("w2")
            targets = [str(each) for each in (directory, key, other.root, other.home, "/tmp")]
            watched = await jail.python(attacks.WATCHING, json.dumps(targets))
            script = f"VICTIM, X86 = {segment}, {os.uname().machine == 'x86_64'}" + SLOWING
            slowed = await jail.python(script)
            changed = await jail.python(attacks.CHANGING, json.dumps([str(key), str(private)]))
            launch = jail.launch("true")
            made = await jail.shell("echo made > own; chmod +x own; ls -l own; ulimit -x")
            print(json.dumps({
                "refused": refused, "level": report.level.word, "applied": report.applied.word,
                "told": launch.confinement.used.level.word, "watched": json.loads(watched.text),
                "slowed": json.loads(slowed.text), "nice": os.getpriority(0, victim.pid),
                "own": os.getpriority(0, 0), "made": made.text,
                "changed": json.loads(changed.text), "mode": private.stat().st_mode,
            }))
    finally:
        victim.kill()
        victim.wait()
        libc.shmctl(segment, 0, None)

asyncio.run(main())
"""


@pytest.mark.skipif(
    os.geteuid() != 0 or not os.path.realpath(sys.executable).startswith("/usr/"),
    reason="needs root, to become somebody else, and a Python that everybody can run",
)
@requires(Level.LANDLOCK)
def test_landlock_of_an_ordinary_user_counts_as_none_and_closes_what_can_be(
    directory: Path,
) -> None:
    os.chown(directory, USER, USER)
    paths = [str(SERVICES), str(SERVICES.parent / "libs"), str(SERVICES.parent / "tests")]
    ended = subprocess.run(
        [sys.executable, "-c", AS_ANOTHER_USER, json.dumps(paths), str(directory)],
        user=USER,
        group=USER,
        extra_groups=[],
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout)
    tried = {**found["watched"], **found["slowed"]}
    successes = {name: detail for name, (is_success, detail) in tried.items() if is_success}
    tell("E10, E18 of an ordinary user", Level.LANDLOCK, len(successes), len(tried))
    assert successes == {}
    assert (found["nice"], found["own"]) == (os.nice(0), os.nice(0))
    # What the kernel leaves open, as docs/sandbox.md says, is why the level is "none".
    modes = {name: each for name, each in found["changed"].items() if name.startswith("chmod ")}
    assert [is_success for is_success, _ in modes.values()] == [True, True]
    assert found["mode"] & 0o044 == 0o044
    # It may still change its own files, and read its limits.
    assert found["made"].startswith("-rwx")
    assert found["made"].splitlines()[-1].isdecimal()
    assert (found["level"], found["applied"], found["told"]) == ("none", "landlock", "none")
    for words in ('"none"', '"landlock"', "root", "user namespaces", "SANDBOX_MINIMUM=none"):
        assert words in found["refused"]
