"""Keeps the processes of a plan running: start in order, restart after crashes, stop in reverse.

One task per process starts it, waits until it is ready and then until it ends, and begins again.
First starts follow the dependencies, only a few at a time: most of a start is importing, and more
processes than cores would only delay each other. They do not wait until their dependencies are
ready, because after a crash they could not either. If a process ends before it was ready once, the
whole start fails; if it exits because of its configuration, the others may first report the same.
After that it is restarted forever, with growing delays; before each delay its death is reported to
a living process of its service, which takes its work over. Of processes that ended at the same time
only a few are restarted at once, those that continue turns first. Stopping first cancels these
tasks, so that no process is started any more, and then ends the processes, dependents first.

Only a failed start and `stop` end the processes. Launching, probing, reporting a death and saving
the table may fail in any way, as without free descriptors: that is logged, and the task goes on.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from parley.cli.errors import CliError
from parley.cli.progress import Progress, ending, step
from parley.cli.stack.plan import ProcessSpec, Readiness, Sign, waves
from parley.cli.supervision.children import Child, Launcher
from parley.cli.supervision.death_reports import DeathReports
from parley.cli.supervision.process_table import ProcessIdentity, ProcessRecord
from parley.cli.supervision.readiness import Probe
from parley.cli.supervision.restart_queue import RestartQueue, RestartSlot
from parley.cli.supervision.stop_deadline import StopDeadline
from parley.clock import Clock, backoff_s

READY_S_MAX = 60.0
PROBE_EVERY_S = 0.05
KILLING_S_MAX = 1.0
#: How long the others may take to report their configuration problems, after the first one did.
REFUSING_S_MAX = 30.0
#: The exit code of a process whose configuration is wrong.
CONFIGURATION_EXIT_CODE = 2
RESTART_FIRST_S = 0.2
#: After this time of health the count of failures is reset.
HEALTHY_AFTER_S = 30.0

logger = logging.getLogger(__name__)


def restart_delay_s(failures: int, pause_max_s: float) -> float:
    """Return the delay after `failures` crashes in a row, including the last one."""
    return backoff_s(failures, RESTART_FIRST_S, pause_max_s)


def failures_in_a_row(before: int, healthy_s: float) -> int:
    """Return the count after one more crash, which followed `healthy_s` of health."""
    return 1 if healthy_s >= HEALTHY_AFTER_S else before + 1


class StartFailed(CliError):
    """A process ended, or did not become ready, before the stack was ready."""

    def __init__(self, name: str, exit_code: int | None, refusing: tuple[str, ...] = ()) -> None:
        super().__init__(f"{name} {_exit_reason(exit_code)} during the start")
        self.name = name
        self.process_exit_code = exit_code
        #: Every process whose configuration is wrong.
        self.refusing = refusing


@dataclass(frozen=True, slots=True)
class _ProcessRun:
    """One run of a process; without an exit code it never became ready."""

    exit_code: int | None
    healthy_s: float = 0.0


@dataclass(slots=True)
class _SupervisedProcess:
    """A supervised process."""

    spec: ProcessSpec
    child: Child | None = None
    starts: int = 0
    failures: int = 0
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    #: How the first start failed, if it did.
    failed: _ProcessRun | None = None
    #: Its permission to start again, until it is ready.
    slot: RestartSlot | None = None


class Supervisor:
    """Runs one plan until `stop` is called."""

    def __init__(
        self,
        specs: tuple[ProcessSpec, ...],
        *,
        launcher: Launcher,
        probe: Probe,
        clock: Clock,
        progress: Progress,
        changed: Callable[[tuple[ProcessRecord, ...]], None],
        starting_max: int,
        restarting_max: int,
        restart_pause_max_s: float,
        stop_time: StopDeadline,
        death_reports: DeathReports,
    ) -> None:
        self._waves = waves(specs)
        self._kept = {spec.name: _SupervisedProcess(spec) for wave in self._waves for spec in wave}
        # Waiters are served in the order in which they came, which is that of the waves.
        self._starting = asyncio.Semaphore(starting_max)
        self._restarts = RestartQueue(restarting_max, clock)
        self._restart_pause_max_s = restart_pause_max_s
        self._launcher = launcher
        self._probe = probe
        self._clock = clock
        self._progress = progress
        self._changed = changed
        self._stop_time = stop_time
        self._death_reports = death_reports
        self._settled = asyncio.Event()
        self._stopping = asyncio.Event()
        self._first_failed: _SupervisedProcess | None = None

    async def run(self, on_ready: Callable[[], None]) -> None:
        """Run all processes until `stop`; call `on_ready` once every process has been ready.

        Raises:
            StartFailed: a process did not become ready; all are stopped again.
        """
        try:
            async with asyncio.TaskGroup() as tasks:
                keepers = [tasks.create_task(self._keep(kept)) for kept in self._kept.values()]
                await self._settled.wait()
                if not self._stopping.is_set():
                    on_ready()
                await self._stopping.wait()
                for keeper in keepers:
                    keeper.cancel()
        finally:
            await self._end_all()
        self._raise_failure()

    def stop(self) -> None:
        """Make `run` stop all processes and return; a second call kills them immediately."""
        if self._stopping.is_set():
            for kept in self._kept.values():
                if kept.child is not None:
                    kept.child.kill()
        self._stop_time.begin()
        self._stopping.set()
        self._settled.set()

    async def _keep(self, kept: _SupervisedProcess) -> None:
        await self._starting.acquire()
        while True:
            life = await self._live(kept)
            if not kept.ready.is_set():
                await self._fail(kept, life)
                return
            await self._report_death(kept)
            await self._until_restart(kept, life)

    async def _live(self, kept: _SupervisedProcess) -> _ProcessRun:
        """Start the process and return when it has ended."""
        began = self._clock.monotonic()
        try:
            kept.child = child = self._launcher.launch(kept.spec)
        except OSError as error:
            self._progress.say(f"  {kept.spec.name} cannot be started: {error}")
            return _ProcessRun(None)
        except Exception:
            logger.exception("%s cannot be started", kept.spec.name)
            return _ProcessRun(None)
        kept.starts += 1
        self._tell()
        if await self._becomes_ready(kept, child):
            ready_at = self._clock.monotonic()
            self._note_ready(kept, ready_at - began)
            exit_code = await child.ended()
            return _ProcessRun(exit_code, self._clock.monotonic() - ready_at)
        if child.exit_code is None:
            child.kill()
            await child.ended()
            return _ProcessRun(None)
        return _ProcessRun(await child.ended())

    async def _becomes_ready(self, kept: _SupervisedProcess, child: Child) -> bool:
        give_up_at = self._clock.monotonic() + READY_S_MAX
        while child.exit_code is None and self._clock.monotonic() < give_up_at:
            if await self._is_ready(kept.spec.readiness) and child.exit_code is None:
                return True
            if kept.slot is not None:
                kept.slot.expire(self._clock.monotonic())
            await self._clock.sleep(PROBE_EVERY_S)
        return False

    def _note_ready(self, kept: _SupervisedProcess, seconds: float) -> None:
        if not kept.ready.is_set():
            self._starting.release()
        if kept.slot is not None:
            kept.slot.release()
        kept.ready.set()
        self._progress.say(step(kept.spec.name, seconds, kept.spec.address))
        if all(other.ready.is_set() for other in self._kept.values()):
            self._settled.set()

    async def _report_death(self, kept: _SupervisedProcess) -> None:
        """Report the end of a process, which was waited for, to a living one of its service."""
        if kept.child is None or kept.spec.instance_file is None:
            return
        living = tuple(
            other.spec.address
            for other in self._kept.values()
            if other is not kept
            and other.spec.service == kept.spec.service
            and other.ready.is_set()
            and other.child is not None
            and other.child.exit_code is None
        )
        with _logged(f"the death of {kept.spec.name} cannot be reported; it is started again"):
            await self._death_reports.report(kept.spec.instance_file, kept.child.pid, living)

    async def _until_restart(self, kept: _SupervisedProcess, life: _ProcessRun) -> None:
        """Wait until the process may be started again."""
        if kept.slot is not None:
            kept.slot.release()
        kept.failures = failures_in_a_row(kept.failures, life.healthy_s)
        wait_s = restart_delay_s(kept.failures, self._restart_pause_max_s)
        self._progress.say(
            f"  {kept.spec.name} {_exit_reason(life.exit_code)}; starts again in {wait_s:g} s"
        )
        kept.slot = await self._restarts.slot(kept.spec.restart_rank, wait_s)

    async def _fail(self, kept: _SupervisedProcess, life: _ProcessRun) -> None:
        kept.failed = life
        is_refusing = life.exit_code == CONFIGURATION_EXIT_CODE
        if is_refusing:
            # Others may have a wrong configuration too, also those that are not started yet.
            self._starting.release()
        if self._first_failed is not None:
            return
        self._first_failed = kept
        if is_refusing:
            await self._await_other_failures()
        if not self._stopping.is_set():
            self.stop()

    async def _await_other_failures(self) -> None:
        give_up_at = self._clock.monotonic() + REFUSING_S_MAX
        undecided = list(self._kept.values())
        while self._clock.monotonic() < give_up_at:
            undecided = [kept for kept in undecided if not await self._is_decided(kept)]
            if not undecided:
                return
            await self._clock.sleep(PROBE_EVERY_S)

    async def _is_decided(self, kept: _SupervisedProcess) -> bool:
        """Return whether a process has accepted or refused its configuration.

        A process that listens has accepted it, also if it waits for another one to be ready.
        """
        if kept.ready.is_set() or kept.failed is not None:
            return True
        listens = Readiness(Sign.ACCEPTS, kept.spec.address)
        return kept.child is not None and await self._is_ready((listens,))

    async def _is_ready(self, signs: tuple[Readiness, ...]) -> bool:
        """Return whether all signs succeed; a check that fails itself is repeated like others."""
        with _logged("a readiness check failed; it is repeated"):
            return await self._probe.is_ready(signs)
        return False

    def _raise_failure(self) -> None:
        first = self._first_failed
        if first is None or first.failed is None:
            return
        refusing = tuple(
            kept.spec.name
            for kept in self._kept.values()
            if kept.failed is not None and kept.failed.exit_code == CONFIGURATION_EXIT_CODE
        )
        raise StartFailed(first.spec.name, first.failed.exit_code, refusing)

    def _tell(self) -> None:
        records = tuple(
            ProcessRecord(
                name=kept.spec.name,
                service=kept.spec.service,
                identity=ProcessIdentity(kept.child.pid, kept.child.started_at),
                address=kept.spec.address,
                restarts=kept.starts - 1,
                readiness=kept.spec.readiness,
                metrics=kept.spec.metrics,
            )
            for kept in self._kept.values()
            if kept.child is not None
        )
        with _logged("the process table cannot be saved; the processes keep running"):
            self._changed(records)

    async def _end_all(self) -> None:
        self._progress.say("Stopping")
        for wave in reversed(self._waves):
            found = (self._kept[spec.name].child for spec in wave)
            children = [child for child in found if child is not None]
            for child in children:
                child.terminate()
            # Half of the remaining time, so that a process that hangs leaves time for the others.
            if not await _have_ended(children, self._stop_time.for_services_s() / 2):
                for child in children:
                    child.kill()
                left_s = self._stop_time.for_services_s()
                await _have_ended(children, min(KILLING_S_MAX, left_s))


@contextmanager
def _logged(message: str) -> Iterator[None]:
    """Log a failure of something that the processes do not depend on, and go on."""
    try:
        yield
    except Exception:
        logger.exception(message)


async def _have_ended(children: list[Child], wait_s: float) -> bool:
    try:
        async with asyncio.timeout(wait_s):
            for child in children:
                await child.ended()
    except TimeoutError:
        return False
    return True


def _exit_reason(exit_code: int | None) -> str:
    return "did not get ready" if exit_code is None else f"ended with {ending(exit_code)}"
