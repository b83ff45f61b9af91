"""Transactions that lock several chats: in the order of tools, and again after a deadlock."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass
from typing import Any

import pytest

from chatd.chats.domain.chat import ChatState, Status
from chatd.chats.store.owner_claims import HOLD_CLAIM
from chatd.chats.store.trees import ChatTrees
from chatd.chats.store.workspace_moves import require_rest
from chatd.primitives.domain.ids import ChatId, MessageId, Owner, OwnerId, WorkerId
from chatd.turns.store.workers import PostgresWorkers
from parley.postgres import Pool, Session
from support.chatd.chats.chat_rows import insert_chat
from support.database.conflicts import RETRIES, never_the_victim, until_waiting

ANN = Owner(OwnerId("00000000-0000-0000-0000-00000000000a"), "member")
WORKER = WorkerId("00000000-0000-0000-0000-0000000000aa")
# The deeper a chat, the lower its id: by their ids alone they would be locked the other way round.
ROOT = ChatId("ffffffff-0000-0000-0000-000000000003")
CHILD = ChatId("00000000-0000-0000-0000-000000000002")
GRANDCHILD = ChatId("00000000-0000-0000-0000-000000000001")
EPOCH, TURN = 1, MessageId(1)
ADOPT = "UPDATE chat.chats SET parent_chat_id = $2, root_chat_id = $3 WHERE id = $1"
REST = "UPDATE chat.chat_exec SET status = 'waiting', worker_id = NULL"
LOCK = "SELECT 1 FROM chat.chat_exec WHERE chat_id = $1 FOR UPDATE"
STATES = "SELECT status, archived, owner_epoch FROM chat.chat_exec"


@dataclass(frozen=True, slots=True)
class Tree:
    """A chat with an agent that has an agent; all run, and their worker is dead."""

    pool: Pool
    trees: ChatTrees
    workers: PostgresWorkers

    async def states(self) -> set[tuple[object, ...]]:
        """Return status, whether archived, and epoch of all chats."""
        return {tuple(row) for row in await self.pool.fetch(STATES)}


@pytest.fixture
async def tree(pool: Pool, chat_database: str) -> AsyncIterator[Tree]:
    workers = PostgresWorkers(pool, Session(chat_database, "test lease"), RETRIES)
    await workers.register(WORKER, "unix:/nowhere", 15.0)
    for chat_id in (ROOT, CHILD, GRANDCHILD):
        state = ChatState(
            chat_id,
            Status.RUNNING,
            1,
            1,
            1,
            MessageId(2),
            turn_id=TURN,
            owner_epoch=EPOCH,
            worker_id=WORKER,
        )
        await insert_chat(pool, state, ANN)
    await pool.execute(ADOPT, CHILD, ROOT, ROOT)
    await pool.execute(ADOPT, GRANDCHILD, CHILD, ROOT)
    yield Tree(pool, ChatTrees(pool, lambda state: None, RETRIES), workers)
    workers.close()


async def delete(tree: Tree) -> None:
    await tree.trees.delete(ROOT, owner_id=ANN.id)
    assert await tree.states() == set()


async def archive(tree: Tree) -> None:
    await tree.trees.set_archived(ROOT, owner_id=ANN.id, archived=True)
    assert await tree.states() == {("waiting", True, EPOCH)}


async def end_worker(tree: Tree) -> None:
    assert len(await tree.workers.end(WORKER)) == 3
    assert await tree.states() == {("running", False, EPOCH + 1)}


async def move(tree: Tree) -> None:
    async with tree.pool.acquire() as connection, connection.transaction():
        await require_rest(connection, ROOT, ANN.id, str(CHILD))


Change = Callable[[Tree], Coroutine[Any, Any, None]]


async def prepared(tree: Tree, change: Change) -> None:
    """Let the chats rest where the change needs that."""
    if change in (archive, move):
        await tree.pool.execute(REST)


@pytest.mark.parametrize("change", [delete, archive, end_worker, move])
@pytest.mark.parametrize(("chat_id", "agent_id"), [(ROOT, CHILD), (CHILD, GRANDCHILD)])
async def test_a_tool_that_acts_on_an_agent_is_not_in_the_way_of_a_change_of_the_tree(
    tree: Tree, change: Change, chat_id: ChatId, agent_id: ChatId
) -> None:
    await prepared(tree, change)
    async with (
        asyncio.timeout(20),
        asyncio.TaskGroup() as group,
        tree.pool.acquire() as tool,
        tool.transaction(),
    ):
        await tool.execute("SET LOCAL lock_timeout = '300ms'")  # Less than to a deadlock.
        await tool.execute(HOLD_CLAIM, chat_id, EPOCH, TURN)
        group.create_task(change(tree))
        await until_waiting(tree.pool)
        await tool.execute(LOCK, agent_id)


@pytest.mark.parametrize("change", [delete, archive, end_worker])
async def test_a_change_of_a_tree_that_a_deadlock_ended_is_done_again(
    tree: Tree, change: Change
) -> None:
    await prepared(tree, change)
    async with (
        asyncio.timeout(20),
        asyncio.TaskGroup() as group,
        tree.pool.acquire() as other,
        tree.pool.acquire() as brief,
    ):
        async with never_the_victim(other):
            await other.execute(LOCK, GRANDCHILD)
            async with brief.transaction():
                await brief.execute(LOCK, CHILD)
                changing = group.create_task(change(tree))
                await until_waiting(tree.pool)
                crossing = group.create_task(other.execute(LOCK, ROOT))
                await until_waiting(tree.pool, 2)
            # The change goes on to the last chat, and each waits for the other.
            await crossing
            assert not changing.done()
        await changing
