import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest
from google.protobuf.wrappers_pb2 import StringValue

from parley.identity import Caller, ServiceName
from parley.rpc import (
    LIMITS,
    Address,
    acting_for,
    current_caller,
    problem_of,
    remaining_s,
)
from support.rpc.echo_service import ECHO, MEMBER, Echo, EchoStub, ServeEcho, text


async def words(*values: str) -> AsyncIterator[StringValue]:
    for value in values:
        yield text(value)


async def outcome(call: Any) -> list[StringValue]:
    """Return all that a call of any kind answers."""
    return [each async for each in call] if hasattr(call, "__aiter__") else [await call]


async def test_all_four_kinds_of_method_are_served(serve_echo: ServeEcho) -> None:
    async with asyncio.timeout(10), serve_echo() as served:
        echo = served.echo
        assert await echo.say(text("hi")) == text("hi")
        assert [each async for each in echo.repeat(text("a b"))] == [text("a"), text("b")]
        assert await echo.join(words("a", "b")) == text("a b")
        assert [each async for each in echo.chat(words("a", "b"))] == [text("a"), text("b")]


async def test_a_stream_may_be_written_instead_of_yielded(serve_echo: ServeEcho) -> None:
    async def write(request: StringValue, context: Any) -> None:
        await context.write(request)
        await context.write(request)

    async with asyncio.timeout(10), serve_echo(Echo(repeat=write)) as served:
        answers = [each async for each in served.echo.repeat(text("a"))]
    assert answers == [text("a"), text("a")]


async def test_a_method_knows_who_calls_and_for_whom(serve_echo: ServeEcho) -> None:
    callers = []

    async def note(request: StringValue, context: Any) -> StringValue:
        callers.append(current_caller())
        return request

    async with asyncio.timeout(10), serve_echo(Echo(say=note)) as served:
        await served.echo.say(text("for itself"))
        with acting_for(MEMBER):
            await served.echo.say(text("for a user"))
    assert callers == [
        Caller(ServiceName.GATEWAY, None, frozenset(), None, "gateway"),
        Caller(ServiceName.GATEWAY, MEMBER, frozenset(), None, "gateway"),
    ]


@pytest.mark.parametrize("authorization", [None, "Bearer forged.token.text"])
@pytest.mark.parametrize("kind", ["say", "look", "repeat", "join", "chat"])
async def test_an_unauthenticated_call_is_refused_on_every_method(
    serve_echo: ServeEcho, kind: str, authorization: str | None
) -> None:
    metadata = () if authorization is None else (("authorization", authorization),)
    async with (
        asyncio.timeout(10),
        serve_echo() as served,
        grpc.aio.insecure_channel(served.server.address.target) as channel,
    ):
        call = getattr(EchoStub(channel), kind)
        request = words("x") if kind in ("join", "chat") else text("x")
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await outcome(call(request, timeout=5, metadata=metadata))
    assert raised.value.code() is grpc.StatusCode.UNAUTHENTICATED
    reason = "TOKEN_MISSING" if authorization is None else "TOKEN_MALFORMED"
    assert problem_of(raised.value).reason == reason


async def test_an_unknown_method_is_unimplemented(serve_echo: ServeEcho) -> None:
    async with asyncio.timeout(10), serve_echo() as served:
        call: Any = served.channel.unary_unary(f"/{ECHO}/Nothing")
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await call(b"")
    assert raised.value.code() is grpc.StatusCode.UNIMPLEMENTED


async def test_a_call_without_a_deadline_gets_the_default(serve_echo: ServeEcho) -> None:
    seen: list[float | None] = []

    async def note(request: StringValue, context: Any) -> StringValue:
        seen.append(context.time_remaining())
        return request

    async with asyncio.timeout(10), serve_echo(Echo(say=note)) as served:
        await served.echo.say(text("x"))
    assert seen[0] is not None
    # grpc rounds a deadline up as it writes it down.
    assert 0 < seen[0] < LIMITS.unary_deadline_s * 1.02


