"""More chats with tools than a node has room for: whoever rests makes room for whoever works."""

import asyncio
from collections.abc import Iterator

import pytest

from support.stack.faulty_stack import watching
from support.stack.local_stack import LocalStack

pytestmark = pytest.mark.slow

ROOM = 5
CHATS = 10
ACTIVE = "SELECT count(*) FROM chat.nodes WHERE state = 'active'"
KNOWN_S = 6.0


@pytest.fixture
def small_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    stack = LocalStack.at(tmp_path_factory.mktemp("home"), TOOLRUNNER_WORKSPACES_MAX=str(ROOM))
    started = stack.up()
    assert started.returncode == 0, started.stdout + started.stderr
    yield stack
    assert stack.parley("down").returncode == 0


async def test_more_chats_use_tools_than_a_node_has_room_for(small_stack: LocalStack) -> None:
    async with watching(small_stack) as watched:
        # Before it is known to all, work goes to the address in the settings.
        async with asyncio.timeout(60):
            while not await watched.connection.fetchval(ACTIVE):
                await watched.pause(0.2)
        await watched.pause(KNOWN_S)
        for number in range(CHATS):
            chat_id = watched.create(f"run: echo here is {number}")
            await watched.until(chat_id, lambda where: where.status == "waiting", within_s=90.0)
            answer = watched.messages(chat_id)[-1]
            assert f"here is {number}" in answer[1], answer
        states = await watched.connection.fetch("SELECT state FROM chat.workspaces")
    assert len(states) == CHATS
    assert {row["state"] for row in states} <= {"ready", "busy", "stopping", "stopped"}
