"""Output as it comes, and waiting for a line of it."""

import asyncio
from contextlib import AsyncExitStack

import grpc
import pytest

from parley.api.workspace.v1 import process_pb2, workspace_pb2
from parley.api.workspace.v1 import process_service_pb2 as api
from support.toolrunner.node import Client, House, connected, node, reason_of

MATCH = process_pb2.WAIT_UNTIL_MATCH
SNAPSHOT = process_pb2.WAIT_UNTIL_SNAPSHOT
UNTIL_GO = "while ! [ -e go ]; do sleep 0.02; done"


async def everything(client: Client, process_id: str, **fields: int) -> tuple[bytes, api.OutputEnd]:
    data = b""
    async with asyncio.timeout(20):
        async for response in client.stream(process_id, **fields):  # type: ignore[arg-type]
            if response.HasField("ended"):
                return data, response.ended
            assert response.chunk.cursor == fields.get("since_cursor", 0) + len(data)
            data += response.chunk.data
    raise AssertionError("the stream ended without saying so")


async def test_a_stream_follows_the_output_to_its_end(client: Client) -> None:
    started = await client.start(f"echo one; {UNTIL_GO}; echo two; printf '\\377'; exit 5")
    process_id = started.process.process_id
    async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
        streams = [tasks.create_task(everything(client, process_id)) for _ in range(5)]
        await client.wait(process_id, process_pb2.WAIT_UNTIL_OUTPUT)
        await client.run("touch go")
    for stream in streams:
        data, ended = stream.result()
        assert data == b"one\ntwo\n\xff"
        assert (ended.process.exit.exit_code, ended.next_cursor) == (5, 9)
        assert ended.process.state == process_pb2.PROCESS_STATE_EXITED


async def test_without_following_a_stream_ends_with_what_there_is(client: Client) -> None:
    started = await client.start("echo begun; exec sleep 600")
    process_id = started.process.process_id
    await client.wait(process_id, process_pb2.WAIT_UNTIL_OUTPUT)
    data, ended = await everything(client, process_id, follow=False)
    assert (data, ended.process.state) == (b"begun\n", process_pb2.PROCESS_STATE_RUNNING)


async def test_a_stream_goes_on_at_a_cursor(client: Client) -> None:
    waited = await client.run("seq 1 100000")
    process_id, total = waited.process.process_id, waited.process.output_bytes
    whole, _ = await everything(client, process_id)
    assert len(whole) == total
    rest, ended = await everything(client, process_id, since_cursor=300_000)
    assert (rest, ended.next_cursor) == (whole[300_000:], total)


async def test_output_that_is_gone_is_refused_with_the_oldest_that_is_there(
    client: Client,
) -> None:
    waited = await client.run("seq 1 100000", log_bytes=100_000)
    process_id = waited.process.process_id
    call = client.stream(process_id, since_cursor=20_000)
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await anext(aiter(call))
    assert refused.value.code() is grpc.StatusCode.DATA_LOSS
    start = waited.process.log_start_bytes
    data, _ = await everything(client, process_id, since_cursor=start)
    assert data.endswith(b"\n100000\n")


async def test_a_stream_of_a_node_that_stops_says_so(house: House) -> None:
    async with asyncio.timeout(20), AsyncExitStack() as stack:
        serving = AsyncExitStack()
        await serving.enter_async_context(node(house))
        client = await stack.enter_async_context(connected(house))
        started = await client.start("echo begun; exec sleep 600")
        stream = aiter(client.stream(started.process.process_id))
        assert (await anext(stream)).chunk.data == b"begun\n"
        await serving.aclose()
        closed = (await anext(stream)).closed
    assert closed.reason == workspace_pb2.STREAM_END_REASON_GOING_AWAY


async def test_a_line_that_matches_ends_a_wait(client: Client) -> None:
    started = await client.start(
        f"printf 'listen'; {UNTIL_GO}; printf '\\033[1ming\\033[0m on 8080\\nmore\\n'; sleep 600"
    )
    process_id = started.process.process_id
    early = await client.wait(process_id, MATCH, pattern="listen", max_wait_ms=200)
    assert (early.reason, early.output.matched_line) == (process_pb2.WAIT_REASON_TIMEOUT, "")
    async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
        wait = tasks.create_task(client.wait(process_id, MATCH, pattern=r"^listening on \d+$"))
        await client.run("touch go")
    matched = wait.result()
    assert matched.reason == process_pb2.WAIT_REASON_MATCHED
    assert matched.output.matched_line == "listening on 8080"
    after = await client.wait(
        process_id,
        MATCH,
        pattern="listening",
        since_cursor=matched.output.next_cursor,
        max_wait_ms=50,
    )
    assert after.reason == process_pb2.WAIT_REASON_TIMEOUT


