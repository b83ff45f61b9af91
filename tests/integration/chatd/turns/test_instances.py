"""Instance files of processes that died, found by a process that starts."""

import subprocess
import sys
from pathlib import Path

from chatd.primitives.domain.ids import WorkerId
from chatd.workers.engine.instances import end_dead_workers
from parley.clock import FakeClock, SystemClock
from parley.instance_file import InstanceFile, lock_instance_file

DEAD = WorkerId("00000000-0000-0000-0000-0000000000aa")
LIVING = WorkerId("00000000-0000-0000-0000-0000000000bb")
DIE = """
import os, sys
from pathlib import Path
from parley.instance_file import InstanceFile
InstanceFile.lock(Path(sys.argv[1])).name(sys.argv[2])
os.kill(os.getpid(), 9)
"""


def die(path: Path, worker_id: WorkerId) -> None:
    """Let a process name itself in a file and be killed."""
    subprocess.run([sys.executable, "-c", DIE, str(path), worker_id], check=False)


async def test_a_process_that_starts_ends_the_workers_of_the_dead(tmp_path: Path) -> None:
    living = InstanceFile.lock(tmp_path / "chatd-1.instance")
    assert living is not None
    living.name(LIVING)
    die(tmp_path / "chatd-0.instance", DEAD)
    ended: list[WorkerId] = []

    async def end(worker_id: WorkerId) -> None:
        ended.append(worker_id)

    await end_dead_workers(tmp_path, end)
    await end_dead_workers(tmp_path, end)
    assert ended == [DEAD]
    living.close()


async def test_a_death_that_could_not_be_stored_is_found_again(tmp_path: Path) -> None:
    die(tmp_path / "chatd-0.instance", DEAD)
    ended: list[WorkerId] = []

    async def fail(worker_id: WorkerId) -> None:
        raise ConnectionError

    async def end(worker_id: WorkerId) -> None:
        ended.append(worker_id)

    for attempt in (fail, end):
        try:
            await end_dead_workers(tmp_path, attempt)
        except ConnectionError:
            continue
    assert ended == [DEAD]


async def test_a_process_names_its_worker_in_its_file(tmp_path: Path) -> None:
    path = tmp_path / "chatd-0.instance"
    locked = await lock_instance_file(path, LIVING, SystemClock())
    assert locked is not None
    assert locked.named == LIVING
    locked.close()


async def test_a_file_that_another_process_holds_is_done_without(tmp_path: Path) -> None:
    path = tmp_path / "chatd-0.instance"
    held = InstanceFile.lock(path)
    assert held is not None
    assert await lock_instance_file(path, LIVING, ImpatientClock()) is None
    held.close()


class ImpatientClock(FakeClock):
    """Time passes by sleeping."""

    async def sleep(self, delay_s: float) -> None:
        self.advance(delay_s)
