"""Searches: what is found, for whom, and how it is shown."""

import asyncio
from typing import Any

from chatd.chats.domain.chat import NewMessage
from chatd.chats.domain.commands import CommitStep
from chatd.chats.domain.transitions import fence_of
from chatd.chats.store.text_search.hits import SEARCH, excerpt_of, wanted_words
from chatd.chats.store.text_search.index import CHARACTERS_MAX, SearchIndex
from chatd.chats.store.trees import DELETE_TREE, LOCK_TREE
from chatd.content.domain.messages import Role
from chatd.content.domain.parts import Reasoning, Text
from chatd.primitives.domain.ids import ChatId
from parley.api.chat.v1 import chat_service_pb2 as api
from parley.api.chat.v1 import message_pb2
from support.chatd.chats.chat_people import ANN_ID, BOB_ID, EVES_GROUP, Person, text
from support.chatd.chats.served_chats import ServedChats


async def indexed(served: ServedChats) -> None:
    index = SearchIndex(served.pool)
    while await index.advance(chats_max=2):
        pass


async def found(person: Person, query: str, **more: Any) -> list[tuple[str, int]]:
    """Return title and message of each hit."""
    answer = await person.ask(api.SearchMessagesRequest(query=query, **more))
    return [(hit.title, hit.message_id) for hit in answer.hits]


async def say(served: ServedChats, chat_id: str, *parts: Any) -> None:
    fence = fence_of(await served.state(chat_id))
    answer = NewMessage(Role.ASSISTANT, parts)
    await served.stores.chats.apply(ChatId(chat_id), CommitStep(fence, (answer,)))


async def test_a_hit_names_the_message_and_shows_the_words_in_their_context(
    served: ServedChats,
) -> None:
    chat = await served.ann.create("order twelve blue pens, please", title="Invoice")
    await served.finish(chat.id, "The Pens <b>are</b> ordered.")
    await indexed(served)
    answer = await served.ann.ask(api.SearchMessagesRequest(query="pens"))
    assert [
        (hit.chat_id, hit.root_chat_id, hit.owner_id, hit.message_id, hit.role)
        for hit in answer.hits
    ] == [
        (chat.id, chat.id, ANN_ID, 2, message_pb2.ROLE_ASSISTANT),
        (chat.id, chat.id, ANN_ID, 1, message_pb2.ROLE_USER),
    ]
    assert [(piece.text, piece.match) for piece in answer.hits[0].excerpt] == [
        ("The ", False),
        ("Pens", True),
        (" <b>are</b> ordered.", False),
    ]


async def test_words_phrases_alternatives_beginnings_and_titles_are_found(
    served: ServedChats,
) -> None:
    await served.ann.create("the quick brown fox", title="One")
    await served.ann.create("brown and quick", title="Foxes")
    await indexed(served)
    both = [("Foxes", 1), ("One", 1)]
    assert await found(served.ann, "quick brown") == both
    assert await found(served.ann, '"quick brown"') == [("One", 1)]
    assert await found(served.ann, "brown -fox") == [("Foxes", 1)]
    assert await found(served.ann, "fox or and") == both
    assert await found(served.ann, "qui") == both
    assert await found(served.ann, "uick") == []
    assert await found(served.ann, "FOXES") == [("Foxes", 0)]


async def test_everybody_finds_what_they_may_read_and_nothing_else(served: ServedChats) -> None:
    mine = await served.ann.create("whale", title="mine")
    shared = await served.ann.create("whale", title="shared")
    grouped = await served.ann.create("whale", title="grouped")
    for chat, share in (
        (shared, api.Share(user_id=BOB_ID)),
        (grouped, api.Share(group_id=EVES_GROUP)),
    ):
        await served.ann.ask(api.SetSharesRequest(request_id="s", chat_id=chat.id, shares=[share]))
    await indexed(served)
    assert await found(served.ann, "whale") == [("grouped", 1), ("shared", 1), ("mine", 1)]
    assert await found(served.bob, "whale") == [("shared", 1)]
    assert await found(served.eve, "whale") == [("grouped", 1)]
    assert await found(served.bob, "shared") == [("shared", 0)]
    assert await found(served.bob, "mine or grouped") == []
    assert await found(served.bob, "whale", chat_id=mine.id) == []
    assert await found(served.ann, "whale", chat_id=mine.id) == [("mine", 1)]
    assert await found(served.bob, BOB_ID) == []


async def test_what_was_replaced_or_deleted_or_is_only_for_the_model_is_not_found(
    served: ServedChats,
) -> None:
    chat = await served.ann.create("krill", title="One", system_prompt="secret krill")
    await say(served, chat.id, Reasoning("krill"), Text("plankton"))
    await indexed(served)
    assert await found(served.ann, "krill") == [("One", 2)]
    edit = api.EditMessageRequest(
        request_id="e", chat_id=chat.id, message_id=2, content=[text("squid")]
    )
    await served.ann.ask(edit)
    assert await found(served.ann, "krill or plankton") == []
    await indexed(served)
    (message_id,) = (each for _, each in await found(served.ann, "squid"))
    words = await served.pool.fetch("SELECT message_id FROM chat.message_words")
    assert [row["message_id"] for row in words] == [message_id]
    await served.ann.ask(api.DeleteChatRequest(request_id="d", chat_id=chat.id))
    assert await found(served.ann, "squid") == []
    assert await served.pool.fetchval("SELECT count(*) FROM chat.message_words") == 0


