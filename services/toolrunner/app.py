"""The composition root of toolrunner: opens its resources and serves until it is stopped."""

import asyncio
import fcntl
import os
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Final

from parley.identity import InMemoryRevocations
from parley.process import ConfigurationError, Neighbours, Process
from parley.rpc import RunningServer
from toolrunner.directories.workspaces import PASSABLE, PRIVATE
from toolrunner.files.rpc.checkpoint_servicer import CheckpointServicer
from toolrunner.files.rpc.servicer import FileServicer
from toolrunner.git.rpc.servicer import GitServicer
from toolrunner.primitives.errors import JournalUnusable, SpawnerGone
from toolrunner.problems import DOMAIN, ERRORS
from toolrunner.processes.command_check import NOT_TRIED, CommandCheck
from toolrunner.processes.rpc.convert import Presenter
from toolrunner.processes.rpc.execution_servicer import ExecutionServicer
from toolrunner.processes.rpc.process_servicer import ProcessServicer
from toolrunner.processes.scan import ProcessScan
from toolrunner.processes.tickets import TicketVerifier
from toolrunner.quotas.cpu_priority import CpuPriorities
from toolrunner.quotas.enforcement import Quotas
from toolrunner.quotas.socket_memory import SocketMemory
from toolrunner.resources import JOURNAL, NodeResources, open_resources
from toolrunner.settings import Settings
from toolrunner.spawner import PR_SET_CHILD_SUBREAPER, end_descendants, prctl
from toolrunner.spawner.client.node_programs import NodePrograms
from toolrunner.workspaces.node.reporter import Reporter
from toolrunner.workspaces.rpc.servicer import WorkspaceHostServicer
from toolrunner.workspaces.wiring import hosting, registered

TAKEN: Final = "another toolrunner has it open; give each its own data directory"


async def run(settings: Settings, process: Process) -> None:
    """Serve processes and files until asked to stop; no process is left running."""
    # Files of this process are private, unless a mode is set explicitly.
    os.umask(0o077)
    directory = _data_directory(settings)
    # Orphans of a killed spawner become children of this process.
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    try:
        await serve_node(settings, process, directory)
    finally:
        end_descendants(os.getpid())


async def serve_node(settings: Settings, process: Process, directory: Path) -> None:
    """Serve until asked to stop; all started processes end before this returns."""
    async with AsyncExitStack() as stack:
        stack.enter_context(_locked(directory))
        resources = await open_resources(settings, process, directory, stack)
        host, merges, reporter = await stack.enter_async_context(
            hosting(settings, process, resources)
        )
        neighbours = Neighbours(settings, process)
        server = await stack.enter_async_context(
            neighbours.serve(
                (
                    *_servicers(process, neighbours, resources),
                    WorkspaceHostServicer(host, merges, reporter, process.clock.now()),
                ),
                # No method takes a service token, so there are no revocations to check.
                revocations=InMemoryRevocations(()),
                errors=ERRORS,
                domain=DOMAIN,
            )
        )
        server.set_serving(False, NOT_TRIED)
        quotas = _quotas(process, resources)
        check = _command_check(process, resources, server, reporter)
        async with registered(
            settings, process, neighbours, reporter, resources.secrets, quotas, check
        ):
            try:
                await _until_stopped(process.stopping, resources.spawner.process.gone)
            finally:
                resources.processes.stop_waiting()
                resources.git.stop_waiting()


def _servicers(
    process: Process,
    neighbours: Neighbours,
    resources: NodeResources,
) -> tuple[object, ...]:
    journal, clock = resources.journal, process.clock
    verifier = TicketVerifier(neighbours.ticket_check, journal.generation, clock)
    return (
        ProcessServicer(
            resources.processes,
            Presenter.of(resources.spawner.pid, clock),
            verifier,
            reach=resources.egress,
        ),
        ExecutionServicer(journal, resources.processes),
        FileServicer(resources.files, resources.egress),
        GitServicer(resources.git, clock),
        CheckpointServicer(resources.files.restores, resources.processes),
    )


def _quotas(process: Process, resources: NodeResources) -> Quotas:
    return Quotas(
        resources.processes,
        resources.workspaces,
        ProcessScan(
            resources.spawner.pid, resources.workspaces.by_user, resources.workspaces.by_mark
        ),
        NodePrograms(resources.spawner.process, process.new_id),
        CpuPriorities(process.clock, resources.spawner.process),
        SocketMemory(resources.spawner.process, process.clock),
        resources.directory,
        process.clock,
    )


def _command_check(
    process: Process, resources: NodeResources, server: RunningServer, reporter: Reporter
) -> CommandCheck:
    def on_change(is_serving: bool, reason: str) -> None:
        server.set_serving(is_serving, reason)
        reporter.set_problem(reason)

    return CommandCheck(
        NodePrograms(resources.spawner.process, process.new_id),
        resources.spawner.process,
        resources.sandbox,
        resources.journal,
        resources.directory,
        process.clock,
        on_change,
    )


async def _until_stopped(stopping: asyncio.Event, gone: "asyncio.Future[None]") -> None:
    """Return when asked to stop.

    Raises:
        SpawnerGone: No process can be started any more, so the service has to restart.
    """
    gone.add_done_callback(lambda _: stopping.set())
    await stopping.wait()
    if gone.done():
        raise SpawnerGone


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Lock a directory exclusively; the kernel releases the lock when this process exits.

    Raises:
        JournalUnusable: Another process has locked it.
    """
    path = directory / "lock"
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise JournalUnusable(directory / JOURNAL, TAKEN) from error
        yield
    finally:
        os.close(fd)


def _data_directory(settings: Settings) -> Path:
    directory = settings.data_directory
    if settings.data_directory_shared:
        directory /= f"{settings.address.host}-{settings.address.port}"
    try:
        directory.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
        if os.geteuid() == 0:
            # Workspace users traverse it; private directories inside have their own modes.
            directory.chmod(PASSABLE)
    except OSError as error:
        problem = f"TOOLRUNNER_DATA_DIRECTORY {directory} cannot be made: {error.strerror}"
        raise ConfigurationError(f"{problem}; choose another one") from error
    return directory.resolve()
