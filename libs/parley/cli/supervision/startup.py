"""Starts and stops a stack: everything of `parley up` except its output."""

import asyncio
import os
import random  # noqa: TID251 (this is the composition root)
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from opentelemetry.metrics import get_meter

from parley.cli.errors import CliError, ConfigurationProblem
from parley.cli.home.credentials import prepare_secrets
from parley.cli.home.layout import Home
from parley.cli.home.log_files import bound_logs
from parley.cli.host.checks import cores
from parley.cli.progress import Progress
from parley.cli.stack.plan import PROGRAMS, ProcessSpec, plan
from parley.cli.stack.ports import HostPort
from parley.cli.stack.request import (
    UpRequest,
    choose_ports,
    problems_of_request,
    restart_pause_max_s,
)
from parley.cli.stack.service_settings import problems_of
from parley.cli.stack.spec import Caller, Ports, Stack, write_endpoints
from parley.cli.supervision import process_table
from parley.cli.supervision.children import LocalLauncher
from parley.cli.supervision.database import database, keep
from parley.cli.supervision.death_reports import RpcDeathReports
from parley.cli.supervision.process_records import ProcessTableWriter, own_identity
from parley.cli.supervision.process_table import ProcessTable
from parley.cli.supervision.readiness import NetworkProbe
from parley.cli.supervision.stale_processes import (
    become_subreaper,
    end,
    end_orphans,
    leftovers,
    reap_orphans,
)
from parley.cli.supervision.stop_deadline import StopDeadline
from parley.cli.supervision.supervisor import StartFailed, Supervisor
from parley.clock import Clock
from parley.tasks import BackgroundTasks, Supervision

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PreparedStack:
    """A stack that is ready to be started."""

    stack: Stack
    login_token: str = field(repr=False)


def end_stale_processes(home: Home, progress: Progress) -> None:
    """End processes that a killed supervisor left, and record this one; the lock must be held."""
    left = leftovers(process_table.load(home.processes_file))
    if left:
        progress.say(f"  ending {len(left)} processes of a supervisor that was killed")
        end(left)
    home.endpoints_file.unlink(missing_ok=True)
    process_table.save(ProcessTable(supervisor=own_identity()), home.processes_file)


def prepare(request: UpRequest) -> PreparedStack:
    """Choose ports and generate keys; nothing is started yet.

    Raises:
        ConfigurationProblem: with every problem.
    """
    problems = list(problems_of_request(request))
    login_token = _attempt(lambda: prepare_secrets(request.home), problems)
    ports = _attempt(lambda: choose_ports(request), problems)
    wished = HostPort.parse(request.http)
    stack = Stack(
        request.home,
        request.sizes,
        ports or Ports((wished,) * request.sizes.gateway, wished),
        Caller(sys.executable, os.getpid(), request.environment),
        request.public_url,
    )
    problems += problems_of(stack)
    if problems or login_token is None:
        request.home.remove_sockets()
        request.home.processes_file.unlink(missing_ok=True)
        raise ConfigurationProblem(*problems)
    return PreparedStack(stack, login_token)


async def run_stack_processes(
    stack: Stack,
    database_url: str | None,
    *,
    clock: Clock,
    progress: Progress,
    on_ready: Callable[[], None],
    programs: Mapping[str, tuple[str, ...]] = PROGRAMS,
) -> None:
    """Run the stack until a stop signal; afterwards none of its processes is left.

    Raises:
        ConfigurationProblem: something has to be configured differently; nothing was damaged.
        CliError: a process did not start.
    """
    home = stack.home
    stop_time = StopDeadline(clock.monotonic)
    become_subreaper()
    _on_signals(_cancelling(asyncio.current_task(), stop_time))
    try:
        async with database(
            home, database_url, clock=clock, progress=progress, stop_time=stop_time
        ) as found:

            def announce() -> None:
                write_endpoints(stack, found.url)
                on_ready()

            specs = plan(stack, programs)
            records = ProcessTableWriter(stack, found, progress)
            await _run_services(
                specs, records, stop_time, clock=clock, progress=progress, on_ready=announce
            )
    finally:
        end_orphans(stop_time.for_orphans_s())
        home.remove_sockets()
        home.endpoints_file.unlink(missing_ok=True)
        home.processes_file.unlink(missing_ok=True)


async def _run_services(
    specs: tuple[ProcessSpec, ...],
    records: ProcessTableWriter,
    stop_time: StopDeadline,
    *,
    clock: Clock,
    progress: Progress,
    on_ready: Callable[[], None],
) -> None:
    launcher = LocalLauncher(records.stack.home)
    pause_max_s = restart_pause_max_s(records.stack.caller.environment)
    supervisor = Supervisor(
        specs,
        launcher=launcher,
        probe=NetworkProbe(),
        clock=clock,
        progress=progress,
        changed=records.save,
        starting_max=cores() + 1,
        restarting_max=cores(),
        restart_pause_max_s=pause_max_s,
        stop_time=stop_time,
        death_reports=RpcDeathReports(records.stack.home, clock, progress),
    )
    _on_signals(supervisor.stop)
    watching: dict[str, Callable[[], Awaitable[object]]] = {
        "orphans.reap": lambda: reap_orphans(clock),
        "database.restart": lambda: keep(
            records.database,
            clock=clock,
            progress=progress,
            changed=records.repeat,
            restart_pause_max_s=pause_max_s,
        ),
        "records.save": lambda: records.repair(clock),
        "logs.bound": lambda: bound_logs(records.stack.home, clock),
    }
    try:
        await run_beside(watching, supervisor.run(on_ready), clock)
    except StartFailed as failure:
        raise _explained(failure, launcher.said) from failure


def _attempt(work: Callable[[], T], problems: list[str]) -> T | None:
    try:
        return work()
    except ConfigurationProblem as error:
        problems += error.problems
        return None


async def run_beside(
    loops: Mapping[str, Callable[[], Awaitable[object]]], work: Awaitable[None], clock: Clock
) -> None:
    """Await `work` while the loops run; failures of loops do not end it."""
    supervision = Supervision.of(get_meter("parley"), clock, random.SystemRandom())
    async with BackgroundTasks(supervision) as tasks:
        for name, loop in loops.items():
            tasks.keep(name, loop)
        await work


def _on_signals(act: Callable[[], object]) -> None:
    loop = asyncio.get_running_loop()
    for number in STOP_SIGNALS:
        # A signal that is ignored, as by nohup, stays ignored.
        if signal.getsignal(number) is not signal.SIG_IGN:
            loop.add_signal_handler(number, act)


def _cancelling(task: asyncio.Task[Any] | None, stop_time: StopDeadline) -> Callable[[], object]:
    assert task is not None

    def cancel() -> None:
        stop_time.begin()
        task.cancel()

    return cancel


def _explained(failure: StartFailed, said_by: Callable[[str], tuple[str, ...]]) -> CliError:
    """Return `failure` with the last output of the process, or of all processes that refuse."""
    if failure.refusing:
        found = (_refusal(name, said_by(name)) for name in failure.refusing)
        # Two processes of one service print the same.
        lines = dict.fromkeys(line for lines in found for line in lines)
        return ConfigurationProblem(*(lines or (failure.message,)))
    said = said_by(failure.name)
    return CliError("\n".join((failure.message + ("; it said:" if said else ""), *said)))


def _refusal(process_name: str, said: tuple[str, ...]) -> tuple[str, ...]:
    """Return the last message of a process about its problem, without its log lines."""
    opening = f"{process_name.rpartition('-')[0]}: "
    places = [place for place, line in enumerate(said) if line.startswith(opening)]
    return said[places[-1] :] if places else said
