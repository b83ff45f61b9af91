"""Terminals of processes over WebSockets, with a real PTY at the other end of a real stack."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from support.net.http_client import HttpClient
from support.stack.local_stack import LocalStack

pytestmark = pytest.mark.slow

CHATS = "/api/v1/chats"
ANSWER_S_MAX = 60


class Terminal:
    """A terminal, and what it showed."""

    def __init__(self, socket: "aiohttp.ClientWebSocketResponse") -> None:
        self.socket = socket
        self.shown = b""
        self.told: list[dict[str, Any]] = []

    async def next(self) -> aiohttp.WSMessage:
        message = await self.socket.receive(timeout=ANSWER_S_MAX)
        if message.type is aiohttp.WSMsgType.BINARY:
            self.shown += message.data
        elif message.type is aiohttp.WSMsgType.TEXT:
            self.told.append(message.json())
        return message

    async def until(self, pattern: bytes) -> "re.Match[bytes]":
        """Read until the output has a pattern."""
        try:
            async with asyncio.timeout(ANSWER_S_MAX):
                while (found := re.search(pattern, self.shown)) is None:
                    message = await self.next()
                    assert not self.socket.closed, (self.shown, self.told, message)
        except TimeoutError:
            raise AssertionError((pattern, self.shown, self.told)) from None
        return found

    async def until_closed(self) -> int:
        """Read until the connection is closed, and return the code of that."""
        while not self.socket.closed:
            await self.next()
        assert self.socket.close_code is not None
        return self.socket.close_code

    async def type(self, text: str) -> None:
        await self.socket.send_bytes(text.encode())


class Caller:
    """Somebody with the owner's key and a chat with a process."""

    def __init__(self, stack: LocalStack, session: aiohttp.ClientSession) -> None:
        self.key = {"Authorization": f"Bearer {stack.home.api_key_file.read_text().strip()}"}
        self.http = HttpClient(int(stack.http.rpartition(":")[2]), self.key)
        self.session = session
        self.base = f"http://{stack.http}"
        self.processes = ""

    async def begin(self) -> None:
        body = {"content": [{"type": "text", "text": "repeat after me: hello"}]}
        created = (await self.http.request("POST", CHATS, body)).json()
        self.processes = f"{CHATS}/{created['id']}/processes"

    async def shell(self, command: str = "exec sh") -> str:
        """Start a shell with a terminal; return the path of the process."""
        body = {"command": command, "terminal": {"rows": 24, "columns": 80}, "background": True}
        started = await self.http.request("POST", self.processes, body)
        assert started.status == 201, started.body
        return f"{self.processes}/{started.json()['id']}"

    @asynccontextmanager
    async def attached(
        self, process: str, query: str = "", **headers: str
    ) -> AsyncIterator[Terminal]:
        url = f"{self.base}{process}/terminal{query}"
        async with self.session.ws_connect(url, headers={**self.key, **headers}) as socket:
            terminal = Terminal(socket)
            await terminal.next()
            assert terminal.told[0]["type"] == "opened"
            yield terminal


@pytest.fixture
async def caller(stack: LocalStack) -> AsyncIterator[Caller]:
    async with aiohttp.ClientSession() as session, asyncio.timeout(240):
        caller = Caller(stack, session)
        await caller.begin()
        yield caller


async def test_a_terminal_is_typed_at_resized_interrupted_and_left(caller: Caller) -> None:
    process = await caller.shell()
    async with caller.attached(process, "?rows=11&columns=77") as terminal:
        # Not by its name: a sandbox may have no directory of terminals to find it in.
        await terminal.type("test -t 0 && echo tty-$((6*7)); stty size\n")
        await terminal.until(rb"tty-42\r\n[^\n]*11 77\r\n")
        await terminal.socket.send_json({"type": "resize", "rows": 12, "columns": 78})
        await terminal.type("stty size\n")
        await terminal.until(rb"12 78\r\n")
        loop = "until [ $stop ]; do sleep 0.1; done"
        await terminal.type(f"trap 'echo caught; stop=1' INT; echo ready-$((1+1)); {loop}\n")
        await terminal.until(rb"ready-2\r\n")
        await terminal.type("\x03")
        await terminal.until(rb"caught\r\n")
        await terminal.type("exit 7\n")
        assert await terminal.until_closed() == 1000
    exited = terminal.told[-1]
    assert exited["type"] == "exited"
    assert exited["process"]["exit"]["exit_code"] == 7
    assert exited["cursor"] == len(terminal.shown)


