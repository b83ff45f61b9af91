"""Figures of chatd: what a turn costs, how that grows, what an idle chat weighs, and takeovers.

Run it with `python bench/chats.py`, or name parts: `python bench/chats.py turns takeover`. Each
starts a real stack of its own with `parley up` and takes about a minute. The model answers at once,
so that nothing but Parley is measured. It prints one JSON object.

    turns       turns per second and processor time per turn, by process, over gRPC
    statements  statements and commits per turn, counted by PostgreSQL, over HTTP
    growth      one turn after another in one chat that grows to 2,000 messages
    memory      what a chat at rest weighs in chatd
    takeover    how long chats are without an owner after `kill -9` and after SIGTERM
"""

import argparse
import asyncio
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import psutil

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))
sys.path.append(str(Path(__file__).resolve().parent.parent))

from bench.machine import print_figures

from parley.client import MessageCommitted, Parley, Role, connect
from support.stack.faulty_stack import FaultyStack, Where, watching
from support.stack.local_stack import LocalStack
from support.stack.turn_costs import turn_costs

WORDS = "repeat after me: a plain answer, as long as a short sentence is"
CHATS_AT_ONCE = 40
MEASURED_S = 12.0
WARM_UP_S = 3.0
SIZES = (10, 50, 200, 500, 1000, 2000)
TURNS_PER_SIZE = 20
IDLE_CHATS = 2000
CHATS_WARM = 400  # More than there are histories to keep.
CREATED_AT_ONCE = 20
CHATS_TO_TAKE_OVER = 30
RUNNING = """
    SELECT e.chat_id::text AS chat_id, e.status, e.owner_epoch, w.address
    FROM chat.chat_exec e LEFT JOIN chat.workers w ON w.id = e.worker_id
    WHERE e.chat_id = ANY ($1::uuid[])
"""


@asynccontextmanager
async def stack_of(chatd: int, **environment: str) -> AsyncIterator[FaultyStack]:
    """Give a fresh stack with that many chatd processes and these variables in its start."""
    with tempfile.TemporaryDirectory(prefix="parley-bench-") as directory:
        stack = LocalStack.at(Path(directory), **environment)
        started = await asyncio.to_thread(stack.up, "--chatd", str(chatd))
        if started.returncode != 0:
            raise SystemExit(started.stdout + started.stderr)
        try:
            async with watching(stack) as found:
                yield found
        finally:
            await asyncio.to_thread(stack.parley, "down")


@asynccontextmanager
async def client_of(stack: FaultyStack) -> AsyncIterator[Parley]:
    """Give a client of all chatd processes."""
    issued = stack.stack.parley(
        "token", "issue", "bench", "--scope", "chat:read", "--scope", "chat:write"
    )
    addresses = stack.stack.endpoints()["grpc"]["chatd"]
    async with connect(*addresses, token=issued.stdout) as client:
        yield client


def processes_of(stack: FaultyStack) -> dict[str, list[psutil.Process]]:
    """Return the processes by service; PostgreSQL with all its backends."""
    found: dict[str, list[psutil.Process]] = {}
    for each in stack.stack.status()["processes"]:
        process = psutil.Process(each["pid"])
        found.setdefault(each["service"], []).append(process)
    found["client"] = [psutil.Process()]
    return found


def cpu_ms(processes: Mapping[str, Iterable[psutil.Process]]) -> dict[str, float]:
    """Return the processor time that each service used until now."""
    spent: dict[str, float] = {}
    for service, members in processes.items():
        times = [member.cpu_times() for member in members]
        used_s = sum(each.user + each.system for each in times)
        if service == "postgres":
            used_s += sum(each.children_user + each.children_system for each in times)
            for member in members:
                backends = [backend.cpu_times() for backend in member.children(recursive=True)]
                used_s += sum(each.user + each.system for each in backends)
        spent[service] = used_s * 1000
    return spent


