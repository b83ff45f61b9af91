"""Standard input and terminals through gRPC: written once, read by real programs."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest

from parley.api.workspace.v1 import execution_pb2, process_pb2
from parley.api.workspace.v1 import process_service_pb2 as api
from support.toolrunner.node import Client, House, connected, node, reason_of

PIPE = process_pb2.STDIN_MODE_PIPE
SCREEN = process_pb2.TerminalSize(rows=30, columns=100)
OUTPUT = process_pb2.WAIT_UNTIL_OUTPUT
MATCH = process_pb2.WAIT_UNTIL_MATCH


def until(
    kind: "process_pb2.WaitUntil.ValueType", pattern: str = "", max_wait_ms: int = 10_000
) -> process_pb2.WaitCondition:
    return process_pb2.WaitCondition(until=kind, pattern=pattern, max_wait_ms=max_wait_ms)


async def test_what_is_given_at_the_start_is_read_and_then_ends(client: Client) -> None:
    waited = await client.run("cat; echo done", stdin=b"given\n")
    assert waited.output.text == "given\ndone\n"
    assert waited.process.stdin_mode == process_pb2.STDIN_MODE_CLOSED


async def test_a_pipe_is_written_to_until_its_end_is_sent(client: Client) -> None:
    started = await client.start("cat; echo done", stdin_mode=PIPE, stdin=b"first\n")
    process_id = started.process.process_id
    assert (await client.wait(process_id, OUTPUT)).output.text == "first\n"
    answer = await client.write(process_id, b"second\n", condition=until(OUTPUT))
    assert (answer.output.text, answer.reason) == ("second\n", process_pb2.WAIT_REASON_OUTPUT)
    last = await client.write(
        process_id, b"third\n", end_of_input=True, condition=until(process_pb2.WAIT_UNTIL_EXIT)
    )
    assert (last.output.text, last.process.exit.exit_code) == ("third\ndone\n", 0)


async def test_without_a_condition_a_write_answers_at_once(client: Client) -> None:
    started = await client.start("exec sleep 600", stdin_mode=PIPE)
    answer = await client.write(started.process.process_id, b"unread\n")
    assert answer.reason == process_pb2.WAIT_REASON_SNAPSHOT
    assert answer.process.state == process_pb2.PROCESS_STATE_RUNNING


async def test_a_write_with_a_key_is_written_once_and_waits_again(client: Client) -> None:
    started = await client.start("cat", stdin_mode=PIPE)
    process_id = started.process.process_id
    key = await client.key("w1")
    answers = [
        await client.write(process_id, b"once\n", key=key, condition=until(OUTPUT))
        for _ in range(3)
    ]
    assert {answer.output.text for answer in answers} == {"once\n"}
    execution = await client.execution(key)
    assert execution.state == execution_pb2.EXECUTION_STATE_FINISHED
    await client.write(process_id, end_of_input=True)
    assert (await client.wait(process_id)).output.text == "once\n"


async def test_much_input_reaches_a_slow_reader_whole(client: Client) -> None:
    data = b"".join(b"%06d\n" % number for number in range(140_000))
    started = await client.start("sleep 0.3; md5sum", stdin_mode=PIPE)
    process_id = started.process.process_id
    await client.write(process_id, data)
    await client.write(process_id, end_of_input=True)
    expected = await client.run("seq -f %06g 0 139999 | md5sum")
    assert (await client.wait(process_id)).output.text == expected.output.text


async def test_what_nobody_reads_is_refused_before_it_fills_the_memory(client: Client) -> None:
    started = await client.start("exec sleep 600", stdin_mode=PIPE)
    process_id = started.process.process_id
    megabyte = b"x" * 1_000_000
    await client.write(process_id, megabyte)
    await client.write(process_id, megabyte)
    assert await reason_of(client.write(process_id, megabyte)) == (
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        "NODE_FULL",
    )
    await client.signal(process_id, process_pb2.PROCESS_SIGNAL_KILL)
    assert (await client.wait(process_id)).process.exit.signal == "SIGKILL"


async def test_a_write_that_was_refused_has_never_been_and_may_come_again(client: Client) -> None:
    started = await client.start("exec sleep 600", stdin_mode=PIPE)
    process_id = started.process.process_id
    key, megabyte = await client.key("w1"), b"x" * 1_000_000
    full = (grpc.StatusCode.RESOURCE_EXHAUSTED, "NODE_FULL")
    await client.write(process_id, megabyte)
    await client.write(process_id, megabyte)
    for _ in range(2):
        assert await reason_of(client.write(process_id, megabyte, key=key)) == full
        state = (await client.execution(key)).state
        assert state == execution_pb2.EXECUTION_STATE_NEVER_SEEN
    await client.signal(process_id, process_pb2.PROCESS_SIGNAL_KILL)
    await client.wait(process_id)


async def test_a_write_that_was_cancelled_first_is_not_told_as_done(client: Client) -> None:
    started = await client.start("exec sleep 600", stdin_mode=PIPE)
    process_id, key = started.process.process_id, await client.key("w1")
    await client.cancel(key)
    assert await reason_of(client.write(process_id, b"x", key=key)) == (
        grpc.StatusCode.ABORTED,
        "EXECUTION_CANCELLED",
    )


async def test_who_cannot_be_written_to_is_named(client: Client) -> None:
    closed = (await client.start("exec sleep 600")).process.process_id
    pipe = (await client.start("exec sleep 600", stdin_mode=PIPE)).process.process_id
    ended = (await client.run("true", stdin_mode=PIPE)).process.process_id
    not_attachable = (grpc.StatusCode.FAILED_PRECONDITION, "NOT_ATTACHABLE")
    assert await reason_of(client.write(closed, b"x")) == not_attachable
    assert await reason_of(client.write(pipe, keys=["enter"])) == not_attachable
    assert await reason_of(client.resize(pipe, 5, 5)) == not_attachable
    assert await reason_of(client.write(ended, b"x")) == (
        grpc.StatusCode.FAILED_PRECONDITION,
        "PROCESS_NOT_RUNNING",
    )
    await client.write(pipe, end_of_input=True)
    assert await reason_of(client.write(pipe, b"x")) == not_attachable
    assert await reason_of(client.write(pipe, keys=["hyper-x"])) == (
        grpc.StatusCode.INVALID_ARGUMENT,
        "INVALID_REQUEST",
    )


async def test_closing_the_output_does_not_close_the_input(client: Client) -> None:
    started = await client.start("exec >/dev/null 2>&1; cat > heard", stdin_mode=PIPE)
    process_id = started.process.process_id
    await client.wait(process_id, max_wait_ms=200)
    await client.write(process_id, b"still there\n", end_of_input=True)
    await client.wait(process_id)
    assert (await client.run("cat heard")).output.text == "still there\n"


async def test_a_terminal_is_one_for_those_who_ask(client: Client) -> None:
    started = await client.start(
        "test -t 0 && test -t 1 && tty >/dev/null && stty size && echo $TERM", terminal=SCREEN
    )
    waited = await client.wait(started.process.process_id)
    assert waited.output.text.replace("\r", "") == "30 100\nxterm-256color\n"
    assert waited.process.stdin_mode == process_pb2.STDIN_MODE_TERMINAL
    assert waited.process.exit == process_pb2.ProcessExit(exit_code=0)


async def test_keys_are_pressed_in_a_terminal(client: Client) -> None:
    started = await client.start("echo ready; read name; echo hello $name; cat", terminal=SCREEN)
    process_id = started.process.process_id
    await client.wait(process_id, MATCH, pattern="ready")
    answer = await client.write(
        process_id, b"you", keys=["enter"], condition=until(MATCH, "^hello")
    )
    assert answer.output.matched_line == "hello you"
    await client.write(process_id, keys=["ctrl-c"])
    waited = await client.wait(process_id)
    assert waited.process.exit.shell_exit_code == 130


async def test_the_end_of_input_reaches_who_reads_a_terminal(client: Client) -> None:
    started = await client.start("cat; echo ended", terminal=SCREEN)
    process_id = started.process.process_id
    await client.write(process_id, b"line\n", end_of_input=True)
    waited = await client.wait(process_id)
    assert waited.output.text.replace("\r", "").endswith("line\nended\n")


async def test_a_terminal_changes_its_size_and_says_so(client: Client) -> None:
    started = await client.start(
        "trap 'stty size' WINCH; echo ready; while :; do sleep 0.05; done", terminal=SCREEN
    )
    process_id = started.process.process_id
    await client.wait(process_id, MATCH, pattern="ready")
    await client.resize(process_id, 40, 120)
    assert (
        await client.wait(process_id, MATCH, pattern="^40 120$")
    ).output.matched_line == "40 120"


class Attached:
    """A caller at a terminal."""

    def __init__(self, client: Client) -> None:
        self._requests: asyncio.Queue[api.AttachRequest | None] = asyncio.Queue()
        self._call = client.processes.Attach(self._sent(), timeout=30)
        self.responses = aiter(self._call)
        self.seen = b""

    async def _sent(self) -> AsyncIterator[api.AttachRequest]:
        while (request := await self._requests.get()) is not None:
            yield request

    def send(self, **kind: object) -> None:
        self._requests.put_nowait(api.AttachRequest(**kind))  # type: ignore[arg-type]

    def leave(self) -> None:
        self._requests.put_nowait(None)
        self._call.cancel()

    async def until_seen(self, text: bytes) -> None:
        async with asyncio.timeout(10):
            while text not in self.seen:
                response = await anext(self.responses)
                self.seen += response.chunk.data

    async def until_ended(self) -> api.OutputEnd:
        async with asyncio.timeout(10):
            async for response in self.responses:
                if response.HasField("ended"):
                    return response.ended
                self.seen += response.chunk.data
        raise AssertionError("it ended without saying so")


async def test_a_caller_is_the_terminal_of_a_process(client: Client) -> None:
    started = await client.start("PS1='$ ' exec sh -i", terminal=SCREEN)
    context, process_id = client.context, started.process.process_id
    attached = Attached(client)
    size = process_pb2.TerminalSize(rows=11, columns=77)
    attached.send(open=api.AttachOpen(context=context, process_id=process_id, size=size))
    opened = await anext(attached.responses)
    assert (opened.opened.process.process_id, opened.opened.cursor) == (process_id, 0)
    attached.send(stdin=b"stty size\n")
    await attached.until_seen(b"11 77")
    attached.send(resize=process_pb2.TerminalSize(rows=12, columns=78))
    attached.send(stdin=b"stty size\n")
    await attached.until_seen(b"12 78")
    second = Attached(client)
    second.send(open=api.AttachOpen(context=context, process_id=process_id, since_cursor=-1))
    assert (await anext(second.responses)).opened.cursor > 0
    attached.send(stdin=b"sleep 600\n")
    await second.until_seen(b"sleep 600")
    second.leave()
    attached.send(signal=process_pb2.PROCESS_SIGNAL_KILL)
    ended = await attached.until_ended()
    assert ended.process.exit.signal == "SIGKILL"
    assert ended.next_cursor == ended.process.output_bytes == len(attached.seen)


async def test_who_types_while_the_process_ends_is_told_of_the_end(client: Client) -> None:
    started = await client.start("exec sh -i", terminal=SCREEN)
    attach: Any = client.processes.Attach
    call = attach(timeout=30)
    opening = api.AttachOpen(context=client.context, process_id=started.process.process_id)
    async with asyncio.timeout(30):
        await call.write(api.AttachRequest(open=opening))
        await call.write(api.AttachRequest(stdin=b"exit 3\n"))
        while not (answer := await call.read()).HasField("ended"):
            pass
        # Whatever the node sent after that is here as well, once another call was answered.
        await client.run("true")
        # A call that ended by itself could have failed under this write, and lost the answer.
        await call.write(api.AttachRequest(stdin=b"\x04"))
        await call.done_writing()
        assert await call.read() is grpc.aio.EOF
    assert answer.ended.process.exit.exit_code == 3


async def test_leaving_a_terminal_ends_nothing(client: Client) -> None:
    started = await client.start("cat", terminal=SCREEN)
    process_id = started.process.process_id
    attached = Attached(client)
    attached.send(open=api.AttachOpen(context=client.context, process_id=process_id))
    await anext(attached.responses)
    attached.leave()
    answer = await client.write(process_id, b"alive\n", condition=until(MATCH, "alive"))
    assert answer.reason == process_pb2.WAIT_REASON_MATCHED


async def test_an_attachment_that_owns_a_process_ends_it_also_if_it_is_refused(
    client: Client,
) -> None:
    process_id = (await client.start("cat", stdin_mode=PIPE)).process.process_id
    attached = Attached(client)
    attached.send(
        open=api.AttachOpen(
            context=client.context, process_id=process_id, owns_process=True, since_cursor=1000
        )
    )
    assert await reason_of(anext(attached.responses)) == (
        grpc.StatusCode.INVALID_ARGUMENT,
        "INVALID_REQUEST",
    )
    waited = await client.wait(process_id)
    assert waited.process.state == process_pb2.PROCESS_STATE_EXITED


async def test_an_attachment_needs_an_opening_and_a_terminal(client: Client) -> None:
    pipe = (await client.start("cat", stdin_mode=PIPE)).process.process_id
    early, ticket, no_terminal = Attached(client), Attached(client), Attached(client)
    early.send(stdin=b"x")
    ticket.send(open=api.AttachOpen(ticket="forged"))
    no_terminal.send(open=api.AttachOpen(context=client.context, process_id=pipe))
    assert [
        await reason_of(anext(attached.responses)) for attached in (early, ticket, no_terminal)
    ] == [
        (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_REQUEST"),
        (grpc.StatusCode.PERMISSION_DENIED, "BAD_TICKET"),
        (grpc.StatusCode.FAILED_PRECONDITION, "NOT_ATTACHABLE"),
    ]


@pytest.mark.parametrize("spec", [{"stdin_mode": PIPE}, {"terminal": SCREEN}])
async def test_stopping_the_node_ends_who_waits_for_input(
    house: House, spec: dict[str, object]
) -> None:
    async with node(house), connected(house) as client:
        started = await client.start("cat", **spec)  # type: ignore[arg-type]
    async with node(house), connected(house) as again:
        again.stands_for(client)
        process = await again.get(started.process.process_id)
        assert process.state == process_pb2.PROCESS_STATE_EXITED
