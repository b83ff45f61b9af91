"""Measures a 40-delta answer through our adapters, the official SDKs, and raw bytes plus msgspec.

Run it with `python bench/models.py [--rounds N]`; prints one JSON object. `parley llm-mock` runs in
a process of its own and sends the same bytes to all three ways; one client process takes them by
turns, so that all see the same machine. Of each protocol it tells

- `burst_one_at_a_time`: the whole answer in one write, one call after the other;
- `burst`: the same, many calls at once;
- `paced`: one delta every 20 ms, many calls at once that begin one after the other, so that every
  delta wakes the client for itself;
- `paced_in_step`: the same, but all begin together, so that their deltas come together;
- `decode`: no network at all, only what becomes of the bytes.

`cpu_ms` is the processor time of the client process per answer, `first_delta_ms` the time from the
call to the first text, `events_per_s` how many events of the wire a processor reads in a second.
Every figure is the median over the rounds. `cheaper` says how many times less processor time our
adapter takes than the SDK, `first_delta_added_ms` how much later than raw bytes its text comes.
"""

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import anthropic
import httpx2
import msgspec
import openai
import uvloop

from chatd.content.domain.messages import Role
from chatd.content.domain.parts import Text
from chatd.content.domain.prompts import PromptMessage
from chatd.models.domain.catalogue import ProviderType
from chatd.models.domain.language_model import ModelEvent, ModelRequest, TextDelta
from chatd.models.engine.target import Target
from chatd.providers.anthropic import AnthropicWire
from chatd.providers.completions import CompletionsWire
from chatd.providers.responses import ResponsesWire
from chatd.providers.sse import ServerSentEvents
from chatd.providers.transport import HttpModels
from chatd.providers.wire import Wire
from parley.clock import SystemClock
from parley.settings import Secret

sys.path.append(str(Path(__file__).resolve().parent.parent))

from bench.machine import print_figures

BURST = "mock:deltas=40,size=6"
PACED = "mock:deltas=40,size=6,delay=20ms"
QUESTION = "Tell me something."
MAX_TOKENS = 4000
ANSWER_S = 0.8
WAYS = ("parley", "sdk", "raw")
AIM = {"burst_cpu_ms": 1.0, "paced_cpu_ms": 2.0, "cheaper": 8.0}

Texts = AsyncIterator[str]
Take = Callable[[str], None]
Ask = Callable[[str, Take], Awaitable[None]]


class Delta(msgspec.Struct):
    """The text of an event, in whichever protocol."""

    text: str = ""
    content: str | None = None


class Choice(msgspec.Struct):
    """A choice of a chunk."""

    delta: Delta


class Event(msgspec.Struct):
    """Of an event, what has text in it."""

    type: str = ""
    delta: Delta | str | None = None
    choices: list[Choice] = []


READ = msgspec.json.Decoder(Event).decode


@dataclass(frozen=True, slots=True)
class Protocol:
    """One protocol: where it is, what it is asked with, and our adapter for it."""

    name: str
    path: str
    wire: Wire
    provider_type: ProviderType
    asked: dict[str, Any]

    def target(self, url: str, model: str) -> Target:
        """Return where our adapter finds a model."""
        base_url = url if self.provider_type is ProviderType.ANTHROPIC else f"{url}/v1"
        return Target("p", self.provider_type, "Mock", model, base_url, Secret("k"))

    def body(self, model: str) -> dict[str, Any]:
        """Return what is sent by hand."""
        return {"model": model, "stream": True, **self.asked}


MESSAGES = [{"role": "user", "content": QUESTION}]
PROTOCOLS = (
    Protocol(
        "anthropic",
        "/v1/messages",
        AnthropicWire(),
        ProviderType.ANTHROPIC,
        {"messages": MESSAGES, "max_tokens": MAX_TOKENS},
    ),
    Protocol(
        "responses", "/v1/responses", ResponsesWire(), ProviderType.OPENAI, {"input": QUESTION}
    ),
    Protocol(
        "completions",
        "/v1/chat/completions",
        CompletionsWire(),
        ProviderType.OPENAI,
        {"messages": MESSAGES, "stream_options": {"include_usage": True}},
    ),
)


def text_of(data: bytes) -> str:
    """Return the text of one event, read with msgspec."""
    event = READ(data)
    if event.choices:
        return event.choices[0].delta.content or ""
    if isinstance(event.delta, str):
        return event.delta if event.type == "response.output_text.delta" else ""
    return "" if event.delta is None else event.delta.text


def data_in(block: bytes) -> bytes:
    """Return the data of a server-sent event, empty if it is the last of Chat Completions."""
    data = block.rpartition(b"data: ")[2]
    return b"" if data == b"[DONE]" else data


