"""Workspaces that use up what they can get: they are bounded, end when told, and harm nobody."""

import asyncio
import os
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from parley.clock import SystemClock
from support.session.row_sizes import RowSizes
from support.toolrunner.jail import PYTHON, Jail
from support.toolrunner.sandboxes import all_offered, offered, tell
from toolrunner.primitives.domain import Limits
from toolrunner.sandbox import Layer, Level
from toolrunner.spawner import descendants, running_processes

MIB = 1024**2
PIDS = 40
WITHIN_S = 30
#: The cap is kept by the kernel only where a workspace's processes are counted alone.
ALONE = (Layer.UID, Layer.USER_NAMESPACE)


@pytest.fixture
def directory() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="parley-jail-"))
    path.chmod(0o711)
    yield path
    shutil.rmtree(path)


@pytest.fixture(params=all_offered(), ids=lambda level: level.word)
async def jail(request: pytest.FixtureRequest, directory: Path) -> AsyncIterator[Jail]:
    async with Jail.opened(directory, request.param) as opened:
        yield opened


def running(jail: Jail) -> int:
    """Count what the spawner has started, save those that hold namespaces."""
    below = descendants(jail.spawner_pid, running_processes())
    return sum(1 for each in below if "toolrunner.spawner" not in command_of(each.pid))


async def until(is_so: Callable[[], bool]) -> None:
    clock = SystemClock()
    async with asyncio.timeout(WITHIN_S):
        while not is_so():
            await clock.sleep(0.005)


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return "toolrunner.spawner"


def found_outside(directory: Path) -> list[Path]:
    return [path for path in directory.rglob("slipped") if "/w1/" not in str(path)]


async def test_e1_a_fork_bomb_is_capped_and_ended_within_five_seconds(jail: Jail) -> None:
    if not set(ALONE) & set(jail.sandbox.report.layers):
        pytest.skip("processes are counted with those of the service's user")
    bomb = "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass"
    await jail.begin(PYTHON, "-I", "-S", "-c", bomb, limits=Limits(pids=PIDS))
    await until(lambda: running(jail) >= PIDS - 2)
    most = running(jail)
    answered = await jail.shell("echo fine", workspace="w2")
    for _ in range(20):
        most = max(most, running(jail))
    begun_s = time.monotonic()
    await jail.stop()
    took_s = time.monotonic() - begun_s
    print(f"at most {most} of {PIDS} processes, {took_s * 1000:.0f} ms to end")
    tell("E1", jail.level, int(most > PIDS) + running(jail), 2)
    assert answered.text == "fine\n"
    assert (most <= PIDS, took_s < 5, running(jail)) == (True, True, 0)


async def test_e2_a_memory_bomb_harms_only_itself(jail: Jail) -> None:
    _, pid = await jail.begin("sleep", "60", workspace="w2")
    bomb = "data = []\nwhile True: data.append(bytearray(16 << 20))"
    limits = Limits(memory_bytes=256 * MIB)
    ran = await jail.run(PYTHON, "-I", "-S", "-c", bomb, limits=limits)
    is_alive = command_of(pid).startswith("sleep")
    tell("E2", jail.level, int(not is_alive), 1)
    assert (ran.exit.exit_code, "MemoryError" in ran.text) == (1, True)
    assert is_alive
    await jail.stop("w2")


async def test_e3_commands_give_way_to_the_services(jail: Jail) -> None:
    ran = await jail.shell("nice; nice -n -5 nice; renice -n -10 $$; nice")
    told = [int(line) for line in ran.text.splitlines() if line.lstrip("-").isdecimal()]
    tell("E3", jail.level, sum(each < os.nice(0) + 5 for each in told), 3)
    assert all(each >= os.nice(0) + 5 for each in told)


