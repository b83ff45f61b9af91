"""Figures of streams: what an event costs, how late it is, what an open stream weighs.

Run it with `python bench/streams.py`, or name parts: `python bench/streams.py fanout memory`. Each
starts a real stack of its own with `parley up`, one chatd and one gateway, and reads over HTTP. It
prints one JSON object.

    fanout   one chat with many readers: processor time per event by process, and how much later
             than the first reader the others get it; the same from a bare SSE endpoint
    stalled  the same lag among readers of which 100 never read, against none
    memory   what an open, quiet stream weighs in the gateway and in chatd
"""

import argparse
import asyncio
import json
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import psutil

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))
sys.path.append(str(Path(__file__).resolve().parent.parent))

from bench.chats import cpu_ms, processes_of, quantile, stack_of
from bench.machine import print_figures

from parley.testing.scaletest import Dialer, EventReader, Frame, Requests, Target
from support.host.ports import free_ports
from support.stack.faulty_stack import FaultyStack

HERE = Path(__file__).resolve()
READERS = 300
DELTAS = 150
DELTA_S = 0.05
STALLED = 100
OPEN_STREAMS = 5000


class Reader:
    """One client that notes when each event arrived, by its cursor."""

    def __init__(self) -> None:
        self.arrived: dict[str, float] = {}
        self.events = 0
        self.watch: Callable[[Frame], None] | None = None

    def take(self, frame: Frame) -> None:
        """Note what has arrived."""
        if frame.cursor is None:
            return
        self.events += 1
        self.arrived[frame.cursor] = time.perf_counter()
        if self.watch is not None:
            self.watch(frame)


@asynccontextmanager
async def reading(target: Target, path: str) -> AsyncIterator[Reader]:
    """Give an open stream."""
    reader = Reader()
    stream = await Dialer(target).connect(
        lambda: EventReader(target.request("GET", path), reader.take)
    )
    try:
        async with asyncio.timeout(30):
            await stream.opened
        yield reader
    finally:
        stream.cut()


class Client:
    """Talks to the gateway of a stack."""

    def __init__(self, stack: FaultyStack) -> None:
        self.stack = stack
        key = stack.stack.home.api_key_file.read_text().strip()
        self.target = Target(f"http://{stack.stack.http}", key)
        self._requests = Requests(Dialer(self.target))

    def reading(self, path: str) -> AbstractAsyncContextManager[Reader]:
        """Give an open stream."""
        return reading(self.target, path)

    async def post(self, path: str, text: str) -> Any:
        """Send a message."""
        body = json.dumps({"content": [{"type": "text", "text": text}]}).encode()
        _, answer = await self._requests.ask(self.target.request("POST", path, body))
        return json.loads(answer)

    def stall(self, path: str) -> socket.socket:
        """Open a stream that is never read."""
        stalled = socket.create_connection((self.target.host, self.target.port))
        stalled.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        stalled.sendall(self.target.request("GET", path))
        return stalled


def events_path(chat_id: str) -> str:
    return f"/chats/{chat_id}/events"


def lags_ms(readers: Iterable[Reader]) -> list[float]:
    """Return how much later than the first reader each one got each event."""
    first: dict[str, float] = {}
    readers = list(readers)
    for reader in readers:
        for cursor, at in reader.arrived.items():
            first[cursor] = min(at, first.get(cursor, at))
    return [
        (at - first[cursor]) * 1000 for reader in readers for cursor, at in reader.arrived.items()
    ]


def percentiles(values: list[float]) -> dict[str, float]:
    return {
        "p50": round(statistics.median(values), 2),
        "p99": round(quantile(values, 0.99), 2),
    }


async def until_quiet(stack: FaultyStack, chat_id: str) -> None:
    await stack.until(chat_id, lambda where: where.status == "waiting", within_s=120)
    await asyncio.sleep(0.3)