async def texts_of_sdk(events: Any) -> Texts:
    """Yield the text of what an SDK gives."""
    async for event in events:
        match getattr(event, "type", None):
            case "content_block_delta":
                yield event.delta.text
            case "response.output_text.delta":
                yield event.delta
            case None if event.choices:
                yield event.choices[0].delta.content or ""


class Clients:
    """The three ways to the same server."""

    def __init__(self, protocol: Protocol, url: str) -> None:
        self._protocol = protocol
        self._url = url
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> "Clients":
        enter = self._stack.enter_async_context
        self._models = await enter(HttpModels(SystemClock()))
        self._session = await enter(aiohttp.ClientSession(headers=self._headers()))
        self._create = await sdk_create(self._protocol, self._url, self._stack, None)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    def _headers(self) -> dict[str, str]:
        version = {"anthropic-version": "2023-06-01"}
        return {"authorization": "Bearer k", "content-type": "application/json", **version}

    async def parley(self, model: str, take: Take) -> None:
        """Ask through our adapter."""
        request = ModelRequest(
            model,
            (PromptMessage(Role.USER, (Text(QUESTION),)),),
            (),
            output_tokens_max=MAX_TOKENS,
        )
        protocol = self._protocol
        target = protocol.target(self._url, model)

        def took(event: ModelEvent) -> None:
            if isinstance(event, TextDelta):
                take(event.text)

        await self._models.answer(protocol.wire, request, target, took)

    async def sdk(self, model: str, take: Take) -> None:
        """Ask through the official SDK."""
        async for text in texts_of_sdk(await self._create(model=model)):
            take(text)

    async def raw(self, model: str, take: Take) -> None:
        """Ask with aiohttp, and read the bytes with nothing but msgspec."""
        body = msgspec.json.encode(self._protocol.body(model))
        async with self._session.post(self._url + self._protocol.path, data=body) as response:
            held = b""
            while chunk := await response.content.readany():
                *blocks, held = (held + chunk).split(b"\n\n")
                for block in blocks:
                    if (data := data_in(block)) and (text := text_of(data)):
                        take(text)


async def sdk_create(
    protocol: Protocol, url: str, stack: AsyncExitStack, transport: Any
) -> Callable[..., Any]:
    """Return the call of the official SDK that streams."""
    http = None if transport is None else httpx2.AsyncClient(transport=transport)
    client: Any
    if protocol.provider_type is ProviderType.ANTHROPIC:
        client = anthropic.AsyncAnthropic(
            base_url=url, api_key="k", max_retries=0, http_client=http
        )
    else:
        client = openai.AsyncOpenAI(
            base_url=f"{url}/v1", api_key="k", max_retries=0, http_client=http
        )
    await stack.enter_async_context(client)
    creates: dict[str, Callable[[Any], Any]] = {
        "anthropic": lambda opened: opened.messages.create,
        "responses": lambda opened: opened.responses.create,
        "completions": lambda opened: opened.chat.completions.create,
    }
    create = creates[protocol.name](client)
    return lambda model: create(model=model, stream=True, **protocol.asked)


async def one(ask: Ask, model: str) -> tuple[str, float]:
    """Return the whole text, and the seconds to its first piece."""
    began, first_s = time.perf_counter(), 0.0
    pieces: list[str] = []

    def take(text: str) -> None:
        nonlocal first_s
        if not pieces:
            first_s = time.perf_counter() - began
        pieces.append(text)

    await ask(model, take)
    return "".join(pieces), first_s


