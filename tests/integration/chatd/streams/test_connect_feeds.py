"""The feed of a user's list of chats: what changed since a cursor, and what changes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from chatd.streams.rpc.feeds import JOINED_S, LOOK_S
from parley.api.chat.v1 import chat_pb2, event_pb2
from parley.api.chat.v1 import chat_service_pb2 as api
from parley.api.chat.v1 import stream_service_pb2 as stream_api
from parley.identity import Role, User, UserId
from parley.rpc import acting_for
from support.chatd.chats.chat_people import ANN_ID, BOB_ID, EVE_ID, EVES_GROUP, Person
from support.chatd.chats.served_chats import ServedChats

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
            await served.clock.until_sleeping()
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
        while (await feed.read()).event.chat.id != second.id:
            pass
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


@asynccontextmanager
async def joining(served: ServedChats) -> AsyncIterator[None]:
    """Let only those moments pass in which looks wait for more news."""

    async def pass_on() -> None:
        while True:
            delay_s = await served.clock.until_sleeping()
            if delay_s < 2 * JOINED_S:
                served.clock.advance(delay_s)
            await served.pool.execute("SELECT pg_sleep(0.002)")

    async with asyncio.TaskGroup() as tasks:
        passing = tasks.create_task(pass_on())
        yield
        passing.cancel()


async def standing(served: ServedChats) -> Any:
    """Return a feed of Ann's that tells already."""
    feed = watch(served.ann)
    chat = await served.ann.create("first")
    async with asyncio.TaskGroup() as tasks:
        told = tasks.create_task(feed.read())
        while not told.done():
            await served.ann.ask(update_of(chat.id, title=served.ann.fresh()))
    return feed


def update_of(chat_id: str, **values: Any) -> api.UpdateChatRequest:
    request = api.UpdateChatRequest(request_id="0", chat=chat_pb2.Chat(id=chat_id, **values))
    request.update_mask.paths.extend(values)
    return request


async def test_a_chat_that_is_over_before_anybody_looks_is_told_as_created(
    served: ServedChats,
) -> None:
    async with asyncio.timeout(20):
        async with joining(served):
            feed = await standing(served)
        chat = await served.ann.create("fast")
        await served.finish(chat.id, "done")
        async with joining(served):
            told = (await feed.read()).event
            while told.chat.id != chat.id:
                told = (await feed.read()).event
            await served.ann.send(chat.id, "more")
            later = (await feed.read()).event
        feed.cancel()
    assert (told.change, told.chat.status) == (CREATED, chat_pb2.CHAT_STATUS_WAITING)
    assert (later.change, later.chat.id) == (UPDATED, chat.id)


async def test_a_chat_that_was_there_before_the_reader_is_told_as_updated(
    served: ServedChats,
) -> None:
    async with asyncio.timeout(20):
        chat = await served.ann.create("before")
        async with joining(served):
            feed = await standing(served)
            await served.finish(chat.id, "done")
            told = (await feed.read()).event
            while told.chat.id != chat.id:
                told = (await feed.read()).event
        feed.cancel()
    assert told.change == UPDATED


async def test_every_event_has_an_id_of_its_own_to_resume_with(served: ServedChats) -> None:
    async with asyncio.timeout(30):
        async with joining(served):
            feed = await standing(served)
        chats = [await served.ann.create(f"chat {number}") for number in range(5)]
        for chat in chats:
            await served.finish(chat.id)
        events: list[event_pb2.FeedEvent] = []
        async with joining(served):
            while {event.chat.id for event in events} < {chat.id for chat in chats}:
                events.append((await feed.read()).event)
            await served.ann.send(chats[0].id, "more")
            events.append((await feed.read()).event)
            feed.cancel()
            assert len({event.cursor for event in events}) == len(events)
            for place, event in enumerate(events):
                missing = {each.chat.id for each in events[place + 1 :]}
                again = watch(served.ann, event.cursor)
                while missing:
                    missing.discard((await again.read()).event.chat.id)
                again.cancel()


async def test_titles_and_the_like_are_told_at_once(served: ServedChats) -> None:
    async with asyncio.timeout(20):
        chat = await served.ann.create("first words")
        other = await served.ann.create("other")
        for each in (chat, other):
            await served.finish(each.id)
        async with joining(served):
            feed = await standing(served)
            await served.ann.ask(update_of(chat.id, title="renamed", pin_order=1))
            renamed = await next_of(feed, chat.id, UPDATED)
            while renamed.chat.title != "renamed":
                renamed = await next_of(feed, chat.id, UPDATED)
            # Another chat takes the first place, and both are told.
            await served.ann.ask(update_of(other.id, pin_order=1))
            told = [(await feed.read()).event.chat for _ in range(2)]
            await served.ann.ask(
                api.SetSharesRequest(
                    request_id="s", chat_id=chat.id, shares=[api.Share(user_id=BOB_ID)]
                )
            )
            shared = await next_of(feed, chat.id, UPDATED)
            await served.ann.ask(
                api.MarkReadRequest(request_id="r", chat_id=chat.id, last_message_id=2)
            )
            read = await next_of(feed, chat.id, UPDATED)
        feed.cancel()
    assert {each.id: each.pin_order for each in told} == {other.id: 1, chat.id: 2}
    assert (shared.chat.shared, shared.chat.has_unread) == (True, True)
    assert not read.chat.has_unread
    assert served.clock.monotonic() < LOOK_S


