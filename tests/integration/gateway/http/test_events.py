import asyncio
import re
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import asyncpg
import pytest

from gateway.http.sign_in_watch import CHECK_EVERY_S
from gateway.streams.event_stream import StreamLimits
from parley.api.chat.v1 import chat_pb2, event_pb2, message_pb2, stream_service_pb2
from support.gateway.chats import NO_CHAT
from support.gateway.stack import LOGIN_TOKEN, GatewayStack, gateway_stack
from support.net.http_client import SentEvent

HELLO = {"content": [{"type": "text", "text": "hello"}]}
OPENING = "retry: 2000\n: connected"


async def execute(url: str, statement: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


async def new_chat(stack: GatewayStack) -> str:
    created = await stack.owner.request("POST", "/api/v1/chats", HELLO)
    return str(created.json()["id"])


async def let_time_pass(stack: GatewayStack, seconds: float) -> None:
    """Move the clock when everything of the gateway that waits for it does so."""
    # The feed of revocations, the watch of sign-ins, the look at streams, exports, signatures of
    # the audit log, shared rates, the renewal of tokens and the silence of the link.
    await stack.clock.until_sleeping(8)
    stack.clock.advance(seconds)


def status(cursor: str, value: "chat_pb2.ChatStatus.ValueType") -> event_pb2.ChatEvent:
    return event_pb2.ChatEvent(cursor=cursor, status=event_pb2.StatusEvent(status=value))


def text_part(cursor: str, text: str) -> event_pb2.ChatEvent:
    part = message_pb2.Part(text=message_pb2.TextPart(text=text))
    event = event_pb2.MessagePartEvent(role=message_pb2.ROLE_ASSISTANT, part=part, seq=1)
    return event_pb2.ChatEvent(cursor=cursor, message_part=event)


async def test_events_arrive_with_their_cursor_type_and_one_line_of_json(
    stack: GatewayStack,
) -> None:
    chat_id = await new_chat(stack)
    async with asyncio.timeout(10), stack.owner.stream(f"/api/v1/chats/{chat_id}/events") as stream:
        subscription = await stack.chatd.subscriptions.get()
        subscription.send(text_part("1.1.0.1.1.1", "two\nlines"))
        subscription.send(status("2.2.0.2.0.0", chat_pb2.CHAT_STATUS_WAITING))

        frames = [await stream.frame() for _ in range(3)]

    assert stream.reply.status == 200
    assert stream.reply.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert stream.reply.headers["cache-control"] == "no-cache, no-transform"
    assert stream.reply.headers["x-accel-buffering"] == "no"
    part = (
        f'{{"type":"message_part","chat_id":"{chat_id}","message_part":{{"role":"assistant",'
        '"part":{"type":"text","text":"two\\nlines"},"history_version":0,"generation_attempt":0,'
        '"seq":1,"part_index":0}}'
    )
    waiting = (
        f'{{"type":"status","chat_id":"{chat_id}",'
        '"status":{"status":"waiting","place_in_line":0}}'
    )
    assert frames == [
        OPENING,
        f"id: 1.1.0.1.1.1\nevent: message_part\ndata: {part}",
        f"id: 2.2.0.2.0.0\nevent: status\ndata: {waiting}",
    ]


@pytest.mark.parametrize(
    ("query", "headers", "cursor", "after_id"),
    [
        ("", {}, "", 0),
        ("?cursor=1.2.3.4.5.6", {}, "1.2.3.4.5.6", 0),
        ("?cursor=1.2.3.4.5.6", {"Last-Event-ID": "7.7.0.1.1.1"}, "7.7.0.1.1.1", 0),
        ("?after_id=12", {}, "", 12),
    ],
)
async def test_a_reader_goes_on_where_it_left_off(
    stack: GatewayStack, query: str, headers: dict[str, str], cursor: str, after_id: int
) -> None:
    chat_id = await new_chat(stack)

    path = f"/api/v1/chats/{chat_id}/events{query}"
    async with asyncio.timeout(10), stack.owner.stream(path, headers):
        subscription = await stack.chatd.subscriptions.get()

    assert isinstance(subscription.request, stream_service_pb2.OpenSubscription)
    asked = subscription.request
    assert (asked.chat_id, asked.cursor, asked.after_id) == (chat_id, cursor, after_id)


async def test_a_client_that_leaves_ends_its_subscription(stack: GatewayStack) -> None:
    chat_id = await new_chat(stack)
    async with asyncio.timeout(10):
        async with stack.owner.stream(f"/api/v1/chats/{chat_id}/events"):
            subscription = await stack.chatd.subscriptions.get()
        await subscription.ended.wait()


async def test_silence_is_broken_by_a_heartbeat(stack: GatewayStack) -> None:
    chat_id = await new_chat(stack)
    async with asyncio.timeout(10), stack.owner.stream(f"/api/v1/chats/{chat_id}/events") as stream:
        await stack.chatd.subscriptions.get()
        assert await stream.frame() == OPENING
        await let_time_pass(stack, 15)

        assert await stream.frame() == ": hb"


@pytest.mark.parametrize(
    ("reason", "event", "last_id"),
    [
        (stream_service_pb2.CLOSE_REASON_RESYNC, "resync", ""),
    ],
)
async def test_the_end_of_a_subscription_is_told(
    stack: GatewayStack,
    reason: "stream_service_pb2.CloseReason.ValueType",
    event: str,
    last_id: str | None,
) -> None:
    chat_id = await new_chat(stack)
    async with asyncio.timeout(10), stack.owner.stream(f"/api/v1/chats/{chat_id}/events") as stream:
        (await stack.chatd.subscriptions.get()).close(reason)

        last, end = await stream.event(), await stream.event()

    assert last == SentEvent(event, {"type": event, "chat_id": chat_id}, last_id)
    assert end is None


async def test_a_chat_that_is_no_longer_the_readers_ends_with_an_error(
    stack: GatewayStack,
) -> None:
    chat_id = await new_chat(stack)
    async with asyncio.timeout(10), stack.owner.stream(f"/api/v1/chats/{chat_id}/events") as stream:
        subscription = await stack.chatd.subscriptions.get()
        subscription.close(stream_service_pb2.CLOSE_REASON_NOT_FOUND)

        last = await stream.event()

    assert last is not None
    assert (last.event, last.data["error"]["code"]) == ("error", "permission_revoked")


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE identity.api_keys SET revoked_at = now()",
        "UPDATE identity.users SET state = 'deactivated', deactivated_at = now()",
        "UPDATE identity.users SET role = 'auditor'",
        "DELETE FROM identity.api_keys",
    ],
)
async def test_a_stream_ends_soon_after_its_key_or_user_does(
    stack: GatewayStack, identity_database: str, change: str
) -> None:
    chat_id = await new_chat(stack)
    async with asyncio.timeout(10), stack.owner.stream(f"/api/v1/chats/{chat_id}/events") as stream:
        await stack.chatd.subscriptions.get()
        assert await stream.frame() == OPENING
        await execute(identity_database, change)
        await let_time_pass(stack, CHECK_EVERY_S)

        last, end = await stream.event(), await stream.event()

    assert last is not None
    assert (last.event, last.data["error"]["code"]) == ("error", "permission_revoked")
    assert end is None


