"""The client processes of a run, as controlled by the process that starts them."""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

import msgspec

from parley.testing.scaletest.messages import (
    Command,
    Conversed,
    Ended,
    FirstTurnOver,
    Line,
    ProgressReport,
    Ready,
    decoded,
)
from parley.testing.scaletest.outcome import ChatOutcome
from parley.testing.scaletest.plan import Plan

PROGRAM = ("-m", "parley.testing.scaletest")
LINE_BYTES_MAX = 1 << 30
ENDING_S_MAX = 30.0


class ClientDied(Exception):
    """A client process ended before its chats did.

    Attributes:
        exit_code: Its exit code.
    """

    def __init__(self, exit_code: int | None) -> None:
        super().__init__(f"a client process of the load test ended with {exit_code}")
        self.exit_code = exit_code


def shares_of(plan: Plan, processes: int) -> tuple[Plan, ...]:
    """Return the share of each process in a plan, as even as possible."""
    least, more = divmod(plan.chats, processes)
    sizes = [least + (number < more) for number in range(processes)]
    return tuple(
        replace(plan, first=plan.first + sum(sizes[:number]), chats=size)
        for number, size in enumerate(sizes)
        if size
    )


class Client:
    """One client process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.pid = process.pid
        self.standing = ProgressReport(0, 0)

    @classmethod
    @asynccontextmanager
    async def started(cls, plan: Plan) -> "AsyncIterator[Client]":
        """Yield a process that is ready to begin; it has ended when the context ends."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *PROGRAM,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=LINE_BYTES_MAX,
            # Ctrl-C is for the parent, which lets the clients clean up.
            start_new_session=True,
        )
        try:
            client = cls(process)
            client._say(msgspec.json.encode(plan))
            await client.until(Ready)
            yield client
        finally:
            assert process.stdin is not None
            process.stdin.close()
            await _ended(process)

    def tell(self, word: Command) -> None:
        """Send a command."""
        self._say(word.encode())

    async def until(self, kind: type[Line]) -> Line:
        """Wait for a message of one kind; progress reports received meanwhile are stored.

        Raises:
            ClientDied: It ended instead.
        """
        assert self._process.stdout is not None
        while True:
            said = await self._process.stdout.readline()
            if not said:
                raise ClientDied(await self._process.wait())
            line = decoded(said)
            if isinstance(line, ProgressReport):
                self.standing = line
            if isinstance(line, kind):
                return line

    def _say(self, line: bytes) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + b"\n")


class Clients:
    """All client processes of a run."""

    def __init__(self, clients: Sequence[Client]) -> None:
        self._clients = tuple(clients)
        self.pids = tuple(client.pid for client in clients)

    @classmethod
    @asynccontextmanager
    async def started(cls, plans: Sequence[Plan]) -> "AsyncIterator[Clients]":
        """Yield processes that are all ready to begin."""
        async with AsyncExitStack() as around:
            async with asyncio.TaskGroup() as tasks:
                starting = [
                    tasks.create_task(around.enter_async_context(Client.started(plan)))
                    for plan in plans
                ]
            yield cls([task.result() for task in starting])

    @property
    def standing(self) -> ProgressReport:
        """The progress of all of them together."""
        return ProgressReport(
            sum(client.standing.turns for client in self._clients),
            sum(client.standing.failed for client in self._clients),
        )

    async def converse(self, pause: Callable[[], Awaitable[None]] | None = None) -> None:
        """Start all clients at once and wait until all are done.

        Args:
            pause: Is awaited once turn 1 is over in all clients, before all continue together; None
                if they do not wait for each other.
        """
        self._tell(Command.GO)
        if pause is not None:
            await self._all(FirstTurnOver)
            await pause()
            self._tell(Command.FOLLOW_UP)
        await self._all(Conversed)

    def stop(self) -> None:
        """Make all clients stop their unfinished conversations."""
        self._tell(Command.STOP)

    async def conversed(self) -> None:
        """Wait until all conversations are over."""
        await self._all(Conversed)

    async def end(self) -> tuple[ChatOutcome, ...]:
        """Make all clients check and clean up, and return the outcome of every chat."""
        self._tell(Command.END)
        lines = await self._all(Ended)
        return tuple(each for line in lines if isinstance(line, Ended) for each in line.outcomes)

    def _tell(self, word: Command) -> None:
        for client in self._clients:
            client.tell(word)

    async def _all(self, kind: type[Line]) -> list[Line]:
        async with asyncio.TaskGroup() as tasks:
            waiting = [tasks.create_task(client.until(kind)) for client in self._clients]
        return [task.result() for task in waiting]


async def _ended(process: asyncio.subprocess.Process) -> None:
    """Wait for a process that was requested to end, and kill it if that takes too long."""
    try:
        async with asyncio.timeout(ENDING_S_MAX):
            # Its remaining output is read, so that it does not block, and dropped.
            await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()
