import asyncio
import itertools
from pathlib import Path
from uuid import UUID, uuid5

import grpc
import pytest

from parley.api.chat.v1 import chat_service_pb2 as api
from parley.client import (
    Backoff,
    Busy,
    Chat,
    ChatOptions,
    ChatStatus,
    DeadlineExceeded,
    Forbidden,
    Message,
    MessagePage,
    NotFound,
    Parley,
    Patience,
    Role,
    SentMessage,
    Text,
    Unauthenticated,
    Unavailable,
    connect,
)
from parley.client.conversion import content_to_proto
from parley.clock import FakeClock, SystemClock
from parley.identity import CertificateAuthority, ServiceName
from parley.rpc import (
    LIMITS,
    Address,
    AddressInvalid,
    AddressUnusable,
    NoAddress,
    Problem,
    TlsFiles,
    ranked,
)
from support.client.chat_service import (
    ADA,
    CHAT_NOT_FOUND,
    TOKEN_ID,
    UNAVAILABLE,
    FakeChatd,
    Tokens,
    fake_chatd,
)

NOBODYS = "0190f5a0-0000-7000-8000-00000000dead"


async def test_a_chat_is_created_written_to_read_and_interrupted(
    parley: Parley, chatd: FakeChatd
) -> None:
    async with asyncio.timeout(5):
        options = ChatOptions(title="Greeting", labels={"team": "blue"})
        chat = await parley.create_chat("hello", options=options)
        sent = await parley.send_message(chat.id, [Text("are you"), Text("there?")])
        page = await parley.list_messages(chat.id, limit=1)
        read = await parley.get_chat(chat.id)
        stopped = await parley.interrupt(chat.id)

    expected = Chat(chat.id, ADA.id, "Greeting", ChatStatus.RUNNING, labels={"team": "blue"})
    second = Message(2, chat.id, Role.USER, (Text("are you"), Text("there?")), created_by=ADA.id)
    assert (chat, read, stopped) == (expected, expected, expected)
    assert sent == SentMessage(expected, second)
    assert page == MessagePage((second,), has_more=True)


async def test_unavailable_twice_and_then_an_answer_sends_one_request_id(
    parley: Parley, chatd: FakeChatd
) -> None:
    chatd.chats.problems.extend([UNAVAILABLE] * 2)

    async with asyncio.timeout(5):
        chat = await parley.create_chat("hello")

    requests = chatd.chats.requests
    assert [request.request_id for request in requests] == [requests[0].request_id] * 3
    assert list(chatd.chats.chats) == [chat.id]


async def test_a_call_is_repeated_by_the_clock_after_the_channel_gave_up(
    tokens: Tokens, chatd: FakeChatd
) -> None:
    clock = FakeClock()
    chatd.chats.problems.extend([UNAVAILABLE] * (LIMITS.retry_attempts_max + 1))

    async with (
        asyncio.timeout(10),
        connect(chatd.address, token=tokens.issue(), clock=clock) as parley,
        asyncio.TaskGroup() as tasks,
    ):
        created = tasks.create_task(parley.create_chat("hello", request_id="order-66"))
        delay_s = await clock.until_sleeping()
        assert LIMITS.retry_first_s <= delay_s <= 2 * LIMITS.retry_first_s
        clock.advance(delay_s)
        assert (await created).status is ChatStatus.RUNNING

    request_ids = {request.request_id for request in chatd.chats.requests}
    assert (request_ids, len(chatd.chats.requests)) == ({"order-66"}, 6)


async def test_every_change_has_an_id_of_its_own(parley: Parley, chatd: FakeChatd) -> None:
    async with asyncio.timeout(5):
        chat = await parley.create_chat("hello")
        await parley.send_message(chat.id, "one")
        await parley.send_message(chat.id, "two", is_urgent=True, model_id="m")
        await parley.interrupt(chat.id, turn_message_id=3)

    ids = [request.request_id for request in chatd.chats.requests]
    assert len(set(ids)) == 4
    assert chatd.chats.requests[2:] == [
        api.SendMessageRequest(
            request_id=ids[2],
            chat_id=chat.id,
            content=content_to_proto("two"),
            busy_behavior=api.BUSY_BEHAVIOR_INTERRUPT,
            model_id="m",
        ),
        api.InterruptRequest(request_id=ids[3], chat_id=chat.id, turn_message_id=3),
    ]


async def test_a_known_user_names_the_new_chat(tokens: Tokens, chatd: FakeChatd) -> None:
    async with (
        asyncio.timeout(5),
        connect(chatd.address, token=tokens.issue(), user_id=ADA.id, new_id=lambda: "r") as parley,
    ):
        chat = await parley.create_chat("hello")

    (request,) = chatd.chats.requests
    assert chat.id == request.chat_id == str(uuid5(UUID(ADA.id), "r"))


async def test_an_unknown_user_leaves_the_name_to_the_server(
    parley: Parley, chatd: FakeChatd
) -> None:
    async with asyncio.timeout(5):
        await parley.create_chat("hello")

    (request,) = chatd.chats.requests
    assert request.chat_id == ""


async def test_a_problem_arrives_as_a_typed_error(parley: Parley, chatd: FakeChatd) -> None:
    full = Problem(
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        "QUEUE_FULL",
        "the queue is full; wait for a turn to end",
        {"queue_length_max": "20"},
        retry_after_s=2.0,
    )
    async with asyncio.timeout(5):
        with pytest.raises(NotFound) as absent:
            await parley.get_chat(NOBODYS)
        chatd.chats.problems.append(full)
        with pytest.raises(Busy) as busy:
            await parley.send_message(NOBODYS, "hello")

    assert (absent.value.reason, absent.value.problem) == ("CHAT_NOT_FOUND", CHAT_NOT_FOUND)
    assert (busy.value.reason, busy.value.problem) == ("QUEUE_FULL", full)