class Conversation:
    """One chat and a stream that tells of its answers."""

    def __init__(self, client: Parley, chat_id: str) -> None:
        self.chat_id = chat_id
        self.turns = 0
        self._client = client
        self._events = client.follow(chat_id)

    @classmethod
    @asynccontextmanager
    async def begun(cls, client: Parley) -> "AsyncIterator[Conversation]":
        """Give a new chat whose first turn is over."""
        chat = await client.create_chat(WORDS)
        talk = cls(client, chat.id)
        async with aclosing(talk._events):
            await talk._until_answered(1)
            yield talk

    async def turn(self) -> float:
        """Run one turn and return the seconds until its answer was heard, which also ends it."""
        began = time.perf_counter()
        sent = await self._client.send_message(self.chat_id, WORDS)
        if sent.message is None:
            raise AssertionError("the chat was at rest, and yet the message had to wait")
        await self._until_answered(sent.message.id)
        self.turns += 1
        return time.perf_counter() - began

    async def _until_answered(self, message_id: int) -> None:
        async for event in self._events:
            match event:
                case MessageCommitted(message=message) if (
                    message.role is Role.ASSISTANT and message.id > message_id
                ):
                    return
                case _:
                    pass


async def turns_with(chatd: int) -> dict[str, Any]:
    """Keep many chats busy at once, and share the processor time out among their turns."""
    async with stack_of(chatd) as stack, client_of(stack) as client:
        took_s: list[float] = []
        stopping = asyncio.Event()

        async def talk() -> None:
            async with Conversation.begun(client) as talking:
                while not stopping.is_set():
                    took_s.append(await talking.turn())

        async with asyncio.TaskGroup() as group:
            for _ in range(CHATS_AT_ONCE):
                group.create_task(talk())
            await asyncio.sleep(WARM_UP_S)
            processes = processes_of(stack)
            before, first, began = cpu_ms(processes), len(took_s), time.perf_counter()
            await asyncio.sleep(MEASURED_S)
            after, last, ended = cpu_ms(processes), len(took_s), time.perf_counter()
            stopping.set()
        turns = last - first
        spent = {name: (after[name] - before[name]) / turns for name in before}
        return {
            "chats_at_once": CHATS_AT_ONCE,
            "turns_per_s": round(turns / (ended - began), 1),
            "turn_ms": percentiles_ms(took_s[first:last]),
            "cpu_ms_per_turn": {name: round(ms, 2) for name, ms in sorted(spent.items())},
            "cpu_ms_per_turn_in_all": round(sum(spent.values()), 2),
        }


async def turns() -> dict[str, Any]:
    return {f"chatd_{count}": await turns_with(count) for count in (1, 2)}


async def statements() -> dict[str, Any]:
    async with stack_of(1) as stack:
        chat_id = stack.create(WORDS)
        await stack.until(chat_id, is_at_rest)
        costs = await turn_costs(stack, chat_id, WORDS, turns=5)
        return {
            "statements_per_turn": [len(cost.statements) for cost in costs],
            "commits_per_turn": [cost.commits for cost in costs],
            "statements": [shortened(text) for text in costs[-1].statements],
        }


