"""Administrators read chats of others only by an access that its owner and the audit log see."""

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from typing import Any

import grpc
import pytest

from parley.api.chat.v1 import break_glass_pb2, event_pb2
from parley.api.chat.v1 import break_glass_service_pb2 as api
from parley.api.chat.v1 import chat_service_pb2 as chats_api
from parley.api.chat.v1 import stream_service_pb2 as streams_api
from parley.identity import Role, User, UserId
from parley.rpc import acting_for
from support.chatd.chats.chat_people import ANN_ID, BOB_ID, EVE_ID, Person, text
from support.chatd.chats.served_chats import ServedChats

REASON = "The customer asked us to look at a wrong answer."


def administrator(served: ServedChats) -> Person:
    return replace(served.bob, role=Role.ADMIN)


async def opened(person: Person, user_id: str = ANN_ID, **more: Any) -> Any:
    more.setdefault("request_id", person.fresh())
    request = api.OpenBreakGlassRequest(user_id=user_id, reason=REASON, **more)
    return (await person.ask(request)).access


async def ended(person: Person, access_id: str) -> Any:
    request = api.EndBreakGlassRequest(request_id=person.fresh(), access_id=access_id)
    return (await person.ask(request)).access


async def recorded(served: ServedChats) -> list[tuple[Any, ...]]:
    rows = await served.pool.fetch("""
        SELECT action, actor_user_id::text, subject_user_id::text, object_id, details::text AS facts
        FROM chat.audit_outbox WHERE action LIKE 'break_glass%' ORDER BY seq
    """)
    return [(*tuple(row)[:4], frozenset(json.loads(row["facts"]))) for row in rows]


async def listed(person: Person, **wanted: Any) -> list[str]:
    page = await person.ask(api.ListBreakGlassRequest(**wanted))
    return [each.access_id for each in page.accesses]


async def events_of(person: Person, chat_id: str) -> Any:
    with acting_for(User(UserId(person.id), person.role)):
        return person.streams.Subscribe(streams_api.SubscribeRequest(chat_id=chat_id))


async def test_g15_an_administrator_reads_chats_of_others_only_by_an_access(
    served: ServedChats,
) -> None:
    chat, bob = await served.ann.create("the secret"), administrator(served)
    before = await bob.refusal(chats_api.GetChatRequest(chat_id=chat.id))
    access = await opened(bob)
    read = await bob.get(chat.id)
    texts, exported = await bob.texts(chat.id), await bob.export(chat.id)
    stream = await events_of(bob, chat.id)
    first = await stream.read()
    stream.cancel()
    over = await ended(bob, access.access_id)
    after = await bob.refusal(chats_api.GetChatRequest(chat_id=chat.id))

    assert (before.reason, after.reason) == ("CHAT_NOT_FOUND", "CHAT_NOT_FOUND")
    assert (read.id, texts, len(exported)) == (chat.id, ["the secret"], 3)
    assert first.HasField("event")
    assert (access.is_open, over.is_open) == (True, False)
    assert await recorded(served) == [
        ("break_glass.opened", BOB_ID, ANN_ID, access.access_id, {"reason_sha256", "expires_at"}),
        ("break_glass.read", BOB_ID, ANN_ID, access.access_id, {"chat_id"}),
        ("break_glass.ended", BOB_ID, ANN_ID, access.access_id, frozenset()),
    ]


async def test_the_log_proves_the_reason_and_does_not_contain_it(served: ServedChats) -> None:
    access = await opened(administrator(served))
    (details,) = await served.pool.fetch("SELECT details::text FROM chat.audit_outbox")
    proof = hashlib.sha256(f"{access.access_id}\n{access.reason}".encode()).hexdigest()

    assert access.reason == REASON
    assert json.loads(details[0])["reason_sha256"] == proof
    assert REASON not in details[0]


async def test_following_a_chat_is_recorded_like_reading_it(served: ServedChats) -> None:
    chat, bob = await served.ann.create(), administrator(served)
    access = await opened(bob)
    stream = await events_of(bob, chat.id)
    await stream.read()
    stream.cancel()

    assert (await recorded(served))[1:] == [
        ("break_glass.read", BOB_ID, ANN_ID, access.access_id, {"chat_id"})
    ]


async def test_an_access_ends_by_itself(served: ServedChats) -> None:
    chat, bob = await served.ann.create(), administrator(served)
    await opened(bob, duration_s=60)
    await served.pool.execute(
        "UPDATE chat.break_glass SET opened_at = opened_at - interval '1 minute', "
        "expires_at = expires_at - interval '1 minute'"
    )

    assert (await bob.refusal(chats_api.GetChatRequest(chat_id=chat.id))).reason == "CHAT_NOT_FOUND"
    assert (await listed(bob), len(await listed(bob, include_ended=True))) == ([], 1)


async def test_an_access_lets_nobody_change_anything(served: ServedChats) -> None:
    chat, bob = await served.ann.create(), administrator(served)
    await opened(bob)
    for request in (
        chats_api.SendMessageRequest(request_id="r", chat_id=chat.id, content=[text("hi")]),
        chats_api.DeleteChatRequest(request_id="r", chat_id=chat.id),
        chats_api.InterruptRequest(request_id="r", chat_id=chat.id),
        chats_api.SetSharesRequest(request_id="r", chat_id=chat.id),
        chats_api.GetSharesRequest(chat_id=chat.id),
    ):
        refused = await bob.refusal(request)
        assert (refused.status, refused.reason) == (
            grpc.StatusCode.PERMISSION_DENIED,
            "CHAT_READ_ONLY",
        )
        # Those with a share are told the same, and know of no accesses.
        assert "only its owner can change it" in refused.message
        assert "break-glass" not in refused.message


