"""Streams opened with a service token: they end with it."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.wrappers_pb2 import StringValue

from parley.clock import FakeClock
from parley.rpc import problem_of
from support.rpc.echo_service import (
    ECHO_SCOPE,
    MEMBER,
    Echo,
    EchoStub,
    Identities,
    ServeEcho,
    make_identities,
    text,
)

TOKEN_ID = "token-1"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def identities(tmp_path: Path, clock: FakeClock) -> Identities:
    return make_identities(tmp_path, clock=clock)


@pytest.fixture
def metadata(identities: Identities, clock: FakeClock) -> Any:
    token = identities.signer.service_token(
        TOKEN_ID, "nightly", MEMBER, (ECHO_SCOPE,), clock.now() + timedelta(seconds=60)
    )
    return (("authorization", f"Bearer {token}"),)


async def two_words(go_on: asyncio.Event) -> AsyncIterator[StringValue]:
    yield text("one")
    await go_on.wait()
    yield text("two")


async def write_two_words(go_on: asyncio.Event, context: Any) -> None:
    async for word in two_words(go_on):
        await context.write(word)


@pytest.mark.parametrize("is_written", [False, True], ids=["yielded", "written"])
async def test_a_revoked_token_ends_the_stream_at_its_next_message(
    serve_echo: ServeEcho, identities: Identities, metadata: Any, is_written: bool
) -> None:
    go_on = asyncio.Event()

    def repeat(request: StringValue, context: Any) -> Any:
        return write_two_words(go_on, context) if is_written else two_words(go_on)

    async with (
        asyncio.timeout(10),
        serve_echo(Echo(repeat=repeat)) as served,
        grpc.aio.insecure_channel(served.server.address.target) as channel,
    ):
        call = EchoStub(channel).repeat(text("x"), metadata=metadata)
        first = await call.read()
        identities.revocations.revoke(TOKEN_ID)
        go_on.set()
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await call.read()
    assert first == text("one")
    assert problem_of(raised.value).reason == "TOKEN_REVOKED"


@pytest.mark.parametrize("timeout_s", [None, 3600], ids=["no deadline", "a long deadline"])
async def test_a_stream_ends_when_its_token_expires(
    serve_echo: ServeEcho, clock: FakeClock, metadata: Any, timeout_s: float | None
) -> None:
    clock.advance(59.95)
    never = asyncio.Event()
    async with (
        asyncio.timeout(10),
        serve_echo(Echo(repeat=lambda request, context: two_words(never))) as served,
        grpc.aio.insecure_channel(served.server.address.target) as channel,
    ):
        call = EchoStub(channel).repeat(text("x"), metadata=metadata, timeout=timeout_s)
        first = await call.read()
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await call.read()
    assert first == text("one")
    assert problem_of(raised.value).reason == "TOKEN_EXPIRED"


async def test_a_token_with_time_left_leaves_a_stream_its_deadline(
    serve_echo: ServeEcho, metadata: Any
) -> None:
    never = asyncio.Event()
    async with (
        asyncio.timeout(10),
        serve_echo(Echo(repeat=lambda request, context: two_words(never))) as served,
        grpc.aio.insecure_channel(served.server.address.target) as channel,
    ):
        call = EchoStub(channel).repeat(text("x"), metadata=metadata, timeout=0.3)
        await call.read()
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await call.read()
    assert raised.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