async def test_a_deadline_shrinks_as_it_travels(serve_echo: ServeEcho) -> None:
    seen: list[float] = []

    async def note(request: StringValue, context: Any) -> StringValue:
        remaining = remaining_s()
        assert remaining is not None
        seen.append(remaining)
        if request.value == "first":
            await served.echo.say(text("second"), timeout=20)
        return request

    async with asyncio.timeout(10), serve_echo(Echo(say=note)) as served:
        await served.echo.say(text("first"), timeout=9)
    assert all(0 < remaining < 9.2 for remaining in seen)
    assert len(seen) == 2


async def test_a_client_that_sends_no_deadline_is_given_one_by_the_server(
    serve_echo: ServeEcho, identities: Any
) -> None:
    seen: list[float | None] = []

    async def note(request: StringValue, context: Any) -> StringValue:
        seen.append(remaining_s())
        return request

    token = identities.signer.call_token(ServiceName.CHATD)
    async with (
        asyncio.timeout(10),
        serve_echo(Echo(say=note)) as served,
        grpc.aio.insecure_channel(served.server.address.target) as channel,
    ):
        metadata = (("authorization", f"Bearer {token}"),)
        await EchoStub(channel).say(text("x"), metadata=metadata)
    assert seen[0] is not None
    assert LIMITS.unary_deadline_s - 5 < seen[0] <= LIMITS.unary_deadline_s


async def test_a_message_over_the_limit_is_refused_and_explained(serve_echo: ServeEcho) -> None:
    async with asyncio.timeout(10), serve_echo() as served:
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await served.echo.say(text("x" * LIMITS.message_bytes_max))
        fits = await served.echo.say(text("x" * (LIMITS.message_bytes_max - 1000)))
    problem = problem_of(raised.value)
    assert (problem.status, problem.reason) == (
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        "MESSAGE_TOO_LARGE",
    )
    assert problem.metadata["limit_bytes"] == str(LIMITS.message_bytes_max)
    assert len(fits.value) == LIMITS.message_bytes_max - 1000


async def test_an_answer_over_the_limit_is_refused_and_explained(serve_echo: ServeEcho) -> None:
    async def shout(request: StringValue, context: Any) -> StringValue:
        return text("x" * (LIMITS.message_bytes_max + 1))

    async with asyncio.timeout(10), serve_echo(Echo(say=shout)) as served:
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await served.echo.say(text("x"))
    assert problem_of(raised.value).reason == "MESSAGE_TOO_LARGE"


async def test_calls_go_over_tcp_too(serve_echo: ServeEcho) -> None:
    address = Address.parse("tcp:127.0.0.1:0")
    async with asyncio.timeout(10), serve_echo(address=address) as served:
        assert served.server.address.port != 0
        assert await served.echo.say(text("hi")) == text("hi")


async def test_a_stub_made_after_the_first_call_works_on_the_same_channel(
    serve_echo: ServeEcho,
) -> None:
    async with asyncio.timeout(10), serve_echo() as served:
        await served.echo.say(text("x"))
        assert await EchoStub(served.channel).look(text("y")) == text("y")


async def test_a_closed_channel_takes_no_calls(serve_echo: ServeEcho) -> None:
    async with asyncio.timeout(10), serve_echo() as served:
        await served.channel.close()
        with pytest.raises(grpc.aio.UsageError):
            served.echo.say(text("x"))


async def test_calls_beyond_those_in_flight_wait_and_none_is_refused(serve_echo: ServeEcho) -> None:
    count = 8 * LIMITS.streams_per_connection_max
    answered: list[StringValue] = []

    async def ask(number: int) -> None:
        answered.append(await served.echo.say(text(str(number))))

    async with asyncio.timeout(60), serve_echo() as served, asyncio.TaskGroup() as tasks:
        for number in range(count):
            tasks.create_task(ask(number))
    assert len(answered) == count
