"""A change or a removal that names an etag meets the chat as it was read, or nothing happens."""

import asyncio
from typing import Any

import pytest

from chatd.chats.store.metadata import ChatChanges
from chatd.primitives.domain.errors import VersionConflict
from chatd.primitives.domain.ids import ChatId
from parley.api.chat.v1 import chat_pb2
from parley.api.chat.v1 import chat_service_pb2 as api
from support.chatd.chats.chat_people import ANN_ID, BOB_ID
from support.chatd.chats.served_chats import ServedChats
from support.chatd.workspaces.stored_workspaces import HASH, LIMITS
from support.chatd.workspaces.workspace_values import WORKSPACE, workspace


def update(chat_id: str, etag: str, **values: Any) -> api.UpdateChatRequest:
    chat = chat_pb2.Chat(id=chat_id, etag=etag, **values)
    request = api.UpdateChatRequest(request_id="u", chat=chat)
    request.update_mask.paths.extend(values)
    return request


def delete(chat_id: str, etag: str) -> api.DeleteChatRequest:
    return api.DeleteChatRequest(request_id="d", chat_id=chat_id, etag=etag)


def archive(chat_id: str, etag: str, *, archived: bool = True) -> api.SetArchivedRequest:
    return api.SetArchivedRequest(request_id="a", chat_id=chat_id, archived=archived, etag=etag)


async def resting(served: ServedChats) -> chat_pb2.Chat:
    chat = await served.ann.create()
    await served.finish(chat.id)
    return await served.ann.get(chat.id)


CHANGES: list[dict[str, Any]] = [
    {"title": "Sea"},
    {"labels": {"a": "b"}},
    {"pin_order": 1},
    {"mode": chat_pb2.CHAT_MODE_PLAN},
    {"model_id": "m"},
    {"reasoning_effort": chat_pb2.REASONING_EFFORT_MAX},
    {"workspace_id": WORKSPACE},
    {"mcp_server_ids": [BOB_ID]},
]


async def test_whatever_is_changed_gives_another_etag_and_is_refused_with_an_old_one(
    served: ServedChats,
) -> None:
    await served.catalogue.store.add(workspace(), HASH, LIMITS)
    served.servers.enabled.add(BOB_ID)
    chat = await resting(served)
    etags = [chat.etag]
    for values in CHANGES:
        changed = (await served.ann.ask(update(chat.id, etags[-1], **values))).chat
        etags.append(changed.etag)
        for old in etags[:-1]:
            problem = await served.ann.refusal(update(chat.id, old, title="late"))
            assert (problem.reason, problem.metadata) == ("VERSION_CONFLICT", {"etag": etags[-1]})
    assert len(set(etags)) == len(CHANGES) + 1
    assert (await served.ann.get(chat.id)).title == "Sea"


async def test_what_is_only_read_keeps_its_etag(served: ServedChats) -> None:
    chat = await resting(served)
    await served.ann.ask(api.MarkReadRequest(request_id="r", chat_id=chat.id, last_message_id=2))
    await served.add_child(chat.id)
    listed = await served.ann.ask(api.ListChatsRequest())
    assert [each.etag for each in listed.chats] == [chat.etag]


async def test_a_chat_that_went_on_is_not_removed_as_it_was_read(served: ServedChats) -> None:
    chat = await resting(served)
    await served.ann.send(chat.id)
    problem = await served.ann.refusal(delete(chat.id, chat.etag))
    now = await served.ann.get(chat.id)
    assert (problem.reason, problem.metadata) == ("VERSION_CONFLICT", {"etag": now.etag})
    await served.ann.ask(delete(chat.id, now.etag))
    gone = await served.ann.refusal(api.GetChatRequest(chat_id=chat.id))
    assert gone.reason == "CHAT_NOT_FOUND"


async def test_a_chat_is_put_away_and_taken_back_only_as_it_was_read(served: ServedChats) -> None:
    chat = await resting(served)
    renamed = (await served.ann.ask(update(chat.id, chat.etag, title="Sea"))).chat
    problem = await served.ann.refusal(archive(chat.id, chat.etag))
    assert (problem.reason, problem.metadata) == ("VERSION_CONFLICT", {"etag": renamed.etag})
    assert not (await served.ann.get(chat.id)).archived

    away = (await served.ann.ask(archive(chat.id, renamed.etag))).chat
    late = await served.ann.refusal(archive(chat.id, renamed.etag, archived=False))
    assert (late.reason, late.metadata) == ("VERSION_CONFLICT", {"etag": away.etag})
    back = (await served.ann.ask(archive(chat.id, away.etag, archived=False))).chat
    assert (away.archived, back.archived) == (True, False)
    assert len({chat.etag, renamed.etag, away.etag, back.etag}) == 4


async def test_an_etag_tells_nobody_that_a_chat_of_another_is_there(served: ServedChats) -> None:
    chat = await resting(served)
    changes = (update(chat.id, chat.etag, title="x"), archive(chat.id, chat.etag))
    for request in (*changes, delete(chat.id, chat.etag)):
        assert (await served.bob.refusal(request)).reason == "CHAT_NOT_FOUND"


async def test_of_two_who_read_the_same_one_is_refused(served: ServedChats) -> None:
    chat = await resting(served)

    async def rename(title: str) -> str:
        try:
            await served.stores.metadata.change(
                ChatId(chat.id), owner_id=ANN_ID, changes=ChatChanges(title=title), etag=chat.etag
            )
        except VersionConflict:
            return "refused"
        return "changed"

    locked = "SELECT 1 FROM chat.chats WHERE id = $1 FOR UPDATE"
    waiting = """
        SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock'
    """
    async with (
        asyncio.timeout(10),
        served.pool.acquire() as connection,
        asyncio.TaskGroup() as tasks,
        connection.transaction(),
    ):
        # Both wait for the same chat before either has looked at what is in it.
        await connection.execute(locked, chat.id)
        both = [tasks.create_task(rename(title)) for title in ("one", "two")]
        while await served.pool.fetchval(waiting) < 2:
            pass
    assert sorted(task.result() for task in both) == ["changed", "refused"]


@pytest.mark.parametrize("etag", ["0", ".", "1-", "x" * 1000, "\N{SNOWMAN}"])
async def test_an_etag_that_no_chat_ever_had_matches_none(served: ServedChats, etag: str) -> None:
    chat = await resting(served)
    assert (await served.ann.refusal(update(chat.id, etag, title="x"))).reason == "VERSION_CONFLICT"
