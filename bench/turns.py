"""Figures of turns over HTTP: how many a second, what each costs, and how late its first words are.

Run it with `python bench/turns.py`, or name parts: `python bench/turns.py lag`. Each starts a real
stack of its own with `parley up` and two chatd, or as many as `--chatd` says; models, clients and
PostgreSQL share its machine. It prints one JSON object.

    burst  turns per second with 1, 100 and 500 chats whose answers come in 40 deltas at once, and
           processor time per turn by process, by `parley scaletest`
    paced  the same with 20 ms between two deltas
    tools  turns per second with 1, 10 and 100 chats whose every turn runs one command in the
           workspace of its chat before it answers; 60 at 100 chats is the aim
    lag    with 1 and with 100 paced chats: from the model's first delta to the client, and by how
           much a turn is longer than its model takes
    crowd  5,000 chats of 10 turns; only if it is named
"""

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from aiohttp import web

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))
sys.path.append(str(Path(__file__).resolve().parent.parent))

from bench.chats import quantile, stack_of
from bench.machine import print_figures

from parley.testing.scaletest import Dialer, EventReader, Frame, Requests, Target
from support.stack.faulty_stack import FaultyStack

CHATD_DEFAULT = 2
DELTAS = 40
DELTA_S = 0.02
#: Chats, and how many turns of each are enough to tell.
BURSTS = ((1, 100), (100, 20), (500, 8))
PACED = ((1, 5), (100, 5), (500, 5))
#: All chats are one user's, and none of them is to wait in line.
ROOM = {"CHATD_RUNNING_CHATS_MAX": "5000", "CHATD_RUNNING_CHATS_PER_USER_MAX": "5000"}
TOOLS = ((1, 30), (10, 10), (100, 5))
LAG_TURNS = {1: 10, 100: 5}
CROWD = (5000, 10)


async def scaletest(chatd: int, chats: int, turns: int, *options: str) -> dict[str, Any]:
    """Return what a load test of a fresh stack tells."""
    async with stack_of(chatd, **ROOM) as stack:
        load = ("--chats", str(chats), "--turns", str(turns), "--deltas", str(DELTAS), *options)
        ran = await asyncio.to_thread(
            subprocess.run,
            stack.stack.command("scaletest", *load, "--json"),
            env=stack.stack.variables(),
            stdout=subprocess.PIPE,
            check=False,
        )
    if not ran.stdout:
        return {"failed": {"exit_code": ran.returncode}}
    report: dict[str, Any] = json.loads(ran.stdout)
    services = {**report["costs"]["services"], "client": report["costs"]["clients"]}
    cpu_ms = {name: cost["cpu_ms_per_turn"] for name, cost in sorted(services.items())}
    failed = {
        "chats": report["chats_failed"],
        "turns_completed": report["turns_completed"],
        "stages": {stage: count for stage, count in report["failures"].items() if count},
        "said": [*report["exceeded"], *report["problems"]],
    }
    return ({"failed": failed} if ran.returncode != 0 else {}) | {
        "turns_per_s": report["turns_per_s"],
        "turn_ms": report["latency"]["turn"]["follow_up"],
        "cpu_ms_per_turn": cpu_ms,
        "our_cpu_ms_per_turn": round(sum(cpu_ms[name] or 0 for name in ("chatd", "gateway")), 2),
        "database": report["costs"]["database"],
        "sent_again": {
            name: report["stream"][name] for name in ("requests_resent", "openings_refused")
        },
    }


async def burst(chatd: int) -> dict[str, Any]:
    return {f"{chats}_chats": await scaletest(chatd, chats, turns) for chats, turns in BURSTS}


async def paced(chatd: int) -> dict[str, Any]:
    pace = ("--delta-interval-ms", str(DELTA_S * 1000))
    return {f"{chats}_chats": await scaletest(chatd, chats, turns, *pace) for chats, turns in PACED}


async def tools(chatd: int) -> dict[str, Any]:
    one = ("--tool-calls", "1")
    return {f"{chats}_chats": await scaletest(chatd, chats, turns, *one) for chats, turns in TOOLS}


async def crowd(chatd: int) -> dict[str, Any]:
    return await scaletest(chatd, *CROWD)