async def share(served: ServedChats, chat_id: str, *shares: api.Share) -> None:
    await served.ann.ask(api.SetSharesRequest(request_id="s", chat_id=chat_id, shares=shares))


async def heard(feed: Any, chat_id: str) -> event_pb2.FeedEvent:
    """Return the next event of a chat."""
    while True:
        response = await feed.read()
        assert response.HasField("event"), response
        event: event_pb2.FeedEvent = response.event
        if event.chat.id == chat_id:
            return event


async def with_feed(served: ServedChats, person: Person) -> Any:
    """Return a feed that has sent something."""
    return (await feed_and_cursor(person))[0]


async def feed_and_cursor(person: Person) -> tuple[Any, str]:
    """Return a feed, and the cursor of the first event that proves that it stands."""
    feed = watch(person)
    own = await person.create("own")
    async with asyncio.TaskGroup() as tasks:
        told = tasks.create_task(feed.read())
        while not told.done():
            await person.ask(update_of(own.id, title=person.fresh()))
    return feed, told.result().event.cursor


async def test_a_chat_is_heard_of_from_when_it_is_shared_until_it_is_no_longer(
    served: ServedChats, passing: None
) -> None:
    async with asyncio.timeout(30):
        chat = await served.ann.create("ann's")
        bobs, eves = await with_feed(served, served.bob), await with_feed(served, served.eve)
        await share(served, chat.id, api.Share(user_id=BOB_ID), api.Share(group_id=EVES_GROUP))
        shared = [await heard(feed, chat.id) for feed in (bobs, eves)]
        await served.finish(chat.id, "done")
        finished = [await heard(feed, chat.id) for feed in (bobs, eves)]
        await share(served, chat.id, api.Share(group_id=EVES_GROUP))
        revoked = await next_of(bobs, chat.id, DELETED)
        await served.ann.ask(api.DeleteChatRequest(request_id="d", chat_id=chat.id))
        gone = await next_of(eves, chat.id, DELETED)
        resumed = watch(served.bob, shared[0].cursor)
        replayed = await next_of(resumed, chat.id, DELETED)
        for feed in (bobs, eves, resumed):
            feed.cancel()
    assert [(each.change, each.chat.owner_id) for each in shared] == [(CREATED, ANN_ID)] * 2
    assert [(each.change, each.chat.status) for each in finished] == [
        (UPDATED, chat_pb2.CHAT_STATUS_WAITING)
    ] * 2
    assert {each.chat.title for each in (revoked, gone, replayed)} == {""}


async def test_a_share_that_was_missed_is_told_after_resuming(
    served: ServedChats, passing: None
) -> None:
    async with asyncio.timeout(30):
        chat = await served.ann.create("ann's")
        feed, cursor = await feed_and_cursor(served.bob)
        feed.cancel()
        await share(served, chat.id, api.Share(user_id=BOB_ID))
        again = watch(served.bob, cursor)
        assert (await heard(again, chat.id)).change == CREATED
        again.cancel()


async def test_an_owner_does_not_lose_a_chat_that_a_group_of_theirs_loses(
    served: ServedChats, passing: None
) -> None:
    async with asyncio.timeout(30):
        chat = await served.ann.create("ann's")
        served.groups.groups[ANN_ID] = (EVES_GROUP,)
        feed = await with_feed(served, served.ann)
        await share(served, chat.id, api.Share(group_id=EVES_GROUP))
        changes = []
        while not (event := await heard(feed, chat.id)).chat.shared:
            changes.append(event.change)
        changes.append(event.change)
        await share(served, chat.id)
        while (event := await heard(feed, chat.id)).chat.shared:
            changes.append(event.change)
        changes.append(event.change)
        feed.cancel()
    assert DELETED not in changes


async def test_a_user_whose_groups_change_reads_the_list_anew(
    served: ServedChats, passing: None
) -> None:
    async with asyncio.timeout(30):
        eves, bobs = await with_feed(served, served.eve), await with_feed(served, served.bob)
        served.groups.groups[EVE_ID] = ()
        served.feeds.group_changed(EVES_GROUP)
        served.feeds.groups_changed(BOB_ID)
        while not (told := await eves.read()).HasField("closed"):
            pass
        own = await served.bob.create("goes on")
        await heard(bobs, own.id)
        bobs.cancel()
    assert told.closed.reason == stream_api.CLOSE_REASON_RESYNC


async def test_a_parent_is_told_again_with_the_count_of_its_children(
    served: ServedChats, passing: None
) -> None:
    async with asyncio.timeout(30):
        feed = await with_feed(served, served.ann)
        chat = await served.ann.create("root")
        assert (await heard(feed, chat.id)).chat.child_count == 0
        child_id = await served.add_child(chat.id)
        served.feeds.poke()
        # Both may come from one query, in the order of their transactions, and between them what
        # is left of the chat that opened the feed.
        wanted, told = {child_id: 0, chat.id: 1}, dict[str, int]()
        while not wanted.items() <= told.items():
            response = await feed.read()
            assert response.HasField("event"), response
            told[response.event.chat.id] = response.event.chat.child_count
        feed.cancel()
    listed = (await served.ann.ask(api.ListChatsRequest())).chats
    assert {each.id: each.child_count for each in listed}[chat.id] == 1
