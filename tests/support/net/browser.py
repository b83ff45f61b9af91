"""A real browser without a window, told what to do over its DevTools protocol."""

import asyncio
import base64
import itertools
import json
import re
import subprocess
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from support.host.conditions import until
from support.net.browser_program import browser_program

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
#: What is said once and means nothing for a test: a refused request is the test's own doing.
EXPECTED = ("Failed to load resource: the server responded with a status of",)
KEYS: Mapping[str, tuple[int, str]] = {
    "Enter": (13, "\r"),
    "Escape": (27, ""),
    "ArrowUp": (38, ""),
    "ArrowDown": (40, ""),
    "ArrowLeft": (37, ""),
    "ArrowRight": (39, ""),
    "Tab": (9, ""),
    "Backspace": (8, ""),
}
#: Bits of held keys, as the protocol has them.
HELD: Mapping[str, int] = {"Alt": 1, "Control": 2, "Meta": 4, "Shift": 8}
FIND = """
    (selector, text) => {
        const shown = (each) =>
            each.checkVisibility({visibilityProperty: true}) && !each.disabled;
        const named = (each) =>
            [each.getAttribute('aria-label'), each.innerText, each.value].join(' ');
        return [...document.querySelectorAll(selector)]
            .filter((each) => shown(each) && (!text || named(each).includes(text)));
    }
"""

#: Where to click an element: null while it moves or while something else is before it.
POINT = """
    async (find) => {
        const each = find();
        if (!each) return null;
        each.scrollIntoView({block: 'nearest'});
        const before = each.getBoundingClientRect();
        await new Promise((done) => setTimeout(done, 25));
        const at = each.getBoundingClientRect();
        if (find() !== each || at.x !== before.x || at.y !== before.y) return null;
        const point = [at.x + at.width / 2, at.y + at.height / 2];
        const hit = document.elementFromPoint(...point);
        return hit && (each.contains(hit) || hit.contains(each)) ? point : null;
    }
"""


class ScriptFailed(Exception):
    """A script that the page ran ended with an error.

    Attributes:
        details: What the browser says of it.
    """

    def __init__(self, details: Any) -> None:
        super().__init__(json.dumps(details))
        self.details = details


