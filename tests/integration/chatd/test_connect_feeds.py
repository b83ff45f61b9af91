"""The feed of a user's list of chats: what changed since a cursor, and what changes."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from parley.api.chat.v1 import chat_service_pb2 as api
from parley.api.chat.v1 import event_pb2
from parley.api.chat.v1 import stream_service_pb2 as stream_api
from parley.identity import Role, User, UserId
from parley.rpc import acting_for
from support.chat_people import Person
from support.served_chats import ServedChats

CREATED = event_pb2.FEED_CHANGE_CREATED
UPDATED = event_pb2.FEED_CHANGE_UPDATED
DELETED = event_pb2.FEED_CHANGE_DELETED


def watch(person: Person, cursor: str = "") -> Any:
    with acting_for(User(UserId(person.id), Role.MEMBER)):
        return person.streams.WatchChats(stream_api.WatchChatsRequest(cursor=cursor))


@pytest.fixture
async def passing(served: ServedChats) -> AsyncIterator[None]:
    """Let time pass in small steps, for as long as the test lasts."""

    async def pass_on() -> None:
        while True:
            await served.clock.until_someone_sleeps()
            served.clock.advance(0.5)
            await served.pool.execute("SELECT pg_sleep(0.005)")

    async with asyncio.TaskGroup() as tasks:
        passing = tasks.create_task(pass_on())
        yield
        passing.cancel()


async def next_of(call: Any, chat_id: str, change: int) -> event_pb2.FeedEvent:
    """Return the next event of a chat that says so."""
    while True:
        response = await call.read()
        assert response.HasField("event"), response
        event: event_pb2.FeedEvent = response.event
        if (event.chat.id, event.change) == (chat_id, change):
            return event


async def test_a_user_hears_of_the_own_chats_only(served: ServedChats, passing: None) -> None:
    async with asyncio.timeout(20):
        feed = watch(served.ann)
        # Whatever comes first proves that the feed stands.
        before = await served.ann.create("before")
        cursor = ""
        while not cursor:
            await served.ann.send(before.id, "more")
            cursor = (await feed.read()).event.cursor
        bobs = await served.bob.create("bob's")
        chat = await served.ann.create("new")
        created = await next_of(feed, chat.id, CREATED)
        await served.finish(chat.id, "done")
        updated = await next_of(feed, chat.id, UPDATED)
        feed.cancel()
        again = watch(served.ann, cursor)
        seen: set[str] = set()
        while chat.id not in seen:
            seen.add((await again.read()).event.chat.id)
        again.cancel()
    assert created.chat.title == "new"
    assert updated.chat.versions.snapshot > created.chat.versions.snapshot
    assert bobs.id not in seen


async def test_titles_archives_and_deletions_are_told_and_replayed(
    served: ServedChats, passing: None
) -> None:
    async with asyncio.timeout(30):
        feed = watch(served.ann)
        first, second = await served.ann.create("first"), await served.ann.create("second")
        await served.finish(first.id)
        await served.finish(second.id)
        await next_of(feed, second.id, UPDATED)
        update = api.UpdateChatRequest(request_id="0")
        update.chat.id, update.chat.title = first.id, "renamed"
        update.update_mask.paths.append("title")
        await served.ann.ask(update)
        renamed = await next_of(feed, first.id, UPDATED)
        while renamed.chat.title != "renamed":
            renamed = await next_of(feed, first.id, UPDATED)
        await served.ann.ask(
            api.SetArchivedRequest(request_id="1", chat_id=first.id, archived=True)
        )
        await next_of(feed, first.id, DELETED)
        await served.ann.ask(api.SetArchivedRequest(request_id="2", chat_id=first.id))
        await next_of(feed, first.id, CREATED)
        await served.ann.ask(api.DeleteChatRequest(request_id="3", chat_id=second.id))
        await next_of(feed, second.id, DELETED)
        feed.cancel()
        again = watch(served.ann, renamed.cursor)
        await next_of(again, second.id, DELETED)
        again.cancel()


@pytest.mark.parametrize("cursor", ["nonsense", "0.0", f"{2**62}.1767225600", "5.1"])
async def test_a_cursor_that_cannot_be_resumed_is_answered_with_resync(
    served: ServedChats, cursor: str
) -> None:
    async with asyncio.timeout(10):
        answer = await watch(served.ann, cursor).read()
    assert answer.closed.reason == stream_api.CLOSE_REASON_RESYNC
