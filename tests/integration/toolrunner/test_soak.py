"""Many tool calls one after the other: what the service and its spawner need does not grow."""

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass

import psutil

from parley.api.workspace.v1 import execution_service_pb2 as executions_api
from support.session.row_sizes import RowSizes
from support.session.told_results import NODE
from support.toolrunner.node import Client, House, connected, toolrunner

AT_ONCE = 10
#: So many finished processes are held in memory; before, it has to grow.
HELD = 100
MEBIBYTE = 1024 * 1024
CLOSED_S_MAX = 60.0
#: What a heap may be larger by chance; a process that leaks 10 KB a call takes 40 MiB in 4,000.
SERVICE_MIB, SPAWNER_MIB, DESCRIPTORS = 16.0, 4.0, 5


@dataclass(frozen=True)
class Needs:
    """What a process has of the machine."""

    rss_mib: float
    descriptors: int

    @classmethod
    def of(cls, pid: int) -> "Needs":
        rss = psutil.Process(pid).memory_info().rss
        return cls(rss / MEBIBYTE, len(os.listdir(f"/proc/{pid}/fd")))


def has_closed(early: Needs, late: Needs) -> bool:
    return late.descriptors <= early.descriptors + DESCRIPTORS


async def call(client: Client, number: int, generation: str) -> None:
    """Run a command that prints 20 KB, and say that its result is known."""
    key = await client.key(f"e{number}")
    started = await client.start(f"seq {number} {number + 3000}; exit {number % 3}", key=key)
    waited = await client.wait(started.process.process_id)
    assert waited.process.exit.exit_code == number % 3
    await client.executions.AckExecutions(
        executions_api.AckExecutionsRequest(
            request_id=client.new_id(),
            execution_ids=[key.execution_id],
            journal_generation=generation,
        )
    )


async def calls(client: Client, numbers: range) -> None:
    generation = await client.generation()
    for first in range(numbers.start, numbers.stop, AT_ONCE):
        async with asyncio.TaskGroup() as tasks:
            for number in range(first, min(first + AT_ONCE, numbers.stop)):
                tasks.create_task(call(client, number, generation))


async def test_h10_many_tool_calls_take_no_more_memory(
    each_house: House, sizes: RowSizes, record_property: Callable[[str, object], None]
) -> None:
    async with toolrunner(each_house) as process, connected(each_house) as client:
        (spawner,) = psutil.Process(process.pid).children()
        warm = max(2 * HELD, sizes.calls // 5)
        await calls(client, range(warm))
        before = Needs.of(process.pid), Needs.of(spawner.pid)
        await calls(client, range(warm, warm + sizes.calls))
        async with asyncio.timeout(CLOSED_S_MAX):
            # What a call held is closed a moment after its answer.
            while True:
                after = Needs.of(process.pid), Needs.of(spawner.pid)
                if all(map(has_closed, before, after)):
                    break
                await client.generation()
    grown = [late.rss_mib - early.rss_mib for early, late in zip(before, after, strict=True)]
    record_property(
        NODE,
        f"H10, sandbox {each_house.sandbox_level}: {sizes.calls} calls after {warm}: "
        f"service {before[0].rss_mib:.1f} to {after[0].rss_mib:.1f} MiB, "
        f"spawner {before[1].rss_mib:.1f} to {after[1].rss_mib:.1f} MiB",
    )
    assert grown[0] < SERVICE_MIB
    assert grown[1] < SPAWNER_MIB