async def test_a_prompt_ends_a_wait_though_nothing_ends_its_line(client: Client) -> None:
    asking = "printf 'one\\nName'; sleep 0.1; printf ': '; read name; echo hello $name"
    started = await client.start(asking, stdin_mode=process_pb2.STDIN_MODE_PIPE)
    process_id = started.process.process_id
    asked = await client.wait(process_id, process_pb2.WAIT_UNTIL_MATCH, pattern="^Name: $")
    assert asked.reason == process_pb2.WAIT_REASON_MATCHED
    assert (asked.output.matched_line, asked.output.text) == ("Name: ", "one\nName: ")
    await client.write(process_id, b"you\n")
    answered = await client.wait(process_id, process_pb2.WAIT_UNTIL_MATCH, pattern="^hello")
    assert answered.reason in (process_pb2.WAIT_REASON_MATCHED, process_pb2.WAIT_REASON_EXITED)


async def test_a_search_goes_on_where_the_last_one_ended(client: Client) -> None:
    started = await client.start(
        "printf 'one\\nrea'; read name; echo dy; read never", stdin_mode=process_pb2.STDIN_MODE_PIPE
    )
    process_id = started.process.process_id
    await client.wait(process_id, MATCH, pattern="^rea$")
    first = await client.wait(process_id, MATCH, pattern="^ready$", max_wait_ms=50)
    assert (first.reason, first.search_cursor) == (process_pb2.WAIT_REASON_TIMEOUT, len("one\n"))
    await client.write(process_id, b"you\n")
    second = await client.wait(
        process_id, MATCH, pattern="^ready$", since_cursor=first.search_cursor
    )
    assert second.output.matched_line == "ready"
    await client.write(process_id, end_of_input=True)


async def test_a_line_that_comes_letter_by_letter_is_found_once_it_stands(client: Client) -> None:
    growing = "for letter in a b c d e f; do printf $letter; sleep 0.03; done; read never"
    started = await client.start(growing, stdin_mode=process_pb2.STDIN_MODE_PIPE)
    process_id = started.process.process_id
    waited = await client.wait(process_id, process_pb2.WAIT_UNTIL_MATCH, pattern="^abcdef$")
    assert waited.output.matched_line == "abcdef"
    await client.write(process_id, end_of_input=True)


async def test_the_end_ends_a_wait_for_a_match_and_the_last_line_counts(client: Client) -> None:
    started = await client.start("echo nothing; printf 'the last'")
    process_id = started.process.process_id
    last = await client.wait(process_id, MATCH, pattern="last$")
    assert (last.reason, last.output.matched_line) == (
        process_pb2.WAIT_REASON_MATCHED,
        "the last",
    )
    none = await client.wait(process_id, MATCH, pattern="never")
    assert none.reason == process_pb2.WAIT_REASON_EXITED


async def test_an_expression_that_is_none_is_refused(client: Client) -> None:
    waited = await client.run("true")
    process_id = waited.process.process_id
    invalid = (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_PATTERN")
    assert await reason_of(client.wait(process_id, MATCH, pattern="(")) == invalid
    assert await reason_of(client.wait(process_id, MATCH, pattern=r"(a)\1")) == invalid
    assert await reason_of(client.wait(process_id, MATCH)) == (
        grpc.StatusCode.INVALID_ARGUMENT,
        "INVALID_REQUEST",
    )


async def test_an_expression_made_to_take_forever_does_not(client: Client) -> None:
    started = await client.start("head -c 3000 /dev/zero | tr '\\0' a; echo; sleep 600")
    async with asyncio.timeout(5):
        waited = await client.wait(
            started.process.process_id, MATCH, pattern="(a+)+(a+)+(a+)+b", max_wait_ms=500
        )
    assert waited.reason == process_pb2.WAIT_REASON_TIMEOUT


async def test_the_log_is_told_and_has_the_raw_bytes(client: Client) -> None:
    waited = await client.run("printf 'a\\377\\033[1mb'")
    assert waited.output.text == "a�b"
    copy = await client.run(f"od -An -c {waited.process.log_path}")
    assert copy.output.text.split() == ["a", "377", "033", "[", "1", "m", "b"]