async def fanout() -> dict[str, Any]:
    async with stack_of(1) as stack, AsyncExitStack() as around:
        client = Client(stack)
        chat_id = (await client.post("/chats", "repeat after me: ready"))["id"]
        await until_quiet(stack, chat_id)
        readers = [
            await around.enter_async_context(client.reading(events_path(chat_id)))
            for _ in range(READERS)
        ]
        await asyncio.sleep(0.5)
        for reader in readers:
            reader.arrived.clear()
            reader.events = 0
        processes = processes_of(stack)
        before = cpu_ms(processes)
        await client.post(f"/chats/{chat_id}/messages", f"count to {DELTAS}")
        await until_quiet(stack, chat_id)
        after = cpu_ms(processes)
        events = sum(reader.events for reader in readers)
        found: dict[str, Any] = {
            "readers": READERS,
            "events": events,
            "cpu_us_per_event": {
                name: round((after[name] - before[name]) * 1000 / events, 1)
                for name in ("gateway", "chatd", "client")
            },
            "later_than_first_reader_ms": percentiles(lags_ms(readers)),
        }
    found["gateway_events_per_s_of_one_core"] = round(
        1_000_000 / found["cpu_us_per_event"]["gateway"]
    )
    found["bare"] = await bare(events // READERS)
    found["gateway_to_bare"] = round(
        found["cpu_us_per_event"]["gateway"] / found["bare"]["cpu_us_per_event"], 2
    )
    return found


async def bare(events: int) -> dict[str, Any]:
    """Send as many frames of the same size to as many readers, from nothing but an endpoint."""
    (port,) = free_ports(1)
    arguments = [sys.executable, str(HERE), "--bare", str(port), str(events)]
    server = subprocess.Popen(arguments)  # noqa: ASYNC220 (it returns at once)
    target = Target(f"http://127.0.0.1:{port}", "nobody")
    try:
        async with AsyncExitStack() as around:
            process = psutil.Process(server.pid)
            return await read_bare(process, target, events, around)
    finally:
        server.kill()
        server.wait()


async def read_bare(
    process: psutil.Process, target: Target, events: int, around: AsyncExitStack
) -> dict[str, Any]:
    readers: list[Reader] = []
    while len(readers) < READERS:
        try:
            readers.append(await around.enter_async_context(reading(target, "/")))
        except OSError:
            await asyncio.sleep(0.05)
    began = process.cpu_times()
    while any(reader.events < events for reader in readers):  # noqa: ASYNC110 (a bench may)
        await asyncio.sleep(0.05)
    ended = process.cpu_times()
    spent_s = ended.user + ended.system - began.user - began.system
    return {
        "cpu_us_per_event": round(spent_s * 1e6 / (events * READERS), 1),
        "later_than_first_reader_ms": percentiles(lags_ms(readers)),
    }


def serve_bare(port: int, events: int) -> None:
    """Serve frames like those of a delta, made once each, to everybody at the same pace."""
    import uvicorn

    queues: list[asyncio.Queue[bytes]] = []

    async def produce() -> None:
        while len(queues) < READERS:  # noqa: ASYNC110 (a bench may)
            await asyncio.sleep(0.05)
        await asyncio.sleep(0.5)
        for number in range(events):
            document = {
                "type": "message_part",
                "chat_id": "00000000-0000-0000-0000-000000000001",
                "message_part": {
                    "role": "assistant",
                    "part": {"type": "text", "text": f"{number} "},
                    "history_version": 3,
                    "generation_attempt": 1,
                    "seq": number,
                    "part_index": 0,
                },
            }
            data = json.dumps(document)
            frame = f"id: 3.3.2.3.1.{number}\nevent: message_part\ndata: {data}\n\n".encode()
            for queue in queues:
                queue.put_nowait(frame)
            await asyncio.sleep(DELTA_S)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        headers = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b": connected\n\n", "more_body": True})
        queue: asyncio.Queue[bytes] = asyncio.Queue()
        queues.append(queue)
        while True:
            frame = await queue.get()
            await send({"type": "http.response.body", "body": frame, "more_body": True})

    async def serve() -> None:
        config = uvicorn.Config(app, port=port, log_level="error", lifespan="off")
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(uvicorn.Server(config).serve())
            tasks.create_task(produce())

    asyncio.run(serve())


async def chats_at_rest(client: Client, count: int) -> list[str]:
    chat_ids = [(await client.post("/chats", "repeat after me: ready"))["id"] for _ in range(count)]
    for chat_id in chat_ids:
        await client.stack.until(chat_id, lambda where: where.status == "waiting")
    return chat_ids


async def stalled() -> dict[str, Any]:
    async with stack_of(1) as stack:
        client = Client(stack)
        (chat_id,) = await chats_at_rest(client, 1)
        found: dict[str, Any] = {}
        for name, count in (("none", 0), (str(STALLED), STALLED)):
            sockets = [client.stall(events_path(chat_id)) for _ in range(count)]
            async with AsyncExitStack() as around:
                readers = [
                    await around.enter_async_context(client.reading(events_path(chat_id)))
                    for _ in range(100)
                ]
                await asyncio.sleep(1)
                for reader in readers:
                    reader.arrived.clear()
                await client.post(f"/chats/{chat_id}/messages", "count to 100")
                await until_quiet(stack, chat_id)
                found[name] = percentiles(lags_ms(readers))
            for each in sockets:
                each.close()
        found["p99_ratio"] = round(found[str(STALLED)]["p99"] / found["none"]["p99"], 2)
        return {"stalled_readers": found}


async def memory() -> dict[str, Any]:
    async with stack_of(1) as stack, AsyncExitStack() as around:
        client = Client(stack)
        chat_ids = await chats_at_rest(client, 50)
        processes = processes_of(stack)
        (gateway,), (chatd,) = processes["gateway"], processes["chatd"]

        async def open_some(count: int) -> None:
            for number in range(count):
                path = events_path(chat_ids[number % len(chat_ids)])
                await around.enter_async_context(client.reading(path))

        await open_some(300)
        before = (gateway.memory_full_info().uss, chatd.memory_full_info().uss)
        await open_some(OPEN_STREAMS)
        await asyncio.sleep(1)
        after = (gateway.memory_full_info().uss, chatd.memory_full_info().uss)
        return {
            "streams": OPEN_STREAMS,
            "gateway_bytes_per_stream": round((after[0] - before[0]) / OPEN_STREAMS),
            "chatd_bytes_per_stream": round((after[1] - before[1]) / OPEN_STREAMS),
        }


PARTS: Mapping[str, Callable[[], Awaitable[dict[str, Any]]]] = {
    "fanout": fanout,
    "stalled": stalled,
    "memory": memory,
}


async def run(parts: Iterable[str]) -> dict[str, Any]:
    return {part: await PARTS[part]() for part in parts}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--bare", nargs=2, type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.bare:
        serve_bare(*given.bare)
        return
    parts = given.parts or list(PARTS)
    if unknown := set(parts) - PARTS.keys():
        parser.error(f"there is no part {', '.join(sorted(unknown))}")
    print_figures(asyncio.run(run(parts)))


if __name__ == "__main__":
    main()