async def many(
    ask: Ask, model: str, turns: int, in_flight: int, between_s: float = 0.0
) -> dict[str, float]:
    """Ask `turns` times, `in_flight` at once, begun one after the other; return what that took."""
    firsts: list[float] = []
    texts: set[str] = set()
    left = iter(range(turns))

    async def some(place: int) -> None:
        await asyncio.sleep(place * between_s)
        for _ in left:
            text, first_s = await one(ask, model)
            firsts.append(first_s)
            texts.add(text)

    cpu_began, began = time.process_time(), time.perf_counter()
    async with asyncio.TaskGroup() as tasks:
        for place in range(in_flight):
            tasks.create_task(some(place))
    cpu_s, wall_s = time.process_time() - cpu_began, time.perf_counter() - began
    if len(texts) != 1:
        raise SystemExit(f"the answers differ: {texts}")
    firsts.sort()
    return {
        "cpu_ms": cpu_s * 1000 / turns,
        "answers_per_s": turns / wall_s,
        "first_delta_p50_ms": firsts[len(firsts) // 2] * 1000,
        "first_delta_p99_ms": firsts[len(firsts) * 99 // 100] * 1000,
    }


async def decoding(protocol: Protocol, recorded: bytes, repeat: int) -> dict[str, float]:
    """Return the events per second of processor time that each way reads without a network."""
    events = len([block for block in recorded.split(b"\n\n") if block])

    def ours() -> None:
        frames, decoder = ServerSentEvents(), protocol.wire.decoder()
        for data in frames.feed(recorded):
            for _ in decoder.decode(data):
                pass

    def raw() -> None:
        for block in recorded.split(b"\n\n"):
            if data := data_in(block):
                text_of(data)

    def answer(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=recorded)

    figures = {}
    for name, read in (("parley", ours), ("raw", raw)):
        began = time.process_time()
        for _ in range(repeat):
            read()
        figures[name] = events * repeat / (time.process_time() - began)
    async with AsyncExitStack() as stack:
        create = await sdk_create(protocol, "http://mock", stack, httpx2.MockTransport(answer))
        few = max(1, repeat // 20)
        began = time.process_time()
        for _ in range(few):
            async for _ in texts_of_sdk(await create(model=BURST)):
                pass
        figures["sdk"] = events * few / (time.process_time() - began)
    return {name: round(figures[name]) for name in WAYS}


async def measure(protocol: Protocol, url: str, sizes: argparse.Namespace) -> dict[str, Any]:
    """Return all figures of one protocol."""
    rounds: dict[str, dict[str, list[dict[str, float]]]] = {}
    kinds = {
        "burst_one_at_a_time": (BURST, sizes.turns, 1, 0.0),
        "burst": (BURST, sizes.turns, sizes.in_flight, 0.0),
        "paced": (PACED, sizes.paced, sizes.paced, ANSWER_S / sizes.paced),
        "paced_in_step": (PACED, sizes.paced, sizes.paced, 0.0),
    }
    async with Clients(protocol, url) as clients:
        asks: dict[str, Ask] = {way: getattr(clients, way) for way in WAYS}
        said = {way: await one(ask, BURST) for way, ask in asks.items()}
        if len({text for text, _ in said.values()}) != 1:
            raise SystemExit(f"{protocol.name}: the three ways read different texts: {said}")
        for ask in asks.values():
            await many(ask, BURST, sizes.paced, sizes.paced)
        for _ in range(sizes.rounds):
            for kind, size in kinds.items():
                for way, ask in asks.items():
                    # So that every call finds a connection, whatever came before it.
                    await many(ask, BURST, size[2], size[2])
                    figures = await many(ask, *size)
                    rounds.setdefault(kind, {}).setdefault(way, []).append(figures)
        recorded = await body_of(protocol, url)
    found: dict[str, Any] = {kind: summarise(ways) for kind, ways in rounds.items()}
    decoded = [await decoding(protocol, recorded, 400) for _ in range(sizes.rounds)]
    events_per_s = {way: round(statistics.median(d[way] for d in decoded)) for way in WAYS}
    return {**found, "decode": {"events_per_s": events_per_s, "bytes": len(recorded)}}


async def body_of(protocol: Protocol, url: str) -> bytes:
    """Return the bytes of one answer."""
    headers = {"authorization": "Bearer k", "anthropic-version": "2023-06-01"}
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.post(url + protocol.path, json=protocol.body(BURST)) as response,
    ):
        return await response.read()


def summarise(ways: dict[str, list[dict[str, float]]]) -> dict[str, Any]:
    """Return medians of each way, and how they compare."""
    medians = {
        way: {name: round(statistics.median(r[name] for r in rounds), 3) for name in rounds[0]}
        for way, rounds in ways.items()
    }
    pairs = zip(ways["sdk"], ways["parley"], strict=True)
    cheaper = statistics.median(sdk["cpu_ms"] / ours["cpu_ms"] for sdk, ours in pairs)
    added = medians["parley"]["first_delta_p50_ms"] - medians["raw"]["first_delta_p50_ms"]
    return {
        **medians,
        "cheaper": round(cheaper, 1),
        "first_delta_added_ms": round(added, 3),
    }


@contextmanager
def mock() -> Iterator[str]:
    """Run the server; give its address."""
    command = [sys.executable, "-m", "parley.cli", "llm-mock"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip().partition("=")[2]
        finally:
            process.terminate()


async def measure_all(url: str, sizes: argparse.Namespace) -> dict[str, Any]:
    return {protocol.name: await measure(protocol, url, sizes) for protocol in PROTOCOLS}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--turns", type=int, default=100, help="answers per round of a burst")
    parser.add_argument("--in-flight", type=int, default=20)
    parser.add_argument("--paced", type=int, default=100, help="answers at once when paced")
    sizes = parser.parse_args()
    with mock() as url:
        found = uvloop.run(measure_all(url, sizes))
    figures = {"bench": "models", "aim": AIM, "cores": os.cpu_count(), "rounds": sizes.rounds}
    print_figures({**figures, **found})


if __name__ == "__main__":
    main()
