"""Calls that a shared stream carried: each served once, answered or abandoned."""

import asyncio
from collections.abc import Mapping

import grpc

from chatd.rpc.streams.carried import CallsUnderWay
from parley.api.chat.v1 import stream_service_pb2 as api
from parley.rpc import CarriedAnswer


class Service:
    """Answers when it is told to."""

    def __init__(self) -> None:
        self.begun: list[bytes] = []
        self.ended: list[bytes] = []
        self.gate = asyncio.Event()
        self._something = asyncio.Event()
        self.answers: list[api.CarriedAnswer] = []
        self.calls = CallsUnderWay(self._serve, self.answers.append)

    async def until_begun(self, count: int) -> None:
        """Wait for the beginning of so many calls."""
        while len(self.begun) < count:
            self._something.clear()
            await self._something.wait()

    async def _serve(
        self, method: str, headers: Mapping[str, str], timeout_s: float, request: bytes
    ) -> CarriedAnswer:
        self.begun.append(request)
        self._something.set()
        try:
            await self.gate.wait()
        finally:
            self.ended.append(request)
        return CarriedAnswer(grpc.StatusCode.OK, response=request)


def call(number: int) -> api.CarriedCall:
    return api.CarriedCall(call_id=number, method="/s/M", timeout_ms=1000, request=b"%d" % number)


async def test_each_call_is_answered_under_its_id() -> None:
    service = Service()
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        service.calls.begin([call(1), call(2)], tasks)
        await service.until_begun(2)
        service.gate.set()
    assert sorted((answer.call_id, answer.response) for answer in service.answers) == [
        (1, b"1"),
        (2, b"2"),
    ]


async def test_an_id_that_is_not_answered_yet_is_not_served_twice() -> None:
    service = Service()
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        service.calls.begin([call(1)], tasks)
        service.calls.begin([call(1)], tasks)
        await service.until_begun(1)
        service.gate.set()
    assert service.begun == [b"1"]


async def test_an_abandoned_call_ends_without_an_answer() -> None:
    service = Service()
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        service.calls.begin([call(1), call(2)], tasks)
        await service.until_begun(2)
        service.calls.abandon(1)
        service.gate.set()
    assert [answer.call_id for answer in service.answers] == [2]
    assert sorted(service.ended) == [b"1", b"2"]


async def test_the_end_of_the_stream_abandons_all_calls() -> None:
    service = Service()
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        service.calls.begin([call(1), call(2)], tasks)
        await service.until_begun(2)
        service.calls.close()
    assert service.answers == []
