"""Asking the spawner: the port that starts and signals processes, and the program behind it."""

import asyncio
import os
import socket
import subprocess
import sys
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from signal import SIGKILL, SIGTERM
from typing import Any, Final, Protocol

from toolrunner import spawner as program
from toolrunner.domain import Exit, ProcessId
from toolrunner.errors import SpawnerGone, ToolrunnerError

GRACE_S: Final = 3.0
#: After SIGKILL only the kernel can keep a process, so this is for a machine under load.
KILL_S: Final = 2.0
END_S: Final = 6.0
DESCRIPTORS_MAX: Final = 16
#: Looks whether there is someone, and tells them nothing.
NO_SIGNAL: Final = 0

OnExit = Callable[[ProcessId, Exit], None]


@dataclass(frozen=True, slots=True)
class Launch:
    """What the spawner needs to start a process."""

    process_id: ProcessId
    argv: tuple[str, ...]
    root: Path
    workdir: str  # Relative to the root.
    environment: Mapping[str, str]
    has_channel: bool = False  # Its standard input is a socket, and it has no output.


@dataclass(frozen=True, slots=True)
class Launched:
    """A process that runs; whoever gets this owns the descriptor: of its output, or its channel."""

    pid: int
    output_fd: int


class LaunchFailed(ToolrunnerError):
    """The program never ran.

    Attributes:
        stage: What failed: `fork`, `session`, `workdir`, `descriptors` or `exec`.
        errno: Why, or 0 for a defect of ours.
    """

    def __init__(self, stage: str, errno: int) -> None:
        super().__init__(f"{stage}: {os.strerror(errno) if errno else 'defect'}")
        self.stage = stage
        self.errno = errno


class Spawner(Protocol):
    """Starts processes and signals them with all that they started."""

    async def start(self, launch: Launch, on_exit: OnExit) -> Launched:
        """Start a process; `on_exit` is called once, after this returned and its leader ended.

        Raises:
            LaunchFailed: It never ran.
            SpawnerGone: Nobody knows whether it ran.
        """
        ...

    async def signal(self, process_id: ProcessId, number: int, *, leader_only: bool) -> int:
        """Signal a process and all it started; return how many got it."""
        ...

    async def end(self, process_id: ProcessId, grace_s: float, *, first: int = SIGTERM) -> None:
        """Ask a process and all it started to end, kill what has not, return when it is gone."""
        ...

    async def end_all(self, grace_s: float) -> None:
        """Ask everything to end, kill what has not, return when nothing is left."""
        ...


