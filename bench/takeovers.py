"""Figures of takeovers on one machine: how long chats stand still after `kill -9`.

Run it with `python bench/takeovers.py`, or name cases: `python bench/takeovers.py one --chats 20`.
Each starts a real stack of three chatd processes with `parley up`, lets chats run a command, kills
processes and lets the commands end. It prints one JSON object.

    one         the chatd that owns all the chats
    two         two chatd at once, which own half of them each
    everything  all processes of all services, but not the supervisor and the database

`owned_s` is the time from the kill until another process owned a chat, `committed_s` until the
first commit of its turn. `is_within_aims` says whether `owned_s` is at most 3 s in the median and
5 s for 99 of 100. All of it takes less than four minutes: a case that has used up its share of
`--within-s` makes no further round.
"""

import argparse
import asyncio
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))
sys.path.append(str(Path(__file__).resolve().parent.parent))

from bench.chats import stack_of
from bench.machine import print_figures

from parley.client import connect
from support.stack.faulty_stack import FaultyStack

CHATD = 3
COMMAND = "run: touch begun; until [ -e enough ]; do sleep 0.1; done"
LOOK_S = 0.02
AIMS_S = {"p50": 3.0, "p99": 5.0}
WAIT_S_MAX = 120.0
STATES = """
    SELECT e.chat_id::text AS chat_id, e.owner_epoch, e.history_version, e.status, w.address
    FROM chat.chat_exec e LEFT JOIN chat.workers w ON w.id = e.worker_id
    WHERE e.chat_id = ANY ($1::uuid[])
"""
ENVIRONMENT = {
    "CHATD_LIVE_WORKSPACES_PER_USER_MAX": "0",
    "CHATD_WORKSPACES_PER_USER_MAX": "0",
    "CHATD_NEW_WORKSPACES_PER_USER_MAX": "0",
    "CHATD_RUNNING_CHATS_PER_USER_MAX": "1000",
    "TOOLRUNNER_WORKSPACES_MAX": "10000",
}


@dataclass(slots=True)
class Times:
    """Seconds since the kill, one for each chat, over some rounds."""

    owned: list[float] = field(default_factory=list)
    committed: list[float] = field(default_factory=list)
    rounds: int = 0

    def figures(self) -> dict[str, Any]:
        """Return the percentiles, and whether they are what they should be."""
        owned_s = percentiles(self.owned)
        return {
            "rounds": self.rounds,
            "chats": len(self.owned),
            "owned_s": owned_s,
            "committed_s": percentiles(self.committed),
            "aims_s": AIMS_S,
            "is_within_aims": all(owned_s[name] <= aim_s for name, aim_s in AIMS_S.items()),
        }


def percentiles(values: list[float]) -> dict[str, float]:
    """Return the median, the 99th percentile and the maximum."""
    ordered = sorted(values)
    last = len(ordered) - 1
    return {
        "p50": round(ordered[last // 2], 2),
        "p99": round(ordered[min(last, round(last * 0.99))], 2),
        "max": round(ordered[last], 2),
    }


async def until(is_so: Callable[[], Awaitable[bool]], what: str) -> None:
    """Wait until something is so."""
    give_up_at = time.monotonic() + WAIT_S_MAX
    while not await is_so():
        if time.monotonic() > give_up_at:
            raise SystemExit(f"{what} did not happen within {WAIT_S_MAX:g} s")
        await asyncio.sleep(LOOK_S)


def pids_of(stack: FaultyStack, *services: str) -> list[int]:
    """Return the processes of these services, in the order of their names."""
    return [
        each["pid"] for each in stack.stack.status()["processes"] if each["service"] in services
    ]


async def busy_chats(stack: FaultyStack, addresses: tuple[str, ...], count: int) -> list[str]:
    """Create chats at these processes, and return them when their commands run."""
    issued = stack.stack.parley(
        "token", "issue", f"bench-{time.monotonic_ns()}", "--scope", "chat:write"
    )
    chat_ids: list[str] = []
    for address in addresses:
        async with connect(address, token=issued.stdout) as client:
            for _ in range(count // len(addresses)):
                chat_ids.append((await client.create_chat(COMMAND)).id)

    async def all_begun() -> bool:
        return all((files_of(stack, each) / "begun").exists() for each in chat_ids)

    await until(all_begun, "the commands of all chats")
    return chat_ids


def files_of(stack: FaultyStack, chat_id: str) -> Path:
    """Return the directory that the tools of a chat work in."""
    return stack.stack.home.toolrunner(0) / "workspaces" / chat_id / "files"


async def measure(stack: FaultyStack, chat_ids: list[str], victims: list[int]) -> Times:
    """Kill processes, let the commands end, and note when each chat goes on."""
    before = {row["chat_id"]: row for row in await stack.connection.fetch(STATES, chat_ids)}
    for pid in victims:
        os.kill(pid, signal.SIGKILL)
    killed_s = time.monotonic()
    for chat_id in chat_ids:
        (files_of(stack, chat_id) / "enough").touch()
    times = Times()
    unowned, uncommitted = set(chat_ids), set(chat_ids)

    async def all_go_on() -> bool:
        rows = await stack.connection.fetch(STATES, list(unowned | uncommitted))
        since_s = time.monotonic() - killed_s
        for row in rows:
            chat_id, was = row["chat_id"], before[row["chat_id"]]
            is_new = row["owner_epoch"] > was["owner_epoch"] and row["address"] is not None
            is_committed = row["history_version"] > was["history_version"]
            if chat_id in unowned and (is_new or is_committed):
                unowned.discard(chat_id)
                times.owned.append(since_s)
            if chat_id in uncommitted and is_committed:
                uncommitted.discard(chat_id)
                times.committed.append(since_s)
        return not unowned and not uncommitted

    await until(all_go_on, "the first commits of all chats")
    return times


async def case(name: str, chats: int, rounds: int, within_s: float) -> dict[str, Any]:
    """Measure one case in several rounds, as far as there is time for them."""
    all_times, began_s, longest_s = Times(), time.monotonic(), 0.0
    async with stack_of(CHATD, **ENVIRONMENT) as stack:
        addresses = tuple(stack.stack.endpoints()["grpc"]["chatd"])
        for number in range(rounds):
            round_s = time.monotonic()
            if number and round_s - began_s + longest_s > within_s:
                break
            await asyncio.to_thread(stack.stack.until_whole, without=0)
            order = [(number + place) % CHATD for place in range(CHATD)]
            chatd = pids_of(stack, "chatd")
            chosen = {"one": order[:1], "two": order[:2]}.get(name, order)
            chat_ids = await busy_chats(stack, tuple(addresses[each] for each in chosen), chats)
            victims = [chatd[each] for each in chosen]
            if name == "everything":
                victims = pids_of(stack, "gateway", "chatd", "toolrunner", "mcpgateway")
            times = await measure(stack, chat_ids, victims)
            all_times.owned += times.owned
            all_times.committed += times.committed
            all_times.rounds += 1
            longest_s = max(longest_s, time.monotonic() - round_s)
    return all_times.figures()


def main() -> None:
    """Measure the cases that are named, or all."""
    parser = argparse.ArgumentParser()
    parser.add_argument("cases", nargs="*", default=["one", "two", "everything"])
    parser.add_argument("--chats", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--within-s", type=float, default=180.0)
    given = parser.parse_args()
    share_s = given.within_s / len(given.cases)

    async def run() -> dict[str, Any]:
        return {name: await case(name, given.chats, given.rounds, share_s) for name in given.cases}

    print_figures(asyncio.run(run()))


if __name__ == "__main__":
    main()
