import asyncio
from typing import Any

from parley.api.chat.v1 import chat_pb2
from parley.api.chat.v1 import chat_service_pb2 as api
from support.chatd.chats.chat_people import ANN_ID, BOB_ID, EVE_ID, EVES_GROUP, text
from support.chatd.chats.served_chats import ServedChats
from support.chatd.workspaces.stored_workspaces import HASH, LIMITS
from support.chatd.workspaces.workspace_values import WORKSPACE, workspace


def update(chat_id: str, *paths: str, **values: Any) -> api.UpdateChatRequest:
    request = api.UpdateChatRequest(request_id="u", chat=chat_pb2.Chat(id=chat_id, **values))
    request.update_mask.paths.extend(paths or values)
    return request


def archive(chat_id: str, archived: bool = True) -> api.SetArchivedRequest:
    return api.SetArchivedRequest(request_id="a", chat_id=chat_id, archived=archived)


async def resting(served: ServedChats, said: str = "hello") -> str:
    chat = await served.ann.create(said)
    await served.finish(chat.id)
    return chat.id


async def test_all_fields_of_a_mask_change_and_no_others(served: ServedChats) -> None:
    await served.catalogue.store.add(workspace(), HASH, LIMITS)
    served.servers.enabled.add(BOB_ID)
    chat_id = await resting(served)
    before = await served.ann.get(chat_id)
    request = update(
        chat_id,
        title="  Sea  ",
        labels={"a": "b"},
        mode=chat_pb2.CHAT_MODE_PLAN,
        model_id="m",
        reasoning_effort=chat_pb2.REASONING_EFFORT_MAX,
        workspace_id=WORKSPACE,
        mcp_server_ids=[BOB_ID, BOB_ID],
    )
    changed = (await served.ann.ask(request)).chat
    before.MergeFrom(request.chat)
    before.title = "Sea"
    before.mcp_server_ids[:] = [BOB_ID]
    before.uses_default_mcp_servers = False
    before.etag = changed.etag
    # That includes the time of the last change, which orders lists.
    assert changed == before
    cleared = update(
        chat_id, "labels", "mode", "model_id", "reasoning_effort", "workspace_id", "mcp_server_ids"
    )
    assert (await served.ann.ask(cleared)).chat.title == "Sea"
    got = await served.ann.get(chat_id)
    assert (dict(got.labels), got.mode, got.model_id, got.workspace_id) == ({}, 0, "", "")
    assert (list(got.mcp_server_ids), got.reasoning_effort) == ([], 0)


IMPOSSIBLE_CHANGES: list[tuple[dict[str, Any], str]] = [
    ({"title": " "}, "chat.title"),
    ({"title": "x" * 201}, "chat.title"),
    ({"title": "a\0b"}, "chat.title"),
    ({"labels": {"": "x"}}, "chat.labels."),
    ({"labels": {"-a": "x"}}, "chat.labels.-a"),
    ({"labels": {"a": ""}}, "chat.labels.a"),
    ({"labels": {"a": "x" * 257}}, "chat.labels.a"),
    ({"labels": {f"k{n}": "x" for n in range(51)}}, "chat.labels"),
    ({"pin_order": -1}, "chat.pin_order"),
    ({"mode": chat_pb2.CHAT_MODE_EXPLORE}, "chat.mode"),
    ({"mode": 99}, "chat.mode"),
    ({"workspace_id": "x"}, "chat.workspace_id"),
    ({"mcp_server_ids": ["x"]}, "chat.mcp_server_ids[0]"),
    ({"owner_id": BOB_ID}, "update_mask"),
    ({}, "update_mask"),
]


async def test_a_field_that_cannot_be_is_refused_by_name(served: ServedChats) -> None:
    chat_id = await resting(served)
    before = await served.ann.get(chat_id)
    for values, field in IMPOSSIBLE_CHANGES:
        problem = await served.ann.refusal(update(chat_id, **values))
        assert (problem.reason, problem.metadata) == ("INVALID_REQUEST", {"field": field})
    assert await served.ann.get(chat_id) == before


async def test_a_pin_has_the_place_that_was_asked_for_and_gaps_close(served: ServedChats) -> None:
    a, b, c = [await resting(served) for _ in range(3)]

    async def pin(chat_id: str, place: int) -> list[str]:
        answer = (await served.ann.ask(update(chat_id, "pin_order", pin_order=place))).chat
        listed = await served.ann.ask(api.ListChatsRequest())
        assert answer in listed.chats
        orders = {chat.id: chat.pin_order for chat in listed.chats if chat.pin_order}
        assert list(orders.values()) == list(range(1, len(orders) + 1))
        return list(orders)

    assert await pin(a, 9) == [a]
    assert await pin(b, 1) == [b, a]
    assert await pin(c, 1) == [c, b, a]
    assert await pin(b, 3) == [c, a, b]
    assert await pin(c, 99) == [a, b, c]
    assert await pin(a, 2) == [b, a, c]
    assert await pin(a, 0) == [b, c]
    await served.ann.ask(archive(b))
    assert await pin(a, 1) == [a, c]
    await served.ann.ask(api.DeleteChatRequest(request_id="d", chat_id=c))
    assert await pin(a, 1) == [a]


