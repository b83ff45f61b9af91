"""Figures of fairness: how much slower turns of one user are while another one takes what it can.

Run it with `python bench/fairness.py`, or name ways: `python bench/fairness.py waits streams`, or
`--way waits`. It starts one real stack with `parley up` and two chatd. A user has turns in a few
chats all the time: in some over a connection that is kept, in some over a new one for each message,
and in some with a command that runs in a workspace. A member, in a process of its own, is greedy in
one way after the other (`bench/greedy_ways.py` lists them); windows with and without it take turns,
so that both see the same machine. All ways take about six minutes on an idle machine.

It prints a table on standard error and one JSON object on standard output: for each way and each
kind of turns the median and the 99th percentile of the user's turns with and without the member,
and the ratio of the latter two, what was refused or failed for the user, and the processes that
were started again. At most 1.5 is the aim, with nothing refused and no restarts: `--assert 1.5`
exits with 1 and names the ways that do not keep to that.
"""

import argparse
import asyncio
import os
import sys
import time
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg
import psutil

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))
sys.path.append(str(Path(__file__).resolve().parent.parent))

from bench.chats import stack_of
from bench.greedy_ways import (
    AGAIN_S,
    HELLO,
    SCRIPTED,
    WAYS,
    Api,
    delete_chats,
    delete_workspaces,
)
from bench.machine import print_figures

from parley.identity import ApiKey
from parley.testing.scaletest import Dialer, EventReader, Frame, Target
from support.stack.fairness import WayFigures, table, unfair
from support.stack.faulty_stack import FaultyStack

GREEDY = Path(__file__).resolve().parent / "greedy_ways.py"
CHATS = 6
COMMAND_CHATS = 2
#: Kinds of turns: over a connection that is kept, over a new one, and with a command.
KEPT, ANEW, COMMANDS = "kept", "anew", "commands"
KINDS = (KEPT, ANEW, COMMANDS)
#: What is counted beside the statuses of refused messages.
BROKEN, CUT, FAILED = "broken connection", "cut stream", "failed turn"
WINDOW_S = 4.0
ROUNDS = 2
#: What the member does before it is measured, and what it may leave behind afterwards.
SETTLE_S = 2.0
CLEAR_TRIES = 3
#: How a model answers whose name says nothing: 10 deltas in 0.2 s.
PACE = "deltas=10,delay=20ms"
COMMAND = {"content": [{"type": "text", "text": "run: true"}], "model_id": SCRIPTED}
MIB = 1024**2
#: Workspaces are limited as on a small machine; a member may have many of them.
LIMITS = {
    "TOOLRUNNER_WORKSPACE_MEMORY_BYTES": str(512 * MIB),
    "TOOLRUNNER_WORKSPACE_DISK_BYTES": str(512 * MIB),
    "TOOLRUNNER_PROCESS_PIDS": "100",
    "TOOLRUNNER_WORKSPACES_MAX": "1000",
    "CHATD_LIVE_WORKSPACES_PER_USER_MAX": "1000",
    "CHATD_WORKSPACES_PER_USER_MAX": "10000",
}

INSERT_USER = """
    INSERT INTO identity.users (id, login, display_name, role, state, version, created_at,
        updated_at) VALUES ($1, 'greedy', 'Greedy', 'member', 'active', 1, now(), now())
"""
INSERT_KEY = """
    INSERT INTO identity.api_keys (id, user_id, digest, is_from_setting, created_at)
    VALUES ($1, $2, $3, false, now())
"""


class Talk:
    """One chat of the user, which notes how long each turn takes."""

    def __init__(self, target: Target, kind: str = KEPT) -> None:
        self.kind = kind
        self._body = COMMAND if kind == COMMANDS else HELLO
        self._target = target
        self._api = Api(target)
        self._over = asyncio.Event()
        self._stream: EventReader | None = None
        self._is_cut = False
        #: The moments at which turns began, and how long they took.
        self.turns: list[tuple[float, float]] = []
        self.began_s: float | None = None
        #: How often messages were refused, by status, and what else was not as it should be.
        self.refused = Counter[str]()

    async def run(self) -> None:
        """Have turns until cancelled."""
        chat = await self._api.insist("POST", "/chats", self._body)
        path = f"/chats/{chat['id']}"
        try:
            await self._open(path)
            await self._until_over(path)
            while True:
                self._over.clear()
                self.began_s = began_s = time.monotonic()
                status, _ = await self._send(f"{path}/messages")
                if status not in (200, 201, 202):
                    self.began_s = None
                    self.refused[str(status) if status else BROKEN] += 1
                    await asyncio.sleep(AGAIN_S)
                    continue
                await self._until_over(path)
                self.began_s = None
                self.turns.append((began_s, (time.monotonic() - began_s) * 1000))
        finally:
            if self._stream is not None:
                self._stream.cut()

    async def _until_over(self, path: str) -> None:
        """Wait for the end of the turn; a stream that the server cut is opened again."""
        await self._over.wait()
        while self._is_cut:
            self.refused[CUT] += 1
            self._is_cut = False
            self._over.clear()
            await asyncio.sleep(AGAIN_S)
            await self._open(path)
            await self._over.wait()

    async def _open(self, path: str) -> None:
        request = self._target.request("GET", f"{path}/events")
        try:
            stream = await Dialer(self._target).connect(lambda: EventReader(request, self._take))
        except OSError:
            self._lose(None)
            return
        stream.closed.add_done_callback(self._lose)
        self._stream = stream

    def _lose(self, _: object) -> None:
        self._is_cut = True
        self._over.set()

    async def _send(self, path: str) -> tuple[int, Any]:
        if self.kind != ANEW:
            return await self._api.ask("POST", path, self._body)
        api = Api(self._target)
        try:
            return await api.ask("POST", path, self._body)
        finally:
            api.close()

    def _take(self, frame: Frame) -> None:
        if frame.kind == "status" and b'"waiting"' in frame.data:
            self._over.set()
        elif frame.kind == "status" and b'"status":"error"' in frame.data:
            self.refused[FAILED] += 1
            self._over.set()


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
async def greedy(way: str, member: Target) -> AsyncIterator[None]:
    """Have a member be greedy, in a process of its own; what it leaves behind is deleted."""
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, str(GREEDY), way, member.url),
        env={**os.environ, "BENCH_API_KEY": member.api_key},
    )
    try:
        yield
    finally:
        child.kill()
        await child.wait()
    await clear(member)


