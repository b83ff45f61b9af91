"""Rows about killed, stopped and full nodes: how often each was tried, and how often a call ran.

A call writes down that it ran; afterwards it is repeated under its execution id, as chatd would.
`--full-size` tries each row two hundred times.
"""

import asyncio
import os
import random  # noqa: TID251 (seeded: a failure can be had again)
import signal
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import psutil
import pytest

from parley.api.workspace.v1 import execution_pb2, process_pb2
from parley.api.workspace.v1.execution_service_pb2 import GetJournalRequest
from parley.testing.faultpoints import Action
from support.faults.points import FaultPoints
from support.session.row_sizes import RowSizes
from support.session.told_results import NODE
from support.toolrunner.node import Client, House, connected, reason_of, toolrunner

#: Calls that one fault meets; a chat may have 16 processes.
AT_ONCE = 10
#: Chats that one long stop meets; a workspace may have 64 processes.
CHATS_AT_ONCE = 5
FULL_BYTES = 4096

Key = execution_pb2.ExecutionKey


@dataclass
class Row:
    """The calls of a row, and how often each was executed."""

    name: str
    house: House
    workspace: Path
    ids: list[str] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)

    def executions(self) -> Counter[str]:
        """Return how often each call ran, those that never did included."""
        path = self.workspace / "runs"
        ran = Counter(path.read_text().split() if path.exists() else ())
        return Counter({each: ran[each] for each in self.ids})

    def told(self) -> str:
        times = self.executions().values()
        ended = ", ".join(f"{count} {word}" for word, count in sorted(self.outcomes.items()))
        return (
            f"{self.name}: {len(self.ids)} attempts, executions per call {min(times)} to "
            f"{max(times)}, {ended}"
        )


@pytest.fixture
def row(house: House, request: pytest.FixtureRequest) -> Row:
    name = request.node.originalname.split("_")[1].upper()
    return Row(name, house, house.data / "workspaces")


@asynccontextmanager
async def serving(row: Row, before: Client | None, **settings: str) -> AsyncIterator[Any]:
    """Have a toolrunner, and a chatd that works for one workspace in all of the row."""
    async with toolrunner(row.house, **settings) as process, connected(row.house) as client:
        if before is not None:
            client.stands_for(before)
        row.workspace = row.house.data / "workspaces" / client.context.workspace_id / "files"
        yield process, client


async def fresh_keys(row: Row, client: Client) -> list[Key]:
    """Return keys of calls that were never made, of a chat of their own."""
    client.chat_id = client.new_id()
    client.context.chat_id = client.chat_id
    keys = [await client.key(client.new_id()) for _ in range(AT_ONCE)]
    row.ids += [key.execution_id for key in keys]
    return keys


def command_of(key: Key) -> str:
    return f"echo {key.execution_id} >> runs; sleep 0.2; echo over"


@asynccontextmanager
async def made(client: Client, keys: list[Key]) -> AsyncIterator[list["asyncio.Task[None]"]]:
    """Make calls at the same time; afterwards each has its answer, or will have none."""
    async with asyncio.TaskGroup() as tasks:
        yield [tasks.create_task(attempted(client, key)) for key in keys]


async def attempted(client: Client, key: Key) -> None:
    """Make a call whose answer may never come."""
    client.context.chat_id = key.chat_id
    try:
        await client.start(command_of(key), key=key)
    except grpc.aio.AioRpcError:
        return


async def repeated(row: Row, client: Client, keys: list[Key]) -> None:
    """Make all calls again, wait for their ends, and note how each ended."""
    for key in keys:
        client.context.chat_id = key.chat_id
        started = await client.start(command_of(key), key=key)
        waited = await client.wait(started.process.process_id)
        is_lost = waited.process.state == process_pb2.PROCESS_STATE_LOST
        assert is_lost or waited.output.text == "over\n"
        row.outcomes["unknown" if is_lost else "finished"] += 1


def none_ran_twice(row: Row) -> bool:
    return max(row.executions().values()) <= 1


async def test_a12_killed_nodes(
    row: Row, sizes: RowSizes, record_property: Callable[[str, object], None]
) -> None:
    chance, before, keys = random.Random(12), None, list[Key]()
    while len(row.ids) < sizes.trials or keys:
        async with serving(row, before) as (process, client):
            await repeated(row, client, keys)
            if len(row.ids) >= sizes.trials:
                break
            keys, before = await fresh_keys(row, client), client
            async with made(client, keys) as calls:
                await first_of(calls, chance.randrange(AT_ONCE + 1))
                process.kill()
            await process.wait()
    record_property(NODE, row.told())
    assert none_ran_twice(row)


