"""The client of the spawner: the port that starts and signals processes, and its implementation."""

import asyncio
import os
import socket
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from signal import SIGKILL, SIGTERM
from typing import Any, Final, Protocol

from toolrunner import spawner as program
from toolrunner.primitives.domain import (
    NO_QUOTA,
    UNLIMITED,
    Exit,
    Limits,
    ProcessId,
    Quota,
    WorkspaceId,
)
from toolrunner.primitives.errors import SpawnerGone, ToolrunnerError
from toolrunner.sandbox import Confinement, Layer, SocketUse

GRACE_S: Final = 3.0
#: After SIGKILL only the kernel can delay an exit, so this waits for a machine under load;
#: processes that were forked while the others were killed are killed by the next round.
KILL_S: Final = 2.0
KILLS_AGAIN_S: Final = (5.0, 20.0)
DESCRIPTORS_MAX: Final = 16
#: Signal 0: checks whether the process exists, and delivers nothing.
NO_SIGNAL: Final = 0

OnExit = Callable[[ProcessId, Exit], None]
OnListener = Callable[[WorkspaceId, int], None]


@dataclass(frozen=True, slots=True)
class Launch:
    """The parameters of a process start."""

    process_id: ProcessId
    workspace_id: WorkspaceId
    argv: tuple[str, ...]
    root: Path
    workdir: str  # Relative to the root.
    environment: Mapping[str, str]
    has_input: bool = False
    terminal: tuple[int, int] | None = None  # Rows and columns.
    confinement: Confinement | None = None  # None for no confinement.
    limits: Limits = UNLIMITED
    required: tuple[str, ...] = ()  # Limits without which it must not start.
    quota: Quota = NO_QUOTA  # Of its workspace, as far as a control group can enforce it.
    mark: str = ""  # A mark that it and its descendants cannot remove; empty for none.
    owner_id: str = ""  # The user among whose starts it waits; empty for its workspace's.


@dataclass(frozen=True, slots=True)
class Launched:
    """A running process; the caller owns the descriptors."""

    pid: int
    output_fd: int
    input_fd: int = -1  # -1 for none.
    layers: tuple[Layer, ...] = ()  # Those that were actually applied.

    def close(self) -> None:
        """Close the descriptors."""
        for fd in (self.output_fd, self.input_fd):
            if fd >= 0:
                os.close(fd)


@dataclass(frozen=True, slots=True)
class Adopted:
    """A process that an earlier run of the service started, and that the spawner kept."""

    process_id: ProcessId
    launched: Launched
    exit: Exit | None  # None while it runs.
    failure: "LaunchFailed | None"


class LaunchFailed(ToolrunnerError):
    """The program was not executed.

    Attributes:
        stage: The step that failed: `fork`, `group`, `namespaces`, `limits`, `session`, `workdir`,
            `descriptors`, `confinement` with the layer, `exec`, or `start` if it took too long.
        errno: The error, or 0 for a bug of ours.
    """

    def __init__(self, stage: str, errno: int) -> None:
        super().__init__(f"{stage}: {os.strerror(errno) if errno else 'defect'}")
        self.stage = stage
        self.errno = errno


class Spawner(Protocol):
    """Starts processes and signals them with their descendants."""

    async def start(self, launch: Launch, on_exit: OnExit) -> Launched:
        """Start a process; `on_exit` is called once, after this returned and its leader exited.

        Raises:
            LaunchFailed: It was not executed.
            SpawnerGone: It is unknown whether it was executed.
        """
        ...

    def watch(self, process_id: ProcessId, on_exit: OnExit) -> None:
        """Register `on_exit` for a process that was adopted while it ran."""
        ...

    async def signal(self, process_id: ProcessId, number: int, *, leader_only: bool) -> int:
        """Signal a process and its descendants; return how many got the signal."""
        ...

    async def close_input(self, process_id: ProcessId) -> None:
        """Close the spawner's copy of a process's input; EOF follows when all copies are closed."""
        ...

    async def forget(self, process_id: ProcessId) -> None:
        """Drop a process, so that the next run of the service does not adopt it."""
        ...

    async def end(self, process_id: ProcessId, grace_s: float, *, first: int = SIGTERM) -> None:
        """Signal a process and its descendants, kill those left, return when none is left."""
        ...

    async def end_workspace(
        self, workspace_id: WorkspaceId, directory: Path, grace_s: float, *, first: int = SIGTERM
    ) -> "Ended":
        """Signal all processes of a workspace, kill those left, return when none is left."""
        ...

    async def signal_marked(
        self, workspace_id: WorkspaceId, directory: Path, mark: str, number: int
    ) -> int:
        """Signal all processes of a workspace with a mark; return how many got the signal."""
        ...

    async def end_all(self, grace_s: float) -> None:
        """Signal all processes, kill those left, return when none is left."""
        ...


@dataclass(frozen=True, slots=True)
class Ended:
    """How many processes were signalled, and how many of these had to be killed."""

    asked: int
    killed: int