async def test_a_stream_ends_soon_after_its_session_does(
    stack: GatewayStack, identity_database: str
) -> None:
    chat_id = await new_chat(stack)
    signed_in = await stack.anonymous.request("GET", f"/login?token={LOGIN_TOKEN}")
    cookie = {"Cookie": signed_in.headers["set-cookie"].partition(";")[0]}
    async with (
        asyncio.timeout(10),
        stack.anonymous.stream(f"/api/v1/chats/{chat_id}/events", cookie) as stream,
    ):
        subscription = await stack.chatd.subscriptions.get()
        assert await stream.frame() == OPENING
        await let_time_pass(stack, CHECK_EVERY_S)
        subscription.send(status("1.1.0.1.0.0", chat_pb2.CHAT_STATUS_RUNNING))
        kept = await stream.event()
        await execute(identity_database, "DELETE FROM identity.sessions")
        await let_time_pass(stack, CHECK_EVERY_S)
        last = await stream.event()

    assert kept is not None
    assert last is not None
    assert (kept.event, last.event) == ("status", "error")


@pytest.mark.parametrize("reason", ["GOING_AWAY", "INTERNAL", None])
async def test_a_subscription_that_chatd_gives_up_goes_on_behind_its_last_event(
    stack: GatewayStack, reason: str | None
) -> None:
    chat_id = await new_chat(stack)
    async with asyncio.timeout(10), stack.owner.stream(f"/api/v1/chats/{chat_id}/events") as stream:
        first = await stack.chatd.subscriptions.get()
        first.send(status("1.1.2.1.1.0", chat_pb2.CHAT_STATUS_RUNNING))
        assert await stream.event() is not None
        if reason is None:
            first.break_off()
        else:
            first.close(stream_service_pb2.CloseReason.Value(f"CLOSE_REASON_{reason}"))
        second = await stack.chatd.subscriptions.get()
        second.send(status("2.2.1.2.0.0", chat_pb2.CHAT_STATUS_WAITING))
        event = await stream.event()

    assert second.request.cursor == "1.1.2.1.1.0"
    assert event is not None
    assert (event.event, event.id) == ("status", "2.2.1.2.0.0")


