"""The mock as a server: what is on the wire, byte by byte and second by second."""

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import timedelta
from email.utils import format_datetime
from typing import Any

import aiohttp
import pytest

from parley.clock import FakeClock
from parley.testing.llm_mock import BehaviourUnknown, MockModels, Recording, Statistics

HEADERS = {"authorization": "Bearer k"}
PATH = "/v1/chat/completions"
STREAM = {"content-type": "text/event-stream"}


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(headers=HEADERS) as opened:
        yield opened


def body(model: str, **more: object) -> dict[str, object]:
    return {"model": model, "messages": [{"role": "user", "content": "hi"}], **more}


async def post(
    session: aiohttp.ClientSession, server: MockModels, model: str, **more: object
) -> tuple[int, str]:
    async with asyncio.timeout(5):
        async with session.post(server.url + PATH, json=body(model, **more)) as response:
            return response.status, await response.text()


async def test_the_same_seed_says_the_same_and_another_says_something_else(
    session: aiohttp.ClientSession, clock: FakeClock
) -> None:
    said = []
    for seed in (1, 1, 2):
        async with MockModels.serving(clock=clock, seed=seed) as server:
            said.append([await post(session, server, "mock", stream=True) for _ in range(2)])
    assert said[0] == said[1]
    assert said[0] != said[2]
    assert said[0][0] != said[0][1]


async def test_everything_served_is_counted_and_can_be_looked_at(
    session: aiohttp.ClientSession, server: MockModels
) -> None:
    await post(session, server, "mock", stream=True)
    await post(session, server, "mock:fail=429")
    async with session.post(server.url + PATH, data=b"not json"):
        pass
    expected = Statistics(
        requests=3,
        by_model={"mock": 1, "mock:fail=429": 1, "": 1},
        by_path={PATH: 3},
        by_status={200: 1, 429: 1, 400: 1},
        open_streams=0,
        open_streams_peak=0,
        peak_per_s=3,
    )
    assert server.stats() == expected
    async with session.get(f"{server.url}/mock/stats") as response:
        assert json.loads(await response.text())["by_status"] == {"200": 1, "429": 1, "400": 1}
    async with session.get(f"{server.url}/mock/requests?last=2") as response:
        refused, broken = await response.json()
    assert (refused["model"], refused["status"]) == ("mock:fail=429", 429)
    assert refused["body"] == body("mock:fail=429")
    assert (broken["status"], broken["body"]) == (400, "not json")
    assert "authorization" not in refused["headers"]
    async with session.post(f"{server.url}/mock/reset"):
        pass
    assert server.stats().requests == 0
    assert (await post(session, server, "mock:fail=429"))[0] == 429


async def test_failures_come_first_and_end(
    session: aiohttp.ClientSession, server: MockModels
) -> None:
    statuses = [(await post(session, server, "mock:fail=429*2+529"))[0] for _ in range(5)]
    assert statuses == [429, 429, 529, 200, 200]
    assert [(await post(session, server, "mock:fail=401*"))[0] for _ in range(2)] == [401, 401]


async def test_an_outage_ends_with_time(
    session: aiohttp.ClientSession, server: MockModels, clock: FakeClock
) -> None:
    statuses = []
    for _ in range(3):
        statuses.append((await post(session, server, "mock:fail=529@300s"))[0])
        clock.advance(150)
    assert statuses == [529, 529, 200]


@pytest.mark.parametrize(
    ("words", "name", "value"),
    [
        ("retry_after=7", "retry-after", "7"),
        ("retry_after=1e9", "retry-after", "1000000000"),
        ("retry_after_ms=1500", "retry-after-ms", "1500"),
        ("retry_date=9", "retry-after", ""),
    ],
)
async def test_when_to_come_back_is_said_in_three_forms(
    session: aiohttp.ClientSession,
    server: MockModels,
    clock: FakeClock,
    words: str,
    name: str,
    value: str,
) -> None:
    async with session.post(server.url + PATH, json=body(f"mock:fail=429,{words}")) as response:
        expected = value or format_datetime(clock.now() + timedelta(seconds=9), usegmt=True)
        assert response.headers[name] == expected


async def test_a_bad_gateway_speaks_html(
    session: aiohttp.ClientSession, server: MockModels
) -> None:
    status, text = await post(session, server, "mock:fail=502")
    assert (status, text[:6]) == (502, "<html>")


