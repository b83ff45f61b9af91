"""Stored results are acknowledged to both executors, and a crash before that loses none."""

import asyncio
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing

import pytest

from support.stack.faulty_stack import FaultyStack, watching
from support.stack.local_stack import LocalStack

pytestmark = pytest.mark.slow

CALLS = "SELECT count(*) FROM mcp.calls WHERE acknowledged_at IS NOT NULL"
COMMAND = "run: echo one >> runs; wc -l < runs"
ACKNOWLEDGED_S_MAX = 60


@pytest.fixture
def own_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    """Give a stack that is not looked after once its test has stopped it."""
    stack = LocalStack.at(tmp_path_factory.mktemp("home"))
    started = stack.up("--chatd", "1")
    assert started.returncode == 0, started.stdout + started.stderr
    yield stack
    stack.parley("down")


def journaled(stack: LocalStack) -> Counter[str]:
    """Return the states of the calls in the journal of a toolrunner that was stopped."""
    (path,) = stack.home.root.rglob("journal.sqlite")
    with closing(sqlite3.connect(path)) as connection:
        return Counter(
            state for (state,) in connection.execute("SELECT state FROM executions WHERE is_keyed")
        )


async def until_acknowledged(watched: FaultyStack, calls: int) -> None:
    async with asyncio.timeout(ACKNOWLEDGED_S_MAX):
        while await watched.connection.fetchval(CALLS) != calls:
            await watched.pause(0.1)


async def test_both_executors_learn_that_results_are_stored(own_stack: LocalStack) -> None:
    async with watching(own_stack) as watched:
        # The demo calls a command and a tool of an MCP server.
        chat_id = watched.create("hello")
        await watched.until(chat_id, lambda where: where.status == "waiting")
        await until_acknowledged(watched, 1)
        # One that stops acknowledges what it stored last.
        watched.send(chat_id, "run: true")
        await watched.until(chat_id, lambda where: where.status == "waiting")
    assert own_stack.parley("down").returncode == 0
    assert journaled(own_stack) == {"acknowledged": 2}


async def test_a_chatd_killed_before_it_acknowledged_loses_nothing(own_stack: LocalStack) -> None:
    async with watching(own_stack) as watched:
        (chatd,) = [each for each in own_stack.status()["processes"] if each["service"] == "chatd"]
        process = watched.process_at(chatd["address"])
        chat_id = watched.create(COMMAND)
        resting = await watched.until(chat_id, lambda where: where.status == "waiting")
        process.kill()
        own_stack.until_whole(without=chatd["pid"])
        before = watched.messages(chat_id)
        sent = watched.send(chat_id, COMMAND)
        await watched.until(
            chat_id, lambda where: where.status == "waiting" and where.snapshot_version > sent
        )
        assert sent > resting.snapshot_version
        assert watched.messages(chat_id)[: len(before)] == before
        watched.audit()
    assert own_stack.parley("down").returncode == 0
    # What was lost with the process goes by its age.
    assert journaled(own_stack) == {"finished": 1, "acknowledged": 1}
