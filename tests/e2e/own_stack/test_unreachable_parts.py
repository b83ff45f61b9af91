"""Parts of a stack that do not answer, and bodies without end: chats go on and can be stopped."""

import asyncio
import socket
import statistics
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import psutil
import pytest
import pytest_asyncio

from support.net.http_client import HttpClient
from support.stack.local_stack import LocalStack

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]

CHATS = "/api/v1/chats"
#: Answered by the scripted model without a tool.
REPEAT = "repeat after me:"
TURN_S_MAX = 5.0
STOP_S_MAX = 5.0
#: An ordinary answer with the processors busy; without the attack it takes milliseconds.
ANSWER_S_MAX = 2.0
SENT_BYTES = 1024 * 1024 * 1024
PIECE = b"x" * 65536
RSS_GROWTH_BYTES_MAX = 64 * 1024 * 1024
PROBES = 40
#: Between the times of a chat of another user and of one that does not exist.
DIFFERENCE_MS_MAX = 5.0


class Caller:
    """A client of the stack with a key."""

    def __init__(self, stack: LocalStack, key: str) -> None:
        self.client = HttpClient(
            int(stack.http.rpartition(":")[2]), {"Authorization": f"Bearer {key}"}
        )

    async def asked(self, method: str, path: str, body: Any = None) -> Any:
        """Make a request that must succeed."""
        reply = await self.client.request(method, path, body)
        assert reply.status < 300, (method, path, reply.body)
        return reply.json() if reply.body else None

    async def chat(self, text: str) -> str:
        """Begin a chat."""
        return str((await self.asked("POST", CHATS, {"content": _text(text)}))["id"])

    async def until(self, chat_id: str, status: str, within_s: float) -> float:
        """Wait for a status; return how long it took."""
        began = time.monotonic()
        async with asyncio.timeout(within_s):
            while (await self.asked("GET", f"{CHATS}/{chat_id}"))["status"] != status:
                pass
        return time.monotonic() - began


