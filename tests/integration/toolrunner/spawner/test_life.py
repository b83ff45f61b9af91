"""The life of a toolrunner as a process: what it leaves behind, and what it knows afterwards."""

import asyncio
import os
import signal
from asyncio.subprocess import Process
from collections.abc import Iterator

import pytest

from parley.api.workspace.v1 import execution_pb2, process_pb2
from parley.api.workspace.v1 import execution_service_pb2 as executions_api
from support.host.conditions import until
from support.toolrunner.node import Client, House, connected, running, toolrunner
from toolrunner.spawner import running_processes

EXIT_STOPPED, EXIT_FAILED, EXIT_CONFIGURATION = 0, 1, 2
GONE_S = 10.0

SLEEPS = tuple(f"sleep\x00{number}" for number in (8101, 8102, 8103, 8104))
#: One in the group, one in a session of its own that is deaf, one orphaned twice, one nohup.
STUBBORN = (
    "sleep 8101 & "
    "setsid sh -c 'trap \"\" TERM HUP; sleep 8102; sleep 8102' & "
    "(setsid sh -c '(env -i /bin/sleep 8103 &) ' >/dev/null 2>&1 &); "
    "nohup sleep 8104 >/dev/null 2>&1 & "
    "wait"
)


@pytest.fixture(autouse=True)
def nothing_is_left_behind() -> Iterator[None]:
    assert left() == []
    yield
    assert left() == []


def left() -> list[int]:
    return [pid for number in ("8101", "8102", "8103", "8104") for pid in running(f"\x00{number}")]


def child_of(process: Process) -> int:
    """Return the spawner of a toolrunner."""
    (child,) = [each.pid for each in running_processes() if each.parent == process.pid]
    return child


async def start_stubborn(client: Client) -> tuple[str, execution_pb2.ExecutionKey]:
    key = await client.key("stubborn")
    started = await client.start(STUBBORN, key=key)
    await asyncio.to_thread(
        until, lambda: all(map(running, SLEEPS)), "the start of all sleepers", within_s=10
    )
    return started.process.process_id, key


async def stopped(process: Process) -> int:
    async with asyncio.timeout(GONE_S):
        return await process.wait()


async def all_gone() -> None:
    await asyncio.to_thread(until, lambda: not left(), "the end of all", within_s=GONE_S)


async def test_stopping_leaves_nothing_behind_and_answers_who_waits(house: House) -> None:
    async with toolrunner(house) as process:
        async with connected(house) as client:
            process_id, _ = await start_stubborn(client)
            async with asyncio.timeout(GONE_S), asyncio.TaskGroup() as tasks:
                waiting = tasks.create_task(client.wait(process_id, max_wait_ms=300_000))
                # It leaves while the first of these is away, so it has arrived before the second.
                await client.wait(process_id, process_pb2.WAIT_UNTIL_SNAPSHOT)
                await client.wait(process_id, process_pb2.WAIT_UNTIL_SNAPSHOT)
                process.terminate()
            assert waiting.result().reason == process_pb2.WAIT_REASON_GOING_AWAY
        assert await stopped(process) == EXIT_STOPPED
        assert left() == []


async def test_a_killed_toolrunner_leaves_nothing_behind_and_starts_nothing_twice(
    house: House,
) -> None:
    async with toolrunner(house, TOOLRUNNER_ADOPTION_S="0") as process:
        async with connected(house) as client:
            process_id, key = await start_stubborn(client)
            context, chat_id = client.context, client.chat_id
        process.kill()
        await process.wait()
        await all_gone()
    async with toolrunner(house), connected(house) as client:
        client.context, client.chat_id = context, chat_id
        assert await client.generation() == key.journal_generation
        lost = await client.get(process_id)
        assert lost.state == process_pb2.PROCESS_STATE_LOST
        assert lost.lost_reason == process_pb2.PROCESS_LOST_REASON_RUNNER_RESTARTED
        again = await client.start(STUBBORN, key=key)
        assert (again.attached, again.process) == (True, lost)
        request = executions_api.GetExecutionRequest(key=key)
        found = (await client.executions.GetExecution(request)).execution
        assert found.state == execution_pb2.EXECUTION_STATE_FINISHED
        assert (await client.run("echo works")).output.text == "works\n"


async def test_a_killed_spawner_ends_the_service_and_leaves_nothing_behind(house: House) -> None:
    async with toolrunner(house) as process:
        async with connected(house) as client:
            await start_stubborn(client)
            os.kill(child_of(process), signal.SIGKILL)
            assert await stopped(process) == EXIT_FAILED
        await all_gone()


async def test_a_second_toolrunner_on_the_same_data_is_refused(house: House) -> None:
    other = f"unix:{house.directory}/s/other.sock"
    async with (
        toolrunner(house),
        connected(house),
        toolrunner(house, TOOLRUNNER_LISTEN=other) as second,
    ):
        assert await stopped(second) == EXIT_CONFIGURATION
        assert second.stderr is not None
        assert b"another toolrunner has it open" in await second.stderr.read()


async def test_the_service_never_forks_again(house: House) -> None:
    async with toolrunner(house) as process, connected(house) as client:
        started = [await client.start("sleep 600") for _ in range(3)]
        spawner = child_of(process)
        parents = {each.pid: each.parent for each in running_processes()}
        assert {parents[each.process.pid] for each in started} == {spawner}


async def test_a_process_cannot_read_what_the_spawner_has(house: House) -> None:
    async with toolrunner(house) as process, connected(house) as client:
        spawner = child_of(process)
        waited = await client.run(f"tr '\\0' '\\n' < /proc/{spawner}/environ")
        assert "hunter2" not in waited.output.text
