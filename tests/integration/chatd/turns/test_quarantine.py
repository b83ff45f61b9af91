"""The process in quarantine as its parent sees it, with a program in place of chatd."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from chatd.primitives.domain.ids import WorkerId
from chatd.workers.engine.quarantine import NAME, Quarantine, quarantine_environment
from parley.clock import SystemClock
from parley.instance_file import SUFFIX, InstanceFile

PROGRAM = """
import os, sys
from pathlib import Path
from parley.instance_file import InstanceFile
locked = InstanceFile.lock(Path(os.environ["CHATD_INSTANCE_FILE"]))
number = len(list(Path(sys.argv[1]).iterdir()))
locked.name(f"worker-{number}")
# A start is seen with its content, and not while it is written.
written = Path(sys.argv[1] + ".written")
written.write_text(os.environ["CHATD_IS_QUARANTINE"])
written.rename(Path(sys.argv[1]) / str(number))
if number == 0:
    os.kill(os.getpid(), 9)
if number == 1:
    locked.clear()
    sys.exit()
sys.stdin = open(sys.argv[2])
"""


class Ends:
    """Keeps the workers that were ended."""

    def __init__(self) -> None:
        self.found: asyncio.Queue[WorkerId] = asyncio.Queue()

    async def end(self, worker_id: WorkerId) -> None:
        self.found.put_nowait(worker_id)


@asynccontextmanager
async def running(directory: Path, ends: Ends) -> AsyncIterator[Quarantine]:
    """Run a quarantine whose program keeps a file for each of its starts."""
    starts, never = directory / "starts", directory / "never"
    starts.mkdir(exist_ok=True)
    if not never.exists():
        os.mkfifo(never)
    quarantine = Quarantine(
        {"PATH": os.defpath},
        directory,
        end=ends.end,
        clock=SystemClock(),
        program=(sys.executable, "-c", PROGRAM, str(starts), str(never)),
    )
    async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
        loop = tasks.create_task(quarantine.run())
        yield quarantine
        loop.cancel()


async def until_started(directory: Path, quarantine: Quarantine, count: int) -> None:
    """Request a process until there were so many starts."""
    while len(list((directory / "starts").iterdir())) < count:
        quarantine.request()
        await asyncio.get_running_loop().run_in_executor(None, os.sched_yield)


async def test_the_death_of_the_process_ends_its_worker_and_the_next_request_starts_another(
    tmp_path: Path,
) -> None:
    ends = Ends()
    async with running(tmp_path, ends) as quarantine:
        quarantine.request()
        assert await ends.found.get() == "worker-0"
        # The second puts everything in order and ends by itself, the third stays.
        await until_started(tmp_path, quarantine, 3)
        assert ends.found.empty()
        assert InstanceFile.lock(tmp_path / f"{NAME}{SUFFIX}") is None
        assert InstanceFile.lock(tmp_path / f"{NAME}.lock") is None
    told = [each.read_text() for each in sorted((tmp_path / "starts").iterdir())]
    assert told == ["true"] * 3
    # Its parent ended it.
    left = InstanceFile.lock(tmp_path / f"{NAME}{SUFFIX}")
    assert left is not None
    left.close()


def test_the_process_has_the_settings_of_its_parent_but_its_own_address_and_one_slot() -> None:
    given = {
        "PATH": "/bin",
        "CHATD_LISTEN": "tls:0.0.0.0:7002",
        "CHATD_ADVERTISE": "tls:chatd-1:7002",
        "CHATD_METRICS_LISTEN": "0.0.0.0:9464",
        "CHATD_PARENT_PID": "42",
        "CHATD_LEASE_S": "6",
    }
    assert quarantine_environment(given, Path("/run/x")) == {
        "PATH": "/bin",
        "CHATD_LEASE_S": "6",
        "CHATD_IS_QUARANTINE": "true",
        "CHATD_RUNNING_CHATS_MAX": "1",
        "CHATD_DATABASE_CONNECTIONS_MAX": "6",
        "CHATD_LISTEN": "unix:/run/x/chatd-quarantine.sock",
        "CHATD_INSTANCE_FILE": "/run/x/chatd-quarantine.instance",
    }
