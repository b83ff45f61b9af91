"""Runs a service: reads its environment, runs it, and returns its exit code.

Exit codes: 0 it was stopped, or has finished; 1 it failed; 2 its configuration is wrong. A
configuration problem is printed as one message on standard error, without a traceback.
"""

import asyncio
import gc
import logging
import os
import random  # noqa: TID251 (this is the composition root)
import socket
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Final, NoReturn, TypeVar

import uvloop

from parley.clock import Clock, SystemClock
from parley.ids import TimeOrderedIds
from parley.process.open_files import OpenFiles, watched_open_files
from parley.process.service_settings import Environment, ServiceSettings, with_own_address
from parley.process.signals import end_with_parent, forbid_inspection, stopping_on_signals
from parley.process.watchdog import watched_event_loop
from parley.settings import ConfigurationError, Secret, SettingsError, read
from parley.tasks import Supervision
from parley.telemetry import Redactor, Telemetry, TelemetryError, start

EXIT_STOPPED: Final = 0
EXIT_FAILED: Final = 1
EXIT_CONFIGURATION: Final = 2
GC_THRESHOLDS: Final = (20_000, 5, 200)

S = TypeVar("S", bound=ServiceSettings)

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Process:
    """The resources a service gets from its process.

    Attributes:
        environment: The variables that it was started with.
        supervision: Keeps failures of background tasks from ending the process.
    """

    service: str
    instance: str
    stopping: asyncio.Event
    clock: Clock
    telemetry: Telemetry
    random: random.Random
    new_id: Callable[[], str]
    open_files: OpenFiles
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    supervision: Supervision = field(init=False)

    def __post_init__(self) -> None:
        supervision = Supervision.of(self.telemetry.meter, self.clock, self.random)
        object.__setattr__(self, "supervision", supervision)


def run_service(
    name: str, settings_type: type[S], run: Callable[[S, Process], Awaitable[None]]
) -> NoReturn:
    """Run `run` as the service `name` and exit; it should return soon after `stopping` is set.

    The settings are read from variables that start with the service's name in capitals.
    """
    sys.exit(_run(name, settings_type, run, os.environ))  # noqa: TID251 (read here, once)


def _run(
    name: str,
    settings_type: type[S],
    run: Callable[[S, Process], Awaitable[None]],
    environment: Mapping[str, str],
) -> int:
    prefix = name.upper()
    try:
        settings = read(settings_type, environment, prefix=prefix)
    except SettingsError as error:
        return _refuse(name, error.problems)
    if settings.parent_pid is not None and not end_with_parent(settings.parent_pid):
        message = (
            f"its parent {settings.parent_pid} is gone, so it does not start; "
            f"start it again, or unset {prefix}_PARENT_PID to run it alone"
        )
        _tell(name, message)
        return EXIT_FAILED
    if settings.environment is Environment.PRODUCTION:
        forbid_inspection()
    _relax_garbage_collection()
    open_files = OpenFiles.raised()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_live(name, settings, run, open_files, environment))


def _relax_garbage_collection() -> None:
    """Reduce garbage collections in a busy process.

    Imported modules live as long as the process and need not be scanned again. Few of the objects
    that a request makes are in cycles, so reference counting frees nearly all of them.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)


async def _live(
    name: str,
    settings: S,
    run: Callable[[S, Process], Awaitable[None]],
    open_files: OpenFiles,
    environment: Mapping[str, str],
) -> int:
    instance = f"{socket.gethostname()}-{os.getpid()}"
    with stopping_on_signals(name) as stopping, watched_event_loop(), watched_open_files():
        try:
            async with start(
                name,
                instance=instance,
                log_level=settings.log_level,
                log_format=settings.log_format,
                otlp_endpoint=settings.otlp_endpoint,
                metrics_listen=settings.metrics_listen,
            ) as telemetry:
                for secret in _secrets(settings):
                    telemetry.redact(secret.reveal())
                process = _process(name, instance, stopping, telemetry, open_files, environment)
                return await _outcome(name, _as_itself(settings, process, run), telemetry)
        except TelemetryError as error:
            return _refuse(name, (str(error),))


async def _as_itself(
    settings: S, process: Process, run: Callable[[S, Process], Awaitable[None]]
) -> None:
    await run(await with_own_address(settings, process.clock), process)


async def _outcome(name: str, running: Awaitable[None], telemetry: Telemetry) -> int:
    try:
        await running
    except Exception as error:
        if problems := _configuration_problems(error):
            return _refuse(name, tuple(map(telemetry.clean, problems)))
        logger.exception("%s failed", name)
        return EXIT_FAILED
    return EXIT_STOPPED


def _process(
    name: str,
    instance: str,
    stopping: asyncio.Event,
    telemetry: Telemetry,
    open_files: OpenFiles,
    environment: Mapping[str, str],
) -> Process:
    clock = SystemClock()
    rng = random.SystemRandom()
    return Process(
        service=name,
        instance=instance,
        stopping=stopping,
        clock=clock,
        telemetry=telemetry,
        random=rng,
        new_id=TimeOrderedIds(clock, rng),
        open_files=open_files,
        environment=environment,
    )


def _configuration_problems(error: BaseException) -> tuple[str, ...]:
    """Return the configuration problems, or nothing if the error has other causes as well."""
    match error:
        case SettingsError():
            return error.problems
        case ConfigurationError():
            return (str(error),)
        case BaseExceptionGroup():
            found = [_configuration_problems(inner) for inner in error.exceptions]
            return (
                tuple(problem for problems in found for problem in problems) if all(found) else ()
            )
        case _:
            return ()


def _secrets(settings: ServiceSettings) -> list[Secret]:
    values = [getattr(settings, field.name) for field in fields(settings)]
    return [value for value in values if isinstance(value, Secret)]


def _refuse(name: str, problems: tuple[str, ...]) -> int:
    """Print every problem; redacted, since a wrong value may be a secret in the wrong variable."""
    clean = Redactor().clean
    if len(problems) == 1:
        _tell(name, clean(problems[0]))
    else:
        listed = "".join(f"\n  - {clean(problem)}" for problem in problems)
        _tell(name, f"{len(problems)} problems with the configuration:{listed}")
    return EXIT_CONFIGURATION


def _tell(name: str, message: str) -> None:
    print(f"{name}: {message}", file=sys.stderr, flush=True)
