"""How workspaces differ: asked of a real node, kept in PostgreSQL, shown in lists and feeds."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace

import pytest

from chatd.chats.domain.diffs import DiffStatus, RepositoriesUnknown
from chatd.chats.store.diffs import PostgresDiffs
from chatd.chats.store.reading import Reading
from chatd.primitives.domain.ids import ChatId
from chatd.primitives.domain.requests import Reader
from chatd.streams.store.feeds import PostgresFeeds
from chatd.workspaces.clients.repositories import NodeRepositories
from parley.clock import FakeClock
from parley.postgres import Pool
from parley.rpc import Channels
from support.chatd.turns.billed_turns import ANN, CHAT, BilledTurns, billed_turns
from support.chatd.workspaces.fixed_locator import FixedLocator
from support.toolrunner.node import House, connected, node

CLOCK = FakeClock()
STATUS = DiffStatus(
    branch="main",
    origin_url="https://example.org/x",
    repositories=2,
    changed_files=3,
    added_lines=4,
    deleted_lines=5,
    refreshed_at=CLOCK.now(),
)


@pytest.fixture
async def turns(pool: Pool) -> AsyncIterator[BilledTurns]:
    async with billed_turns(pool) as running:
        yield running


async def test_only_news_is_kept_and_every_reader_sees_it(turns: BilledTurns, pool: Pool) -> None:
    state = await turns.create("hello")
    diffs, feeds = PostgresDiffs(pool), PostgresFeeds(pool)
    assert await diffs.set(CHAT, None) is None
    horizon = await feeds.horizon()

    assert await diffs.set(CHAT, STATUS) == state.snapshot_version
    assert (await Reading(pool).get(CHAT, Reader(ANN.id))).diff_status == STATUS
    told = await feeds.changes([Reader(ANN.id)], horizon, limit=10, is_thorough=True)
    assert [chat.view.diff_status for chat in told.chats] == [STATUS]

    later = replace(STATUS, refreshed_at=STATUS.refreshed_at.replace(hour=5))
    assert await diffs.set(CHAT, later) is None
    assert await diffs.set(CHAT, replace(later, added_lines=9)) == state.snapshot_version
    assert await diffs.set(CHAT, None) == state.snapshot_version
    assert (await Reading(pool).get(CHAT, Reader(ANN.id))).diff_status is None


async def test_a_node_tells_of_all_repositories_of_a_workspace(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    house = House.build(tmp_path_factory.mktemp("t"))
    async with asyncio.timeout(30), node(house), connected(house) as client:
        channels = Channels((house.address,), lambda _: client.channel)
        repositories = NodeRepositories(channels, CLOCK, FixedLocator(channels))
        client.context.workspace_id = client.context.chat_id
        chat_id = ChatId(client.chat_id)
        assert await repositories.status(chat_id, ANN) is None

        await client.run("git init -qb main; git init -q in; echo 1 > a; printf '1\\n2\\n' > in/b")

        assert await repositories.status(chat_id, ANN) == DiffStatus(
            branch="main",
            origin_url="",
            repositories=2,
            changed_files=2,
            added_lines=3,
            deleted_lines=0,
            refreshed_at=CLOCK.now(),
        )


async def test_a_node_that_is_away_is_no_answer(tmp_path_factory: pytest.TempPathFactory) -> None:
    house = House.build(tmp_path_factory.mktemp("t"))
    async with asyncio.timeout(30), AsyncExitStack() as running:
        await running.enter_async_context(node(house))
        async with connected(house) as client:
            channels = Channels((house.address,), lambda _: client.channel)
            await running.aclose()
            with pytest.raises(RepositoriesUnknown):
                await NodeRepositories(channels, CLOCK, FixedLocator(channels)).status(CHAT, ANN)