async def test_an_access_is_for_one_administrator_and_one_user(served: ServedChats) -> None:
    anns, eves = await served.ann.create(), await served.eve.create()
    bob, eve = administrator(served), replace(served.eve, role=Role.ADMIN)
    await opened(bob)

    refused = [
        await bob.refusal(chats_api.GetChatRequest(chat_id=eves.id)),
        await eve.refusal(chats_api.GetChatRequest(chat_id=anns.id)),
        # Who is no administrator any more.
        await served.bob.refusal(chats_api.GetChatRequest(chat_id=anns.id)),
    ]
    assert [each.reason for each in refused] == ["CHAT_NOT_FOUND"] * 3


async def test_the_chats_of_a_user_are_listed_in_full_pages(served: ServedChats) -> None:
    for number in range(5):
        await served.ann.create(title=f"ann {number}")
        await served.eve.create(title=f"eve {number}")
    bob = administrator(served)
    needed = await bob.refusal(chats_api.ListChatsRequest(owner_id=ANN_ID))
    await opened(bob)
    pages, token = list[list[str]](), ""
    while not pages or token:
        page = await bob.ask(
            chats_api.ListChatsRequest(owner_id=ANN_ID, page_size=2, page_token=token)
        )
        pages.append([chat.title for chat in page.chats])
        token = page.next_page_token
    others = await bob.refusal(chats_api.ListChatsRequest(owner_id=EVE_ID))
    member = await served.eve.refusal(chats_api.ListChatsRequest(owner_id=ANN_ID))

    assert pages == [["ann 4", "ann 3"], ["ann 2", "ann 1"], ["ann 0"]]
    assert [each.reason for each in (needed, others, member)] == ["BREAK_GLASS_NEEDED"] * 3


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


async def test_the_user_sees_who_may_read_their_chats(served: ServedChats, passing: None) -> None:
    chat, bob = await served.ann.create(), administrator(served)
    async with asyncio.timeout(60):
        with acting_for(User(UserId(ANN_ID), Role.MEMBER)):
            feed = served.ann.streams.WatchChats(streams_api.WatchChatsRequest())
        cursor = ""
        while not cursor:
            # Whatever comes first proves that the feed stands.
            await served.ann.send(chat.id)
            cursor = (await feed.read()).event.cursor
        access = await opened(bob)
        event = (await feed.read()).event
        while event.change != event_pb2.FEED_CHANGE_BREAK_GLASS:
            event = (await feed.read()).event
        feed.cancel()
    shown = await served.ann.get(chat.id)

    assert event.break_glass == access
    assert access == break_glass_pb2.BreakGlassAccess(
        access_id=access.access_id,
        administrator_id=BOB_ID,
        user_id=ANN_ID,
        reason=REASON,
        opened_at=access.opened_at,
        expires_at=access.expires_at,
        is_open=True,
    )
    assert access.expires_at.seconds - access.opened_at.seconds == 3600
    assert shown.break_glass_open
    assert await listed(served.ann) == [access.access_id]
    assert await listed(served.eve) == []
    assert await listed(served.eve, user_id=ANN_ID) == []
    assert await listed(replace(served.eve, role=Role.AUDITOR), user_id=ANN_ID) == [
        access.access_id
    ]


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"user_id": BOB_ID}, "user_id"),
        ({"user_id": "00000000-0000-0000-0000-00000000dead"}, "user_id"),
        ({"reason": "short"}, "reason"),
        ({"reason": " with blanks around it "}, "reason"),
        ({"duration_s": 59}, "duration_s"),
        ({"duration_s": 28_801}, "duration_s"),
    ],
)
async def test_an_access_that_cannot_be_meant_is_refused(
    served: ServedChats, given: Mapping[str, Any], field: str
) -> None:
    wanted: dict[str, Any] = {"request_id": "r", "user_id": ANN_ID, "reason": REASON, **given}
    refused = await administrator(served).refusal(api.OpenBreakGlassRequest(**wanted))

    assert refused.status is grpc.StatusCode.INVALID_ARGUMENT
    assert [violation.field for violation in refused.violations] == [field]


async def test_opening_again_with_the_same_request_opens_one(served: ServedChats) -> None:
    bob = administrator(served)
    first, second = await opened(bob, request_id="r"), await opened(bob, request_id="r")

    assert first == second
    assert len(await listed(bob)) == 1


@pytest.mark.parametrize("role", [Role.MEMBER, Role.AUDITOR])
async def test_only_administrators_open_and_end_accesses(served: ServedChats, role: Role) -> None:
    access = await opened(administrator(served))
    person = replace(served.eve, role=role)
    refused = [
        await person.refusal(
            api.OpenBreakGlassRequest(request_id="r", user_id=ANN_ID, reason=REASON)
        ),
        await person.refusal(api.EndBreakGlassRequest(request_id="r", access_id=access.access_id)),
    ]

    assert [each.status for each in refused] == [grpc.StatusCode.PERMISSION_DENIED] * 2