async def growth() -> dict[str, Any]:
    """Measure the last turns before each size is reached."""
    found: dict[str, Any] = {}
    async with (
        stack_of(1) as stack,
        client_of(stack) as client,
        Conversation.begun(client) as talking,
    ):
        processes = processes_of(stack)
        for size in SIZES:
            measured = min(TURNS_PER_SIZE, size // 2 - 1 - talking.turns)
            while talking.turns < size // 2 - 1 - measured:
                await talking.turn()
            before = cpu_ms(processes)
            took_s = [await talking.turn() for _ in range(measured)]
            after = cpu_ms(processes)
            found[str(size)] = {
                "turn_ms": percentiles_ms(took_s),
                "chatd_cpu_ms": round((after["chatd"] - before["chatd"]) / measured, 2),
                "postgres_cpu_ms": round((after["postgres"] - before["postgres"]) / measured, 2),
            }
    return {"by_messages": found}


async def memory() -> dict[str, Any]:
    """Compare chatd after some chats with chatd after many more, all of them at rest."""
    async with stack_of(1) as stack, client_of(stack) as client:
        (chatd,) = processes_of(stack)["chatd"]
        await create_and_finish(stack, client, CHATS_WARM)
        before = chatd.memory_full_info().uss
        await create_and_finish(stack, client, IDLE_CHATS)
        after = chatd.memory_full_info().uss
        return {
            "idle_chats": IDLE_CHATS,
            "bytes_per_idle_chat": round((after - before) / IDLE_CHATS),
            "chatd_mib": round(after / 2**20, 1),
        }


async def create_and_finish(stack: FaultyStack, client: Parley, count: int) -> None:
    """Create chats and wait until all of them rest."""
    left = iter(range(count))

    async def create() -> None:
        for _ in left:
            await client.create_chat(WORDS)

    async with asyncio.TaskGroup() as group:
        for _ in range(CREATED_AT_ONCE):
            group.create_task(create())
    busy = "SELECT count(*) FROM chat.chat_exec WHERE status <> 'waiting'"
    while await stack.connection.fetchval(busy):
        await stack.pause(0.05)
    await stack.pause(1)


async def takeover() -> dict[str, Any]:
    """End the process that owns the most chats, several times, and time their next owners."""
    found: dict[str, Any] = {}
    async with stack_of(3) as stack:
        for kind, rounds in ((signal.SIGTERM, 4), (signal.SIGKILL, 2)):
            took_s: list[float] = []
            for _ in range(rounds):
                took_s += await one_takeover(stack, kind)
            found[kind.name] = {
                "rounds": rounds,
                "chats": len(took_s),
                "p50_s": round(statistics.median(took_s), 2),
                "p99_s": round(quantile(took_s, 0.99), 2),
            }
        stack.audit()
    return found


async def one_takeover(stack: FaultyStack, kind: signal.Signals) -> list[float]:
    """Return the seconds that each chat of the ended process waited for its next owner."""
    chat_ids = [stack.create("count to 40") for _ in range(CHATS_TO_TAKE_OVER)]
    owned: dict[str, dict[str, int]] = {}
    for row in await stack.connection.fetch(RUNNING, chat_ids):
        if row["address"] is not None:
            owned.setdefault(row["address"], {})[row["chat_id"]] = row["owner_epoch"]
    address = max(owned, key=lambda each: len(owned[each]))
    ending, waiting = stack.process_at(address), owned[address]
    ending.send_signal(kind)
    began, took_s = time.perf_counter(), []
    while waiting:
        for row in await stack.connection.fetch(RUNNING, list(waiting)):
            if row["owner_epoch"] > waiting[row["chat_id"]] and row["address"] is not None:
                took_s.append(time.perf_counter() - began)
                del waiting[row["chat_id"]]
            elif row["status"] == "waiting":  # It ended by itself just before.
                del waiting[row["chat_id"]]
        await asyncio.sleep(0.005)
    for chat_id in chat_ids:
        await stack.until(chat_id, is_at_rest)
    stack.stack.until_whole(without=ending.pid)
    return took_s


def is_at_rest(where: Where) -> bool:
    return where.status in ("waiting", "error")


def percentiles_ms(took_s: list[float]) -> dict[str, float]:
    return {
        "p50": round(statistics.median(took_s) * 1000, 2),
        "p99": round(quantile(took_s, 0.99) * 1000, 2),
    }


def quantile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def shortened(statement: str) -> str:
    return statement if len(statement) <= 100 else f"{statement[:97]}..."


PARTS: Mapping[str, Callable[[], Awaitable[dict[str, Any]]]] = {
    "turns": turns,
    "statements": statements,
    "growth": growth,
    "memory": memory,
    "takeover": takeover,
}


async def run(parts: Iterable[str]) -> dict[str, Any]:
    return {part: await PARTS[part]() for part in parts}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}")
    parts = parser.parse_args().parts or list(PARTS)
    if unknown := set(parts) - PARTS.keys():
        parser.error(f"there is no part {', '.join(sorted(unknown))}")
    print_figures(asyncio.run(run(parts)))


if __name__ == "__main__":
    main()
