"""Quarantine: a process of its own for turns whose processes died, one turn at a time.

A chatd that finds such turns waiting starts it as its child, at most one on each machine, and ends
its worker when it dies: a parent that waited for its child has a proof of its death. If the parent
is killed it goes on, since others may be killed too; it ends by itself when nothing is left to do.
"""

import asyncio
import logging
import sys
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from chatd.primitives.domain.ids import WorkerId
from parley.clock import Clock, backoff_s
from parley.instance_file import SUFFIX, InstanceFile, instance_of_child

logger = logging.getLogger(__name__)

NAME: Final = "chatd-quarantine"
IDLE_S: Final = 20.0
LOOK_EVERY_S: Final = 1.0
STOPPING_S_MAX: Final = 2.0
PAUSE_FIRST_S: Final = 0.2
PAUSE_LAST_S: Final = 30.0
#: The settings of its parent that it does not have.
UNSET: Final = ("CHATD_ADVERTISE", "CHATD_METRICS_LISTEN", "CHATD_PARENT_PID")
PROGRAM: Final = (sys.executable, "-m", "chatd")

EndWorker = Callable[[WorkerId], Awaitable[object]]


def quarantine_environment(environment: Mapping[str, str], directory: Path) -> dict[str, str]:
    """Return the variables of the process: those of its parent with its own settings."""
    kept = {name: value for name, value in environment.items() if name not in UNSET}
    return kept | {
        "CHATD_IS_QUARANTINE": "true",
        "CHATD_RUNNING_CHATS_MAX": "1",
        "CHATD_DATABASE_CONNECTIONS_MAX": "6",
        "CHATD_LISTEN": f"unix:{directory / NAME}.sock",
        "CHATD_INSTANCE_FILE": str(directory / f"{NAME}{SUFFIX}"),
    }


class Quarantine:
    """Starts the process on request, and ends its worker when it died."""

    def __init__(
        self,
        environment: Mapping[str, str],
        directory: Path | None,
        *,
        end: EndWorker,
        clock: Clock,
        program: tuple[str, ...] = PROGRAM,
    ) -> None:
        """Prepare to start the process.

        Args:
            environment: The variables of this process.
            directory: Where the processes of this machine keep their instance files, if anywhere.
            end: Ends a worker that is proven dead.
            clock: The clock.
            program: The command.
        """
        self._environment = environment
        self._directory = directory
        self._end = end
        self._clock = clock
        self._program = program
        self._requested = asyncio.Event()

    def request(self) -> None:
        """Start the process, unless it runs."""
        self._requested.set()

    async def run(self) -> None:
        """Start the process whenever it is requested, until cancelled."""
        with tempfile.TemporaryDirectory(prefix="parley-quarantine-") as private:
            directory = self._directory or Path(private)
            failures = 0
            while True:
                await self._requested.wait()
                # Held as long as the child lives: another chatd of this machine starts none.
                lock = InstanceFile.lock(directory / f"{NAME}.lock")
                if lock is None:
                    await self._clock.sleep(LOOK_EVERY_S)
                    self._requested.clear()
                    continue
                try:
                    exit_code = await self._live(directory)
                finally:
                    lock.close()
                self._requested.clear()
                failures = 0 if exit_code == 0 else failures + 1
                await self._clock.sleep(backoff_s(failures, PAUSE_FIRST_S, PAUSE_LAST_S))

    async def _live(self, directory: Path) -> int:
        """Start the process and return its exit code when it has ended."""
        environment = quarantine_environment(self._environment, directory)
        # In a session of its own: a signal to the group of this process does not reach it.
        child = await asyncio.create_subprocess_exec(
            *self._program,
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
        logger.warning("turns whose processes died are run in quarantine", extra={"pid": child.pid})
        try:
            exit_code = await child.wait()
        except asyncio.CancelledError:
            if child.returncode is None:
                child.terminate()
                with suppress(TimeoutError):
                    async with asyncio.timeout(STOPPING_S_MAX):
                        await child.wait()
            raise
        worker_id = instance_of_child(Path(environment["CHATD_INSTANCE_FILE"]), child.pid)
        if worker_id is not None:
            logger.error("the process in quarantine died", extra={"exit_code": exit_code})
            await self._end(WorkerId(worker_id))
        return exit_code


async def until_idle(is_idle: Callable[[], bool], clock: Clock) -> None:
    """Wait until this process has run no chat for a while."""
    idle_since = clock.monotonic()
    while clock.monotonic() < idle_since + IDLE_S:
        await clock.sleep(LOOK_EVERY_S)
        if not is_idle():
            idle_since = clock.monotonic()