async def test_pages_go_on_where_they_ended_and_only_in_their_search(served: ServedChats) -> None:
    for number in range(5):
        await served.ann.create("whale", title=f"whale {number}")
    await indexed(served)
    seen, token = [], ""
    while True:
        request = api.SearchMessagesRequest(query="whale", page_size=3, page_token=token)
        page = await served.ann.ask(request)
        seen += [(hit.title, hit.message_id) for hit in page.hits]
        token = page.next_page_token
        if not token:
            break
        other = api.SearchMessagesRequest(query="other", page_token=token)
        assert (await served.ann.refusal(other)).reason == "INVALID_REQUEST"
    assert len(seen) == len(set(seen)) == 10


async def test_a_search_that_cannot_be_is_refused(served: ServedChats) -> None:
    for request in (
        api.SearchMessagesRequest(query=""),
        api.SearchMessagesRequest(query="  "),
        api.SearchMessagesRequest(query="!?"),
        api.SearchMessagesRequest(query="a\0b"),
        api.SearchMessagesRequest(query="a" * 1025),
        api.SearchMessagesRequest(query="a", page_size=51),
        api.SearchMessagesRequest(query="a", page_token="!"),
        api.SearchMessagesRequest(query="a", chat_id="x"),
    ):
        assert (await served.ann.refusal(request)).reason == "INVALID_REQUEST", request


async def test_own_messages_are_found_by_the_index_of_words(served: ServedChats) -> None:
    await served.ann.create("whale")
    await indexed(served)
    async with served.pool.acquire() as connection, connection.transaction():
        await connection.execute("SET LOCAL enable_seqscan = off")
        plan = await connection.fetch(
            "EXPLAIN " + SEARCH, "whale", ANN_ID, [], None, None, None, None, 20, ["whale"]
        )
    assert "message_words_by_word" in "\n".join(row[0] for row in plan)


async def test_every_query_is_a_search_or_refused(served: ServedChats) -> None:
    await served.ann.create("it's a\\b & c | !d :* <-> 'quoted' 100%")
    await indexed(served)
    for query in ("it's", "a\\b", "'", "a & b", "!d", "a:*", "<->", '"', '"a', "or", "-", "a' b'"):
        request = api.SearchMessagesRequest(query=query)
        try:
            await served.ann.ask(request)
        except Exception:
            assert (await served.ann.refusal(request)).reason == "INVALID_REQUEST", query


async def test_very_long_messages_and_words_are_indexed_by_their_beginning(
    served: ServedChats,
) -> None:
    chat = await served.ann.create("first", title="One")
    distinct = " ".join(f"\U0001f40b{number}é" for number in range(40_000))
    await say(served, chat.id, Text("x" * 5000 + " needle " + distinct), Text("\0nul\ue000"))
    await indexed(served)
    assert await found(served.ann, "needle") == [("One", 2)]
    assert len(distinct) > CHARACTERS_MAX


async def test_the_index_is_filled_once_and_follows_what_changes(served: ServedChats) -> None:
    chats = [await served.ann.create(f"word{number}") for number in range(5)]
    index = SearchIndex(served.pool)
    await indexed(served)
    assert not await index.advance()
    async with served.pool.acquire() as other, other.transaction():
        await other.execute("SELECT 1 FROM chat.search_progress FOR UPDATE")
        await served.finish(chats[0].id, "late")
        assert not await index.advance()  # Another process is at it.
    await indexed(served)
    assert len(await found(served.ann, "late")) == 1


async def test_a_deletion_and_the_index_do_not_wait_for_each_other_forever(
    served: ServedChats,
) -> None:
    chat = await served.ann.create("order twelve blue pens")
    waiting = """
        SELECT count(*) > 0 FROM pg_stat_activity
        WHERE wait_event_type = 'Lock' AND query LIKE '%FOR KEY SHARE%'
    """
    async with (
        asyncio.timeout(10),
        asyncio.TaskGroup() as tasks,
        served.pool.acquire() as other,
        other.transaction(),
    ):
        await other.fetch(LOCK_TREE, chat.id)
        tasks.create_task(SearchIndex(served.pool).advance())
        while not await served.pool.fetchval(waiting):
            pass
        await other.execute(DELETE_TREE, chat.id, ANN_ID)
    assert await found(served.ann, "pens") == []


async def test_an_excerpt_of_a_long_text_begins_shortly_before_the_word(
    served: ServedChats,
) -> None:
    chat = await served.ann.create("a " * 500 + "needle" + " b" * 500, title="One")
    await indexed(served)
    (hit,) = (await served.ann.ask(api.SearchMessagesRequest(query="needle -thread"))).hits
    shown = [(piece.text, piece.match) for piece in hit.excerpt]
    assert shown[1] == ("needle", True)
    assert (shown[0][0][:3], len(shown[0][0])) == ("…a ", 61)
    assert shown[2][0].endswith("…")
    assert hit.chat_id == chat.id


def test_only_words_that_may_occur_are_marked() -> None:
    parsed = "'it''s' & !'dog' & !( 'big' <-> 'cat' ) | 'a.b'"
    assert wanted_words(parsed) == ("it's", "a.b")
    assert excerpt_of("It's A.B, aXb", ("it's", "a.b")) == (
        ("It's", True),
        (" ", False),
        ("A.B", True),
        (", aXb", False),
    )
    assert excerpt_of("dog", ()) == (("dog", False),)
