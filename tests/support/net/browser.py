"""A real browser without a window, told what to do over its DevTools protocol."""

import asyncio
import itertools
import json
import re
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from parley.cli.host.checks import BROWSERS

CHROMIUMS = tuple(name for name in BROWSERS if name.startswith(("chromium", "google-chrome")))
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--remote-debugging-port=0",
)
LISTENING = re.compile(rb"DevTools listening on (ws://\S+)")
START_S_MAX = 60.0
ANSWER_S_MAX = 60.0


class ScriptFailed(Exception):
    """A script that the page ran ended with an error.

    Attributes:
        details: What the browser says of it.
    """

    def __init__(self, details: Any) -> None:
        super().__init__(json.dumps(details))
        self.details = details


class Page:
    """One tab."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self._session: str | None = None

    async def open(self) -> None:
        """Take a new tab, in which scripts may connect wherever the page's origin is."""
        target = await self._ask("Target.createTarget", url="about:blank")
        attached = await self._ask(
            "Target.attachToTarget", targetId=target["targetId"], flatten=True
        )
        self._session = attached["sessionId"]
        await self._ask("Page.enable")
        # The pages so far contain no script, and their policy allows none to connect.
        await self._ask("Page.setBypassCSP", enabled=True)

    async def visit(self, url: str) -> None:
        """Go to an address and wait until its page is there."""
        answer = await self._ask("Page.navigate", url=url)
        assert "errorText" not in answer, answer
        while await self.run("document.readyState") != "complete":
            pass

    async def run(self, script: str) -> Any:
        """Run a script in the page and return what it gives, waiting for what it promises."""
        answer = await self._ask(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in answer:
            raise ScriptFailed(answer["exceptionDetails"])
        return answer["result"].get("value")

    async def _ask(self, method: str, **parameters: Any) -> Any:
        number = next(self._numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        async with asyncio.timeout(ANSWER_S_MAX):
            await self._socket.send_json(message)
            while (answer := await self._socket.receive_json()).get("id") != number:
                pass
        assert "error" not in answer, (method, answer)
        return answer["result"]


def browser_program() -> str:
    """Return a browser, or skip the test that needs one."""
    found = next((path for path in map(shutil.which, CHROMIUMS) if path), None)
    if found is None:
        pytest.skip("no browser is installed: run scripts/browser as root, or install chromium")
    return found


@asynccontextmanager
async def browser_page(directory: Path) -> AsyncIterator[Page]:
    """Give the tab of a browser that knows nothing yet and keeps its files in `directory`."""
    process = await asyncio.create_subprocess_exec(
        browser_program(),
        *FLAGS,
        f"--user-data-dir={directory}",
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stderr is not None
        async with asyncio.timeout(START_S_MAX):
            url = await _devtools_of(process.stderr)
        async with (
            asyncio.TaskGroup() as tasks,
            aiohttp.ClientSession() as session,
            session.ws_connect(url, max_msg_size=0) as socket,
        ):
            draining = tasks.create_task(_drain(process.stderr))
            page = Page(socket)
            await page.open()
            yield page
            draining.cancel()
    finally:
        process.kill()
        await process.wait()


async def _devtools_of(stderr: asyncio.StreamReader) -> str:
    seen = b""
    while line := await stderr.readline():
        seen += line
        if found := LISTENING.search(line):
            return found[1].decode()
    raise AssertionError(f"the browser did not start: {seen.decode()}")


async def _drain(stderr: asyncio.StreamReader) -> None:
    while await stderr.readline():
        pass
