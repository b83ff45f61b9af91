"""Acknowledged calls with a real toolrunner: dropped, and never executed again."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta

import pytest

from chatd.chats.domain.chat import ChatState, PendingCall, Status
from chatd.content.domain.parts import ToolOutcome
from chatd.content.domain.tools import (
    UNKNOWN_OUTCOME,
    Execution,
    Executor,
    Outcome,
    StillRunning,
    Untraceable,
)
from chatd.primitives.domain.ids import MessageId
from chatd.tools.acknowledgements import Acknowledgements
from chatd.tools.routing import RoutedTools
from chatd.turns.engine.calls import CallLimits, OpenCall, ToolCaller
from parley.clock import FakeClock
from parley.rpc import Channels
from support.chatd.workspaces.workspace_calls import CHAT, Calls
from support.toolrunner.node import House, connected, node
from toolrunner.journal.journal import Journal

RUN = json.dumps({"command": "echo ran >> runs", "timeout": "5s"})
WRITE = json.dumps({"path": "runs", "content": "ran\n"})
DAY = timedelta(days=1)


@pytest.fixture
def house(tmp_path_factory: pytest.TempPathFactory) -> House:
    return House.build(tmp_path_factory.mktemp("t"))


@asynccontextmanager
async def node_calls(house: House) -> AsyncIterator[Calls]:
    async with asyncio.timeout(30), node(house), connected(house) as client:
        yield Calls.through(Channels((house.address,), lambda _: client.channel), house.clock)


async def taken_over(calls: Calls, execution: Execution) -> object:
    """Complete a dispatched call as the next owner of its chat does."""
    caller = ToolCaller(calls.tools, may_act=lambda: True, clock=FakeClock(), limits=CallLimits())
    return await caller.run(OpenCall(replace(execution, owner_epoch=2), is_new=False))


async def acknowledge(calls: Calls, executions: Sequence[Execution]) -> None:
    generation = executions[0].dispatch.journal_generation
    await calls.tools.acknowledge(generation, [each.dispatch.execution_id for each in executions])


async def runs(calls: Calls) -> str:
    _, told = await calls.call("read_file", path="runs")
    return str(told["content"])


def pruned(house: House) -> int:
    """Prune the journal of a stopped node as if a day had passed."""
    journal = Journal.open(
        house.data / "journal.sqlite", new_generation="", boot_id="", clock=house.clock
    )
    later = house.clock.now() + DAY
    count = journal.prune(acknowledged_before=later, finished_before=later - 2 * DAY, at_once_max=9)
    journal.close()
    return count


async def test_a_stored_result_is_acknowledged_by_the_commit_that_stores_it(house: House) -> None:
    async with node_calls(house) as calls:
        acknowledgements = Acknowledgements({Executor.TOOLRUNNER: calls.tools}, house.clock)
        routed = RoutedTools({Executor.TOOLRUNNER: calls.tools}, acknowledgements.dispatched)
        execution = await calls.execution("execute", RUN)
        pending = (PendingCall("call-1", "execute", execution.dispatch.execution_id),)
        state = ChatState(CHAT, Status.RUNNING, 5, 5, 1, MessageId(3), pending=pending)
        acknowledgements.state_changed(state)
        ended = await routed.execute(execution)
        assert isinstance(ended, Outcome)
        assert ended.outcome is ToolOutcome.DONE
        await acknowledgements.send()
        assert await calls.tools.find(execution) == StillRunning()
        acknowledgements.state_changed(replace(state, snapshot_version=6, pending=()))
        await acknowledgements.send()
        assert await calls.tools.find(execution) == Untraceable()


async def test_a_chatd_killed_before_it_acknowledged_loses_nothing(house: House) -> None:
    async with node_calls(house) as calls:
        execution = await calls.execution("execute", RUN)
        first = await calls.tools.execute(execution)
        again = await taken_over(calls, execution)
        assert again == first
        assert (await runs(calls)).count("ran") == 1


@pytest.mark.parametrize(("name", "arguments"), [("execute", RUN), ("write_file", WRITE)])
async def test_a_restored_older_database_does_not_run_an_acknowledged_call_again(
    house: House, name: str, arguments: str
) -> None:
    async with node_calls(house) as calls:
        execution = await calls.execution(name, arguments)
        assert (await calls.tools.execute(execution)).outcome is ToolOutcome.DONE
        await acknowledge(calls, [execution])
        assert await taken_over(calls, execution) == UNKNOWN_OUTCOME
    assert pruned(house) == 1
    async with node_calls(house) as calls:
        # The next owner asks first; one that believes that it just dispatched it does not.
        assert await taken_over(calls, execution) == UNKNOWN_OUTCOME
        told = await calls.tools.execute(replace(execution, owner_epoch=2))
        assert (told.outcome, json.loads(told.result_json)["reason"]) == (
            ToolOutcome.FAILED,
            "OUTCOME_UNKNOWN",
        )
        assert (await runs(calls)).count("ran") == 1


async def test_what_runs_or_is_not_known_is_skipped(house: House) -> None:
    async with node_calls(house) as calls:
        done = await calls.execution("execute", RUN)
        await calls.tools.execute(done)
        unknown = await calls.execution("execute", RUN)
        await acknowledge(calls, [unknown, done])
        await calls.tools.acknowledge("another journal", [done.dispatch.execution_id])
        assert await calls.tools.find(done) == Untraceable()
        assert await taken_over(calls, unknown) != UNKNOWN_OUTCOME
        assert (await runs(calls)).count("ran") == 2