async def test_many_clients_share_one_stream_to_chatd(stack: GatewayStack) -> None:
    chat_id = await new_chat(stack)
    path = f"/api/v1/chats/{chat_id}/events"
    async with asyncio.timeout(10), AsyncExitStack() as open_ones:
        streams = [await open_ones.enter_async_context(stack.owner.stream(path)) for _ in range(20)]
        subscriptions = [await stack.chatd.subscriptions.get() for _ in streams]
        for subscription in subscriptions:
            subscription.send(status("1.1.2.1.1.0", chat_pb2.CHAT_STATUS_RUNNING))
        events = [await stream.event() for stream in streams]

    assert len({id(subscription.connection) for subscription in subscriptions}) == 1
    assert {event.id for event in events if event is not None} == {"1.1.2.1.1.0"}


async def test_the_users_of_open_streams_are_proved_anew_in_time(stack: GatewayStack) -> None:
    chat_id = await new_chat(stack)
    async with asyncio.timeout(10), stack.owner.stream(f"/api/v1/chats/{chat_id}/events") as stream:
        subscription = await stack.chatd.subscriptions.get()
        await let_time_pass(stack, 25)
        subscription.send(status("1.1.2.1.1.0", chat_pb2.CHAT_STATUS_RUNNING))
        await stream.event()

    assert subscription.renewals == 1


async def test_only_the_kinds_that_were_asked_for_arrive(stack: GatewayStack) -> None:
    chat_id = await new_chat(stack)
    path = f"/api/v1/chats/{chat_id}/events?types=status,message"
    async with asyncio.timeout(10), stack.owner.stream(path) as stream:
        subscription = await stack.chatd.subscriptions.get()
        subscription.send(text_part("1.1.2.1.1.1", "x"))
        subscription.send(status("2.2.1.2.0.0", chat_pb2.CHAT_STATUS_WAITING))
        event = await stream.event()

    assert event is not None
    assert event.event == "status"


@pytest.mark.parametrize(
    ("path", "known"),
    [
        (f"/chats/{NO_CHAT}/events", ("message", "message_part", "status", "resync", "bye")),
        ("/events", ("created", "updated", "deleted", "resync", "bye")),
        (f"/workspaces/{NO_CHAT}/events", ("workspace", "log_line", "autostop_warning", "bye")),
        (f"/chats/{NO_CHAT}/git/events", ("git_snapshot", "git_changed", "git_removed", "bye")),
    ],
)
async def test_types_of_events_that_there_are_not_are_refused(
    stack: GatewayStack, path: str, known: tuple[str, ...]
) -> None:
    reply = await stack.owner.request("GET", f"/api/v1{path}?types={known[0]},foo")
    (error,) = reply.json()["errors"]
    assert (reply.status, error["parameter"]) == (422, "types")
    assert error["detail"].startswith("'foo' is no type of event here.")
    assert {*known} <= {*error["detail"].removesuffix(".").replace(",", "").split()}


async def test_a_cursor_that_is_none_is_passed_on_as_one_that_cannot_be_resumed(
    stack: GatewayStack,
) -> None:
    chat_id = await new_chat(stack)
    path = f"/api/v1/chats/{chat_id}/events"
    async with asyncio.timeout(10), stack.owner.stream(path, {"Last-Event-ID": "x" * 1000}):
        subscription = await stack.chatd.subscriptions.get()

    assert subscription.request.cursor == "-"