class SpawnerProcess:
    """The spawner as a separate program.

    Attributes:
        gone: Done when it exited unexpectedly.
    """

    def __init__(self, channel: socket.socket) -> None:
        channel.setblocking(False)
        loop = asyncio.get_running_loop()
        self.gone: asyncio.Future[None] = loop.create_future()
        self._loop = loop
        self._reading = channel
        self._writing = channel.dup()
        self._writing.setblocking(False)
        self._write_lock = asyncio.Lock()
        self._saying = 0
        self._frames = program.Frames()
        self._descriptors: deque[int] = deque()
        self._number = 0
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._exits: dict[ProcessId, OnExit] = {}
        self._goings: dict[str, asyncio.Event] = {}
        self._adopted: list[Adopted] = []
        self._on_listener: OnListener | None = None
        self._early_listeners: list[tuple[WorkspaceId, int]] = []
        self._idle = asyncio.Event()
        loop.add_reader(channel.fileno(), self._read)

    async def adopt(self, secret: str = "") -> tuple[int, int, tuple[Adopted, ...]]:
        """Return version and pid of the spawner, and the processes that it kept.

        Args:
            secret: The secret that it stored for adoption; only needed to adopt a running spawner.

        Raises:
            SpawnerGone: It exited, or rejected us.
        """
        answer = await self._ask(op="adopt", secret=secret)
        adopted, self._adopted = tuple(self._adopted), []
        return answer["version"], answer["pid"], adopted

    async def start(self, launch: Launch, on_exit: OnExit) -> Launched:
        """Start a process; `on_exit` is called once, after this returned and its leader exited.

        Raises:
            LaunchFailed: It was not executed.
            SpawnerGone: It is unknown whether it was executed.
        """
        self._exits[launch.process_id] = on_exit
        try:
            answer = await self._ask(
                op="start",
                id=launch.process_id,
                workspace=launch.workspace_id,
                user=launch.owner_id,
                argv=launch.argv,
                root=str(launch.root),
                workdir=launch.workdir,
                environment=dict(launch.environment),
                has_input=launch.has_input,
                terminal=launch.terminal,
                confinement=launch.confinement and launch.confinement.document(),
                limits=_fields(launch.limits),
                required=launch.required,
                quota=_fields(launch.quota),
                mark=launch.mark,
            )
            if "pid" not in answer:
                raise LaunchFailed(answer["stage"], answer["errno"])
        except BaseException:
            self._exits.pop(launch.process_id, None)
            raise
        return _launched(answer, answer["fds"])

    async def socket_use(self, workspace_id: WorkspaceId) -> SocketUse:
        """Return the memory use of the sockets of a workspace with its own network namespace."""
        answer = await self._ask(op="socket_use", workspace=workspace_id)
        return SocketUse(answer["total_bytes"], dict(answer["largest"]))

    async def give_way(self, workspace_id: WorkspaceId, *, yields: bool) -> None:
        """Let the processes of a workspace run only when no other needs the CPU, or as usual."""
        await self._say(op="give_way", workspace=workspace_id, yields=yields)

    def serve_listeners(self, on_listener: OnListener) -> None:
        """Register `on_listener` for each listener, also for those received before.

        A listener is a socket that listens on the loopback of a workspace with its own network
        namespace, at the port of the egress proxy; `on_listener` owns it.
        """
        self._on_listener = on_listener
        # An adopted spawner sends its listeners before a callback can be registered.
        listeners, self._early_listeners = self._early_listeners, []
        for workspace_id, listener_fd in listeners:
            on_listener(workspace_id, listener_fd)

    def watch(self, process_id: ProcessId, on_exit: OnExit) -> None:
        """Register `on_exit` for a process that was adopted while it ran."""
        self._exits[process_id] = on_exit

    async def signal(self, process_id: ProcessId, number: int, *, leader_only: bool) -> int:
        """Signal a process and its descendants; return how many got the signal."""
        answer = await self._ask(
            op="signal", id=process_id, signal=number, leader_only=leader_only, tell_gone=False
        )
        count: int = answer["count"]
        return count

    async def close_input(self, process_id: ProcessId) -> None:
        """Close the spawner's copy of a process's input; EOF follows when all copies are closed."""
        await self._say(op="close_input", id=process_id)

    async def forget(self, process_id: ProcessId) -> None:
        """Drop a process, so that the next run of the service does not adopt it."""
        await self._say(op="forget", id=process_id)
        # No exit is reported for a forgotten process.
        self._exits.pop(process_id, None)

    async def end(self, process_id: ProcessId, grace_s: float, *, first: int = SIGTERM) -> None:
        """Signal a process and its descendants, kill those left, return when none is left."""
        await self._end(process_id, grace_s, first, op="signal", id=process_id, leader_only=False)

    async def end_workspace(
        self, workspace_id: WorkspaceId, directory: Path, grace_s: float, *, first: int = SIGTERM
    ) -> Ended:
        """Signal all processes of a workspace, kill those left, return when none is left."""
        counts = await self._end(
            workspace_id,
            KILL_S if first == SIGKILL else grace_s,
            first,
            op="end_workspace",
            workspace=workspace_id,
            directory=str(directory),
        )
        return Ended(counts[0], sum(counts[1:2]))

    async def signal_marked(
        self, workspace_id: WorkspaceId, directory: Path, mark: str, number: int
    ) -> int:
        """Signal all processes of a workspace with a mark; return how many got the signal."""
        answer = await self._ask(
            op="signal_marked",
            workspace=workspace_id,
            directory=str(directory),
            mark=mark,
            signal=number,
        )
        count: int = answer["count"]
        return count

    async def end_all(self, grace_s: float) -> None:
        """Signal all processes, kill those left, return when none is left."""
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
        """Tell the program to kill all remaining processes and exit."""
        if self._reading.fileno() >= 0:
            self._loop.remove_reader(self._reading.fileno())
        if not self.gone.done():
            # A few bytes always fit: all earlier requests have been answered.
            with suppress(OSError):
                self._writing.send(program.frame({"op": "quit"}))
        self._reading.close()
        self._writing.close()
        self.gone.cancel()
        while self._descriptors:
            os.close(self._descriptors.popleft())
        while self._early_listeners:
            os.close(self._early_listeners.pop()[1])

    async def _end(self, name: str, grace_s: float, first: int, **message: object) -> list[int]:
        gone = self._goings.setdefault(name, asyncio.Event())
        counts = []
        kills = ((SIGKILL, limit_s) for limit_s in (KILL_S, *KILLS_AGAIN_S))
        for number, limit_s in ((first, grace_s), *kills):
            answer = await self._ask(**message, signal=number, tell_gone=True)
            counts.append(answer["count"])
            try:
                async with asyncio.timeout(limit_s):
                    await gone.wait()
            except TimeoutError:
                continue
            break
        return counts

    async def _say(self, **message: object) -> None:
        """Send a message; messages are processed in the order in which they are sent."""
        if self.gone.done():
            raise SpawnerGone
        data = program.frame(message)
        try:
            if not self._saying:
                # Usually it fits, and no other message is partly sent or waits for the lock.
                data = data[self._sent(data) :]
            if data:
                self._saying += 1
                try:
                    async with self._write_lock:
                        await self._loop.sock_sendall(self._writing, data)
                finally:
                    self._saying -= 1
        except OSError as error:
            raise SpawnerGone from error

    def _sent(self, data: bytes) -> int:
        """Send as much as fits into the socket buffer, and return how much."""
        try:
            return self._writing.send(data)
        except BlockingIOError:
            return 0

    async def _ask(self, **message: object) -> dict[str, Any]:
        self._number += 1
        number = self._number
        answer: asyncio.Future[dict[str, Any]] = self._loop.create_future()
        self._answers[number] = answer
        try:
            await self._say(number=number, **message)
            return await answer
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
        # Descriptors arrive in the order of the messages that they belong to.
        fds = [self._descriptors.popleft() for _ in range(message.get("descriptors", 0))]
        match message:
            case {"number": number}:
                answer = self._answers.get(number)
                if answer is not None and not answer.done():
                    answer.set_result({**message, "fds": fds})
                else:
                    for fd in fds:
                        os.close(fd)
            case {"adopted": process_id}:
                self._adopted.append(_adopted(ProcessId(process_id), message, fds))
            case {"exited": process_id}:
                if (on_exit := self._exits.pop(process_id, None)) is not None:
                    # Deferred: the answer to the start may have arrived in the same read.
                    self._loop.call_soon(on_exit, process_id, _exit_of(message))
            case {"door": workspace}:
                self._open_listener(WorkspaceId(workspace), fds[0])
            case {"gone": name}:
                if (gone := self._goings.pop(name, None)) is not None:
                    gone.set()
            case {"idle": True}:
                self._idle.set()

    def _open_listener(self, workspace_id: WorkspaceId, listener_fd: int) -> None:
        if self._on_listener is None:
            self._early_listeners.append((workspace_id, listener_fd))
        else:
            self._on_listener(workspace_id, listener_fd)

    def _lose(self) -> None:
        self._loop.remove_reader(self._reading.fileno())
        self.gone.set_result(None)
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(SpawnerGone())
        self._idle.set()
        for gone in self._goings.values():
            gone.set()


def _adopted(process_id: ProcessId, message: dict[str, Any], fds: list[int]) -> Adopted:
    failure = LaunchFailed(message["stage"], message["errno"]) if "stage" in message else None
    launched = _launched(message, fds)
    exit = None if message["status"] is None else _exit_of(message)
    return Adopted(process_id, launched, exit, failure)


def _fields(value: Limits | Quota) -> dict[str, Any]:
    """Return a flat value by field name; `asdict` would deep-copy it first."""
    return {each.name: getattr(value, each.name) for each in fields(value)}


def _launched(message: dict[str, Any], fds: list[int]) -> Launched:
    output_fd, input_fd = (*fds, -1)[:2]
    layers = tuple(Layer(number) for number in message["layers"])
    return Launched(message["pid"], output_fd, input_fd, layers)


def _exit_of(message: dict[str, Any]) -> Exit:
    code = os.waitstatus_to_exitcode(message["status"])
    return Exit(
        exit_code=code if code >= 0 else None,
        signal_number=-code if code < 0 else 0,
        is_oom_killed=message["is_oom_killed"],
    )
