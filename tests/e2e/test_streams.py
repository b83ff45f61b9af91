"""Streams as their readers meet them: curl, a gateway that dies, a chatd that dies, tail."""

import asyncio
import json
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psutil
import pytest

from support.faults.points import FaultPoints
from support.net.http_client import HttpClient
from support.stack.faulty_stack import FaultyStack, watching
from support.stack.local_stack import LocalStack

pytestmark = pytest.mark.slow

Event = tuple[str, str, Any]


@pytest.fixture
async def watched(stack: LocalStack) -> AsyncIterator[FaultyStack]:
    async with watching(stack) as found:
        yield found


def key_of(stack: LocalStack) -> str:
    return stack.home.api_key_file.read_text().strip()


def events_of(text: str) -> list[Event]:
    """Return cursor, type and data of the events in what curl printed."""
    found = []
    # What comes after the last blank line is not whole yet.
    for frame in text.split("\n\n")[:-1]:
        fields = dict(line.split(": ", 1) for line in frame.splitlines() if ": " in line)
        if "event" in fields:
            found.append((fields.get("id", ""), fields["event"], json.loads(fields["data"])))
    return found


def text_of(events: list[Event]) -> str:
    """Return what the parts of an answer say together."""
    parts = [data["message_part"]["part"] for _, kind, data in events if kind == "message_part"]
    return "".join(part["text"] for part in parts)


@contextmanager
def curled(
    stack: LocalStack, chat_id: str, cursor: str = ""
) -> Iterator[Callable[[Callable[[list[Event]], bool]], list[Event]]]:
    """Follow a chat with curl; give what reads until something holds of all that it printed."""
    url = f"http://{stack.http}/api/v1/chats/{chat_id}/events"
    command = ["curl", "--no-buffer", "--silent", "--max-time", "120", url]
    command += ["--header", f"Authorization: Bearer {key_of(stack)}"]
    command += ["--header", f"Last-Event-ID: {cursor}"] if cursor else []
    printed = ""

    def until(holds: Callable[[list[Event]], bool]) -> list[Event]:
        nonlocal printed
        assert following.stdout is not None
        while not ((events := events_of(printed)) and holds(events)):
            line = following.stdout.readline()
            assert line, f"curl ended after {printed}"
            printed += line
        return events

    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as following:
        try:
            yield until
        finally:
            following.kill()


@contextmanager
def tailed(stack: LocalStack, chat_id: str) -> Iterator[Callable[[], str]]:
    """Run `parley tail` and give what reads its next line."""
    with subprocess.Popen(
        stack.command("tail", chat_id, "--json", "--timeout", "120"),
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
    watched: FaultyStack, points: FaultPoints
) -> None:
    points.arm("model.event", nth=10)
    points.arm("FinishTurn.before")
    chat_id = watched.create("count to 40")
    with curled(watched.stack, chat_id) as until:
        first = until(lambda events: text_of(events).endswith(" 10 "))
    cursor, kind, last = first[-1]
    assert kind == "message_part"
    points.release("model.event")
    with curled(watched.stack, chat_id, cursor) as until:
        until(lambda events: text_of(events).endswith(" 40 "))
        points.release("FinishTurn.before")
        second = until(lambda events: events[-1][1] == "preview_reset")
    kinds = [kind for _, kind, _ in first + second]
    assert kinds[:2] == ["message", "status"]
    seqs = [
        data["message_part"]["seq"] for _, kind, data in first + second if kind == "message_part"
    ]
    assert seqs == list(range(1, len(seqs) + 1))
    assert second[0][2]["message_part"]["seq"] == last["message_part"]["seq"] + 1
    assert kinds[-3:] == ["message", "status", "preview_reset"]


def results_of(events: list[Event]) -> list[dict[str, Any]]:
    """Return the live parts of results."""
    parts = [data["message_part"]["part"] for _, kind, data in events if kind == "message_part"]
    return [part for part in parts if part["type"] == "tool-result"]


def output_of(events: list[Event]) -> str:
    """Return the output of a running call, as its deltas add up."""
    return "".join(part.get("result_delta", "") for part in results_of(events))


