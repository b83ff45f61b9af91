"""Processes that died are found by their instance files, and what they held is released."""

import subprocess
import sys
from pathlib import Path

from mcpgateway.client.call import Outcome
from mcpgateway.runtime.instances import Instances
from mcpgateway.runtime.journal import Journal
from mcpgateway.servers.domain import Reason
from parley.clock import SystemClock
from parley.postgres import Database
from support.mcpgateway.values import an_order

DEAD = "01900000-0000-7000-8000-0000000000dd"
LIVING = "01900000-0000-7000-8000-0000000000ee"
DIE = """
import os, sys
from pathlib import Path
from parley.instance_file import InstanceFile
InstanceFile.lock(Path(sys.argv[1])).name(sys.argv[2])
os.kill(os.getpid(), 9)
"""


def die(path: Path, process_id: str) -> None:
    """Let a process name itself in a file and be killed."""
    subprocess.run([sys.executable, "-c", DIE, str(path), process_id], check=False)


async def test_the_calls_of_a_dead_process_are_unknown_without_waiting_for_its_lease(
    tmp_path: Path, database: Database
) -> None:
    dead, living = await Journal.open(database, DEAD), await Journal.open(database, LIVING)
    await dead.begin(an_order("of-the-dead"))
    await living.begin(an_order("of-the-living"))
    die(tmp_path / "0.instance", DEAD)

    path = tmp_path / "1.instance"
    async with Instances.open(path, LIVING, living, SystemClock()) as instances:
        await instances.end_dead()
        await living.fail_abandoned_calls()

    end = (await living.read("of-the-dead")).end
    assert end is not None
    assert (end.outcome, end.reason) == (Outcome.UNKNOWN, Reason.GATEWAY_LOST)
    assert (await living.read("of-the-living")).end is None


async def test_a_file_that_names_no_process_is_cleared(tmp_path: Path, database: Database) -> None:
    await Journal.open(database, DEAD)
    living = await Journal.open(database, LIVING)
    die(tmp_path / "0.instance", "no-uuid")
    die(tmp_path / "2.instance", DEAD)

    async with Instances.open(tmp_path / "1.instance", LIVING, living, SystemClock()):
        pass
    rows = await database.pool.fetch("SELECT id::text FROM mcp.gateways")

    assert [row["id"] for row in rows] == [LIVING]
    assert (tmp_path / "0.instance").read_text() == ""


async def test_a_process_that_starts_in_the_file_of_a_dead_one_ends_it(
    tmp_path: Path, database: Database
) -> None:
    await Journal.open(database, DEAD)
    living = await Journal.open(database, LIVING)
    path = tmp_path / "0.instance"
    die(path, DEAD)

    async with Instances.open(path, LIVING, living, SystemClock()):
        assert LIVING in path.read_text()
    rows = await database.pool.fetch("SELECT id::text FROM mcp.gateways")

    assert [row["id"] for row in rows] == [LIVING]
    assert path.read_text() == ""