async def test_changes_of_the_list_arrive_with_their_chat(stack: GatewayStack) -> None:
    async with asyncio.timeout(10), stack.owner.stream("/api/v1/events?cursor=7") as stream:
        subscription = await stack.chatd.subscriptions.get()
        chat = chat_pb2.Chat(id="c", title="New", status=chat_pb2.CHAT_STATUS_RUNNING)
        subscription.send_feed(
            event_pb2.FeedEvent(cursor="8", change=event_pb2.FEED_CHANGE_CREATED, chat=chat),
            event_pb2.FeedEvent(
                cursor="9", change=event_pb2.FEED_CHANGE_DELETED, chat=chat_pb2.Chat(id="d")
            ),
        )
        created, deleted = await stream.event(), await stream.event()

    assert isinstance(subscription.request, stream_service_pb2.OpenFeed)
    assert subscription.request.cursor == "7"
    assert created is not None
    assert (created.event, created.id, created.data["chat"]["title"]) == ("created", "8", "New")
    assert deleted == SentEvent("deleted", {"type": "deleted", "chat_id": "d"}, "9")


async def test_an_unknown_chat_is_refused_before_the_stream_begins(stack: GatewayStack) -> None:
    reply = await stack.owner.request(
        "GET", "/api/v1/chats/00000000-0000-0000-0000-000000000001/events"
    )

    assert (reply.status, reply.json()["code"]) == (404, "CHAT_NOT_FOUND")
    assert stack.chatd.subscriptions.empty()


async def test_a_client_that_does_not_read_is_told_to_begin_anew(
    tmp_path: Path, identity_database: str
) -> None:
    limits = replace(StreamLimits(), queue_bytes_max=1024)
    async with (
        asyncio.timeout(20),
        gateway_stack(tmp_path, identity_database, limits=limits) as stack,
    ):
        chat_id = await new_chat(stack)
        async with stack.owner.stream(f"/api/v1/chats/{chat_id}/events") as stream:
            subscription = await stack.chatd.subscriptions.get()
            # Far more than the sockets of both sides hold, so that frames must wait.
            for number in range(400):
                subscription.send(text_part(f"1.1.0.1.1.{number}", "x" * 100_000))
            await subscription.ended.wait()

            events = []
            while (event := await stream.event()) is not None:
                events.append(event)

            shown = stack.telemetry.telemetry.metrics_text()

    assert events[-1] == SentEvent("resync", {"type": "resync", "chat_id": chat_id}, "")
    assert len(events) < 400
    assert re.search(r"^gateway_streams_overflowed\S*_total\S* 1\.0$", shown, re.MULTILINE)


async def test_what_a_client_has_taken_is_confirmed(stack: GatewayStack) -> None:
    chat_id = await new_chat(stack)
    async with asyncio.timeout(10), stack.owner.stream(f"/api/v1/chats/{chat_id}/events") as stream:
        subscription = await stack.chatd.subscriptions.get()
        event = text_part("1.1.2.1.1.1", "x" * 100_000)
        subscription.send(event)
        await stream.event()
        # The second one is answered only after the first was confirmed.
        subscription.send(event)
        await stream.event()
        while subscription.confirmed_bytes < event.ByteSize():
            await asyncio.wait((asyncio.get_running_loop().create_future(),), timeout=0.01)

    assert subscription.confirmed_bytes >= event.ByteSize()


async def test_a_stopping_gateway_says_bye_and_is_not_ready(
    tmp_path: Path, identity_database: str
) -> None:
    # The start and the end of a gateway take long beside other tests, and have bounds of their own.
    async with gateway_stack(tmp_path, identity_database) as stack:
        chat_id = await new_chat(stack)
        path = f"/api/v1/chats/{chat_id}/events"
        async with asyncio.timeout(20), stack.owner.stream(path) as stream:
            await stack.chatd.subscriptions.get()
            stack.gateway.stop()
            ready = await stack.anonymous.request("GET", "/readyz")
            last, end = await stream.event(), await stream.event()

    assert (ready.status, ready.json()["checks"]) == (503, {"process": "draining"})
    assert (last, end) == (SentEvent("bye", {"type": "bye", "chat_id": chat_id}), None)
