"""The client processes of a run, from the side of the one that starts them."""

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
        exit_code: What it ended with.
    """

    def __init__(self, exit_code: int | None) -> None:
        super().__init__(f"a client process of the load test ended with {exit_code}")
        self.exit_code = exit_code


def shares_of(plan: Plan, processes: int) -> tuple[Plan, ...]:
    """Return what each process does of a plan, as evenly as can be."""
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
        """Give a process that is ready to begin; in the end it is gone."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *PROGRAM,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=LINE_BYTES_MAX,
            # Ctrl-C is for whoever started it, who lets it clean up.
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
        """Say a word to it."""
        self._say(word.encode())

    async def until(self, kind: type[Line]) -> Line:
        """Wait for a line of one kind; what it says of its standing meanwhile is kept.

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
        """Give processes that are all ready to begin."""
        async with AsyncExitStack() as around:
            async with asyncio.TaskGroup() as tasks:
                starting = [
                    tasks.create_task(around.enter_async_context(Client.started(plan)))
                    for plan in plans
                ]
            yield cls([task.result() for task in starting])

    @property
    def standing(self) -> ProgressReport:
        """How far all of them have come together."""
        return ProgressReport(
            sum(client.standing.turns for client in self._clients),
            sum(client.standing.failed for client in self._clients),
        )

    async def converse(self, pause: Callable[[], Awaitable[None]] | None = None) -> None:
        """Let all begin at once and wait until all are done.

        Args:
            pause: Waits once turn 1 is over for everybody, before all go on together; None if
                nobody waits for the others.
        """
        self._tell(Command.GO)
        if pause is not None:
            await self._all(FirstTurnOver)
            await pause()
            self._tell(Command.FOLLOW_UP)
        await self._all(Conversed)

    def stop(self) -> None:
        """Let all give up what is not over."""
        self._tell(Command.STOP)

    async def conversed(self) -> None:
        """Wait until all have given up."""
        await self._all(Conversed)

    async def end(self) -> tuple[ChatOutcome, ...]:
        """Let all check and clean up, and return what became of every chat."""
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
    """Wait for the end of a process that was told to end, and help if it takes long."""
    try:
        async with asyncio.timeout(ENDING_S_MAX):
            # It may have much to say that nobody wants to hear any more.
            await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()