@asynccontextmanager
async def stamping_model() -> AsyncIterator[str]:
    """Give the URL of a model whose first delta says when it left; the clock is this process's."""

    async def answer(request: web.Request) -> web.StreamResponse:
        await request.read()
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        began_s = time.monotonic()
        # Labels are asked for behind the last turn, and nobody waits for them at the end.
        with suppress(ConnectionError):
            for number in range(DELTAS):
                text = f"{time.monotonic():.6f} " if number == 0 else "word "
                await response.write(_chunk({"content": text}))
                # By the clock, so that a late delta makes no other one late.
                due_s = began_s + (number + 1) * DELTA_S
                await asyncio.sleep(max(0.0, due_s - time.monotonic()))
            await response.write(_chunk({}, "stop") + b"data: [DONE]\n\n")
        return response

    async def models(_: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": "stamping"}]})

    app = web.Application()
    app.add_routes([web.post("/v1/chat/completions", answer), web.get("/v1/models", models)])
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    finally:
        await runner.cleanup()


def _chunk(delta: dict[str, str], reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    return b"data: " + json.dumps({"id": "c", "choices": [choice]}).encode() + b"\n\n"


class Talk:
    """One chat that notes how late its answers are."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._requests = Requests(Dialer(target))
        self._over = asyncio.Event()
        self._is_new = True
        self.lags_ms: list[float] = []
        self.overheads_ms: list[float] = []

    async def run(self, turns: int) -> None:
        """Have the conversation; its first turn warms up and does not count."""
        chat_id = (await self._post("/chats"))["id"]
        request = self._target.request("GET", f"/chats/{chat_id}/events")
        stream = await Dialer(self._target).connect(lambda: EventReader(request, self._take))
        await self._over.wait()
        self.lags_ms.clear()
        for _ in range(turns):
            self._over.clear()
            self._is_new = True
            began_s = time.monotonic()
            await self._post(f"/chats/{chat_id}/messages")
            await self._over.wait()
            took_s = time.monotonic() - began_s
            self.overheads_ms.append((took_s - DELTAS * DELTA_S) * 1000)
        stream.cut()
        self._requests.close()

    def _take(self, frame: Frame) -> None:
        if frame.kind == "message_part" and self._is_new:
            self._is_new = False
            part = json.loads(frame.data)["message_part"]["part"]
            sent_s = float(part["text"].split()[0])
            self.lags_ms.append((time.monotonic() - sent_s) * 1000)
        elif frame.kind == "status" and b'"waiting"' in frame.data:
            self._over.set()

    async def _post(self, path: str) -> Any:
        body = json.dumps({"content": [{"type": "text", "text": "hello"}]}).encode()
        _, answer = await self._requests.ask(self._target.request("POST", path, body))
        return json.loads(answer)


async def lag(chatd: int) -> dict[str, Any]:
    found = {}
    async with stamping_model() as url:
        given = {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "sk-of-nobody-at-all"}
        async with stack_of(chatd, **given) as stack:
            for chats, turns in LAG_TURNS.items():
                found[f"{chats}_chats"] = await lag_of(stack, chats, turns)
    return found


async def lag_of(stack: FaultyStack, chats: int, turns: int) -> dict[str, Any]:
    key = stack.stack.home.api_key_file.read_text().strip()
    target = Target(f"http://{stack.stack.http}", key)
    talks = [Talk(target) for _ in range(chats)]
    async with asyncio.timeout(300), asyncio.TaskGroup() as tasks:
        for talk in talks:
            tasks.create_task(talk.run(turns))
    lags = [each for talk in talks for each in talk.lags_ms]
    overheads = [each for talk in talks for each in talk.overheads_ms]
    return {"first_delta_lag_ms": told(lags), "turn_overhead_ms": told(overheads)}


def told(values: list[float]) -> dict[str, float]:
    return {
        "p50": round(statistics.median(values), 1),
        "p99": round(quantile(values, 0.99), 1),
    }


PARTS: Mapping[str, Callable[[int], Awaitable[dict[str, Any]]]] = {
    "burst": burst,
    "paced": paced,
    "tools": tools,
    "lag": lag,
    "crowd": crowd,
}


async def run(parts: Iterable[str], chatd: int) -> dict[str, Any]:
    return {"chatd": chatd, **{part: await PARTS[part](chatd) for part in parts}}


def has_failed(found: object) -> bool:
    """Return whether any report says that something failed."""
    return isinstance(found, dict) and ("failed" in found or any(map(has_failed, found.values())))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}")
    parser.add_argument(
        "--chatd",
        type=int,
        default=CHATD_DEFAULT,
        metavar="N",
        help="how many of them (%(default)s)",
    )
    given = parser.parse_args()
    parts = given.parts or [part for part in PARTS if part != "crowd"]
    if unknown := set(parts) - PARTS.keys():
        parser.error(f"there is no part {', '.join(sorted(unknown))}")
    found = asyncio.run(run(parts, given.chatd))
    print_figures(found)
    if has_failed(found):
        raise SystemExit("a load test failed: its report says what")


if __name__ == "__main__":
    main()
