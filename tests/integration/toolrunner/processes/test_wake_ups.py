"""Hunting lost wake-ups: many who wait, many quick ends, in an order that a seed decides."""

import asyncio
import random  # noqa: TID251 (seeded: a failure can be had again)
from collections.abc import Callable
from time import monotonic

import pytest

from parley.api.workspace.v1 import process_pb2, process_service_pb2
from support.session.row_sizes import RowSizes
from support.session.told_results import NODE
from support.toolrunner.node import Client

#: Longer than a round may take, so that no answer comes by its own time limit.
WAIT_MS = 60_000
ROUND_S_MAX = 30
ROUNDS, AT_ONCE, WAITERS = 6, 8, 12

COMMANDS = (
    "true",
    "exit 3",
    "echo quick",
    "printf no-newline",
    "echo one; echo two >&2; exit 4",
    "sleep 0.01; echo late",
    "seq 1 3000",
    "sleep 0.0$RANDOM; kill -9 $$",
    "echo held; sleep 600 & exit 5",
)
UNTIL = (
    process_pb2.WAIT_UNTIL_EXIT,
    process_pb2.WAIT_UNTIL_OUTPUT,
    process_pb2.WAIT_UNTIL_MATCH,
)


@pytest.mark.parametrize("seed", [1, 2])
async def test_no_wake_up_is_lost_among_many_waiters_and_quick_ends(
    client: Client, seed: int, sizes: RowSizes, record_property: Callable[[str, object], None]
) -> None:
    chance = random.Random(seed)
    began_at = monotonic()
    rounds, slowest_s = 0, 0.0
    while rounds < ROUNDS or monotonic() - began_at < sizes.stress_s:
        round_at = monotonic()
        commands = [chance.choice(COMMANDS) for _ in range(AT_ONCE)]
        delays_s = [chance.random() * 0.03 for _ in range(WAITERS)]
        async with asyncio.timeout(ROUND_S_MAX), asyncio.TaskGroup() as tasks:
            for command in commands:
                tasks.create_task(one(client, command, delays_s, chance.randrange(3)))
        rounds, slowest_s = rounds + 1, max(slowest_s, monotonic() - round_at)
    waits = rounds * AT_ONCE * WAITERS
    record_property(NODE, f"wake-ups: none lost in {waits} waits, slowest round {slowest_s:.1f} s")


async def one(client: Client, command: str, delays_s: list[float], first: int) -> None:
    process_id = (await client.start(command)).process.process_id
    async with asyncio.TaskGroup() as tasks:
        waits = [
            tasks.create_task(waited(client, process_id, UNTIL[(first + at) % 3], delay_s))
            for at, delay_s in enumerate(delays_s)
        ]
    reasons = {wait.result().reason for wait in waits}
    assert process_pb2.WAIT_REASON_TIMEOUT not in reasons
    exits = [wait.result() for at, wait in enumerate(waits) if (first + at) % 3 == 0]
    final = {(each.process.exit.shell_exit_code, each.output.text) for each in exits}
    assert len(final) == 1
    await client.wait(process_id)


async def waited(
    client: Client, process_id: str, until: "process_pb2.WaitUntil.ValueType", delay_s: float
) -> process_service_pb2.WaitOutputResponse:
    # Some of them come before the end and some after it.
    await asyncio.to_thread(lambda: None)
    await asyncio.wait([asyncio.get_running_loop().create_future()], timeout=delay_s)
    return await client.wait(process_id, until, pattern="o", max_wait_ms=WAIT_MS)


async def test_scenario_3_all_who_wait_wake_with_the_same_final_output(client: Client) -> None:
    started = await client.start("while ! [ -e go ]; do sleep 0.02; done; seq 1 5000; exit 2")
    process_id = started.process.process_id
    async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
        waits = [tasks.create_task(client.wait(process_id)) for _ in range(200)]
        await client.run("touch go")
    answers = {wait.result().SerializeToString(deterministic=True) for wait in waits}
    assert len(answers) == 1
