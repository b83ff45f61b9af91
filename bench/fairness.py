"""Figures of fairness: how much slower turns of one user are while another one takes what it can.

Run it with `python bench/fairness.py`, or name ways: `python bench/fairness.py waits streams`. It
starts one real stack with `parley up` and two chatd. A user has turns in a few chats all the time,
in half of them over a connection that is kept, in the others over a new one for each message.
A member, in a process of its own, is greedy in one way after the other; windows with and without it
take turns, so that both see the same machine. It prints one JSON object: for each way and both
kinds of connections the median and the 99th percentile of the user's turns with and without the
member, and the ratio of the latter two. At most 1.5 is the aim, with no message of the user refused
and no process started again.

    deletes      creates chats and deletes them while they are answered
    waits        waits for the output of a process and follows repositories, 390 times at once
    streams      opens 5,000 streams of a chat, and more whenever one is refused
    abandoned    330 messages a second, each with a connection that is closed at once
    connections  opens 5,000 connections and sends half a request on each, again and again
"""

import argparse
import asyncio
import json
import os
import resource
import statistics
import sys
import time
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import asyncpg
import psutil

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))
sys.path.append(str(Path(__file__).resolve().parent.parent))

from bench.chats import quantile, stack_of
from bench.machine import print_figures

from parley.identity import ApiKey
from parley.testing.scaletest import Dialer, EventReader, Frame, Requests, Target
from support.stack.faulty_stack import FaultyStack

HERE = Path(__file__).resolve()
CHATS = 6
#: Whether the user connects anew for each message.
CONNECTION_KINDS = {"kept": False, "anew": True}
WINDOW_S = 6.0
ROUNDS = 2
#: What the member does before it is measured, and what it may leave behind afterwards.
SETTLE_S = 3.0
#: How a model answers whose name says nothing: 10 deltas in 0.2 s.
PACE = "deltas=10,delay=20ms"

DELETERS = 8
WAITS = 390
STREAMS = 5000
ABANDONED_PER_S = 330
CONNECTIONS = 5000
AGAIN_S = 0.5

HELLO = {"content": [{"type": "text", "text": "hello"}]}
INSERT_USER = """
    INSERT INTO identity.users (id, login, display_name, role, state, version, created_at,
        updated_at) VALUES ($1, 'greedy', 'Greedy', 'member', 'active', 1, now(), now())
"""
INSERT_KEY = """
    INSERT INTO identity.api_keys (id, user_id, digest, is_from_setting, created_at)
    VALUES ($1, $2, $3, false, now())
"""