def _text(text: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": text}]


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    stack = LocalStack.at(tmp_path_factory.mktemp("unreachable") / "home")
    started = stack.up()
    assert started.returncode == 0, started.stderr
    yield stack
    assert stack.parley("down").returncode == 0


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def owner(stack: LocalStack) -> AsyncIterator[Caller]:
    yield Caller(stack, stack.home.api_key_file.read_text().strip())


@contextmanager
def stopped(stack: LocalStack, service: str) -> Iterator[None]:
    """Stop the processes of a service: their sockets stay open, and nothing answers."""
    found = [each for each in stack.status()["processes"] if each["service"] == service]
    processes = [psutil.Process(each["pid"]) for each in found]
    assert processes
    for process in processes:
        process.suspend()
    try:
        yield
    finally:
        for process in processes:
            process.resume()


async def test_h31_without_a_toolrunner_a_turn_starts_and_one_that_needs_it_is_stopped(
    stack: LocalStack, owner: Caller
) -> None:
    used = await owner.chat("run: echo ready")
    await owner.until(used, "waiting", 60)
    with stopped(stack, "toolrunner"):
        began = time.monotonic()
        fresh = await owner.chat(f"{REPEAT} one")
        await owner.until(fresh, "waiting", TURN_S_MAX)
        new_s = time.monotonic() - began
        began = time.monotonic()
        await owner.asked("POST", f"{CHATS}/{used}/messages", {"content": _text(f"{REPEAT} two")})
        await owner.until(used, "waiting", TURN_S_MAX)
        used_s = time.monotonic() - began
        await owner.asked("POST", f"{CHATS}/{used}/messages", {"content": _text("run: echo x")})
        await owner.until(used, "running", TURN_S_MAX)
        await owner.asked("POST", f"{CHATS}/{used}/interrupt")
        stopped_s = await owner.until(used, "waiting", STOP_S_MAX)
    print(f"H31: turns {new_s:.2f} s and {used_s:.2f} s, stop {stopped_s:.2f} s")
    await owner.asked("POST", f"{CHATS}/{used}/messages", {"content": _text("run: echo back")})
    await owner.until(used, "waiting", 60)
    page = await owner.asked("GET", f"{CHATS}/{used}/messages?limit=1")
    assert "back" in str(page["messages"])


async def test_h33_a_huge_body_without_a_sign_in_costs_nothing(
    stack: LocalStack, owner: Caller
) -> None:
    (gateway,) = [each for each in stack.status()["processes"] if each["service"] == "gateway"]
    process = psutil.Process(gateway["pid"])
    before_bytes = process.memory_info().rss
    async with asyncio.TaskGroup() as tasks:
        sending = [
            tasks.create_task(asyncio.to_thread(_send_huge, stack.http, path))
            for path in ("/api/v1/sign-in", CHATS)
        ]
        slowest_s = await _answers(owner)
    sent = [each.result() for each in sending]
    grown_bytes = process.memory_info().rss - before_bytes
    print(f"H33: accepted {sent}, slowest answer {slowest_s:.3f} s, grown {grown_bytes}")
    for status, taken_bytes in sent:
        assert status in (0, 401, 413), status
        assert taken_bytes < SENT_BYTES / 4
    assert slowest_s < ANSWER_S_MAX
    assert grown_bytes < RSS_GROWTH_BYTES_MAX


async def _answers(owner: Caller) -> float:
    """Make ordinary requests; return how long the slowest took."""
    taken_s = []
    for _ in range(PROBES):
        began = time.monotonic()
        await owner.asked("GET", "/api/v1/me")
        taken_s.append(time.monotonic() - began)
    return max(taken_s)


def _send_huge(http: str, path: str) -> tuple[int, int]:
    """Send a body in chunks until it is refused; return the status, and how much was taken."""
    host, _, port = http.partition(":")
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {http}\r\nContent-Type: application/json\r\n"
        "Transfer-Encoding: chunked\r\n\r\n"
    )
    chunk = f"{len(PIECE):x}\r\n".encode() + PIECE + b"\r\n"
    taken_bytes, status = 0, 0
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        connection.sendall(head.encode())
        try:
            while taken_bytes < SENT_BYTES:
                connection.sendall(chunk)
                taken_bytes += len(PIECE)
        except OSError:
            pass
        try:
            answer = connection.recv(65536)
            status = int(answer.split(b" ", 2)[1]) if answer else 0
        except OSError:
            pass
    return status, taken_bytes


async def test_g3_a_chat_of_another_user_looks_as_if_it_did_not_exist(
    stack: LocalStack, owner: Caller
) -> None:
    foreign = await owner.chat(f"{REPEAT} three")
    body = {"kind": "service", "login": "guessing", "role": "member"}
    user_id = (await owner.asked("POST", "/api/v1/users", body))["id"]
    made = await owner.asked("POST", f"/api/v1/users/{user_id}/api-keys", {"name": "guess"})
    guesser = Caller(stack, made["key"])
    absent = "00000000-0000-4000-8000-00000000dead"
    taken_ms: dict[str, list[float]] = {foreign: [], absent: []}
    answers: dict[str, Any] = {}
    for _ in range(PROBES):
        for chat_id, each in taken_ms.items():
            began = time.perf_counter()
            reply = await guesser.client.request("GET", f"{CHATS}/{chat_id}")
            each.append((time.perf_counter() - began) * 1000)
            answers[chat_id] = (reply.status, _without_ids(reply.json(), chat_id))
    difference_ms = abs(_undisturbed(taken_ms[foreign]) - _undisturbed(taken_ms[absent]))
    print(f"G3: they differ by {difference_ms:.2f} ms")
    assert answers[foreign] == answers[absent]
    assert answers[absent][0] == 404
    assert difference_ms < DIFFERENCE_MS_MAX


def _undisturbed(taken_ms: list[float]) -> float:
    """Return the first quartile, which other work on the machine changes least."""
    return statistics.quantiles(taken_ms, n=4)[0]


def _without_ids(problem: dict[str, Any], chat_id: str) -> dict[str, Any]:
    kept = {name: each for name, each in problem.items() if name not in ("request_id", "trace_id")}
    return {
        name: each.replace(chat_id, "ID") if isinstance(each, str) else each
        for name, each in kept.items()
    }
