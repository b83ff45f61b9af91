"""A disk of the database that is full: row A29."""

import asyncio
import os
import secrets
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from support.faults.lab import FaultLab
from support.faults.trials import faults

pytestmark = pytest.mark.slow

DISK_MIB = 256
MOVED = ("chat_messages", "tool_calls", "chat_partials")


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """Give a directory on a small file system of its own."""
    disk = Path(tempfile.mkdtemp(prefix="parley-disk-"))
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MIB}m", "tmpfs", str(disk)]
    mounted = subprocess.run(mount, capture_output=True, text=True, check=False)
    if mounted.returncode != 0:
        disk.rmdir()
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.strip()}")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)
        disk.rmdir()


@asynccontextmanager
async def tables_on(lab: FaultLab, disk: Path) -> AsyncIterator[None]:
    """Keep the tables that grow on another disk."""
    (server,) = await lab.query("SELECT pg_backend_pid() AS pid")
    owner = psutil.Process(server["pid"]).uids().real
    data = disk / "data"
    data.mkdir()
    os.chown(disk, owner, -1)
    os.chown(data, owner, -1)
    await lab.query(f"CREATE TABLESPACE small LOCATION '{data}'")
    try:
        for table in MOVED:
            await lab.query(f"ALTER TABLE chat.{table} SET TABLESPACE small")
        yield
    finally:
        for table in MOVED:
            await lab.query(f"ALTER TABLE chat.{table} SET TABLESPACE pg_default")
        await lab.query("DROP TABLESPACE small")


@contextmanager
def full(disk: Path) -> Iterator[None]:
    """Leave no byte free."""
    filler = disk / "filler"
    with filler.open("wb") as file, suppress(OSError):
        while True:
            file.write(bytes(1 << 16))
            file.flush()
    try:
        yield
    finally:
        filler.unlink()


@pytest.mark.row("A29")
async def test_a29_a_full_disk_is_told_and_everything_goes_on_when_there_is_room_again(
    lab: FaultLab, small_disk: Path
) -> None:
    async with tables_on(lab, small_disk):
        async for fault in faults(lab):
            client = await lab.client()
            chat_ids = await fault.create_all(client, fault.texts("repeat after me: @"))
            await fault.at_rest()
            running = await fault.create_all(
                client,
                fault.texts("run: echo @ >> runs; sleep 1; head -c 20000 /dev/urandom | base64"),
            )
            running += await fault.create_all(client, fault.texts("count to 60, @"))
            keyed = {
                chat_id: (lab.unique(), text + secrets.token_hex(40_000))
                for chat_id, text in zip(chat_ids, fault.texts("repeat after me: @"), strict=True)
            }
            pids = {each.pid for each in lab.processes()}
            with full(small_disk):
                async with asyncio.TaskGroup() as tasks:
                    for chat_id, (key, text) in keyed.items():
                        tasks.create_task(fault.send_by_http(chat_id, text, key))
                await lab.sleep(3.0)
                fault.trial(len(keyed) + len(running))
            freed_s = time.monotonic()
            for chat_id in running:
                fault.expect(chat_id).may_fail = True
            for chat_id, (key, text) in keyed.items():
                assert await fault.send(client, chat_id, text, key=key)
            states = await fault.at_rest()
            lab.row.figures["rest_after_s"].append(time.monotonic() - freed_s)
            failed = [chat_id for chat_id in running if states[chat_id].status == "error"]
            lab.row.counts["turns_that_failed"] += len(failed)
            if pids != {each.pid for each in lab.processes()}:
                lab.row.problems.append("a chatd died of the full disk")