async def test_a_revoked_token_is_refused(parley: Parley, chatd: FakeChatd) -> None:
    async with asyncio.timeout(5):
        chat = await parley.create_chat("hello")
        chatd.revocations.revoke(TOKEN_ID)
        with pytest.raises(Unauthenticated) as refused:
            await parley.get_chat(chat.id)
        with pytest.raises(Unauthenticated):
            await anext(parley.follow(chat.id))

    assert refused.value.reason == "TOKEN_REVOKED"


async def test_a_token_without_the_scope_is_refused(tokens: Tokens, chatd: FakeChatd) -> None:
    async with (
        asyncio.timeout(5),
        connect(chatd.address, token=tokens.issue("chat:read")) as parley,
    ):
        with pytest.raises(Forbidden) as refused:
            await parley.create_chat("hello")

    assert refused.value.reason == "SCOPE_MISSING"


async def test_a_call_that_is_never_answered_ends_at_its_deadline(
    tokens: Tokens, chatd: FakeChatd
) -> None:
    chatd.chats.hold()
    async with (
        asyncio.timeout(5),
        connect(chatd.address, token=tokens.issue(), patience=Patience(deadline_s=0.05)) as parley,
    ):
        with pytest.raises(DeadlineExceeded):
            await parley.get_chat(NOBODYS)


async def test_nobody_at_the_address_is_unavailable(tokens: Tokens, tmp_path: Path) -> None:
    patience = Patience(calls=Backoff(attempts_max=1))
    async with (
        asyncio.timeout(10),
        connect(f"unix:{tmp_path}/nobody.sock", token=tokens.issue(), patience=patience) as parley,
    ):
        with pytest.raises(Unavailable):
            await parley.get_chat(NOBODYS)


async def test_a_chat_lives_at_the_replica_that_the_gateways_choose_too(
    tokens: Tokens, tmp_path: Path
) -> None:
    async with (
        asyncio.timeout(5),
        fake_chatd(tokens, f"unix:{tmp_path}/a.sock") as a,
        fake_chatd(tokens, f"unix:{tmp_path}/b.sock") as b,
        connect(str(a.address), str(b.address), token=tokens.issue(), user_id=ADA.id) as parley,
    ):
        chats = [await parley.create_chat("hello") for _ in range(8)]

    found = {chat.id: a.address for chat in chats if chat.id in a.chats.chats}
    found |= {chat.id: b.address for chat in chats if chat.id in b.chats.chats}
    assert found == {chat.id: ranked(chat.id, (a.address, b.address))[0] for chat in chats}


async def test_the_next_replica_answers_when_the_first_has_died(
    tokens: Tokens, tmp_path: Path
) -> None:
    dead = Address.parse(f"unix:{tmp_path}/dead.sock")
    async with (
        asyncio.timeout(10),
        fake_chatd(tokens, f"unix:{tmp_path}/alive.sock") as alive,
        connect(dead, alive.address, token=tokens.issue()) as parley,
    ):
        both = (dead, alive.address)
        request_id = next(str(n) for n in itertools.count() if ranked(str(n), both)[0] == dead)
        chat = await parley.create_chat("hello", request_id=request_id)

    assert list(alive.chats.chats) == [chat.id]


@pytest.mark.parametrize("scheme", ["tcp", "tls"])
async def test_a_caller_reaches_chatd_over_the_network(
    tokens: Tokens, tmp_path: Path, scheme: str
) -> None:
    authority = CertificateAuthority.create(tmp_path / "ca", clock=SystemClock())
    server_files, caller_files = TlsFiles(tmp_path / "chatd"), TlsFiles(tmp_path / "nightly")
    authority.issue(ServiceName.CHATD).write(server_files.directory)
    authority.issue_for_client("nightly").write(caller_files.directory)

    async with (
        asyncio.timeout(10),
        fake_chatd(tokens, f"{scheme}:127.0.0.1:0", tls=server_files) as chatd,
        connect(chatd.address, token=tokens.issue(), tls=caller_files) as parley,
    ):
        chat = await parley.create_chat("hello")

    assert list(chatd.chats.chats) == [chat.id]


async def test_a_certificate_of_a_service_does_not_carry_a_callers_token(
    tokens: Tokens, tmp_path: Path
) -> None:
    authority = CertificateAuthority.create(tmp_path / "ca", clock=SystemClock())
    files = TlsFiles(tmp_path / "chatd")
    authority.issue(ServiceName.CHATD).write(files.directory)

    async with (
        asyncio.timeout(10),
        fake_chatd(tokens, "tls:127.0.0.1:0", tls=files) as chatd,
        connect(chatd.address, token=tokens.issue(), tls=files) as parley,
    ):
        with pytest.raises(Unauthenticated) as refused:
            await parley.create_chat("hello")

    assert refused.value.reason == "PEER_MISMATCH"


async def test_unusable_addresses_are_refused_before_any_call() -> None:
    with pytest.raises(NoAddress):
        await connect(token="t").__aenter__()
    with pytest.raises(AddressInvalid):
        await connect("example.org:80", token="t").__aenter__()
    with pytest.raises(AddressUnusable):
        await connect("tls:example.org:443", token="t").__aenter__()