async def clear(member: Target) -> None:
    """Delete the chats and workspaces of the member, which ends its processes."""
    api = Api(member)
    for _ in range(CLEAR_TRIES):
        if not (await delete_chats(api) | await delete_workspaces(api)):
            break
        await asyncio.sleep(AGAIN_S)
    api.close()


Window = dict[str, list[float]]


async def window(talks: Sequence[Talk], window_s: float, lead_s: float = 0.0) -> Window:
    """Return how long turns took that ended within a window, by the kind of turns.

    Turns count that began within it or in the `lead_s` before it. One that has not ended counts
    with its time so far, if that is longer than all that ended.
    """
    since_s = time.monotonic() - lead_s
    for talk in talks:
        talk.turns.clear()
    await asyncio.sleep(window_s)
    return {
        kind: taken_ms([talk for talk in talks if talk.kind == kind], since_s) for kind in KINDS
    }


def taken_ms(talks: Sequence[Talk], since_s: float) -> list[float]:
    """Return how long turns took that began since a moment."""
    now_s = time.monotonic()
    ended_ms = [took_ms for talk in talks for began_s, took_ms in talk.turns if began_s >= since_s]
    longest_ms = max(ended_ms, default=0.0)
    going_ms = [
        (now_s - talk.began_s) * 1000
        for talk in talks
        if talk.began_s is not None and talk.began_s >= since_s
    ]
    return ended_ms + [each for each in going_ms if ended_ms and each > longest_ms]


class Measured:
    """Everything that was measured of one way."""

    def __init__(self) -> None:
        self.without: Window = {kind: [] for kind in KINDS}
        self.during: Window = {kind: [] for kind in KINDS}
        self.refused = Counter[str]()
        self.restarts = 0

    def figures(self) -> WayFigures:
        """Return the figures."""
        return WayFigures(self.without, self.during, dict(self.refused), self.restarts)


def add(windows: Window, more: Window) -> None:
    for kind, turns_ms in more.items():
        windows[kind] += turns_ms


def refusals(talks: Sequence[Talk]) -> Counter[str]:
    """Return how often messages were refused until now."""
    return sum((talk.refused for talk in talks), Counter[str]())


async def one_way(
    way: str, found: Measured, talks: Sequence[Talk], member: Target, window_s: float
) -> None:
    """Measure one way once; the window without the member comes first."""
    add(found.without, await window(talks, window_s))
    before = refusals(talks)
    async with greedy(way, member):
        await asyncio.sleep(SETTLE_S)
        add(found.during, await window(talks, window_s, SETTLE_S))
    found.refused += refusals(talks) - before
    await asyncio.sleep(SETTLE_S)


async def measured(ways: Sequence[str], window_s: float, rounds: int) -> dict[str, WayFigures]:
    """Return the figures of each way."""
    found = {way: Measured() for way in ways}
    async with paced_model() as model, stack_of(2, **model, **LIMITS) as stack:
        url = f"http://{stack.stack.http}"
        member = Target(url, await new_member(stack))
        owner = Target(url, stack.stack.home.api_key_file.read_text().strip())
        talks = [Talk(owner, ANEW if number % 2 else KEPT) for number in range(CHATS)]
        talks += [Talk(owner, COMMANDS) for _ in range(COMMAND_CHATS)]
        services = services_of(stack)
        async with asyncio.TaskGroup() as tasks:
            talking = [tasks.create_task(talk.run()) for talk in talks]
            await asyncio.sleep(SETTLE_S)
            for _ in range(rounds):
                for way in ways:
                    await one_way(way, found[way], talks, member, window_s)
                    before, services = services, services_of(stack)
                    found[way].restarts += len(before - services)
            for task in talking:
                task.cancel()
    return {way: each.figures() for way, each in found.items()}


def services_of(stack: FaultyStack) -> frozenset[psutil.Process]:
    """Return the processes that the supervisor looks after; one that is missing later was ended."""
    return frozenset(stack.stack.supervisor().children())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("ways", nargs="*", metavar="WAY", help=f"of {', '.join(WAYS)}")
    parser.add_argument("--way", action="append", default=[], metavar="NAME", help="one more way")
    parser.add_argument("--window-s", type=float, default=WINDOW_S, help="(%(default)s)")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="(%(default)s)")
    parser.add_argument(
        "--assert",
        type=float,
        dest="ratio_max",
        metavar="RATIO",
        help="exit with 1 if the p99 of a way is more than so many times that without it",
    )
    given = parser.parse_args()
    ways = list(dict.fromkeys((*given.ways, *given.way))) or list(WAYS)
    if unknown := set(ways) - WAYS.keys():
        parser.error(f"there is no way {', '.join(sorted(unknown))}")
    found = asyncio.run(measured(ways, given.window_s, given.rounds))
    print("\n".join(table(found)), file=sys.stderr)
    print_figures({way: each.figures() for way, each in found.items()})
    problems = [] if given.ratio_max is None else unfair(found, given.ratio_max)
    if problems:
        raise SystemExit("\n".join(problems))


if __name__ == "__main__":
    main()
