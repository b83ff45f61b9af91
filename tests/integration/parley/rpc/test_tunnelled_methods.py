"""Calls that another call's stream carries are served as if they had come by themselves."""

import asyncio
from typing import Any

import grpc
import pytest
from google.protobuf.wrappers_pb2 import StringValue

from parley.identity import Caller, ServiceName
from parley.rpc import (
    Problem,
    Refusal,
    TunnelledAnswer,
    TunnelledMethods,
    acting_for,
    call_headers,
    current_caller,
    problem_of,
    refused_call,
    remaining_s,
)
from support.rpc.echo_service import ECHO, MEMBER, Echo, Served, ServeEcho, text

SAY = f"/{ECHO}/Say"
TAKEN = Problem(grpc.StatusCode.ALREADY_EXISTS, "TAKEN", "Choose another word.", {"word": "hi"})


async def tunnelled(
    methods: TunnelledMethods,
    served: Served,
    method: str = SAY,
    *,
    headers: dict[str, str] | None = None,
    timeout_s: float = 5.0,
    request: bytes | None = None,
) -> TunnelledAnswer:
    """Make a call as a stream would hand it on."""
    known = call_headers(served.channel) if headers is None else headers
    encoded = text("hi").SerializeToString() if request is None else request
    return await methods.answer(None, method, known, timeout_s, encoded)


async def test_a_carried_call_is_answered_and_knows_who_makes_it(serve_echo: ServeEcho) -> None:
    seen: list[tuple[Caller, float | None]] = []

    async def note(request: StringValue, context: Any) -> StringValue:
        seen.append((current_caller(), remaining_s()))
        return text(f"{request.value}!")

    methods = TunnelledMethods()
    async with (
        asyncio.timeout(10),
        serve_echo(Echo(say=note), tunnelled=methods) as served,
    ):
        with acting_for(MEMBER):
            answer = await tunnelled(methods, served, timeout_s=4.0)
    assert answer == TunnelledAnswer(grpc.StatusCode.OK, response=text("hi!").SerializeToString())
    ((caller, left_s),) = seen
    assert caller == Caller(ServiceName.GATEWAY, MEMBER, frozenset(), None, "gateway")
    assert left_s is not None
    assert 3.0 < left_s <= 4.0


async def test_a_refusal_arrives_whole(serve_echo: ServeEcho) -> None:
    async def refuse(request: StringValue, context: Any) -> StringValue:
        raise Refusal(TAKEN)

    methods = TunnelledMethods()
    async with asyncio.timeout(10), serve_echo(Echo(say=refuse), tunnelled=methods) as served:
        answer = await tunnelled(methods, served)
    error = refused_call(answer.status, answer.message, answer.details)
    assert problem_of(error) == TAKEN


async def test_an_error_that_nobody_foresaw_keeps_its_text_inside(
    serve_echo: ServeEcho, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(request: StringValue, context: Any) -> StringValue:
        raise RuntimeError("the secret is 42")

    methods = TunnelledMethods()
    async with asyncio.timeout(10), serve_echo(Echo(say=fail), tunnelled=methods) as served:
        answer = await tunnelled(methods, served)
    assert answer.status is grpc.StatusCode.INTERNAL
    assert "42" not in answer.message
    assert b"42" not in answer.details
    assert "the secret is 42" in caplog.text


@pytest.mark.parametrize("authorization", [None, "Bearer forged.token.text"])
async def test_a_carried_call_needs_a_token_of_its_own(
    serve_echo: ServeEcho, authorization: str | None
) -> None:
    methods = TunnelledMethods()
    headers = {} if authorization is None else {"authorization": authorization}
    async with asyncio.timeout(10), serve_echo(tunnelled=methods) as served:
        answer = await tunnelled(methods, served, headers=headers)
    assert answer.status is grpc.StatusCode.UNAUTHENTICATED


@pytest.mark.parametrize("method", [f"/{ECHO}/Nothing", f"/{ECHO}/Repeat", f"/{ECHO}/Chat", "/"])
async def test_only_methods_that_answer_once_can_be_carried(
    serve_echo: ServeEcho, method: str
) -> None:
    methods = TunnelledMethods()
    async with asyncio.timeout(10), serve_echo(tunnelled=methods) as served:
        answer = await tunnelled(methods, served, method)
    assert answer.status is grpc.StatusCode.UNIMPLEMENTED


async def test_what_is_no_message_is_said_to_be_none(serve_echo: ServeEcho) -> None:
    methods = TunnelledMethods()
    async with asyncio.timeout(10), serve_echo(tunnelled=methods) as served:
        answer = await tunnelled(methods, served, request=b"\xff\xff")
    assert answer == TunnelledAnswer(grpc.StatusCode.INTERNAL, "the message cannot be decoded")


async def test_a_carried_call_ends_with_its_deadline(serve_echo: ServeEcho) -> None:
    ended = asyncio.Event()

    async def wait(request: StringValue, context: Any) -> StringValue:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return request

    methods = TunnelledMethods()
    async with asyncio.timeout(10), serve_echo(Echo(say=wait), tunnelled=methods) as served:
        answer = await tunnelled(methods, served, timeout_s=0.01)
    assert answer.status is grpc.StatusCode.DEADLINE_EXCEEDED
    assert ended.is_set()


async def test_a_draining_server_takes_no_carried_call(serve_echo: ServeEcho) -> None:
    methods = TunnelledMethods()
    async with asyncio.timeout(10), serve_echo(tunnelled=methods) as served:
        await served.server.drain()
        answer = await tunnelled(methods, served)
    assert answer.status is grpc.StatusCode.UNAVAILABLE
