"""A running stack as a test of faults sees it: its processes, its database and its clients."""

import asyncio
import http.client
import json
import os
import signal
import socket
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import asyncpg
import psutil

from chatd.audit.running import audit
from parley.cli.supervision import process_table
from parley.client import (
    Parley,
    connect,
)
from parley.client.retries import Backoff, Patience
from parley.clock import SystemClock
from support.faults.points import FaultPoints
from support.faults.report import RowReport
from support.stack.local_stack import LocalStack

LOOK_EVERY_S = 0.05
WHOLE_S_MAX = 60.0
WAIT_S_MAX = 90.0
ONCE = Patience(deadline_s=45.0, calls=Backoff(attempts_max=1))
STUBBORN = Patience(deadline_s=90.0, calls=Backoff(attempts_max=60, last_s=1.0))
CHAT_SCOPES = ("chat:read", "chat:write")
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
    #: Whether one fault is enough, however few trials it makes.
    is_short: bool
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
        self, look: Callable[[], Awaitable[T]], what: str, within_s: float = WAIT_S_MAX
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
        """Wait until every chatd runs, holds a lease and answers: it knows revoked tokens."""

        async def is_whole() -> bool:
            rows = await self.query(WORKERS)
            workers = {row["address"]: row["started_at"] for row in rows}
            return all(_is_whole(process, workers) for process in self.processes())

        await self.until(is_whole, "a whole stack", WHOLE_S_MAX)
        for address in self.addresses:
            await (await self.client(address)).manage.list_chats(page_size=1)

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
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(url, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, answer.headers, json.loads(answer.read() or b"{}")
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


def issue_token(stack: LocalStack, *scopes: str) -> str:
    """Return a token with these scopes, by default for everything with chats."""
    wanted = [word for scope in scopes or CHAT_SCOPES for word in ("--scope", scope)]
    issued = stack.parley("token", "issue", f"faults-{time.monotonic_ns()}", *wanted, "--json")
    assert issued.returncode == 0, issued.stderr
    token: str = json.loads(issued.stdout)["token"]
    return token
