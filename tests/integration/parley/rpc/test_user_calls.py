"""The bound on the running calls of one user of service tokens."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import grpc
from google.protobuf.wrappers_pb2 import StringValue

from parley.clock import SystemClock
from parley.identity import Role, User, UserId
from parley.rpc import problem_of
from support.rpc.echo_service import (
    ECHO_SCOPE,
    MEMBER,
    Echo,
    EchoStub,
    Identities,
    Served,
    ServeEcho,
    text,
)

OTHER = User(UserId("u-2"), Role.MEMBER)
CALLS_MAX = 2
REFUSED = ("TOO_MANY_RUNNING_CALLS", {"calls_max": str(CALLS_MAX)})


def metadata_of(identities: Identities, user: User, token_id: str) -> Any:
    ends_at = SystemClock().now() + timedelta(minutes=5)
    token = identities.signer.service_token(token_id, "nightly", user, (ECHO_SCOPE,), ends_at)
    return (("authorization", f"Bearer {token}"),)


async def one_word_then_nothing(request: StringValue, _context: Any) -> AsyncIterator[StringValue]:
    yield request
    await asyncio.get_running_loop().create_future()


@asynccontextmanager
async def opened(serve_echo: ServeEcho) -> AsyncIterator[tuple[Served, EchoStub]]:
    async with (
        asyncio.timeout(20),
        serve_echo(Echo(repeat=one_word_then_nothing), user_calls_max=CALLS_MAX) as served,
        grpc.aio.insecure_channel(served.server.address.target) as channel,
    ):
        yield served, EchoStub(channel)


async def reason_of(call: Any) -> tuple[str, dict[str, str]] | None:
    """Return why a stream was refused, or None if its first message came."""
    try:
        await call.read()
    except grpc.aio.AioRpcError as error:
        problem = problem_of(error)
        return problem.reason, dict(problem.metadata)
    return None


async def test_the_calls_of_all_tokens_of_a_user_are_bounded_together(
    serve_echo: ServeEcho, identities: Identities
) -> None:
    one, two = (metadata_of(identities, MEMBER, token_id) for token_id in ("t-1", "t-2"))
    other = metadata_of(identities, OTHER, "t-3")
    async with opened(serve_echo) as (served, stub):
        calls = [stub.repeat(text("x"), metadata=each) for each in (one, two)]
        admitted = [await reason_of(each) for each in calls]
        third = await reason_of(stub.repeat(text("x"), metadata=one))
        of_another_user = await reason_of(stub.repeat(text("x"), metadata=other))
        of_a_service = [await reason_of(served.echo.repeat(text("x"))) for _ in range(3)]
    assert admitted == [None, None]
    assert third == REFUSED
    assert of_another_user is None
    assert of_a_service == [None, None, None]


async def test_a_call_that_ended_leaves_its_place(
    serve_echo: ServeEcho, identities: Identities
) -> None:
    metadata = metadata_of(identities, MEMBER, "t-1")
    async with opened(serve_echo) as (_, stub):
        calls = [stub.repeat(text("x"), metadata=metadata) for _ in range(CALLS_MAX)]
        assert [await reason_of(each) for each in calls] == [None, None]
        calls[0].cancel()
        # The server learns of the cancellation a moment later.
        while (refused := await reason_of(stub.repeat(text("x"), metadata=metadata))) is not None:
            assert refused == REFUSED
    assert refused is None
