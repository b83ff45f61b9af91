"""Figures of identity: what authentication costs a request, and what sign-ins cost other users.

Run it with `python bench/sign_in.py`. It starts one real stack with `parley up`. It prints one JSON
object:

    authentication_us  microseconds of one check, median and 99th percentile: of a session (read
                       from the database each time), of an API key, and of a service token, for the
                       first call with it and for later ones
    sign_ins           how many passwords a second are verified with the pool full, and how much
                       slower turns of a user are meanwhile; windows with and without take turns. A
                       ratio of at most 1.2 is the aim
"""

import argparse
import asyncio
import json
import secrets
import statistics
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))
sys.path.append(str(Path(__file__).resolve().parent.parent))

from bench.chats import quantile, stack_of
from bench.fairness import CHATS, SETTLE_S, Talk, paced_model, window
from bench.machine import print_figures
from starlette.requests import Request

from gateway.http.addresses import PublicUrl
from gateway.http.authentication import Authentication
from gateway.identity.engine.api_key_cache import ApiKeyCache
from gateway.identity.store.credentials import IdentityStore
from parley.api.chat.v1 import chat_service_pb2
from parley.clock import SystemClock
from parley.identity import Guard, InMemoryRevocations, ServiceName, Trust
from parley.postgres import Database
from parley.testing.scaletest import Target
from support.net.http_client import HttpClient
from support.stack.fairness import compared
from support.stack.faulty_stack import FaultyStack

HERE = Path(__file__).resolve()
CHECKS = 2_000
WINDOW_S = 8.0
ROUNDS = 3
#: More than there are threads and places to wait for them.
SIGNING_IN = 80
METHOD = f"/{chat_service_pb2.DESCRIPTOR.services_by_name['ChatService'].full_name}/ListChats"


async def timed(check: Callable[[], Awaitable[object]]) -> dict[str, float]:
    """Return how long a check takes, in microseconds."""
    taken_us = []
    for _ in range(CHECKS):
        began_ns = time.perf_counter_ns()
        await check()
        taken_us.append((time.perf_counter_ns() - began_ns) / 1000)
    return {
        "p50": round(statistics.median(taken_us), 1),
        "p99": round(quantile(taken_us, 0.99), 1),
    }


def request_with(name: str, value: str) -> Request:
    """Return a request with one header."""
    headers = [(name.encode(), value.encode())]
    return Request({"type": "http", "method": "GET", "headers": headers})


async def session_cookie(stack: FaultyStack) -> str:
    """Sign the owner in, and return the cookies."""
    token = stack.stack.home.keys.joinpath("login_token").read_text().strip()
    port = int(stack.stack.http.rpartition(":")[2])
    reply = await HttpClient(port).request("GET", f"/login?token={token}")
    return "; ".join(cookie.partition(";")[0] for cookie in reply.set_cookies)


async def authentication(stack: FaultyStack) -> dict[str, Any]:
    """Return what one check costs, by the kind of credential."""
    clock, home = SystemClock(), stack.stack.home
    url = home.database_url_file(ServiceName.GATEWAY).read_text().strip()
    async with Database.open(url, application_name="bench", connections_max=2) as database:
        people = IdentityStore(database)
        checks = Authentication(
            people,
            ApiKeyCache(people.find_api_key, clock),
            public_url=PublicUrl.parse(f"http://{stack.stack.http}"),
            clock=clock,
        )
        session = request_with("cookie", await session_cookie(stack))
        key = home.api_key_file.read_text().strip()
        by_key = request_with("authorization", f"Bearer {key}")
        issued = await asyncio.to_thread(
            stack.stack.parley, "token", "issue", "bench", "--scope", "chat:read"
        )
        bearer = f"Bearer {issued.stdout.strip()}"
        trust = Trust(home.trust_file, clock)

        def guard() -> Guard:
            revoked = InMemoryRevocations(())
            return Guard(ServiceName.CHATD, trust, revoked, clock, peers_by_certificate=False)

        kept = guard()

        async def first_call() -> None:
            guard().admit(METHOD, bearer, None)

        async def later_call() -> None:
            kept.admit(METHOD, bearer, None)

        return {
            "session": await timed(lambda: checks.require(session)),
            "api_key": await timed(lambda: checks.require(by_key)),
            "service_token_first": await timed(first_call),
            "service_token": await timed(later_call),
        }