async def test_an_answer_takes_the_time_it_is_told_to(
    session: aiohttp.ClientSession, server: MockModels, clock: FakeClock
) -> None:
    model = "mock:deltas=2,wait=3s,latency=2s,delay=1s"
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        asked = tasks.create_task(post(session, server, model, stream=True))
        pauses = []
        for _ in range(3):
            pauses.append(await clock.until_sleeping())
            assert server.stats().open_streams == 1
            clock.advance(pauses[-1])
    assert pauses == [3, 2, 1]
    assert asked.result()[1].endswith("data: [DONE]\n\n")
    assert server.stats().open_streams == 0


async def test_a_whole_answer_waits_for_the_latency_too(
    session: aiohttp.ClientSession, server: MockModels, clock: FakeClock
) -> None:
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        asked = tasks.create_task(post(session, server, "mock:latency=2s"))
        assert await clock.until_sleeping() == 2
        clock.advance(2)
    assert json.loads(asked.result()[1])["object"] == "chat.completion"


async def test_an_endless_answer_ends_with_its_reader(
    session: aiohttp.ClientSession, server: MockModels
) -> None:
    received = 0
    async with asyncio.timeout(10):
        async with session.post(
            server.url + PATH, json=body("mock:endless", stream=True)
        ) as response:
            while received < 2_000_000:
                received += len(await response.content.readany())
        while server.stats().open_streams:
            await asyncio.to_thread(lambda: None)


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("drop=2", aiohttp.ClientPayloadError),
        ("reset=2", (aiohttp.ClientOSError, aiohttp.ClientPayloadError)),
    ],
)
async def test_a_broken_connection_is_seen_by_the_client(
    session: aiohttp.ClientSession, server: MockModels, words: str, error: Any
) -> None:
    with pytest.raises(error):
        await post(session, server, f"mock:{words}", stream=True)


async def test_a_cut_body_ends_as_if_it_were_complete(
    session: aiohttp.ClientSession, server: MockModels
) -> None:
    _, whole = await post(session, server, "mock:deltas=2,no_done", stream=True)
    _, cut = await post(session, server, "mock:deltas=2,cut=2", stream=True)
    assert (whole.count("data: "), cut.count("data: ")) == (4, 2)
    _, cut_byte = await post(session, server, "mock:cut_byte=5", stream=True)
    assert cut_byte == "data:"


async def test_faults_may_end_after_some_times(
    session: aiohttp.ClientSession, server: MockModels
) -> None:
    model = "mock:cut=1,times=2"
    ends = [(await post(session, server, model, stream=True))[1][-8:-2] for _ in range(3)]
    assert [end == "[DONE]" for end in ends] == [False, False, True]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("args_bytes=5000", lambda args: len(args) == 5011),
        ("args_depth=500", lambda args: args.count('{"deep":') == 500),
        ("args=not json", lambda args: args == "not json"),
    ],
)
async def test_arguments_can_be_as_bad_as_they_get(
    session: aiohttp.ClientSession, server: MockModels, words: str, expected: Any
) -> None:
    _, text = await post(session, server, f"mock:tool=anything,{words}")
    (call,) = json.loads(text)["choices"][0]["message"]["tool_calls"]
    assert call["function"]["name"] == "anything"
    assert expected(call["function"]["arguments"])


async def test_requests_in_chunks_and_one_after_the_other_are_read(server: MockModels) -> None:
    data = json.dumps(body("mock")).encode()
    head = f"POST {PATH} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer k\r\n"
    sized = f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data
    half = len(data) // 2
    parts = b"".join(b"%x\r\n%b\r\n" % (len(p), p) for p in (data[:half], data[half:], b""))
    chunked = f"{head}Transfer-Encoding: chunked\r\n\r\n".encode() + parts
    host, port = server.url.removeprefix("http://").split(":")
    async with asyncio.timeout(5):
        reader, writer = await asyncio.open_connection(host, int(port))
        for place in range(len(sized)):  # However the bytes arrive.
            writer.write(sized[place : place + 1])
        writer.write(chunked + sized)
        answered = b""
        while answered.count(b"\r\n0\r\n\r\n") < 3:
            answered += await reader.read(65536)
        writer.close()
        await writer.wait_closed()
    assert answered.count(b"HTTP/1.1 200 OK") == 3
    assert server.stats().requests == 3