@asynccontextmanager
async def running_spawner() -> AsyncIterator["SpawnerProcess"]:
    """Run the spawner program; leaving ends everything that it started.

    Enter this before the gRPC server exists: the fork here is the last of this process.
    """
    ours, theirs = socket.socketpair()
    with theirs:
        child = subprocess.Popen(  # noqa: ASYNC220 (a fork and exec without Python in between)
            [sys.executable, "-I", "-S", program.__file__, str(theirs.fileno())],
            pass_fds=(theirs.fileno(),),
            env={},
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    spawner = SpawnerProcess(ours, child.pid)
    try:
        yield spawner
    finally:
        spawner.close()
        try:
            await asyncio.to_thread(child.wait, END_S)
        except subprocess.TimeoutExpired:
            child.kill()
            await asyncio.to_thread(child.wait)


class SpawnerProcess:
    """The spawner as a program of its own.

    Attributes:
        pid: Its process id.
        gone: Done when it ended unasked.
    """

    def __init__(self, channel: socket.socket, pid: int) -> None:
        channel.setblocking(False)
        self.pid = pid
        loop = asyncio.get_running_loop()
        self.gone: asyncio.Future[None] = loop.create_future()
        self._loop = loop
        self._reading = channel
        self._writing = channel.dup()
        self._writing.setblocking(False)
        self._write_lock = asyncio.Lock()
        self._frames = program.Frames()
        self._descriptors: deque[int] = deque()
        self._number = 0
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._exits: dict[ProcessId, OnExit] = {}
        self._goings: dict[ProcessId, asyncio.Event] = {}
        self._idle = asyncio.Event()
        loop.add_reader(channel.fileno(), self._read)

    async def start(self, launch: Launch, on_exit: OnExit) -> Launched:
        """Start a process; `on_exit` is called once, after this returned and its leader ended.

        Raises:
            LaunchFailed: It never ran.
            SpawnerGone: Nobody knows whether it ran.
        """
        self._exits[launch.process_id] = on_exit
        try:
            answer = await self._ask(
                op="start",
                id=launch.process_id,
                argv=launch.argv,
                root=str(launch.root),
                workdir=launch.workdir,
                environment=dict(launch.environment),
                has_channel=launch.has_channel,
            )
            if "pid" not in answer:
                raise LaunchFailed(answer["stage"], answer["errno"])
        except BaseException:
            self._exits.pop(launch.process_id, None)
            raise
        return Launched(answer["pid"], answer["descriptor"])

    async def signal(self, process_id: ProcessId, number: int, *, leader_only: bool) -> int:
        """Signal a process and all it started; return how many got it."""
        answer = await self._ask(
            op="signal", id=process_id, signal=number, leader_only=leader_only, tell_gone=False
        )
        count: int = answer["count"]
        return count

    async def end(self, process_id: ProcessId, grace_s: float, *, first: int = SIGTERM) -> None:
        """Ask a process and all it started to end, kill what has not, return when it is gone."""
        gone = self._goings.setdefault(process_id, asyncio.Event())
        for number, limit_s in ((first, grace_s), (SIGKILL, KILL_S)):
            await self._ask(
                op="signal", id=process_id, signal=number, leader_only=False, tell_gone=True
            )
            try:
                async with asyncio.timeout(limit_s):
                    await gone.wait()
            except TimeoutError:
                continue
            return

    async def end_all(self, grace_s: float) -> None:
        """Ask everything to end, kill what has not, return when nothing is left."""
        for number, limit_s in ((SIGTERM, grace_s), (SIGKILL, KILL_S)):
            try:
                await self._ask(op="end", signal=number)
                async with asyncio.timeout(limit_s):
                    await self._idle.wait()
            except TimeoutError:
                continue
            except SpawnerGone:
                return
            return

    def close(self) -> None:
        """Hang up, whereupon the program kills whatever is left and ends."""
        if self._reading.fileno() >= 0:
            self._loop.remove_reader(self._reading.fileno())
        self._reading.close()
        self._writing.close()
        self.gone.cancel()
        while self._descriptors:
            os.close(self._descriptors.popleft())

    async def _ask(self, **message: object) -> dict[str, Any]:
        if self.gone.done():
            raise SpawnerGone
        self._number += 1
        number = self._number
        answer: asyncio.Future[dict[str, Any]] = self._loop.create_future()
        self._answers[number] = answer
        try:
            async with self._write_lock:
                await self._loop.sock_sendall(
                    self._writing, program.frame({"number": number, **message})
                )
            return await answer
        except OSError as error:
            raise SpawnerGone from error
        finally:
            del self._answers[number]

    def _read(self) -> None:
        try:
            data, descriptors, _, _ = socket.recv_fds(
                self._reading, program.CHUNK_BYTES, DESCRIPTORS_MAX
            )
        except BlockingIOError:
            return
        except OSError:
            data, descriptors = b"", []
        self._descriptors.extend(descriptors)
        if not data:
            self._lose()
            return
        for message in self._frames.feed(data):
            self._take(message)

    def _take(self, message: dict[str, Any]) -> None:
        match message:
            case {"number": number}:
                if "pid" in message:
                    # Descriptors arrive in the order of the answers that they belong to.
                    message["descriptor"] = self._descriptors.popleft()
                answer = self._answers.get(number)
                if answer is not None and not answer.done():
                    answer.set_result(message)
                elif "descriptor" in message:
                    os.close(message["descriptor"])
            case {"exited": process_id, "status": status}:
                if (on_exit := self._exits.pop(process_id, None)) is not None:
                    # Not at once: the answer to the start may have come in the same read.
                    self._loop.call_soon(on_exit, process_id, _exit_of(status))
            case {"gone": process_id}:
                if (gone := self._goings.pop(process_id, None)) is not None:
                    gone.set()
            case {"idle": True}:
                self._idle.set()

    def _lose(self) -> None:
        self._loop.remove_reader(self._reading.fileno())
        self.gone.set_result(None)
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(SpawnerGone())
        self._idle.set()
        for gone in self._goings.values():
            gone.set()


def _exit_of(status: int) -> Exit:
    code = os.waitstatus_to_exitcode(status)
    return Exit(exit_code=code) if code >= 0 else Exit(exit_code=None, signal_number=-code)