async def test_an_archived_chat_keeps_its_pin_and_returns_to_it(served: ServedChats) -> None:
    a, b, c = [await resting(served) for _ in range(3)]
    for chat_id in (c, b, a):
        await served.ann.ask(update(chat_id, "pin_order", pin_order=1))

    async def pins(archived: bool = False) -> dict[str, int]:
        listed = await served.ann.ask(api.ListChatsRequest(archived=archived))
        return {chat.id: chat.pin_order for chat in listed.chats}

    assert await pins() == {a: 1, b: 2, c: 3}
    for _ in range(2):
        assert (await served.ann.ask(archive(b))).chat.pin_order == 2
        assert (await pins(), await pins(archived=True)) == ({a: 1, c: 2}, {b: 2})
    for _ in range(2):
        assert (await served.ann.ask(archive(b, False))).chat.pin_order == 2
        assert await pins() == {a: 1, b: 2, c: 3}
    # A place that there is no more is the last one.
    await served.ann.ask(archive(c))
    await served.ann.ask(update(a, "pin_order", pin_order=0))
    assert (await served.ann.ask(archive(c, False))).chat.pin_order == 2
    # An archived chat can be unpinned.
    await served.ann.ask(archive(c))
    await served.ann.ask(update(c, "pin_order", pin_order=0))
    assert (await served.ann.ask(archive(c, False))).chat.pin_order == 0


async def test_pinning_at_once_never_gives_one_place_twice(served: ServedChats) -> None:
    chats = [await resting(served) for _ in range(6)]
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        for chat_id in chats:
            group.create_task(served.ann.ask(update(chat_id, "pin_order", pin_order=1)))
    listed = await served.ann.ask(api.ListChatsRequest())
    assert [chat.pin_order for chat in listed.chats] == [1, 2, 3, 4, 5, 6]


async def test_archived_chats_and_children_cannot_be_pinned(served: ServedChats) -> None:
    chat_id = await resting(served)
    child_id = await served.add_child(chat_id)
    await served.ann.ask(archive(chat_id))
    for each in (chat_id, child_id):
        problem = await served.ann.refusal(update(each, "pin_order", pin_order=1))
        assert problem.metadata == {"field": "chat.pin_order"}


async def test_a_family_is_archived_and_taken_back_as_one(served: ServedChats) -> None:
    chat_id = await resting(served)
    child_id = await served.add_child(chat_id)
    await served.ann.ask(update(chat_id, "pin_order", pin_order=1))
    served.state_changed.clear()
    for _ in range(2):
        chat = (await served.ann.ask(archive(chat_id))).chat
        assert (chat.archived, chat.pin_order) == (True, 1)
    assert (await served.ann.get(child_id)).archived
    assert sorted(state.chat_id for state in served.state_changed) == sorted([chat_id, child_id])
    send = api.SendMessageRequest(request_id="s", chat_id=chat_id, content=[text("hi")])
    assert (await served.ann.refusal(send)).reason == "CHAT_ARCHIVED"
    assert not (await served.ann.ask(archive(chat_id, False))).chat.archived
    assert not (await served.ann.get(child_id)).archived
    # What was refused before is taken now.
    assert not (await served.ann.ask(send)).replayed


async def test_a_family_with_a_running_child_is_not_archived_at_all(served: ServedChats) -> None:
    chat_id = await resting(served)
    quiet = await served.add_child(chat_id)
    busy = await served.add_child(chat_id, "running")
    served.state_changed.clear()
    problem = await served.ann.refusal(archive(chat_id))
    assert problem.reason == "TRANSITION_NOT_ALLOWED"
    assert served.state_changed == []
    archived = [(await served.ann.get(each)).archived for each in (chat_id, quiet, busy)]
    assert archived == [False, False, False]


async def test_only_roots_are_archived_deleted_and_shared(served: ServedChats) -> None:
    child_id = await served.add_child(await resting(served))
    for request in (
        archive(child_id),
        api.DeleteChatRequest(request_id="d", chat_id=child_id),
        api.GetSharesRequest(chat_id=child_id),
        api.SetSharesRequest(request_id="s", chat_id=child_id),
    ):
        problem = await served.ann.refusal(request)
        assert (problem.reason, problem.metadata) == ("INVALID_REQUEST", {"field": "chat_id"})


