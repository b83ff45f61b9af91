"""The output of a real process as events, read by a client whose connection keeps breaking."""

import asyncio
from typing import Any

import pytest

from support.net.http_client import HttpClient
from support.stack.local_stack import LocalStack
from support.stack.page_session import call

pytestmark = pytest.mark.slow

LINES = 30
COMMAND = f"for i in $(seq {LINES}); do echo line $i ü; sleep 0.15; done; exit 7"


async def next_of(client: HttpClient, path: str) -> dict[str, Any]:
    """Open the stream, and leave it after the first event about the process that brings news."""
    async with client.stream(path) as stream:
        while (event := await stream.event()) is not None:
            if event.event == "process_ended":
                return dict(event.data["process_ended"])
            if event.event == "process_output" and event.data["process_output"]["text"]:
                return dict(event.data["process_output"])
    raise AssertionError("the stream ended before the process did")


async def test_output_that_is_cut_at_every_event_is_whole(stack: LocalStack) -> None:
    say = {"content": [{"type": "text", "text": "repeat after me: hello"}]}
    chat_id = call(stack, "POST", "/api/v1/chats", say)["id"]
    path = f"/api/v1/chats/{chat_id}"
    process_id = call(stack, "POST", f"{path}/processes", {"command": COMMAND})["id"]
    port = int(stack.http.rpartition(":")[2])
    key = stack.home.api_key_file.read_text().strip()
    client = HttpClient(port, {"Authorization": f"Bearer {key}"})
    pieces: list[dict[str, Any]] = []
    async with asyncio.timeout(60):
        while True:
            cursor = pieces[-1]["next_cursor"] if pieces else 0
            told = await next_of(client, f"{path}/events?processes={process_id}:{cursor}")
            if "process" in told:
                break
            pieces.append(told)

    assert "".join(each["text"] for each in pieces) == "".join(
        f"line {number} ü\n" for number in range(1, LINES + 1)
    )
    assert [each["cursor"] for each in pieces[1:]] == [each["next_cursor"] for each in pieces[:-1]]
    assert len(pieces) > 3
    assert (told["process"]["exit"]["exit_code"], told["error"]) == (7, None)
