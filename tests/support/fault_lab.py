"""A running stack, faults that are done to it, and the check of what is left after each."""

import asyncio
import http.client
import json
import os
import signal
import socket
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import asyncpg
import psutil

from chatd.audit.running import audit
from parley.cli import process_table
from parley.client import (
    CallFailed,
    Invalid,
    Message,
    NotFound,
    Parley,
    ServerFault,
    TooSlow,
    Unavailable,
    connect,
)
from parley.client.repetition import Backoff, Patience
from parley.clock import SystemClock
from support.fault_history import Expected, History, Known, check_chat
from support.fault_points import FaultPoints
from support.fault_report import RowReport
from support.local_stack import LocalStack

LOOK_EVERY_S = 0.05
WHOLE_S_MAX = 60.0
REST_S_MAX = 90.0
PAGE_LENGTH = 200
RETRYABLE = (409, 429, 503, 504)
FAULTS_PER_TRIAL_MAX = 2
ONCE = Patience(deadline_s=45.0, calls=Backoff(attempts_max=1))
STUBBORN = Patience(deadline_s=90.0, calls=Backoff(attempts_max=60, last_s=1.0))
LOST = (asyncpg.PostgresConnectionError, asyncpg.InterfaceError, OSError, asyncpg.PostgresError)

STATES = """
    SELECT e.chat_id::text, e.status, e.owner_epoch, e.takeovers, e.generation_attempt, w.address
    FROM chat.chat_exec e LEFT JOIN chat.workers w ON w.id = e.worker_id
    WHERE e.chat_id = ANY ($1::uuid[])
"""
WORKERS = """
    SELECT address, extract(epoch FROM max(started_at))::float8 AS started_at FROM chat.workers
    WHERE lease_until > clock_timestamp() GROUP BY address
"""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ChatdProcess:
    """A chatd that runs."""

    name: str
    pid: int
    address: str

    def send(self, number: signal.Signals) -> None:
        """Send a signal."""
        os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once."""
        self.send(signal.SIGKILL)

    def accepts(self) -> bool:
        """Return whether its socket takes connections."""
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(1)
            try:
                probe.connect(self.address.removeprefix("unix:"))
            except OSError:
                return False
        return True


@dataclass(frozen=True, slots=True)
class State:
    """Where a chat stands, by the database."""

    status: str
    owner_epoch: int
    takeovers: int
    generation_attempt: int
    address: str | None

    @property
    def is_at_rest(self) -> bool:
        """Return whether nobody runs it."""
        return self.status in ("waiting", "error")


@dataclass(slots=True)
class FaultLab:
    """What a test of a row works with."""

    stack: LocalStack
    points: FaultPoints
    token: str
    row: RowReport
    trials_wanted: int
    chats_per_fault: int
    lease_s: float
    exits: AsyncExitStack
    clock: SystemClock = field(default_factory=SystemClock)
    _clients: dict[tuple[tuple[str, ...], int], Parley] = field(default_factory=dict)
    _connection: "asyncpg.Connection[asyncpg.Record] | None" = None
    _serial: int = 0
    _threads: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(256))

    @property
    def database_url(self) -> str:
        """The database, as its superuser."""
        url: str = self.stack.endpoints()["database"]
        return url

    @property
    def is_full(self) -> bool:
        """Whether so much is wanted that long waits are worth it."""
        return self.trials_wanted >= 50

    @property
    def addresses(self) -> tuple[str, ...]:
        """Where the chatd processes listen."""
        return tuple(self.stack.endpoints()["grpc"]["chatd"])

    def unique(self) -> str:
        """Return a word that is nowhere else."""
        self._serial += 1
        return f"{self.row.row}x{time.time_ns():x}x{self._serial}"

    async def sleep(self, delay_s: float) -> None:
        """Let the stack do what it does by itself."""
        await self.clock.sleep(delay_s)

    async def until(
        self, look: Callable[[], Awaitable[T]], what: str, within_s: float = REST_S_MAX
    ) -> T:
        """Return the first thing that `look` finds."""
        give_up_at = time.monotonic() + within_s
        while not (found := await look()):
            assert time.monotonic() < give_up_at, f"{what} did not happen within {within_s:g} s"
            await self.sleep(LOOK_EVERY_S)
        return found

    async def query(self, sql: str, *arguments: object) -> "list[asyncpg.Record]":
        """Ask the database, patiently while it is away."""
        give_up_at = time.monotonic() + WHOLE_S_MAX
        while True:
            try:
                if self._connection is None or self._connection.is_closed():
                    self._connection = await self.connected()
                return await self._connection.fetch(sql, *arguments)
            except LOST:
                if time.monotonic() > give_up_at:
                    raise
                await self.sleep(LOOK_EVERY_S)

    async def connected(self) -> "asyncpg.Connection[asyncpg.Record]":
        """Open one more connection, which ends with the test."""
        connection = await asyncpg.connect(self.database_url, timeout=5)
        self.exits.callback(connection.terminate)
        return connection

    async def client(self, *addresses: str, patience: Patience = STUBBORN) -> Parley:
        """Return a client of these processes, or of all."""
        wanted = addresses or self.addresses
        key = (wanted, id(patience))
        if key not in self._clients:
            opened = connect(*wanted, token=self.token, patience=patience)
            self._clients[key] = await self.exits.enter_async_context(opened)
        return self._clients[key]

    def processes(self, service: str = "chatd") -> list[ChatdProcess]:
        """Return the processes of a service, as its supervisor lists them."""
        table = process_table.load(self.stack.home.processes_file)
        return [
            ChatdProcess(each.name, each.identity.pid, each.address)
            for each in table.processes
            if each.service == service
        ]

    def process_at(self, address: str) -> ChatdProcess:
        """Return the chatd that listens somewhere."""
        return next(each for each in self.processes() if each.address == address)

    async def until_whole(self) -> None:
        """Wait until every chatd runs, holds a lease and takes calls."""

        async def is_whole() -> bool:
            rows = await self.query(WORKERS)
            workers = {row["address"]: row["started_at"] for row in rows}
            return all(_is_whole(process, workers) for process in self.processes())

        await self.until(is_whole, "a whole stack", WHOLE_S_MAX)

    async def victim(self) -> ChatdProcess:
        """Return the chatd that has lived longest, so that none is killed again and again."""
        await self.until_whole()
        return min(self.processes(), key=lambda each: psutil.Process(each.pid).create_time())

    async def states(self, chat_ids: Iterable[str]) -> dict[str, State]:
        """Return where chats stand."""
        rows = await self.query(STATES, list(chat_ids))
        return {row[0]: State(*row[1:]) for row in rows}

    async def audit(self) -> None:
        """Let the auditor look at everything that is stored."""
        for finding in await audit(self.database_url):
            if finding.count:
                self.row.violations += finding.count
                self.row.problems.append(f"audit: {finding.name} {finding.count} {finding.ids}")

    async def faults(self, *, chats: int | None = None) -> AsyncIterator["Fault"]:
        """Give faults until there were enough trials; each is checked when the next begins."""
        size = min(chats or self.chats_per_fault, self.trials_wanted)
        for number in range(FAULTS_PER_TRIAL_MAX * self.trials_wanted):
            if self.row.trials >= self.trials_wanted:
                break
            await self.until_whole()
            self.points.disarm()
            self.points.forget()
            fault = Fault(self, size, number)
            self.row.faults += 1
            yield fault
            self.points.disarm()
            await fault.check()
        self.row.require_clean()

    async def http(self, method: str, path: str, body: object, key: str) -> tuple[int, Any, Any]:
        """Ask the gateway once; return status, headers and JSON, or status 0 without an answer."""
        asking = partial(self._http, method, path, body, key)
        return await asyncio.get_running_loop().run_in_executor(self._threads, asking)

    def _http(self, method: str, path: str, body: object, key: str) -> tuple[int, Any, Any]:
        api_key = self.stack.home.api_key_file.read_text().strip()
        headers = {
            "Authorization": f"Bearer {api_key}",
            "Content-Type": "application/json",
            "Idempotency-Key": key,
        }
        url = f"http://{self.stack.http}/api/v1{path}"
        request = urllib.request.Request(url, json.dumps(body).encode(), headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, answer.headers, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.headers, json.loads(error.read() or b"{}")
        except (OSError, http.client.HTTPException):
            return 0, {}, {}

    def workspace(self, chat_id: str) -> Path:
        """Return the directory that the tools of a chat work in."""
        return self.stack.home.toolrunner(0) / "workspaces" / chat_id


def _is_whole(process: ChatdProcess, workers: dict[str, float]) -> bool:
    try:
        created_at = psutil.Process(process.pid).create_time()
    except psutil.NoSuchProcess:
        return False
    return workers.get(process.address, 0.0) > created_at and process.accepts()


class Fault:
    """One injected fault: the chats that it hits and what their clients were told."""

    def __init__(self, lab: FaultLab, size: int, number: int) -> None:
        self.lab = lab
        self.row = lab.row
        self.size = size
        self.number = number
        self.history = History()
        self.chat_ids: list[str] = []

    def texts(self, pattern: str, count: int | None = None) -> list[str]:
        """Return messages; `@` in the pattern is a word that is nowhere else."""
        return [pattern.replace("@", self.lab.unique()) for _ in range(count or self.size)]

    def trial(self, count: int = 1) -> None:
        """Count what was in the row's phase when the fault hit."""
        self.row.trials += count

    async def create(self, client: Parley, text: str, *, key: str = "") -> str | None:
        """Create a chat; return its id if the client was told one."""
        key = key or self.lab.unique()
        operation = self.history.invoke("", key, text)
        try:
            chat = await client.create_chat(text, request_id=key)
        except CallFailed as error:
            self._failed(operation.key, error)
            return None
        operation.chat_id = chat.id
        self.history.end(operation, Known.OK)
        if chat.id not in self.chat_ids:
            self.chat_ids.append(chat.id)
        return chat.id

    async def create_by_http(self, text: str, *, key: str = "") -> str | None:
        """Create a chat through the gateway; return its id if the client was told one."""
        key = key or self.lab.unique()
        operation = self.history.invoke("", key, text)
        body = {"content": [{"type": "text", "text": text}]}
        status, _, document = await self.lab.http("POST", "/chats", body, key)
        self.row.counts[f"http_{status}"] += 1
        if status not in (200, 201, 202):
            self.history.end(operation, Known.OPEN)
            return None
        operation.chat_id = chat_id = str(document["id"])
        self.history.end(operation, Known.OK)
        if chat_id not in self.chat_ids:
            self.chat_ids.append(chat_id)
        return chat_id

    async def create_all(self, client: Parley, texts: Sequence[str]) -> list[str]:
        """Create chats side by side; all must be accepted."""
        async with asyncio.TaskGroup() as tasks:
            made = [tasks.create_task(self.create(client, text)) for text in texts]
        return [chat_id for task in made if (chat_id := task.result()) is not None]

    async def send(self, client: Parley, chat_id: str, text: str, *, key: str = "") -> bool:
        """Send a message; return whether the client was told that it is stored."""
        key = key or self.lab.unique()
        operation = self.history.invoke(chat_id, key, text)
        try:
            sent = await client.send_message(chat_id, text, request_id=key)
        except CallFailed as error:
            self._failed(key, error)
            return False
        operation.replays += sent.is_replay
        self.history.end(operation, Known.OK, None if sent.message is None else sent.message.id)
        return True

    async def send_by_http(self, chat_id: str, text: str, key: str) -> int:
        """Send once through the gateway; a refusal that cannot be repeated is a problem."""
        operation = self.history.invoke(chat_id, key, text)
        body = {"content": [{"type": "text", "text": text}]}
        began_s = time.monotonic()
        path = f"/chats/{chat_id}/messages"
        status, headers, document = await self.lab.http("POST", path, body, key)
        self.row.figures["answered_s"].append(time.monotonic() - began_s)
        self.row.counts[f"http_{status}"] += 1
        if 200 <= status < 300:
            self.history.end(operation, Known.OK)
        elif status not in RETRYABLE:
            self.row.problems.append(f"{chat_id}: the answer was {status} {document}")
        elif status == 503 and "Retry-After" not in headers:
            self.row.problems.append(f"{chat_id}: 503 without Retry-After")
        return status

    def _failed(self, key: str, error: CallFailed) -> None:
        operation = self.history.operations[key]
        is_certain = isinstance(error, Invalid | NotFound)
        self.history.end(operation, Known.FAILED if is_certain else Known.OPEN)
        self.row.counts[f"client_{type(error).__name__}"] += 1
        if not isinstance(error, Unavailable | TooSlow | ServerFault):
            self.row.counts[error.reason] += 1

    async def load(self, client: Parley, count: int | None = None) -> list[str]:
        """Create chats that stream, that run a tool, and that have a message in their queue."""
        patterns = ("count to 40, @", "run: echo @ >> runs; sleep 3; seq 1 9", "count to 30, @")
        made = []
        for place in range(count or self.size):
            chat_id = await self.create(client, *self.texts(patterns[place % 3], 1))
            if chat_id is not None:
                made.append(chat_id)
                if place % 3 == 2:
                    await self.send(client, chat_id, *self.texts("repeat after me: @", 1))
        return made

    async def until_held(self, point: str, chat_ids: Iterable[str], within_s: float = 30) -> None:
        """Wait until chats stand at a point."""
        wanted = set(chat_ids)

        async def all_there() -> bool:
            return self.lab.points.at(point) >= wanted

        await self.lab.until(all_there, f"{len(wanted)} chats at {point}", within_s)

    async def until_many_held(self, point: str, count: int, within_s: float = 30) -> None:
        """Wait until so many chats stand at a point, whichever they are."""

        async def enough() -> bool:
            return len(self.lab.points.at(point)) >= count

        await self.lab.until(enough, f"{count} chats at {point}", within_s)

    async def until_all(
        self,
        holds: Callable[[State], bool],
        what: str,
        within_s: float = REST_S_MAX,
        chat_ids: Sequence[str] = (),
    ) -> dict[str, State]:
        """Wait until something holds of all chats."""
        wanted = chat_ids or self.chat_ids
        seen: dict[str, State] = {}

        async def all_hold() -> bool:
            seen.update(await self.lab.states(wanted))
            return all(holds(seen[chat_id]) for chat_id in wanted)

        try:
            await self.lab.until(all_hold, what, within_s)
        except AssertionError:
            late = {key: state for key, state in seen.items() if not holds(state)}
            raise AssertionError(f"{what} did not happen in {within_s} s: {late}") from None
        return seen

    async def at_rest(self, within_s: float = REST_S_MAX) -> dict[str, State]:
        """Wait until no chat runs."""
        return await self.until_all(lambda state: state.is_at_rest, "rest", within_s)

    async def measure_takeover(
        self, before: dict[str, State], since_s: float, name: str = "takeover_s"
    ) -> None:
        """Note for every chat when another owner had it."""
        missing = set(before)

        async def all_taken() -> bool:
            for chat_id, state in (await self.lab.states(missing)).items():
                is_taken = state.owner_epoch > before[chat_id].owner_epoch
                if is_taken or state.is_at_rest:
                    missing.discard(chat_id)
                    self.row.figures[name].append(time.monotonic() - since_s)
            return not missing

        await self.lab.until(all_taken, f"takeover of {before.keys()}")

    def expect(self, chat_id: str) -> Expected:
        """Return what may become of a chat, to be changed."""
        return self.history.expect(chat_id)

    async def messages(self, chat_id: str) -> list[Message]:
        """Return the history of a chat, oldest first, as a client pages through it."""
        client = await self.lab.client()
        found: list[Message] = []
        while True:
            before_id = found[-1].id if found else 0
            page = await client.list_messages(chat_id, before_id=before_id, limit=PAGE_LENGTH)
            found += page.messages
            if not page.has_more:
                return found[::-1]

    async def check(self) -> None:
        """Require that every chat rests and holds what its clients were told."""
        states = await self.at_rest()
        for chat_id in self.chat_ids:
            if states[chat_id].status == "error" and not self.expect(chat_id).may_fail:
                self.row.problems.append(f"{chat_id}: its turn failed: {states[chat_id]}")
            messages = await self.messages(chat_id)
            check_chat(self.history, chat_id, messages, self.lab.workspace(chat_id), self.row)
        await self.lab.audit()


@asynccontextmanager
async def lab_of(
    stack: LocalStack, token: str, row: RowReport, options: dict[str, Any]
) -> AsyncIterator[FaultLab]:
    """Give a lab for one row."""
    directory = Path(stack.environment["CHATD_FAULTPOINTS_DIRECTORY"])
    async with AsyncExitStack() as exits:
        lab = FaultLab(stack, FaultPoints(directory), token, row, exits=exits, **options)
        yield lab
        lab.points.disarm()


def issue_token(stack: LocalStack) -> str:
    """Return a token with which a client may do everything with chats."""
    issued = stack.parley(
        "token", "issue", f"faults-{time.monotonic_ns()}",
        "--scope", "chat:read", "--scope", "chat:write", "--json",
    )  # fmt: skip
    assert issued.returncode == 0, issued.stderr
    token: str = json.loads(issued.stdout)["token"]
    return token