async def test_a_deleted_family_is_gone_and_what_it_cost_stays(served: ServedChats) -> None:
    chat = await served.ann.create()
    child_id = await served.add_child(chat.id)
    other = await resting(served)
    await served.pool.execute(
        "INSERT INTO chat.usage SELECT $1, $2, $2, $3, 'turn', 'p', 'm', 'done', 1, 1, 0, 0, 0,"
        " NULL, NULL, NULL, NULL, 5, 1, now()",
        other,
        chat.id,
        ANN_ID,
    )
    served.state_changed.clear()
    # While it runs, too.
    await served.ann.ask(api.DeleteChatRequest(request_id="d", chat_id=chat.id))
    for each in (chat.id, child_id):
        request = api.GetChatRequest(chat_id=each)
        assert (await served.ann.refusal(request)).reason == "CHAT_NOT_FOUND"
    assert [state.worker_id for state in served.state_changed] == [None, None]
    counts = {
        table: await served.pool.fetchval(f"SELECT count(*) FROM chat.{table}")
        for table in ("chats", "chat_exec", "chat_messages", "client_keys", "usage")
    }
    assert counts == {
        "chats": 1,
        "chat_exec": 1,
        "chat_messages": 2,
        "client_keys": 1,
        "usage": 1,
    }
    send = api.SendMessageRequest(request_id="s", chat_id=chat.id, content=[text("hi")])
    assert (await served.ann.refusal(send)).reason == "CHAT_NOT_FOUND"


async def test_the_read_mark_moves_forward_only(served: ServedChats) -> None:
    chat_id = await resting(served)

    async def mark(message_id: int) -> int:
        request = api.MarkReadRequest(request_id="m", chat_id=chat_id, last_message_id=message_id)
        answer: api.MarkReadResponse = await served.ann.ask(request)
        return answer.last_message_id

    assert (await served.ann.get(chat_id)).has_unread
    assert await mark(1) == 1
    assert (await served.ann.get(chat_id)).has_unread
    assert await mark(99) == 2
    assert not (await served.ann.get(chat_id)).has_unread
    assert await mark(1) == 2
    await served.ann.send(chat_id)
    assert not (await served.ann.get(chat_id)).has_unread
    await served.finish(chat_id)
    assert (await served.ann.get(chat_id)).has_unread
    # Without a message everything is read.
    assert await mark(0) == 4
    chat = await served.ann.get(chat_id)
    assert (chat.has_unread, chat.last_read_message_id) == (False, 4)


async def test_a_title_is_proposed_and_used_only_if_asked_to(served: ServedChats) -> None:
    chat_id = await resting(served)
    before = (await served.ann.get(chat_id)).title
    request = api.ProposeTitleRequest(request_id="t", chat_id=chat_id)
    assert (await served.ann.ask(request)).title == "A better title"
    assert (await served.ann.get(chat_id)).title == before
    request.use = True
    assert (await served.ann.ask(request)).title == "A better title"
    assert (await served.ann.get(chat_id)).title == "A better title"


async def test_shares_are_replaced_and_keep_their_times(served: ServedChats) -> None:
    chat_id = await resting(served)

    async def share(*shares: api.Share) -> list[Any]:
        request = api.SetSharesRequest(request_id="s", chat_id=chat_id, shares=shares)
        return list((await served.ann.ask(request)).shares)

    bob, group = api.Share(user_id=BOB_ID), api.Share(group_id=EVES_GROUP)
    first = await share(bob)
    assert [each.user_id for each in first] == [BOB_ID]
    both = await share(group, bob)
    assert both[0] == first[0]
    assert both[1].group_id == EVES_GROUP
    assert (await served.ann.get(chat_id)).shared
    assert list((await served.ann.ask(api.GetSharesRequest(chat_id=chat_id))).shares) == both
    assert await share() == []
    assert not (await served.ann.get(chat_id)).shared


IMPOSSIBLE_SHARES = [
    ([api.Share(user_id=ANN_ID)], "shares[0].user_id"),
    ([api.Share(user_id="x")], "shares[0].user_id"),
    ([api.Share(group_id="x")], "shares[0].group_id"),
    ([api.Share()], "shares[0]"),
    ([api.Share(user_id=EVE_ID), api.Share(user_id=EVE_ID)], "shares[1]"),
    ([api.Share(user_id=EVE_ID)] * 101, "shares"),
]


async def test_a_share_that_cannot_be_is_refused_by_name(served: ServedChats) -> None:
    chat_id = await resting(served)
    for shares, field in IMPOSSIBLE_SHARES:
        request = api.SetSharesRequest(request_id="s", chat_id=chat_id, shares=shares)
        problem = await served.ann.refusal(request)
        assert (problem.reason, problem.metadata) == ("INVALID_REQUEST", {"field": field})