async def test_e4_a_file_that_grows_too_long_is_refused(jail: Jail) -> None:
    ran = await jail.shell(
        "trap '' XFSZ; head -c 64M /dev/zero > big; stat -c %s big",
        limits=Limits(file_bytes=8 * MIB),
    )
    tell("E4 one file", jail.level, int(ran.text.splitlines()[-1] != str(8 * MIB)), 1)
    assert ran.text.splitlines()[-1] == str(8 * MIB)


async def test_e22_an_archive_writes_nothing_outside_and_bombs_stop_at_the_limit(
    jail: Jail, directory: Path
) -> None:
    target = directory / "slipped"
    script = f"""
import gzip, io, os, shutil, sys, tarfile, zipfile
successes = 0
names = ["../../../../../../../..{target}", "{target}", "../../w2/files/slipped", "../home/../x"]
with tarfile.open("slip.tar", "w") as tar:
    for name in names:
        entry = tarfile.TarInfo(name)
        entry.size = 6
        tar.addfile(entry, io.BytesIO(b"hacked"))
with tarfile.open("slip.tar") as tar:
    for entry in tar:
        try:
            os.makedirs(os.path.dirname(entry.name) or ".", exist_ok=True)
            with open(entry.name, "wb") as file:
                file.write(tar.extractfile(entry).read())
            successes += 1
        except OSError:
            pass
with gzip.open("bomb.gz", "wb") as file:
    for _ in range(32):
        file.write(bytes(1 << 20))
import signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
try:
    with gzip.open("bomb.gz") as source, open("bomb", "wb") as file:
        shutil.copyfileobj(source, file)
except OSError as error:
    print("stopped", os.path.getsize("bomb"))
"""
    ran = await jail.python(script, limits=Limits(file_bytes=4 * MIB))
    outside = found_outside(directory)
    tell("E22", jail.level, len(outside) + (ran.text != f"stopped {4 * MIB}\n"), 5)
    assert outside == []
    assert ran.text == f"stopped {4 * MIB}\n", ran.exit


async def test_e23_many_workspaces_with_processes_that_detach_are_all_ended(
    jail: Jail, sizes: RowSizes
) -> None:
    names = [f"w{number}" for number in range(sizes.stopped_workspaces)]
    script = (
        "setsid sleep 600 & (setsid nohup sleep 600 &) ; trap '' TERM; sleep 600 & sleep 600 & "
        "exec sleep 600"
    )
    for name in names:
        await jail.begin("bash", "-c", script, workspace=name)
    count = sizes.stopped_processes * len(names)
    await until(lambda: running(jail) >= count)
    begun_s = time.monotonic()
    async with asyncio.timeout(WITHIN_S), asyncio.TaskGroup() as tasks:
        for name in names:
            tasks.create_task(jail.stop(name))
    took_s = time.monotonic() - begun_s
    print(f"{len(names)} workspaces ended in {took_s * 1000:.0f} ms")
    tell("E23", jail.level, running(jail), count)
    assert running(jail) == 0


async def test_a_workspace_dies_with_its_spawner(directory: Path) -> None:
    if Level.NS not in offered():
        pytest.skip("only namespaces end with their first process")
    async with Jail.opened(directory, Level.NS) as jail:
        await jail.begin("bash", "-c", "setsid sleep 7711 & exec sleep 7711")
        pids = [each.pid for each in descendants(jail.spawner_pid, running_processes())]
        os.kill(jail.spawner_pid, 9)
        await until(lambda: not any(command_of(pid).startswith("sleep") for pid in pids))


async def test_commands_that_follow_one_another_share_what_confines_them(directory: Path) -> None:
    if Level.NS not in offered():
        pytest.skip("there is nothing to share without namespaces")
    async with Jail.opened(directory, Level.NS) as jail:

        def held() -> list[int]:
            return [each.pid for each in descendants(jail.spawner_pid, running_processes())]

        await jail.shell("true")
        first = held()
        await jail.shell("true")
        assert (len(first), held()) == (1, first)
        await jail.stop()
        await until(lambda: held() == [])