async def first_of(calls: list["asyncio.Task[None]"], count: int) -> None:
    for _, call in zip(range(count), asyncio.as_completed(calls), strict=False):
        await call


async def test_a13_killed_between_journal_and_result(
    row: Row, sizes: RowSizes, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    points = FaultPoints(tmp_path / "points")
    points.directory.mkdir()
    faults = {
        "TOOLRUNNER_FAULTPOINTS_DIRECTORY": str(points.directory),
        "TOOLRUNNER_ENVIRONMENT": "development",
    }
    before, keys, moments = None, list[Key](), ["spawn.before", "spawn.after"]
    while len(row.ids) < sizes.trials or keys:
        async with serving(row, before, **faults) as (process, client):
            await repeated(row, client, keys)
            if len(row.ids) >= sizes.trials:
                break
            keys, before = await fresh_keys(row, client), client
            points.arm(moments[0], Action.KILL)
            moments.reverse()
            async with made(client, keys):
                pass
            await process.wait()
            points.disarm()
    record_property(NODE, row.told())
    assert none_ran_twice(row)


async def test_a14_deleted_journals(
    row: Row, sizes: RowSizes, record_property: Callable[[str, object], None]
) -> None:
    before, keys = None, list[Key]()
    while len(row.ids) < sizes.trials or keys:
        async with serving(row, before) as (process, client):
            for key in keys:
                with pytest.raises(grpc.aio.AioRpcError, match="the journal is another one"):
                    await client.start(command_of(key), key=key)
                row.outcomes["unknown"] += 1
            if len(row.ids) >= sizes.trials:
                break
            keys, before = await fresh_keys(row, client), client
            async with made(client, keys):
                pass
            process.kill()
            await process.wait()
            for path in row.house.data.glob("journal.sqlite*"):
                path.unlink()
    record_property(NODE, row.told())
    assert none_ran_twice(row)


async def test_a18_stopped_nodes(
    row: Row, sizes: RowSizes, record_property: Callable[[str, object], None]
) -> None:
    async with serving(row, None) as (process, client):
        while len(row.ids) < sizes.trials:
            missing = sizes.trials - len(row.ids)
            chats = range(min(CHATS_AT_ONCE, missing // AT_ONCE))
            keys = [key for _ in chats for key in await fresh_keys(row, client)]
            async with made(client, keys) as calls:
                await first_of(calls, len(keys) // 2)
                os.kill(process.pid, signal.SIGSTOP)
                with pytest.raises(grpc.aio.AioRpcError, match="Deadline"):
                    await client.executions.GetJournal(GetJournalRequest(), timeout=sizes.stop_s)
                os.kill(process.pid, signal.SIGCONT)
            await repeated(row, client, keys)
    record_property(NODE, row.told())
    assert set(row.executions().values()) == {1}
    assert row.outcomes == {"finished": sizes.trials}


async def test_a31_full_disks(
    row: Row, sizes: RowSizes, record_property: Callable[[str, object], None]
) -> None:
    async with serving(row, None) as (process, client):
        service = psutil.Process(process.pid)
        kept = service.rlimit(psutil.RLIMIT_FSIZE)
        while len(row.ids) < sizes.trials:
            keys = await fresh_keys(row, client)
            half = AT_ONCE // 2
            # Half of them run when the disk is full, and half come then.
            async with made(client, keys[:half]):
                pass
            service.rlimit(psutil.RLIMIT_FSIZE, (FULL_BYTES, kept[1]))
            for key in keys[half:]:
                row.outcomes[await refusal(client, key)] += 1
            service.rlimit(psutil.RLIMIT_FSIZE, kept)
            await repeated(row, client, keys)
    record_property(NODE, row.told())
    assert set(row.executions().values()) == {1}
    assert row.outcomes["refused for want of room"] == len(row.ids) // 2


async def refusal(client: Client, key: Key) -> str:
    _, reason = await reason_of(client.start(command_of(key), key=key))
    return "refused for want of room" if reason == "JOURNAL_UNAVAILABLE" else reason