class Api:
    """Requests of one user; connections are kept."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self._requests = Requests(Dialer(target))

    async def ask(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """Return the status and the document of an answer."""
        encoded = b"" if body is None else json.dumps(body).encode()
        head, answer = await self._requests.ask(self.target.request(method, path, encoded))
        return head.status, json.loads(answer) if answer else None

    def close(self) -> None:
        """Close the connections."""
        self._requests.close()


class Talk:
    """One chat of the user, which notes how long each turn takes."""

    def __init__(self, target: Target, *, connects_anew: bool = False) -> None:
        self.connects_anew = connects_anew
        self._target = target
        self._api = Api(target)
        self._over = asyncio.Event()
        self.turns_ms: list[float] = []
        #: How often messages were refused, by status; 0 is a broken connection.
        self.refused: dict[int, int] = {}

    async def run(self) -> None:
        """Have turns until cancelled."""
        _, chat = await self._api.ask("POST", "/chats", HELLO)
        path = f"/chats/{chat['id']}"
        request = self._target.request("GET", f"{path}/events")
        stream = await Dialer(self._target).connect(lambda: EventReader(request, self._take))
        try:
            await self._over.wait()
            while True:
                self._over.clear()
                began_s = time.monotonic()
                status, _ = await self._send(f"{path}/messages")
                if status not in (200, 201, 202):
                    self.refused[status] = self.refused.get(status, 0) + 1
                    await asyncio.sleep(AGAIN_S)
                    continue
                await self._over.wait()
                self.turns_ms.append((time.monotonic() - began_s) * 1000)
        finally:
            stream.cut()

    async def _send(self, path: str) -> tuple[int, Any]:
        if not self.connects_anew:
            return await self._api.ask("POST", path, HELLO)
        api = Api(self._target)
        try:
            return await api.ask("POST", path, HELLO)
        finally:
            api.close()

    def _take(self, frame: Frame) -> None:
        if frame.kind == "status" and b'"waiting"' in frame.data:
            self._over.set()


async def deletes(target: Target) -> None:
    """Create chats and delete them while they are answered."""

    async def delete() -> None:
        api = Api(target)
        while True:
            status, chat = await api.ask("POST", "/chats", HELLO)
            if status == 201:
                await api.ask("DELETE", f"/chats/{chat['id']}")
            else:
                await asyncio.sleep(AGAIN_S)

    await together(delete() for _ in range(DELETERS))


async def waits(target: Target) -> None:
    """Wait for the output of a process, and follow repositories."""
    api = Api(target)
    _, chat = await api.ask("POST", "/chats", HELLO)
    path = f"/chats/{chat['id']}"
    sleeping = {"command": "sleep 600", "background": True}
    _, process = await api.ask("POST", f"{path}/processes", sleeping)
    places = (f"{path}/processes/{process['id']}/output?wait=300", f"{path}/git/events")
    await together(hold(target, places[number % 2]) for number in range(WAITS))


async def streams(target: Target) -> None:
    """Open as many streams of a chat as are given."""
    _, chat = await Api(target).ask("POST", "/chats", HELLO)
    await together(hold(target, f"/chats/{chat['id']}/events") for _ in range(STREAMS))


async def abandoned(target: Target) -> None:
    """Send messages and hang up at once."""
    _, chat = await Api(target).ask("POST", "/chats", HELLO)
    body = json.dumps(HELLO).encode()
    request = target.request("POST", f"/chats/{chat['id']}/messages", body)
    due_s = time.monotonic()
    while True:
        with suppress(OSError):
            _, writer = await asyncio.open_connection(target.host, target.port)
            writer.write(request)
            await writer.drain()
            writer.close()
        due_s = max(due_s + 1 / ABANDONED_PER_S, time.monotonic() - 1)
        await asyncio.sleep(max(0.0, due_s - time.monotonic()))


async def connections(target: Target) -> None:
    """Open connections and send half a request on each."""

    async def half() -> None:
        while True:
            with suppress(OSError):
                reader, writer = await asyncio.open_connection(target.host, target.port)
                writer.write(b"GET / HTTP/1.1\r\nHost: ")
                await reader.read()
                writer.close()
            await asyncio.sleep(AGAIN_S)

    await together(half() for _ in range(CONNECTIONS))


async def hold(target: Target, path: str) -> None:
    """Have a request open all the time; one that is refused is made again."""
    request = target.request("GET", path)
    while True:
        with suppress(OSError):
            stream = await Dialer(target).connect(lambda: EventReader(request, lambda _: None))
            await stream.closed
        await asyncio.sleep(AGAIN_S)


async def together(works: Iterable[Awaitable[None]]) -> None:
    async with asyncio.TaskGroup() as tasks:
        for number, work in enumerate(works):
            tasks.create_task(_run(work))
            if number % 50 == 49:
                await asyncio.sleep(0.02)


async def _run(work: Awaitable[None]) -> None:
    await work


WAYS: Mapping[str, Callable[[Target], Awaitable[None]]] = {
    "deletes": deletes,
    "waits": waits,
    "streams": streams,
    "abandoned": abandoned,
    "connections": connections,
}


@asynccontextmanager
async def paced_model() -> AsyncIterator[dict[str, str]]:
    """Give the variables of a stack whose model answers at an even pace."""
    words = ("-m", "parley.cli", "llm-mock", "--behaviour", PACE)
    mock = await asyncio.create_subprocess_exec(
        sys.executable, *words, stdout=asyncio.subprocess.PIPE
    )
    try:
        assert mock.stdout is not None
        while line := (await mock.stdout.readline()).decode().strip():
            name, _, url = line.partition("=")
            if name == "OPENAI_BASE_URL":
                yield {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "sk-of-nobody-at-all"}
                break
    finally:
        mock.terminate()
        await mock.wait()


async def new_member(stack: FaultyStack) -> str:
    """Return the API key of a new member."""
    key, user_id = ApiKey.generate(), str(uuid.uuid4())
    connection = await asyncpg.connect(stack.stack.endpoints()["database"])
    try:
        await connection.execute(INSERT_USER, user_id)
        await connection.execute(INSERT_KEY, key.id, user_id, key.digest())
    finally:
        await connection.close()
    return key.reveal()


@asynccontextmanager
async def greedy(way: str, url: str, key: str) -> AsyncIterator[None]:
    """Have a member be greedy, in a process of its own."""
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, str(HERE), "--greedy", way, "--url", url),
        env={**os.environ, "BENCH_API_KEY": key},
    )
    try:
        yield
    finally:
        child.kill()
        await child.wait()


Window = dict[str, list[float]]


async def window(talks: list[Talk], window_s: float) -> Window:
    """Return how long the turns took that ended within a window, by kind of connection."""
    for talk in talks:
        talk.turns_ms.clear()
    await asyncio.sleep(window_s)
    return {
        kind: [each for talk in talks if talk.connects_anew is is_new for each in talk.turns_ms]
        for kind, is_new in CONNECTION_KINDS.items()
    }


def add(windows: Window, more: Window) -> None:
    for kind, turns_ms in more.items():
        windows[kind] += turns_ms


async def measured(ways: Iterable[str], window_s: float, rounds: int) -> dict[str, Any]:
    ways = list(ways)
    without: dict[str, Window] = {way: {kind: [] for kind in CONNECTION_KINDS} for way in ways}
    during: dict[str, Window] = {way: {kind: [] for kind in CONNECTION_KINDS} for way in ways}
    async with paced_model() as model, stack_of(2, **model) as stack:
        url = f"http://{stack.stack.http}"
        member = await new_member(stack)
        owner = Target(url, stack.stack.home.api_key_file.read_text().strip())
        before = deaths(stack)
        talks = [Talk(owner, connects_anew=bool(number % 2)) for number in range(CHATS)]
        async with asyncio.TaskGroup() as tasks:
            talking = [tasks.create_task(talk.run()) for talk in talks]
            await asyncio.sleep(SETTLE_S)
            for _ in range(rounds):
                for way in ways:
                    add(without[way], await window(talks, window_s))
                    async with greedy(way, url, member):
                        await asyncio.sleep(SETTLE_S)
                        add(during[way], await window(talks, window_s))
                    await asyncio.sleep(SETTLE_S)
            for task in talking:
                task.cancel()
        restarts = deaths(stack) - before
    refused = Counter[int]()
    for talk in talks:
        refused.update(talk.refused)
    found = {
        way: {kind: compared(without[way][kind], during[way][kind]) for kind in CONNECTION_KINDS}
        for way in ways
    }
    return {"restarts": restarts, "refused": dict(refused), **found}


def deaths(stack: FaultyStack) -> int:
    """Return how often processes of the stack were started again."""
    return sum(each.get("restarts", 0) for each in stack.stack.status()["processes"])


def compared(without: list[float], during: list[float]) -> dict[str, Any]:
    if not without or not during:
        return {"failed": {"turns_without": len(without), "turns_during": len(during)}}
    ratio = quantile(during, 0.99) / quantile(without, 0.99)
    return {
        "ratio_p99": round(ratio, 2),
        "without_ms": told(without),
        "during_ms": told(during),
    }


def told(values: list[float]) -> dict[str, float]:
    return {
        "turns": len(values),
        "p50": round(statistics.median(values), 1),
        "p99": round(quantile(values, 0.99), 1),
    }


def be_greedy(way: str, url: str) -> None:
    """Be greedy until killed."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    # A client on another machine would not take processor time from the stack.
    psutil.Process().nice(10)
    target = Target(url, os.environ["BENCH_API_KEY"])
    asyncio.run(_run(WAYS[way](target)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("ways", nargs="*", metavar="WAY", help=f"of {', '.join(WAYS)}")
    parser.add_argument("--window-s", type=float, default=WINDOW_S, help="(%(default)s)")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="(%(default)s)")
    parser.add_argument("--greedy", choices=[*WAYS], help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.greedy:
        be_greedy(given.greedy, given.url)
        return
    if unknown := set(given.ways) - WAYS.keys():
        parser.error(f"there is no way {', '.join(sorted(unknown))}")
    print_figures(asyncio.run(measured(given.ways or WAYS, given.window_s, given.rounds)))


if __name__ == "__main__":
    main()
