"""Health of a node: it serves while a real command can be run, and otherwise says why not."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import psutil

from parley.cli.commands.status import ProcessStatus, look_at
from parley.cli.stack.plan import Readiness, Sign
from parley.cli.supervision.process_table import ProcessIdentity, ProcessRecord, ProcessTable
from parley.cli.supervision.readiness import NetworkProbe
from parley.clock import SystemClock
from support.toolrunner.fake_node_registry import node_registry
from support.toolrunner.hosted_workspaces import Placer
from support.toolrunner.node import House, connected, toolrunner
from support.toolrunner.sandboxes import offered
from support.toolrunner.worker_users import WORKER_USERS
from toolrunner.processes.command_check import DIRECTORY

WITHIN_S = 90.0


async def until(is_so: Callable[[], Awaitable[bool]]) -> None:
    clock = SystemClock()
    async with asyncio.timeout(WITHIN_S):
        while not await is_so():
            await clock.sleep(0.05)


async def status_of(house: House, pid: int) -> ProcessStatus:
    """Return what `parley status` knows of a node."""
    record = ProcessRecord(
        name="toolrunner",
        service="toolrunner",
        identity=ProcessIdentity(pid, psutil.Process(pid).create_time()),
        address=str(house.address),
        restarts=0,
        readiness=(Readiness(Sign.GRPC_HEALTH, str(house.address)),),
    )
    (found,) = await look_at(ProcessTable(processes=(record,)), NetworkProbe())
    return found


def spawner_below(pid: int) -> int:
    (found,) = [
        each.pid
        for each in psutil.Process(pid).children()
        if "toolrunner.spawner" in " ".join(each.cmdline())
    ]
    return found


async def test_a_node_that_cannot_run_commands_is_not_healthy_and_says_why(tmp_path: Path) -> None:
    house = replace(House.build(tmp_path), sandbox_level=offered()[-1].word)
    async with (
        node_registry(tmp_path) as (registry, address),
        toolrunner(house, TOOLRUNNER_CHATD=str(address)) as node,
        connected(house) as client,
    ):
        placer = Placer(client, house.data)
        placer.enter(await placer.ready())

        def told(problem: str) -> Callable[[], bool]:
            return lambda: registry.heartbeats[-1].load.problem == problem

        async def is_healthy() -> bool:
            return (await status_of(house, node.pid)).healthy

        async def is_ill() -> bool:
            found = await status_of(house, node.pid)
            return not found.healthy and found.problem is not None

        await until(is_healthy)
        spawner = spawner_below(node.pid)
        os.kill(spawner, signal.SIGSTOP)
        try:
            await until(is_ill)
            problem = (await status_of(house, node.pid)).problem
            await registry.until(told(problem or ""))
        finally:
            os.kill(spawner, signal.SIGCONT)
        await until(is_healthy)
        await registry.until(told(""))
        ran = await client.run("echo fine")
        assert ran.output.text == "fine\n"
    assert problem == "commands cannot be run: a command was not run within 10 s"
    if os.geteuid() == 0:
        # As a user whom no workspace has.
        assert os.stat(house.data / DIRECTORY).st_uid == WORKER_USERS.command_check


async def test_a_node_whose_journal_cannot_be_written_is_not_healthy_and_says_why(
    tmp_path: Path,
) -> None:
    house = House.build(tmp_path)
    async with toolrunner(house) as node:

        async def is_healthy() -> bool:
            return (await status_of(house, node.pid)).healthy

        async def is_ill() -> bool:
            found = await status_of(house, node.pid)
            return not found.healthy and found.problem is not None

        await until(is_healthy)
        service = psutil.Process(node.pid)
        kept = service.rlimit(psutil.RLIMIT_FSIZE)
        service.rlimit(psutil.RLIMIT_FSIZE, (4096, kept[1]))
        try:
            await until(is_ill)
            problem = (await status_of(house, node.pid)).problem or ""
        finally:
            service.rlimit(psutil.RLIMIT_FSIZE, kept)
        await until(is_healthy)
    assert problem.startswith("commands cannot be run: the journal cannot be written (")