async def test_a_client_that_comes_back_goes_on_at_its_cursor(caller: Caller) -> None:
    process = await caller.shell()
    async with caller.attached(process) as first:
        await first.type("echo first-$((2*3))\n")
        await first.until(rb"first-6\r\n")
    await caller.http.request("POST", f"{process}/stdin", {"text": "echo second-$((2*4))\n"})
    async with caller.attached(process, f"?cursor={len(first.shown)}") as again:
        assert again.told[0]["cursor"] == len(first.shown)
        await again.until(rb"second-8\r\n")
        await again.socket.send_json({"type": "signal", "signal": "kill"})
        assert await again.until_closed() == 1000
    exited = again.told[-1]
    assert exited["process"]["exit"]["signal"] == "SIGKILL"
    assert exited["cursor"] == exited["process"]["output_bytes"]
    assert exited["cursor"] == len(first.shown + again.shown)
    assert b"first" not in again.shown


async def test_who_only_looks_cannot_type(caller: Caller) -> None:
    process = await caller.shell("exec cat")
    async with caller.attached(process, "?view_only=true") as looking:
        assert looking.told[0]["view_only"]
        await looking.type("typed\n")
        assert await looking.until_closed() == 1008
    assert looking.told[-1]["code"] == "VIEW_ONLY"
    read = (await caller.http.request("GET", f"{process}/output")).json()
    assert (read["text"], read["process"]["state"]) == ("", "running")


async def test_frames_that_make_no_sense_or_are_too_large_end_the_connection(
    caller: Caller,
) -> None:
    process = await caller.shell("exec cat")
    async with caller.attached(process) as confused:
        await confused.socket.send_str("{}")
        assert await confused.until_closed() == 1008
    assert confused.told[-1]["code"] == "BAD_FRAME"
    async with caller.attached(process) as large:
        await large.socket.send_bytes(b"x" * (65 * 1024))
        assert await large.until_closed() == 1008
    assert large.told[-1]["code"] == "FRAME_TOO_LARGE"
    async with caller.attached(process) as huge:
        await huge.socket.send_bytes(b"x" * (200 * 1024))
        assert await huge.until_closed() == 1009


async def test_refusals_come_before_the_connection(caller: Caller) -> None:
    process = await caller.shell("exec cat")
    piped = {"command": "cat", "stdin_mode": "pipe", "background": True}
    pipe = (await caller.http.request("POST", caller.processes, piped)).json()["id"]
    nobody = {"Authorization": "Bearer nothing"}
    other_page = {"Origin": "https://evil.example"}
    for path, headers, status in (
        (f"{caller.processes}/00000000-0000-0000-0000-000000000001/terminal", {}, 404),
        (f"{caller.processes}/{pipe}/terminal", {}, 409),
        (f"{process}/terminal?cursor=999999", {}, 422),
        (f"{process}/terminal", nobody, 401),
        (f"{process}/terminal", other_page, 403),
        (process, {}, 400),
    ):
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await caller.session.ws_connect(
                f"{caller.base}{path}", headers={**caller.key, **headers}
            )
        assert refused.value.status == status, path
    plain = await caller.http.request("GET", f"{process}/terminal")
    assert (plain.status, plain.json()["code"]) == (426, "UPGRADE_REQUIRED")
    async with caller.attached(process, **{"Origin": caller.base}) as own_page:
        assert not own_page.told[0]["view_only"]