async def test_a_request_that_comes_during_an_answer_is_answered_after_it(
    server: MockModels, clock: FakeClock
) -> None:
    host, port = server.url.removeprefix("http://").split(":")
    async with asyncio.timeout(5):
        reader, writer = await asyncio.open_connection(host, int(port))
        for model in ("mock:deltas=2,latency=1s,delay=1s", "mock:cut=1", "mock:deltas=2"):
            data = json.dumps(body(model, stream=True)).encode()
            head = f"POST {PATH} HTTP/1.1\r\nAuthorization: Bearer k\r\n"
            writer.write(f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data)
        for _ in range(2):
            assert await clock.until_sleeping() == 1
            assert server.stats().requests == 1
            clock.advance(1)
        answered = b""
        while answered.count(b"\r\n0\r\n\r\n") < 3:
            answered += await reader.read(65536)
        writer.close()
        await writer.wait_closed()
    assert [whole.count(b"data: {") for whole in answered.split(b"HTTP/1.1 200 OK")] == [0, 4, 1, 4]
    assert server.stats().open_streams == 0


async def test_an_answer_waits_for_a_client_that_does_not_read(server: MockModels) -> None:
    host, port = server.url.removeprefix("http://").split(":")
    data = json.dumps(body("mock:huge_line=1", stream=True)).encode()
    async with asyncio.timeout(10):
        reader, writer = await asyncio.open_connection(host, int(port))
        head = f"POST {PATH} HTTP/1.1\r\nAuthorization: Bearer k\r\nConnection: close\r\n"
        writer.write(f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data)
        while not server.stats().open_streams:
            await asyncio.to_thread(lambda: None)
        answered = await reader.read()
        writer.close()
        await writer.wait_closed()
    assert len(answered) > 10_000_000
    assert answered.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n")


async def test_a_client_that_hangs_up_leaves_nothing_waiting(
    session: aiohttp.ClientSession, server: MockModels, clock: FakeClock
) -> None:
    model = "mock:latency=100s"
    async with asyncio.timeout(5):
        async with session.post(server.url + PATH, json=body(model, stream=True)) as response:
            assert await clock.until_sleeping() == 100
            response.close()
        while server.stats().open_streams:
            await asyncio.to_thread(lambda: None)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await clock.until_sleeping()


async def test_bytes_that_are_no_request_are_answered_and_the_connection_closed(
    server: MockModels,
) -> None:
    host, port = server.url.removeprefix("http://").split(":")
    async with asyncio.timeout(5):
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"nonsense\r\n\r\n")
        answered = await reader.read()
        writer.close()
        await writer.wait_closed()
    assert answered.startswith(b"HTTP/1.1 400 ")


async def test_a_path_that_nobody_serves_is_not_found(
    session: aiohttp.ClientSession, server: MockModels
) -> None:
    async with session.post(f"{server.url}/v1/embeddings", json={}) as response:
        assert (response.status, (await response.json())["error"]["code"]) == (404, "unknown_url")
    async with session.get(f"{server.url}/nothing") as response:
        assert response.status == 404
    async with session.get(f"{server.url}/") as response:
        assert "deltas=N" in await response.text()


async def test_recordings_are_answered_in_order_byte_by_byte(
    session: aiohttp.ClientSession, clock: FakeClock
) -> None:
    recordings = (
        Recording("/api" + PATH, 200, STREAM, b"data: {}\n\ndata: [DONE]\n\n"),
        Recording(PATH, 429, {"content-type": "application/json", "retry-after": "3"}, b"{}"),
    )
    async with MockModels.serving(clock=clock, recordings=recordings) as server:
        first, second, none = [await post(session, server, "any") for _ in range(3)]
    assert first == (429, "{}")
    assert second == (200, "data: {}\n\ndata: [DONE]\n\n")
    assert none[0] == 400


async def test_a_recording_can_go_wrong_too(
    session: aiohttp.ClientSession, clock: FakeClock
) -> None:
    recording = Recording(PATH, 200, STREAM, b"data: {}\n\ndata: [DONE]\n\n")
    async with MockModels.serving(
        clock=clock, recordings=(recording,), behaviour="cut=1"
    ) as server:
        assert await post(session, server, "any") == (200, "data: {}\n\n")


async def test_words_that_mean_nothing_keep_the_server_from_starting(clock: FakeClock) -> None:
    with pytest.raises(BehaviourUnknown):
        async with MockModels.serving(clock=clock, behaviour="nonsense"):
            pass


async def test_a_failure_of_the_caller_leaves_the_server_as_it_is(clock: FakeClock) -> None:
    with pytest.raises(LookupError):
        async with MockModels.serving(clock=clock):
            raise LookupError


async def test_a_port_that_is_taken_is_an_error(server: MockModels, clock: FakeClock) -> None:
    port = int(server.url.rpartition(":")[2])
    with pytest.raises(OSError, match="in use"):
        async with MockModels.serving(clock=clock, port=port):
            pass
