"""Calls that share a stream do not share their failures."""

import asyncio
from collections.abc import Mapping

import grpc

from chatd.streams.rpc.tunnelled_calls import ActiveTunnelledCalls
from parley.api.chat.v1 import stream_service_pb2 as api
from parley.rpc import TunnelledAnswer


async def serve(
    method: str, headers: Mapping[str, str], timeout_s: float, request: bytes
) -> TunnelledAnswer:
    if method == "/bad":
        raise RuntimeError("a bug")
    return TunnelledAnswer(grpc.StatusCode.OK, response=request)


async def test_a_call_that_fails_unexpectedly_is_answered_and_the_others_go_on() -> None:
    answers: asyncio.Queue[api.TunnelledAnswer] = asyncio.Queue()
    calls = ActiveTunnelledCalls(serve, answers.put_nowait)
    asked = [
        api.TunnelledCall(call_id=1, method="/bad"),
        api.TunnelledCall(call_id=2, method="/good", request=b"x"),
    ]
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        calls.begin(asked, tasks)
        found = {answer.call_id: answer for answer in [await answers.get(), await answers.get()]}
    assert found[1].status == grpc.StatusCode.INTERNAL.value[0]
    assert (found[2].status, found[2].response) == (0, b"x")
