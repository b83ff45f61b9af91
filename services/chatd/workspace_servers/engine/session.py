"""A session with one running server: requests and answers over its pipes.

The session is one task that reads; callers write and wait. Its end fails all calls that wait, and
whatever the server does, the session keeps no more than one line and the open requests.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from chatd.workspace_servers.domain import messages
from chatd.workspace_servers.domain.definition import ServerDefinition
from chatd.workspace_servers.domain.large_lines import LARGE_LINE_BYTES
from chatd.workspace_servers.domain.messages import Answer, Progress, Request, ToolsChanged
from chatd.workspace_servers.domain.ports import (
    LineReducer,
    ServerPipes,
    ServerPlace,
    ServerProcesses,
)
from chatd.workspace_servers.domain.state import ServerFailed
from chatd.workspace_servers.domain.tools import (
    ENTRIES_MAX,
    INSTRUCTIONS_CHARACTERS_MAX,
    TOOLS_MAX,
    ServerTool,
    listed_tools,
    visible,
)
from parley.clock import Clock
from parley.foreign_json import without_halves
from parley.tasks import first_of, is_set_within

OPENING_S: Final = 30.0
LISTING_S: Final = 10.0
#: Between two listings of a server that says that its tools changed.
LISTING_PAUSE_S: Final = 5.0
#: A call that reports no progress for so long has failed.
SILENCE_S: Final = 60.0
#: For what people wait who refer to a resource or a prompt.
REFERENCE_S: Final = 30.0
CALL_S: Final = 600.0
#: A server that was not called for so long is stopped.
IDLE_S: Final = 600.0
PAGES_MAX: Final = 20
OPEN_CALLS_MAX: Final = 32
OUTGOING_MAX: Final = 128
#: What a server may send between two answers besides these.
UNASKED_BYTES_MAX: Final = 16 * 1024 * 1024
LAST_WORDS_CHARACTERS: Final = 500
EXITED: Final = messages.EXITED.encode()
LAST_WORDS_S: Final = 1.0
#: What a server may say that it has and is asked for then; whatever else it says is not kept.
CAPABILITIES: Final = ("resources", "prompts")
STOPPED: Final = "it was stopped"
UNEXPECTED: Final = "an error of the service ended it; its log has more"

OnProgress = Callable[[Progress], None]


class CallTimedOut(Exception):
    """A call took too long; the server was asked to cancel it."""


class CallLost(Exception):
    """The server ended during a call, which may have had an effect."""


@dataclass(slots=True)
class _Waiting:
    on_progress: OnProgress
    is_call: bool
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    answer: Answer | None = None


class ServerSession:
    """One running server.

    Attributes:
        tools: The tools that it listed.
        dropped_count: How many others it listed, which cannot be offered.
        instructions: What it says about using it.
        capabilities: Those of `CAPABILITIES` that it says that it has.
        ready: Set when its tools are known, or when it has failed.
        failure: Why it ended or never began; empty while it runs.
    """

    def __init__(
        self,
        processes: ServerProcesses,
        place: ServerPlace,
        definition: ServerDefinition,
        clock: Clock,
        reducer: LineReducer,
    ) -> None:
        self._reducer = reducer
        self.place = place
        self.definition = definition
        self.tools: tuple[ServerTool, ...] = ()
        self.dropped_count = 0
        self.instructions = ""
        self.capabilities: frozenset[str] = frozenset()
        self.ready = asyncio.Event()
        self.failure = ""
        self.stopping = asyncio.Event()
        self._processes = processes
        self._clock = clock
        self._outgoing: asyncio.Queue[bytes] = asyncio.Queue(OUTGOING_MAX)
        self._waiting: dict[int, _Waiting] = {}
        self._ids = 0
        self._used_s = clock.monotonic()
        self._is_listing_old = asyncio.Event()
        self._unasked_bytes = 0
        self._last_words = b""
        self._exit_code = ""

    @property
    def is_running(self) -> bool:
        """Whether it can be called."""
        return self.ready.is_set() and not self.failure

    @property
    def is_busy(self) -> bool:
        """Whether a call waits for its answer."""
        return any(waiting.is_call for waiting in self._waiting.values())

    async def run(self) -> None:
        """Start the server and serve calls until it ends, is stopped or is not called any more."""
        try:
            async with self._processes.opened(self.place, self.definition) as pipes:
                await first_of(
                    self._read(pipes),
                    lambda: self._send(pipes),
                    self._opened,
                    self._until_unused,
                )
        except ServerFailed as failed:
            self.failure = self._reason(str(failed))
        except Exception:
            # Not as if it had been stopped: then it would be started again without a pause.
            self.failure = UNEXPECTED
            raise
        finally:
            self.failure = self.failure or STOPPED
            self.ready.set()
            for waiting in self._waiting.values():
                waiting.changed.set()

    async def call(
        self, name: str, arguments: dict[str, Any], on_progress: OnProgress
    ) -> dict[str, Any]:
        """Call a tool and return its result as the server sent it.

        Raises:
            ServerFailed: It refused, or did not get the call.
            CallTimedOut: There is no answer in time.
            CallLost: It ended during the call.
        """
        params = {"name": name, "arguments": arguments}
        return await self._called(
            messages.CALL_TOOL, params, silence_s=SILENCE_S, whole_s=CALL_S, on_progress=on_progress
        )

    async def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Send a request that has no effect, and return its result as the server sent it.

        Raises:
            ServerFailed: It refused, or did not get the request.
            CallTimedOut: There is no answer in time.
            CallLost: It ended before it answered.
        """
        return await self._called(method, params, silence_s=REFERENCE_S, whole_s=REFERENCE_S)

    async def _called(
        self,
        method: str,
        params: dict[str, Any],
        *,
        silence_s: float,
        whole_s: float,
        on_progress: OnProgress = lambda _: None,
    ) -> dict[str, Any]:
        if len(self._waiting) >= OPEN_CALLS_MAX:
            raise ServerFailed(f"it has {OPEN_CALLS_MAX} open calls; wait for one of these")
        answer = await self._ask(
            method, params, silence_s=silence_s, whole_s=whole_s, on_progress=on_progress
        )
        if answer.error:
            raise ServerFailed(f"it refused: {answer.error}")
        return answer.result

    async def _opened(self) -> None:
        """Begin the session and list the tools, now and whenever they change."""
        answer = await self._required(messages.INITIALIZE, messages.OPENING, OPENING_S)
        said = answer.get("instructions")
        if isinstance(said, str):
            self.instructions = visible(said[:INSTRUCTIONS_CHARACTERS_MAX])
        offered = answer.get("capabilities")
        if isinstance(offered, dict):
            self.capabilities = frozenset(each for each in CAPABILITIES if each in offered)
        self._write(messages.notification_line(messages.INITIALIZED))
        while True:
            self._is_listing_old.clear()
            self.tools, self.dropped_count = await self._listed()
            self.ready.set()
            await self._clock.sleep(LISTING_PAUSE_S)
            await self._is_listing_old.wait()

    async def _listed(self) -> tuple[tuple[ServerTool, ...], int]:
        """Return the tools that can be offered, and how many others were listed."""
        tools: tuple[ServerTool, ...] = ()
        left, count = ENTRIES_MAX, 0
        params: dict[str, Any] = {}
        for _ in range(PAGES_MAX):
            page = await self._required(messages.LIST_TOOLS, params, LISTING_S)
            listed, cursor = page.get("tools"), page.get("nextCursor")
            entries = listed[:left] if isinstance(listed, list) else []
            # Page by page: what is not offered is not kept.
            tools = listed_tools(entries, tools)
            left -= len(entries)
            count += len(listed) if isinstance(listed, list) else 0
            is_full = left <= 0 or len(tools) >= TOOLS_MAX
            if is_full or not isinstance(cursor, str) or not cursor:
                break
            params = {"cursor": cursor}
        return tools, count - len(tools)

    async def _required(
        self, method: str, params: dict[str, Any], limit_s: float
    ) -> dict[str, Any]:
        try:
            answer = await self._ask(method, params, silence_s=limit_s, whole_s=limit_s)
        except CallTimedOut:
            raise ServerFailed(f"it did not answer {method} within {limit_s:g} s") from None
        except CallLost:
            raise ServerFailed("it ended") from None
        if answer.error:
            raise ServerFailed(f"it refused {method}: {answer.error}")
        return answer.result

    async def _ask(
        self,
        method: str,
        params: dict[str, Any],
        *,
        silence_s: float,
        whole_s: float,
        on_progress: OnProgress = lambda _: None,
    ) -> Answer:
        self._ids += 1
        is_call = method in messages.CALLS
        request_id, waiting = self._ids, _Waiting(on_progress, is_call)
        self._waiting[request_id] = waiting
        end_s = self._clock.monotonic() + whole_s
        if is_call:
            params = {**params, "_meta": {"progressToken": request_id}}
        try:
            self._write(messages.request_line(request_id, method, params))
            while waiting.answer is None:
                if self.failure:
                    raise CallLost(self.failure)
                left_s = min(silence_s, end_s - self._clock.monotonic())
                waiting.changed.clear()
                if left_s <= 0 or not await is_set_within(waiting.changed, left_s, self._clock):
                    raise CallTimedOut
            return waiting.answer
        finally:
            del self._waiting[request_id]
            if is_call:
                self._used_s = self._clock.monotonic()
            if waiting.answer is None and is_call and not self.failure:
                params = {"requestId": request_id, "reason": "the call was cancelled"}
                with suppress(ServerFailed):
                    self._write(messages.notification_line(messages.CANCELLED, params))

    def _write(self, line: bytes) -> None:
        """Send a line; a caller never waits for the server to read."""
        if self.failure:
            raise ServerFailed(self.failure)
        try:
            self._outgoing.put_nowait(line)
        except asyncio.QueueFull:
            raise ServerFailed("it does not read what it is sent") from None

    async def _send(self, pipes: ServerPipes) -> None:
        while True:
            await pipes.write(await self._outgoing.get())

    async def _read(self, pipes: ServerPipes) -> None:
        line = bytearray()
        while piece := await pipes.read():
            *ends, rest = piece.split(b"\n")
            for end in ends:
                line += end
                self._limit(line)
                if line:
                    await self._receive(bytes(line))
                line.clear()
            line += rest
            if self._exit_code:
                await self._ended(bytes(line), pipes)
            self._limit(line)
        self._last_words += bytes(line)
        raise ServerFailed("it ended")

    def _limit(self, line: bytearray) -> None:
        """Refuse a line that is too long; results of calls come only after the listing."""
        is_ready = self.ready.is_set()
        limit = messages.LINE_BYTES_MAX if is_ready else messages.LISTING_LINE_BYTES_MAX
        if len(line) > limit:
            raise ServerFailed(f"it sent a line of over {limit} bytes")

    async def _receive(self, line: bytes) -> None:
        line = without_halves(line)
        if len(line) <= LARGE_LINE_BYTES and not messages.is_too_deep(line):
            self._received(line, len(line))
            return
        # A small one that is deep takes a program too, and counts as much as a large one.
        size_bytes = max(len(line), LARGE_LINE_BYTES)
        self._received(await self._reducer.reduced(line), size_bytes)

    def _received(self, line: bytes, size_bytes: int) -> None:
        """Act on a message.

        Args:
            line: Its line, reduced if that is large or deep.
            size_bytes: The size of what was sent.
        """
        message = messages.received(line)
        waiting = (
            self._waiting.get(message.request_id)
            if isinstance(message, Answer | Progress)
            else None
        )
        is_asked = isinstance(message, Answer) and waiting is not None and waiting.answer is None
        if not is_asked:
            self._unasked_bytes += size_bytes
            if self._unasked_bytes > UNASKED_BYTES_MAX:
                raise ServerFailed(f"it sent over {UNASKED_BYTES_MAX} bytes that answer nothing")
        match message:
            case Answer() if waiting is not None and is_asked:
                if not waiting.is_call and size_bytes > messages.LISTING_LINE_BYTES_MAX:
                    limit = messages.LISTING_LINE_BYTES_MAX
                    raise ServerFailed(f"it sent a listing of over {limit} bytes")
                self._unasked_bytes = 0
                waiting.answer = message
                waiting.changed.set()
            case Progress() if waiting is not None:
                waiting.on_progress(message)
                waiting.changed.set()
            case Request():
                self._write(messages.reply_line(message))
            case ToolsChanged():
                self._is_listing_old.set()
            case None if line.startswith(EXITED):
                self._exit_code = line.removeprefix(EXITED).decode(errors="replace")[:8]
            case None:
                # Not a message: what the server printed when it failed, mostly.
                self._last_words = (self._last_words + line + b"\n")[-4 * LAST_WORDS_CHARACTERS :]

    async def _ended(self, words: bytes, pipes: ServerPipes) -> None:
        """Read what the server printed last, which follows its exit code, and fail."""
        self._last_words += words
        try:
            async with asyncio.timeout(LAST_WORDS_S):
                while piece := await pipes.read():
                    self._last_words = (self._last_words + piece)[-4 * LAST_WORDS_CHARACTERS :]
        except TimeoutError:
            pass
        raise ServerFailed(f"it ended with exit code {self._exit_code}")

    async def _until_unused(self) -> None:
        while (left_s := self._used_s + IDLE_S - self._clock.monotonic()) > 0 or self.is_busy:
            if await is_set_within(self.stopping, max(left_s, 1.0), self._clock):
                return

    def _reason(self, failed: str) -> str:
        words = visible(self._last_words.decode(errors="replace")).strip()
        return f"{failed}: {words[-LAST_WORDS_CHARACTERS:]}" if words else failed
