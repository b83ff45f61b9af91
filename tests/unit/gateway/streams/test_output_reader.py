"""The output of a process as events: paced, resumed by its cursor, ended by the exit."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field

import grpc
import pytest
from google.protobuf.message import Message

from gateway.http.problems.errors import UpstreamProblem
from gateway.streams.frame_queue import FrameQueue
from gateway.streams.output_reader import (
    EVENT_BYTES_MAX,
    OMITTED_BYTES_MAX,
    PACE_S,
    RETRY_S,
    SLOW_PACE_S,
    OutputReader,
)
from parley.api.chat.v1 import event_pb2
from parley.api.workspace.v1 import process_pb2
from parley.api.workspace.v1 import workspace_access_service_pb2 as api
from parley.clock import FakeClock
from parley.rpc import Problem

CHAT = "00000000-0000-0000-0000-00000000000c"
PROCESS = "00000000-0000-0000-0000-0000000000b1"
PIECES = ("first\n", "second ", "\x1b[32mgreen\x1b[0m\n", "dritte Zeile: ü\n", "end")
RUNNING, EXITED = process_pb2.PROCESS_STATE_RUNNING, process_pb2.PROCESS_STATE_EXITED


@dataclass
class ScriptedProcess:
    """A process that has written one piece more at each look, and exits with the last one."""

    looks: int = 0
    asked: list[api.WaitWorkspaceOutputRequest] = field(default_factory=list)
    refusals: Iterator[Problem] = field(default_factory=lambda: iter(()))

    async def wait(
        self, request: api.WaitWorkspaceOutputRequest
    ) -> api.WaitWorkspaceOutputResponse:
        self.asked.append(api.WaitWorkspaceOutputRequest.FromString(request.SerializeToString()))
        if (refusal := next(self.refusals, None)) is not None:
            raise UpstreamProblem(refusal)
        self.looks = min(self.looks + 1, len(PIECES))
        written = "".join(PIECES[: self.looks]).encode()
        return api.WaitWorkspaceOutputResponse(
            process=process_pb2.Process(
                process_id=PROCESS, state=EXITED if self.looks == len(PIECES) else RUNNING
            ),
            output=process_pb2.ProcessOutput(
                text=written[request.since_cursor :].decode(), next_cursor=len(written)
            ),
        )


class Left(Exception):
    """The client leaves."""


@dataclass
class CuttingClient:
    """A client that leaves after some events."""

    left_after: int = 1000
    events: list[tuple[str, Message]] = field(default_factory=list)

    def send(self, kind: str, event: Message) -> None:
        self.events.append((kind, event))

    async def wait_sent(self) -> None:
        if len(self.events) >= self.left_after:
            raise Left


async def read(
    process: ScriptedProcess, client: CuttingClient, clock: FakeClock, cursor: int = 0
) -> None:
    """Read until the process ends or the client leaves; time passes whenever it is waited for."""
    reader = OutputReader(process.wait, client, clock)
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:

        async def pass_time() -> None:
            while True:
                await clock.until_sleeping()
                clock.advance(RETRY_S)

        passing = tasks.create_task(pass_time())
        try:
            await reader.read(CHAT, PROCESS, cursor)
        except Left:
            pass
        finally:
            passing.cancel()


def outputs(client: CuttingClient) -> list[event_pb2.ProcessOutputEvent]:
    return [each for _, each in client.events if isinstance(each, event_pb2.ProcessOutputEvent)]


async def test_output_comes_as_events_and_ends_with_the_exit() -> None:
    process, client = ScriptedProcess(), CuttingClient()
    await read(process, client, FakeClock())
    assert [each.text for each in outputs(client)] == [*PIECES]
    kind, ended = client.events[-1]
    assert kind == "process_ended"
    assert isinstance(ended, event_pb2.ProcessEndedEvent)
    assert (ended.process.state, ended.HasField("error")) == (EXITED, False)
    assert [each.condition.until for each in process.asked] == [
        process_pb2.WAIT_UNTIL_SNAPSHOT,
        *[process_pb2.WAIT_UNTIL_OUTPUT] * (len(PIECES) - 1),
    ]
    assert {each.budget.max_bytes for each in process.asked} == {EVENT_BYTES_MAX}


@pytest.mark.parametrize("cut", range(1, len(PIECES) + 1))
async def test_a_reader_that_is_cut_after_any_event_loses_and_doubles_nothing(cut: int) -> None:
    process, before, after = ScriptedProcess(), CuttingClient(cut), CuttingClient()
    await read(process, before, FakeClock())
    await read(process, after, FakeClock(), outputs(before)[-1].next_cursor)
    pieces = [*outputs(before), *outputs(after)]
    assert "".join(each.text for each in pieces) == "".join(PIECES)
    assert [each.cursor for each in pieces[1:]] == [each.next_cursor for each in pieces[:-1]]
    assert after.events[-1][0] == "process_ended"


async def test_between_two_reads_time_passes() -> None:
    process, client, clock = ScriptedProcess(), CuttingClient(), FakeClock()
    reader = OutputReader(process.wait, client, clock)
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        reading = tasks.create_task(reader.read(CHAT, PROCESS, 0))
        for reads in range(1, len(PIECES)):
            await clock.until_sleeping()
            assert len(process.asked) == reads
            clock.advance(PACE_S)
        await reading


async def test_a_process_that_writes_far_more_than_is_sent_is_read_less_often() -> None:
    process, client, clock = ScriptedProcess(), CuttingClient(), FakeClock()

    async def wait(
        request: api.WaitWorkspaceOutputRequest,
    ) -> api.WaitWorkspaceOutputResponse:
        answer = await process.wait(request)
        answer.output.truncation.omitted_bytes = OMITTED_BYTES_MAX + 1
        return answer

    reader = OutputReader(wait, client, clock)
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        reading = tasks.create_task(reader.read(CHAT, PROCESS, 0))
        for reads in range(1, len(PIECES)):
            await clock.until_sleeping()
            clock.advance(SLOW_PACE_S - PACE_S)
            await clock.until_sleeping()
            assert len(process.asked) == reads
            clock.advance(PACE_S)
        await reading


async def test_output_waits_while_other_events_fill_the_queue() -> None:
    queue = FrameQueue(bytes_max=12)
    took: list[str] = []

    class Client:
        def send(self, kind: str, event: Message) -> None:
            took.append(kind)
            assert queue.offer(b"output")

        async def wait_sent(self) -> None:
            await queue.wait_empty()

    answering, came = asyncio.Event(), asyncio.Event()
    process = ScriptedProcess(looks=len(PIECES))

    async def wait(
        request: api.WaitWorkspaceOutputRequest,
    ) -> api.WaitWorkspaceOutputResponse:
        came.set()
        await answering.wait()
        return await process.wait(request)

    reader = OutputReader(wait, Client(), FakeClock())
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        reading = tasks.create_task(reader.read(CHAT, PROCESS, 0))
        await came.wait()
        assert queue.offer(b"message")
        answering.set()
        frames, _ = await queue.take()
        assert (frames, took) == (b"message", [])
        await reading
    assert took == ["process_output", "process_ended"]


async def test_what_may_work_later_is_tried_again() -> None:
    away = Problem.of("UPSTREAM_UNAVAILABLE", "The node does not answer.")
    process, client = ScriptedProcess(refusals=iter([away, away])), CuttingClient()
    await read(process, client, FakeClock())
    assert "".join(each.text for each in outputs(client)) == "".join(PIECES)


async def test_what_cannot_be_read_ends_with_the_reason() -> None:
    gone = Problem(grpc.StatusCode.NOT_FOUND, "PROCESS_NOT_FOUND", "There is no such process.")
    process, client = ScriptedProcess(refusals=iter([gone])), CuttingClient()
    await read(process, client, FakeClock())
    ((kind, ended),) = client.events
    assert isinstance(ended, event_pb2.ProcessEndedEvent)
    assert (kind, ended.error.code, ended.HasField("process")) == (
        "process_ended",
        "PROCESS_NOT_FOUND",
        False,
    )
