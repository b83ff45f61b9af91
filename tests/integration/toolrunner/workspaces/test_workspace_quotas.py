"""Workspaces that take more than they may: they are stopped, told why, and can go on."""

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from pathlib import Path

import grpc
import pytest

from parley.api.workspace.v1 import process_pb2, sandbox_pb2
from parley.clock import SystemClock
from support.host.forked_user import USER
from support.host.ordinary_user import needs_root
from support.toolrunner.files import Files
from support.toolrunner.hosted_workspaces import Placer, scratch
from support.toolrunner.node import Client, House, connected, node, reason_of, toolrunner
from support.toolrunner.sandboxes import offered, requires, tell
from toolrunner.sandbox import Level

MIB = 1024**2
#: Where others free as much as is written, a workspace is measured every 30 s only.
WITHIN_S = 90
DISK_MIB = 24
INODES = 500
MEMORY_MIB = 192


@pytest.fixture(params=offered(), ids=lambda level: level.word)
def house(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> House:
    level: Level = request.param
    directory = tmp_path_factory.mktemp("q")
    for path in (directory, *directory.parents[:2]):
        path.chmod(0o711)
    house = replace(House.build(directory), sandbox_level=level.word)
    house.settings["TOOLRUNNER_WORKSPACE_DISK_BYTES"] = str(DISK_MIB * MIB)
    house.settings["TOOLRUNNER_WORKSPACE_INODES"] = str(INODES)
    house.settings["TOOLRUNNER_WORKSPACE_MEMORY_BYTES"] = str(MEMORY_MIB * MIB)
    return house


@pytest.fixture
async def client(house: House) -> AsyncIterator[Client]:
    async with node(house), connected(house) as client:
        yield client


async def ended(client: Client, command: str) -> process_pb2.Process:
    started = await client.start(command)
    waited = await client.wait(started.process.process_id, max_wait_ms=WITHIN_S * 1000)
    return waited.process


async def until(is_so: Callable[[], bool]) -> None:
    clock = SystemClock()
    async with asyncio.timeout(WITHIN_S):
        while not is_so():
            await clock.sleep(0.02)


FILLS = {
    "disk_bytes": "i=0; while :; do head -c 1M /dev/zero > fill-$i; i=$((i+1)); sleep 0.02; done",
    "inodes": "mkdir d; i=0; while :; do : > d/$i; i=$((i+1)); done",
}


@pytest.mark.parametrize("dimension", FILLS)
async def test_e4_a_workspace_that_fills_the_disk_is_stopped_and_told_and_can_clear_up(
    client: Client, house: House, dimension: str
) -> None:
    level = Level[house.sandbox_level.upper()]
    neighbour = client.new_id()
    own = client.context.workspace_id
    client.context.workspace_id = neighbour
    beside = await client.start("exec sleep 600")
    client.context.workspace_id = own
    process = await ended(client, FILLS[dimension])
    tell(f"E4 {dimension}", level, int(process.exit.exceeded != dimension), 1)
    assert process.exit.exceeded == dimension
    assert process.exit.signal in ("SIGTERM", "SIGKILL")
    files = house.data / "workspaces" / own / "files"
    taken = sum(each.stat().st_blocks * 512 for each in files.rglob("*"))
    assert taken < 4 * DISK_MIB * MIB
    # No file grows, and tools for files are refused; whoever removes files may.
    grown = await ended(client, "trap '' XFSZ; head -c 64k /dev/zero > more; stat -c %s more")
    assert grown.exit.exit_code is not None
    refused = await reason_of(Files(client, Path()).write("new", b"text"))
    assert refused == (grpc.StatusCode.RESOURCE_EXHAUSTED, "QUOTA_EXHAUSTED")
    assert (files / "more").stat().st_size <= 1
    removed = await ended(client, "rm -r -- *")
    assert removed.exit.exit_code == 0

    async def can_write() -> bool:
        try:
            await Files(client, Path()).write("new", b"text")
        except grpc.aio.AioRpcError:
            return False
        return True

    clock = SystemClock()
    async with asyncio.timeout(WITHIN_S):
        while not await can_write():
            await clock.sleep(0.1)
    assert (await ended(client, "head -c 64k /dev/zero > more")).exit.exit_code == 0
    client.context.workspace_id = neighbour
    assert (await client.get(beside.process.process_id)).state == process_pb2.PROCESS_STATE_RUNNING


#: Ways to keep what has no name; each ends by itself before it could do harm.
HIDING = """
import mmap, os, socket, sys, tempfile, threading, time
kept = []
def hide(fd):
    {hide}
def fill():
    for _ in range(200):
        fd, path = tempfile.mkstemp(dir=".")
        os.unlink(path)
        os.write(fd, os.urandom(1 << 20))
        hide(fd)
        time.sleep(0.02)
    time.sleep(600)
{run}
"""
UNNAMED = {
    "descriptor": ("pass", "fill()"),
    "mapping": ("kept.append(mmap.mmap(fd, 4096)); os.close(fd)", "fill()"),
    "another thread": (
        "pass",
        "import ctypes; threading.Thread(target=fill).start(); "
        "ctypes.CDLL(None).pthread_exit(None)",
    ),
    "in flight": (
        "ends = socket.socketpair(); socket.send_fds(ends[0], [b'x'], [fd]); "
        "kept.append(ends); os.close(fd)",
        "fill()",
    ),
}


@pytest.mark.parametrize("way", UNNAMED)
async def test_e4_files_without_a_name_count_as_long_as_somebody_holds_them(
    client: Client, house: House, way: str
) -> None:
    level = Level[house.sandbox_level.upper()]
    hide, run = UNNAMED[way]
    script = HIDING.format(hide=hide, run=run)
    client.context.profile = sandbox_pb2.SANDBOX_PROFILE_FULL
    await client.run("cat > fill.py", stdin=script.encode())
    process = await ended(client, "exec python3 -I -S fill.py")
    tell(f"E4 without a name, {way}", level, int(process.exit.exceeded != "disk_bytes"), 1)
    assert process.exit.exceeded == "disk_bytes", process


#: Fills a directory that nobody may look into.
CLOSED = """
mkdir d; cd d; chmod 0300 .; i=0
while :; do head -c 1M /dev/urandom > fill-$i; i=$((i+1)); test $i -lt 200 || exec sleep 600; done
"""
#: The same in a directory above all, which the service cannot pass then.
ROOT_CLOSED = """
chmod 000 .; exec 3> /dev/null; i=0
while test $i -lt 200; do head -c 1M /dev/urandom >> $HOME/fill; i=$((i+1)); done; exec sleep 600
"""


@pytest.fixture
def open_directory() -> Iterator[Path]:
    # Not pytest's own: other users must be able to walk to it.
    path = Path(tempfile.mkdtemp(prefix="parley-q-"))
    yield path
    shutil.rmtree(path)


@needs_root
@requires(Level.NS)
@pytest.mark.parametrize("script", [CLOSED, ROOT_CLOSED], ids=["below", "above"])
async def test_e4_an_ordinary_users_node_counts_what_is_closed_to_it(
    open_directory: Path, script: str
) -> None:
    house = replace(House.build(open_directory), sandbox_level=Level.NS.word).given_to(USER)
    house.settings["TOOLRUNNER_WORKSPACE_DISK_BYTES"] = str(DISK_MIB * MIB)
    async with toolrunner(house), connected(house) as client:
        process = await ended(client, script)
        tell("E4 closed", Level.NS, int(process.exit.exceeded != "disk_bytes"), 1)
        assert process.exit.exceeded == "disk_bytes"


#: Each has less than one may; together they have too much.
SEVERAL = """
python3 -I -S -c '
import os, time
for _ in range(5):
    if os.fork() == 0:
        data = bytearray(64 << 20)
        time.sleep(600)
os.wait()
'"""
#: Memory that nobody has mapped.
UNMAPPED = """
python3 -I -S -c '
import os, time
fds = [os.memfd_create(str(i)) for i in range(64)]
for fd in fds:
    for _ in range(8):
        os.write(fd, bytes(1 << 20))
    time.sleep(0.02)
time.sleep(600)
'"""


@pytest.mark.parametrize("bomb", [SEVERAL, UNMAPPED], ids=["several", "unmapped"])
async def test_e2_memory_of_a_whole_workspace_is_bounded_and_its_end_says_so(
    client: Client, house: House, bomb: str
) -> None:
    level = Level[house.sandbox_level.upper()]
    own, client.context.workspace_id = client.context.workspace_id, client.new_id()
    beside = await client.start("exec sleep 600")
    other, client.context.workspace_id = client.context.workspace_id, own
    started = await client.start(f"{bomb.strip()}; kill $(jobs -p) 2>/dev/null; exit 3")
    waited = await client.wait(started.process.process_id, max_wait_ms=WITHIN_S * 1000)
    process = waited.process
    tell("E2 of a workspace", level, int(not process.exit.oom_killed), 1)
    assert (process.exit.oom_killed, process.exit.exceeded) == (True, "memory_bytes")
    client.context.workspace_id = other
    assert (await client.get(beside.process.process_id)).state == process_pb2.PROCESS_STATE_RUNNING


async def test_a_template_says_what_its_workspaces_may_use(client: Client, house: House) -> None:
    placer = Placer(client, house.data)
    spec = scratch()
    spec.profile = sandbox_pb2.SANDBOX_PROFILE_FULL
    spec.limits.inodes = 20
    spec.limits.output_bytes = 10_000
    spec.limits.pids = 70
    placer.enter(await placer.ready(spec))
    told = await client.run("bash -c 'ulimit -u'; seq 100000")
    # Where its user is not its own, the processes of others come on top.
    assert 70 <= int(told.output.text.splitlines()[0]) < 1024
    process = await client.get(told.process.process_id)
    assert process.output_bytes - process.log_start_bytes < 100_000 < process.output_bytes
    process = await ended(client, "i=0; while :; do : > $i; i=$((i+1)); sleep 0.01; done")
    assert process.exit.exceeded == "inodes"