async def test_a_running_command_is_seen_attached_to_and_resumed_over_sse(
    watched: FaultyStack,
) -> None:
    command = "echo one; read word; echo $word; read word; echo over"
    arguments = {"command": command, "keep_stdin_open": True, "timeout": "100s"}
    chat_id = watched.create(f"call: execute {json.dumps(arguments)}")
    with curled(watched.stack, chat_id) as until:
        first = until(lambda events: output_of(events) == "one\n")
    cursor, _, last = first[-1]
    (process_id,) = {part["process_id"] for part in results_of(first) if "process_id" in part}
    process = f"/chats/{chat_id}/processes/{process_id}"
    assert watched.request("GET", process)["command"] == command
    watched.request("POST", f"{process}/stdin", {"text": "two\n"})
    with curled(watched.stack, chat_id, cursor) as until:
        second = until(lambda events: output_of(events) == "two\n")
        assert second[0][2]["message_part"]["seq"] == last["message_part"]["seq"] + 1
        watched.request("POST", f"{process}/stdin", {"text": "three\n"})
        third = until(lambda events: any(kind == "preview_reset" for _, kind, _ in events))
    live = results_of(first) + results_of(third)
    assert "".join(part.get("result_delta", "") for part in live) in (
        "one\ntwo\n",
        "one\ntwo\nover\n",
    )
    # The preview ends with the result, which is also in the message that follows it.
    messages = [data["message"]["content"][0] for _, kind, data in third if kind == "message"]
    assert messages[0]["result"]["output"] == "one\ntwo\nover\n"
    assert live[-1]["result"] == messages[0]["result"]
    assert "result_delta" not in messages[0]


async def test_100_mb_of_output_are_few_events_and_little_memory(watched: FaultyStack) -> None:
    command = "yes 0123456789abcde | head -c 100000000; sleep 1; echo; echo over; sleep 1"
    arguments = {"command": command, "timeout": "100s"}
    chatds = [
        each["pid"] for each in watched.stack.status()["processes"] if each["service"] == "chatd"
    ]
    before = {pid: psutil.Process(pid).memory_info().rss for pid in chatds}
    began_s = time.monotonic()
    chat_id = watched.create(f"call: execute {json.dumps(arguments)}")
    with curled(watched.stack, chat_id) as until:
        events = until(lambda events: events[-1][1] == "status" and _is_waiting(events[-1][2]))
    took_s = time.monotonic() - began_s
    grown = {pid: psutil.Process(pid).memory_info().rss - before[pid] for pid in chatds}
    live = [part for part in results_of(events) if "result" not in part]
    sizes = [len(part.get("result_delta", "")) for part in live]
    # The owner reads ten times a second, and publishes at most 2 KiB per 25 ms.
    assert 1 <= len(live) <= 10 * took_s
    assert sum(sizes) <= 80 * 1024 * took_s + 64 * 1024
    assert max(sizes) <= 64 * 1024
    assert max(grown.values()) < 64 * 1024 * 1024
    (result,) = [part["result"] for part in results_of(events) if "result" in part]
    assert result["truncation"]["original_bytes"] == 100_000_000 + len("\nover\n")


def _is_waiting(data: Any) -> bool:
    return bool(data["status"]["status"] == "waiting")


async def test_run_shows_the_output_of_a_command_while_it_runs(
    watched: FaultyStack,
) -> None:
    ran = watched.stack.parley("run", "run: echo first; sleep 1; echo second")
    assert ran.returncode == 0, ran.stderr
    noted = ran.stderr.splitlines()
    assert any(line.startswith("  execute runs as process ") for line in noted), noted
    assert noted.index("  | first") < noted.index("✓ execute")


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
        deadline = time.monotonic() + 120
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


async def test_a_list_that_is_followed_tells_of_new_chats(watched: FaultyStack) -> None:
    stack = watched.stack
    headers = {"Authorization": f"Bearer {key_of(stack)}"}
    client = HttpClient(int(stack.http.rpartition(":")[2]), headers)
    async with (
        asyncio.timeout(120),
        client.stream("/api/v1/events") as feed,
        asyncio.TaskGroup() as tasks,
    ):
        # It is told of chats from some moment on, and of all from then on.
        first = tasks.create_task(feed.event())
        while not first.done():
            await asyncio.to_thread(watched.create, "repeat after me: hello list")
        wanted = await asyncio.to_thread(watched.create, "repeat after me: again")
        event = first.result()
        while event is not None and event.data["chat_id"] != wanted:
            event = await feed.event()
    assert event is not None
