"""A real stack under faults: chats that run, the process that owns each, and what is left."""

import json
import time
import urllib.request
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import asyncpg
import psutil

from support.stack.local_stack import LocalStack

OWNER = """
    SELECT e.status, e.snapshot_version, e.owner_epoch, w.address
    FROM chat.chat_exec e LEFT JOIN chat.workers w ON w.id = e.worker_id WHERE e.chat_id = $1
"""


@dataclass(frozen=True, slots=True)
class Where:
    """Where a chat is run, by the database."""

    status: str
    snapshot_version: int
    owner_epoch: int
    address: str | None


@dataclass(frozen=True, slots=True)
class FaultyStack:
    """Drives a stack over HTTP and looks at its database and processes."""

    stack: LocalStack
    connection: "asyncpg.Connection[asyncpg.Record]"

    def request(self, method: str, path: str, body: object = None, key: str = "") -> Any:
        """Ask the gateway and return the JSON it answers."""
        api_key = self.stack.home.api_key_file.read_text().strip()
        headers = {"Authorization": f"Bearer {api_key}", "Content-Type": "application/json"}
        if key:
            headers["Idempotency-Key"] = key
        data = None if body is None else json.dumps(body).encode()
        url = f"http://{self.stack.http}/api/v1{path}"
        request = urllib.request.Request(url, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())

    def create(self, text: str, key: str = "") -> str:
        """Create a chat and return its id."""
        body = {"content": [{"type": "text", "text": text}]}
        chat_id: str = self.request("POST", "/chats", body, key)["id"]
        return chat_id

    def send(self, chat_id: str, text: str) -> int:
        """Send a message and return the version that the chat has with it."""
        body = {"content": [{"type": "text", "text": text}]}
        sent = self.request("POST", f"/chats/{chat_id}/messages", body)
        return int(sent["snapshot_version"])

    def messages(self, chat_id: str) -> list[tuple[str, str]]:
        """Return role and text of each message, oldest first."""
        page = self.request("GET", f"/chats/{chat_id}/messages?limit=200")
        return [
            (message["role"], "".join(part.get("text", "") for part in message["content"]))
            for message in reversed(page["messages"])
        ]

    async def where(self, chat_id: str) -> Where:
        """Return where a chat is run."""
        row = await self.connection.fetchrow(OWNER, chat_id)
        assert row is not None
        return Where(*row)

    async def until(
        self, chat_id: str, holds: Callable[[Where], bool], within_s: float = 120.0
    ) -> Where:
        """Wait until something holds of a chat, looking without pause but briefly."""
        deadline = time.monotonic() + within_s
        while not holds(seen := await self.where(chat_id)):
            assert time.monotonic() < deadline, f"{chat_id} is still {seen}"
            await self.connection.execute("SELECT pg_sleep(0.02)")
        return seen

    async def pause(self, seconds: float) -> None:
        """Let the stack do what it does by itself."""
        await self.connection.execute(f"SELECT pg_sleep({seconds})")

    def process_at(self, address: str) -> psutil.Process:
        """Return the process that serves an address."""
        status = json.loads(self.stack.parley("status", "--json").stdout)
        pid = next(each["pid"] for each in status["processes"] if each["address"] == address)
        return psutil.Process(pid)

    def audit(self) -> None:
        """Require that nothing stored is impossible."""
        done = self.stack.parley("audit")
        assert done.returncode == 0, done.stdout + done.stderr


@asynccontextmanager
async def watching(stack: LocalStack) -> AsyncIterator[FaultyStack]:
    """Give a stack with a connection to its database, as the superuser."""
    connection = await asyncpg.connect(stack.endpoints()["database"])
    try:
        yield FaultyStack(stack, connection)
    finally:
        await connection.close()