class DevTools:
    """The protocol over one socket: answers go to who asked, events to their page."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self._asked: dict[int, asyncio.Future[Any]] = {}
        self.pages: dict[str, Page] = {}

    async def read(self) -> None:
        """Read until the browser ends."""
        async for message in self._socket:
            found = json.loads(message.data)
            if (asked := self._asked.pop(found.get("id", 0), None)) and not asked.done():
                asked.set_result(found)
            elif page := self.pages.get(found.get("sessionId", "")):
                page.on_event(found.get("method", ""), found.get("params", {}))

    async def ask(self, method: str, session: str | None = None, **parameters: Any) -> Any:
        """Ask the browser, or one of its tabs, and return its answer."""
        number = next(self._numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        self._asked[number] = asyncio.get_running_loop().create_future()
        async with asyncio.timeout(ANSWER_S_MAX):
            await self._socket.send_json(message)
            answer = await self._asked[number]
        assert "error" not in answer, (method, answer)
        return answer["result"]


class Page:
    """One tab.

    Attributes:
        said: Errors and warnings on its console, and reports of its content policy.
        refusals: What its console says of requests that the server refused.
        requests: The addresses that it requested.
        streams: The streams of events that it has open.
    """

    def __init__(self, devtools: DevTools, target: str, session: str) -> None:
        self._devtools = devtools
        self._target = target
        self._session = session
        self.said: list[str] = []
        self.refusals: list[str] = []
        self.requests: list[str] = []
        self.streams: dict[str, str] = {}
        self._documents: dict[str, str] = {}
        self._workers = asyncio.Queue[str]()

    async def visit(self, url: str) -> None:
        """Go to an address and wait until its page is there."""
        answer = await self.ask("Page.navigate", url=url)
        assert "errorText" not in answer, answer
        while await self.run("document.readyState") != "complete":
            pass

    async def run(self, script: str) -> Any:
        """Run a script in the page and return what it gives, waiting for what it promises."""
        answer = await self.ask(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in answer:
            raise ScriptFailed(answer["exceptionDetails"])
        return answer["result"].get("value")

    async def until(self, condition: str) -> None:
        """Wait until an expression holds in the page, across navigations."""
        await self._value(f"Boolean({condition}) || null")

    async def _value(self, script: str) -> Any:
        """Wait until a script gives something else than null, across navigations."""
        async with asyncio.timeout(ANSWER_S_MAX):
            while True:
                try:
                    if (found := await self.run(script)) is not None:
                        return found
                    await self.run("new Promise((done) => setTimeout(done, 25))")
                except (ScriptFailed, AssertionError) as error:
                    # A navigation took the page away while it was asked.
                    if "context" not in str(error) and "navigat" not in str(error):
                        raise

    async def see(self, text: str) -> None:
        """Wait until the page shows a text."""
        await self.until(f"document.body?.innerText.includes({json.dumps(text)})")

    async def find(self, selector: str, text: str = "") -> None:
        """Wait until an element is shown that has a text or a label."""
        await self.until(f"({FIND})({json.dumps(selector)}, {json.dumps(text)}).length > 0")

    async def click(self, selector: str, text: str = "", *, place: int = 0) -> None:
        """Click an element that is shown and has a text or a label: the first, or another one.

        It is clicked once it stands still and is the one that a pointer there would reach.
        """
        await self.find(selector, text)
        found = f"({FIND})({json.dumps(selector)}, {json.dumps(text)}).at({place})"
        x, y = await self._value(f"({POINT})(() => {found})")
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            await self.ask(
                "Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1
            )

    async def type(self, text: str) -> None:
        """Write where the focus is."""
        await self.ask("Input.insertText", text=text)

    async def press(self, key: str, *held: str) -> None:
        """Press a key, with others held."""
        code, text = KEYS[key] if key in KEYS else (ord(key.upper()), key)
        modifiers = sum(HELD[each] for each in held)
        shared = {"key": key, "windowsVirtualKeyCode": code, "modifiers": modifiers}
        typed = {"text": text} if text and not held else {}
        await self.ask("Input.dispatchKeyEvent", type="keyDown", **shared, **typed)
        await self.ask("Input.dispatchKeyEvent", type="keyUp", **shared)

    async def resize(self, width: int, height: int, *, mobile: bool = False) -> None:
        """Be a screen of this size."""
        await self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=mobile,
        )

    async def prefer(self, **features: str) -> None:
        """Have preferences such as prefers_color_scheme."""
        wanted = [
            {"name": name.replace("_", "-"), "value": each} for name, each in features.items()
        ]
        await self.ask("Emulation.setEmulatedMedia", features=wanted)

    async def screenshot(self) -> bytes:
        """Return a picture of what is shown, as PNG."""
        shot = await self.ask("Page.captureScreenshot", format="png")
        return base64.b64decode(shot["data"])

    async def picture(self, quality: int) -> bytes:
        """Return a small picture of what is shown, as WebP; 100 is the best quality."""
        shot = await self.ask("Page.captureScreenshot", format="webp", quality=quality)
        return base64.b64decode(shot["data"])

    async def close(self) -> None:
        """Close the tab as a kill would: without telling it."""
        await self._devtools.ask("Target.closeTarget", targetId=self._target)
        self.streams.clear()

    async def worker(self) -> str:
        """Return the id by which the protocol names the service worker of the page."""
        await self.ask("ServiceWorker.enable")
        async with asyncio.timeout(ANSWER_S_MAX):
            return await self._workers.get()

    async def show(self) -> None:
        """Bring the tab to the front; others of its window are hidden then."""
        await self._devtools.ask("Target.activateTarget", targetId=self._target)

    async def ask(self, method: str, **parameters: Any) -> Any:
        """Ask this tab over the protocol."""
        return await self._devtools.ask(method, self._session, **parameters)

    def on_event(self, method: str, event: Mapping[str, Any]) -> None:
        """Note what the browser tells of this tab."""
        if method == "Network.requestWillBeSent":
            url = event["request"]["url"]
            self.requests.append(url)
            if "/events" in url:
                self.streams[event["requestId"]] = url
                self._documents[event["requestId"]] = event["loaderId"]
        elif method == "ServiceWorker.workerRegistrationUpdated":
            for each in event["registrations"]:
                self._workers.put_nowait(each["registrationId"])
        elif method in ("Network.loadingFinished", "Network.loadingFailed"):
            self.streams.pop(event["requestId"], None)
        elif method == "Page.frameNavigated" and "parentId" not in event["frame"]:
            # The document before took its streams with it, and nothing tells of their ends.
            for request in list(self.streams):
                if self._documents[request] != event["frame"]["loaderId"]:
                    del self.streams[request]
        elif method == "Runtime.exceptionThrown":
            self.said.append(json.dumps(event["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and event["type"] in ("error", "warning"):
            values = [each.get("value", each.get("description")) for each in event["args"]]
            self.said.append(" ".join(map(str, values)))
        elif method == "Log.entryAdded" and event["entry"]["level"] in ("error", "warning"):
            text = event["entry"]["text"]
            if text.startswith(EXPECTED):
                self.refusals.append(f"{text} {event['entry'].get('url', '')}")
            else:
                self.said.append(text)


class Browser:
    """A browser that knows nothing yet: a profile of a running one."""

    def __init__(self, devtools: DevTools, profile: str) -> None:
        self._devtools = devtools
        self._profile = profile

    @property
    def pages(self) -> tuple[Page, ...]:
        """All tabs that were opened."""
        return tuple(self._devtools.pages.values())

    async def page(self) -> Page:
        """Open a tab, with the policies of its pages in force."""
        opened = await self._devtools.ask(
            "Target.createTarget", url="about:blank", browserContextId=self._profile
        )
        return await self._attach(opened["targetId"])

    async def grant(self, origin: str, *permissions: str) -> None:
        """Allow pages of an origin what the browser would ask its person for."""
        await self._devtools.ask(
            "Browser.grantPermissions",
            browserContextId=self._profile,
            origin=origin,
            permissions=list(permissions),
        )

    async def window_at(self, address: str) -> Page:
        """Wait for a window that a page opened, until it is at an address."""
        async with asyncio.timeout(ANSWER_S_MAX):
            while True:
                for target in await self.windows():
                    if target["url"].startswith(address):
                        return await self._attach(target["targetId"])

    async def windows(self) -> list[dict[str, Any]]:
        """Return what the browser says of its tabs and windows."""
        found = (await self._devtools.ask("Target.getTargets"))["targetInfos"]
        return [
            each
            for each in found
            if each["type"] == "page" and each.get("browserContextId") == self._profile
        ]

    async def _attach(self, target: str) -> Page:
        attached = await self._devtools.ask("Target.attachToTarget", targetId=target, flatten=True)
        page = Page(self._devtools, target, attached["sessionId"])
        self._devtools.pages[attached["sessionId"]] = page
        for domain in ("Page", "Runtime", "Log", "Network"):
            await page.ask(f"{domain}.enable")
        return page


class BrowserProcess:
    """A browser that runs for many tests, because starting one takes longer than most of them."""

    def __init__(self, directory: Path) -> None:
        """Keep the files of the browser in `directory`; nothing is started yet."""
        self._directory = directory
        self._process: subprocess.Popen[bytes] | None = None
        self._url = ""

    def url(self) -> str:
        """Return the address of its protocol; it is started if it does not run."""
        if self._process is None or self._process.poll() is not None:
            self._start()
        return self._url

    def stop(self) -> None:
        """End it, if it runs."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _start(self) -> None:
        self._directory.mkdir(parents=True, exist_ok=True)
        log = self._directory / "said"
        with log.open("wb") as said:
            self._process = started = subprocess.Popen(
                [browser_program(), *FLAGS, f"--user-data-dir={self._directory}"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=said,
            )

        def listening() -> re.Match[bytes] | None:
            assert started.poll() is None, f"the browser did not start: {log.read_text()}"
            return LISTENING.search(log.read_bytes())

        found = until(listening, "the start of the browser", within_s=START_S_MAX)
        assert found is not None
        self._url = found[1].decode()


@asynccontextmanager
async def browser(url: str) -> AsyncIterator[Browser]:
    """Give a browser that knows nothing yet: a new profile of the one at `url`.

    A profile has its own cookies, storage, caches and windows. It is gone with the socket.
    """
    async with (
        asyncio.TaskGroup() as tasks,
        aiohttp.ClientSession() as session,
        session.ws_connect(url, max_msg_size=0) as socket,
    ):
        devtools = DevTools(socket)
        reading = tasks.create_task(devtools.read())
        made = await devtools.ask("Target.createBrowserContext", disposeOnDetach=True)
        profile: str = made["browserContextId"]
        yield Browser(devtools, profile)
        reading.cancel()


@asynccontextmanager
async def new_browser(directory: Path) -> AsyncIterator[Browser]:
    """Give a browser with a process of its own."""
    process = BrowserProcess(directory)
    try:
        async with browser(await asyncio.to_thread(process.url)) as opened:
            yield opened
    finally:
        process.stop()


@asynccontextmanager
async def browser_page(directory: Path) -> AsyncIterator[Page]:
    """Give the only tab of a new browser."""
    async with new_browser(directory) as opened:
        yield await opened.page()
