"""Streams as their readers meet them: curl, a gateway that dies, a chatd that dies, tail."""

import json
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psutil
import pytest

from support.faulty_stack import FaultyStack, connect_to
from support.local_stack import LocalStack, lines_of

pytestmark = pytest.mark.slow


@pytest.fixture
async def watched(stack: LocalStack) -> AsyncIterator[FaultyStack]:
    connection = await connect_to(stack)
    yield FaultyStack(stack, connection)
    await connection.close()


def key_of(stack: LocalStack) -> str:
    return stack.home.api_key_file.read_text().strip()


def events_of(text: str) -> list[tuple[str, str, Any]]:
    """Return cursor, type and data of the events in what curl printed."""
    found = []
    for frame in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in frame.splitlines() if ": " in line)
        if "event" in fields:
            found.append((fields.get("id", ""), fields["event"], json.loads(fields["data"])))
    return found


def curl(stack: LocalStack, chat_id: str, cursor: str = "", seconds: float = 3) -> str:
    """Follow a chat with curl for a while."""
    url = f"http://{stack.http}/api/v1/chats/{chat_id}/events"
    command = ["curl", "--no-buffer", "--silent", "--max-time", str(seconds), url]
    command += ["--header", f"Authorization: Bearer {key_of(stack)}"]
    command += ["--header", f"Last-Event-ID: {cursor}"] if cursor else []
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


@contextmanager
def tailed(stack: LocalStack, chat_id: str) -> Iterator[Callable[[], str]]:
    """Run `parley tail` and give what reads its next line."""
    with subprocess.Popen(
        stack.command("tail", chat_id, "--json", "--timeout", "60"),
        env=stack.variables(),
        stdout=subprocess.PIPE,
        text=True,
    ) as following:
        assert following.stdout is not None
        try:
            yield following.stdout.readline
        finally:
            following.kill()


async def test_curl_follows_a_chat_and_resumes_in_the_middle_of_an_answer(
    watched: FaultyStack,
) -> None:
    chat_id = watched.create("count to 40")
    first = events_of(curl(watched.stack, chat_id, seconds=1))
    cursor, kind, last = first[-1]
    assert kind == "message_part"
    second = events_of(curl(watched.stack, chat_id, cursor))
    kinds = [kind for _, kind, _ in first + second]
    assert kinds[:2] == ["message", "status"]
    seqs = [
        data["message_part"]["seq"] for _, kind, data in first + second if kind == "message_part"
    ]
    assert seqs == list(range(1, len(seqs) + 1))
    assert second[0][2]["message_part"]["seq"] == last["message_part"]["seq"] + 1
    assert kinds[-3:] == ["message", "status", "preview_reset"]


@pytest.mark.parametrize("service", ["gateway", "chatd"])
async def test_tail_loses_nothing_when_a_process_on_its_way_is_killed(
    watched: FaultyStack, service: str
) -> None:
    stack = watched.stack
    chat_id = watched.create("count to 100")
    with tailed(stack, chat_id) as read_line:
        lines = [read_line() for _ in range(10)]
        if service == "gateway":
            victim = next(p for p in stack.status()["processes"] if p["service"] == "gateway")
        else:
            where = await watched.where(chat_id)
            victim = next(p for p in stack.status()["processes"] if p["address"] == where.address)
        psutil.Process(victim["pid"]).kill()
        deadline = time.monotonic() + 50
        while time.monotonic() < deadline:
            lines.append(read_line())
            event = json.loads(lines[-1])
            if event["type"] == "status" and event["status"]["status"] == "waiting":
                break
    events = [json.loads(line) for line in lines]
    messages = [event["message"]["id"] for event in events if event["type"] == "message"]
    assert messages == [1, 2]
    preview: list[int] = []
    for event in events:
        match event["type"]:
            case "preview_reset" | "message":
                preview = []
            case "message_part":
                preview.append(event["message_part"]["seq"])
                assert preview == list(range(1, len(preview) + 1))
    assert not [event for event in events if event["type"] == "resync"]
    stack.until_whole(without=victim["pid"])


def test_a_list_that_is_followed_tells_of_new_chats(stack: LocalStack) -> None:
    url = f"http://{stack.http}/api/v1/events"
    command = ["curl", "--no-buffer", "--silent", "--max-time", "6", url]
    command += ["--header", f"Authorization: Bearer {key_of(stack)}"]
    following = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    ran = stack.parley("run", "repeat after me: hello list", "--json", "--timeout", "20")
    chat_id = json.loads(lines_of(ran.stdout)[0])["chat_id"]
    ran = stack.parley("run", "repeat after me: again", "--json", "--timeout", "20")
    printed, _ = following.communicate(timeout=20)
    changed = {data["chat_id"] for _, _, data in events_of(printed)}
    later = json.loads(lines_of(ran.stdout)[0])["chat_id"]
    assert {chat_id, later} & changed
