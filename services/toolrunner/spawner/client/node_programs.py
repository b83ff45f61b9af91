"""Programs that the node itself runs for a workspace, started by the spawner like commands."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from toolrunner.primitives.domain import UNLIMITED, Exit, Limits, ProcessId, WorkspaceId
from toolrunner.primitives.pipe_end import read_pipe
from toolrunner.sandbox import Confinement
from toolrunner.spawner import PROCESS_MARK
from toolrunner.spawner.client.environment import SEARCH_PATH
from toolrunner.spawner.client.spawner import GRACE_S, Launch, LaunchFailed, Spawner

LINE_BYTES_MAX: Final = 64 * 1024
TAIL_LINES: Final = 20

OnLine = Callable[[str], None]


class ProgramFailed(Exception):
    """A program could not be run, failed, or took too long.

    Attributes:
        program: Its name.
        cause: The reason.
        output: The last lines it printed.
    """

    def __init__(self, program: str, cause: str, output: tuple[str, ...] = ()) -> None:
        super().__init__("\n".join((f"{program} {cause}", *output)))
        self.program = program
        self.cause = cause
        self.output = output


@dataclass(frozen=True, slots=True)
class NodePrograms:
    """Runs programs to completion; if the caller is cancelled, the program is ended."""

    spawner: Spawner
    new_id: Callable[[], str]

    async def run(
        self,
        argv: tuple[str, ...],
        *,
        workspace_id: WorkspaceId,
        directory: Path,
        environment: Mapping[str, str],
        limit_s: float,
        on_line: OnLine = lambda line: None,
        confinement: Confinement | None = None,
        limits: Limits = UNLIMITED,
    ) -> tuple[str, ...]:
        """Run a program in a directory; return the last lines that it printed.

        Raises:
            ProgramFailed: It exited with an error, or not in time.
        """
        tail: list[str] = []
        exited: asyncio.Future[Exit] = asyncio.get_running_loop().create_future()
        process_id = ProcessId(self.new_id())
        launch = Launch(
            process_id=process_id,
            workspace_id=workspace_id,
            argv=argv,
            root=directory,
            workdir=".",
            environment={
                "PATH": SEARCH_PATH,
                "LANG": "C.UTF-8",
                **environment,
                PROCESS_MARK: process_id,
            },
            confinement=confinement,
            limits=limits,
        )
        try:
            async with asyncio.timeout(limit_s), self._started(launch, exited) as output_fd:
                async for line in _lines(output_fd):
                    on_line(line)
                    tail = [*tail[-TAIL_LINES + 1 :], line]
                exit = await exited
        except TimeoutError as error:
            raise ProgramFailed(argv[0], f"took over {limit_s:g} s", tuple(tail)) from error
        except LaunchFailed as error:
            raise ProgramFailed(argv[0], f"cannot be started: {error}") from error
        if exit.shell_exit_code != 0:
            cause = f"failed with exit code {exit.shell_exit_code}"
            raise ProgramFailed(argv[0], cause, tuple(tail))
        return tuple(tail)

    @asynccontextmanager
    async def _started(self, launch: Launch, exited: "asyncio.Future[Exit]") -> AsyncIterator[int]:
        """Run a program in a context; it is forgotten only after it ended."""

        def ended(process_id: ProcessId, exit: Exit) -> None:
            if not exited.done():
                exited.set_result(exit)

        try:
            launched = await self.spawner.start(launch, ended)
            try:
                yield launched.output_fd
            finally:
                if not exited.done():
                    await self.spawner.end(launch.process_id, GRACE_S)
        finally:
            await self.spawner.forget(launch.process_id)


async def _lines(output_fd: int) -> AsyncIterator[str]:
    """Yield lines until no process has the output open; closes it."""
    reader = asyncio.StreamReader(limit=LINE_BYTES_MAX)
    transport = await read_pipe(asyncio.StreamReaderProtocol(reader), output_fd)
    try:
        pending = b""
        while data := await reader.read(LINE_BYTES_MAX):
            *whole, pending = (pending + data).replace(b"\r", b"\n").split(b"\n")
            pending = pending[:LINE_BYTES_MAX]
            for line in whole:
                yield line.decode(errors="replace")
        if pending:
            yield pending.decode(errors="replace")
    finally:
        transport.close()