async def sign_in_for_ever(port: int) -> None:
    """Sign in with passwords that are wrong, which takes as long; print the statuses each second.

    Each attempt is for another person and from another address, so that no limit slows it down.
    """
    counts = Counter[int]()

    async def attempt() -> None:
        client = HttpClient(port)
        while True:
            address = ".".join(["10", *(str(each) for each in secrets.token_bytes(3))])
            body = {"login": f"nobody-{secrets.token_hex(6)}", "password": secrets.token_hex(12)}
            reply = await client.request(
                "POST", "/api/v1/sign-in", body, {"X-Forwarded-For": address}
            )
            counts[reply.status] += 1
            if reply.status != 401:
                await asyncio.sleep(0.2)

    async with asyncio.TaskGroup() as tasks:
        for _ in range(SIGNING_IN):
            tasks.create_task(attempt())
        while True:
            await asyncio.sleep(1)
            print(json.dumps(counts), flush=True)
            counts.clear()


@asynccontextmanager
async def signing_in(port: int, counts: Counter[str]) -> AsyncIterator[None]:
    """Have people sign in, from a process of its own, and add up how they are answered."""
    child = await asyncio.create_subprocess_exec(
        sys.executable, str(HERE), "--sign-in", str(port), stdout=asyncio.subprocess.PIPE
    )

    async def read() -> None:
        assert child.stdout is not None
        while line := await child.stdout.readline():
            counts.update(json.loads(line))
            counts["seconds"] += 1

    reading = asyncio.create_task(read())
    try:
        yield
    finally:
        child.kill()
        await child.wait()
        await reading


async def measured(window_s: float, rounds: int) -> dict[str, Any]:
    without: list[float] = []
    during: list[float] = []
    counts = Counter[str]()
    proxies = {"GATEWAY_TRUSTED_PROXIES": "127.0.0.1"}
    async with paced_model() as model, stack_of(2, **model, **proxies) as stack:
        costs = await authentication(stack)
        key = stack.stack.home.api_key_file.read_text().strip()
        owner = Target(f"http://{stack.stack.http}", key)
        port = int(stack.stack.http.rpartition(":")[2])
        talks = [Talk(owner) for _ in range(CHATS)]
        async with asyncio.TaskGroup() as tasks:
            talking = [tasks.create_task(talk.run()) for talk in talks]
            await asyncio.sleep(SETTLE_S)
            for _ in range(rounds):
                without += (await window(talks, window_s))["kept"]
                async with signing_in(port, counts):
                    await asyncio.sleep(SETTLE_S)
                    during += (await window(talks, window_s))["kept"]
                await asyncio.sleep(SETTLE_S)
            for task in talking:
                task.cancel()
    seconds = counts.pop("seconds", 0) or 1
    return {
        "authentication_us": costs,
        "sign_ins": {
            "per_s": round(counts["401"] / seconds, 1),
            "answers": dict(counts),
            **compared(without, during),
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--window-s", type=float, default=WINDOW_S, help="(%(default)s)")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="(%(default)s)")
    parser.add_argument("--sign-in", type=int, metavar="PORT", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.sign_in:
        # A client on another machine would not take processor time from the stack.
        psutil.Process().nice(10)
        asyncio.run(sign_in_for_ever(given.sign_in))
        return
    print_figures(asyncio.run(measured(given.window_s, given.rounds)))


if __name__ == "__main__":
    main()
