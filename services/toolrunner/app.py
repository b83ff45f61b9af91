"""The composition root of toolrunner: opens what it needs and serves until it is stopped."""

import asyncio
import fcntl
import logging
import os
import socket
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Final

from parley.identity import InMemoryRevocations, ServiceName
from parley.process import ConfigurationError, Neighbours, Process
from toolrunner.census import Census
from toolrunner.confining import Sandbox, find_sandbox
from toolrunner.egress import Dialer, Egress, LoggedAudit, Proxy, SystemNetwork
from toolrunner.errors import JournalUnusable, SpawnerGone
from toolrunner.faults import with_points
from toolrunner.file_room import FileRoom
from toolrunner.git_room import GitRoom
from toolrunner.hosting.assembly import Parts, hosting
from toolrunner.hosting.exits import HostedExits
from toolrunner.hosting.overlays import KernelOverlays, Overlays
from toolrunner.hosting.points import points_of
from toolrunner.hosting.programs import Programs
from toolrunner.hosting.registration import Registration
from toolrunner.hosting.reporting import NodeFacts, Reporter
from toolrunner.journal_thread import open_journal
from toolrunner.processes import Processes
from toolrunner.quotas import Quotas
from toolrunner.rpc.errors import DOMAIN, ERRORS
from toolrunner.rpc.execution_servicer import ExecutionServicer
from toolrunner.rpc.file_servicer import FileServicer
from toolrunner.rpc.git_servicer import GitServicer
from toolrunner.rpc.host_servicer import WorkspaceHostServicer
from toolrunner.rpc.node_client import GrpcRegistry
from toolrunner.rpc.presenting import Presenter
from toolrunner.rpc.process_servicer import ProcessServicer, cursor_of, encode_started
from toolrunner.rpc.secret_client import GrpcSecrets, LateSecrets
from toolrunner.sandbox import BelowMinimum
from toolrunner.settings import Settings
from toolrunner.shares import Shares
from toolrunner.spawner import PR_SET_CHILD_SUBREAPER, end_descendants, end_marked, prctl
from toolrunner.spawner_program import running_spawner
from toolrunner.tickets import TicketBooth
from toolrunner.workspaces import PASSABLE, PRIVATE, Workspaces

logger = logging.getLogger(__name__)

JOURNAL: Final = "journal.sqlite"
TAKEN: Final = "another toolrunner has it open; give each its own data directory"
BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")


async def run(settings: Settings, process: Process) -> None:
    """Serve processes and files until the process is asked to stop, then leave none behind."""
    # Nothing that this process makes is anyone else's to read, unless it says so.
    os.umask(0o077)
    directory = _data_directory(settings.data_directory)
    # Whatever a spawner that was killed leaves behind comes to this process.
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    try:
        await serve_node(settings, process, directory)
    finally:
        end_descendants(os.getpid())


async def serve_node(settings: Settings, process: Process, directory: Path) -> None:
    """Serve until asked to stop; everything that was started ends before this returns."""
    async with AsyncExitStack() as stack:
        stack.enter_context(_locked(directory))
        sandbox = _sandbox(settings, directory)
        # First of all: this is the last fork, and there is no other thread yet.
        spawner = await stack.enter_async_context(
            running_spawner(
                directory,
                adoption_s=settings.adoption_s,
                has_groups=settings.control_groups,
            )
        )
        journal = await stack.enter_async_context(
            open_journal(
                directory / JOURNAL,
                new_generation=process.new_id(),
                boot_id=BOOT_ID.read_text().strip(),
                clock=process.clock,
                adopted=[each.process_id for each in spawner.adopted],
            )
        )
        # Whoever looked after these was killed too, and some may have outlived it.
        end_marked(journal.lost)
        places = directory / "workspaces"
        users = sandbox.users(places)
        workspaces = Workspaces(places, users, settings.quota)
        secrets = LateSecrets()
        exits = await stack.enter_async_context(_exits(settings, process, secrets))
        spawner.process.serve_doors(exits.exits.take_door)
        processes = await stack.enter_async_context(
            Processes(
                journal=journal,
                spawner=with_points(spawner.process, settings.faultpoints_directory, process.clock),
                adopted=spawner.adopted,
                workspaces=workspaces,
                sandbox=sandbox,
                clock=process.clock,
                new_id=process.new_id,
                encode_started=encode_started,
                cursor_of=cursor_of,
                limits=settings.process_limits,
                exits=exits,
            )
        )
        files = await stack.enter_async_context(
            FileRoom(
                journal=journal,
                spawner=spawner.process,
                workspaces=workspaces,
                sandbox=sandbox,
                clock=process.clock,
                new_id=process.new_id,
            )
        )
        git = await stack.enter_async_context(GitRoom(files, process.clock))
        overlays = KernelOverlays(directory / "overlay-probe")
        hosted = await stack.enter_async_context(
            hosting(
                Parts(
                    directory=directory,
                    processes=processes,
                    files=files,
                    workspaces=workspaces,
                    spawner=spawner.process,
                    sandbox=sandbox,
                    exits=exits,
                    overlays=overlays,
                    users=users,
                    points=points_of(settings.faultpoints_directory, process.clock),
                    clock=process.clock,
                    new_id=process.new_id,
                    encode_started=encode_started,
                    workspaces_max=settings.workspaces_max,
                    local_directories=settings.local_directories,
                    git_protocols=settings.git_protocols,
                    git_private_hosts=settings.git_private_hosts,
                    git_limits=settings.git_limits,
                    mirror_bounds=settings.mirror_bounds,
                    # Who is known to chatd is told by it of every workspace.
                    requires_placement=bool(settings.chatd),
                )
            )
        )
        reporter = Reporter(
            facts=_facts(settings, hosted.node_id, journal.generation, overlays),
            host=hosted.host,
            processes=processes,
            workspaces=workspaces,
            mirrors=hosted.mirrors,
            sandbox=sandbox,
            clock=process.clock,
            directory=directory,
        )
        neighbours = Neighbours(settings, process)
        booth = TicketBooth(neighbours.ticket_check, journal.generation, process.clock)
        servicers = (
            ProcessServicer(processes, Presenter(spawner.pid), booth),
            ExecutionServicer(journal, processes),
            FileServicer(files),
            GitServicer(git, process.clock),
            WorkspaceHostServicer(hosted.host, hosted.merges, reporter, process.clock.now()),
        )
        # No method takes a service token, so there is no revocation to know of.
        revocations = InMemoryRevocations(())
        await stack.enter_async_context(
            neighbours.serve(servicers, revocations=revocations, errors=ERRORS, domain=DOMAIN)
        )
        quotas = Quotas(
            processes,
            workspaces,
            Census(spawner.pid, workspaces.by_user),
            Programs(spawner.process, process.new_id),
            Shares(process.clock),
            directory,
            process.clock,
        )
        async with _known(settings, process, neighbours, reporter, secrets, quotas):
            try:
                await _until_stopped(process.stopping, spawner.process.gone)
            finally:
                processes.stop_waiting()
                git.stop_waiting()


@asynccontextmanager
async def _exits(
    settings: Settings, process: Process, secrets: LateSecrets
) -> AsyncIterator[HostedExits]:
    """Run the egress proxy."""
    trust = _trust(settings.egress_authorities_file)
    proxy = Proxy(
        Dialer(SystemNetwork(), trust),
        secrets,
        LoggedAudit(process.telemetry.meter),
        process.clock,
    )
    private = frozenset(settings.egress_private_hosts)
    async with Egress(proxy, process.new_id) as exits, Egress(proxy, process.new_id) as fetches:
        yield HostedExits(exits, fetches, secrets, private, settings.egress_presets)


def _trust(authorities_file: Path | None) -> ssl.SSLContext:
    """Return which certificates are believed: those of the system, and of some authorities more.

    Raises:
        ConfigurationError: The file of these cannot be read.
    """
    trust = ssl.create_default_context()
    trust.set_alpn_protocols(["http/1.1"])
    if authorities_file is not None:
        try:
            trust.load_verify_locations(authorities_file)
        except (OSError, ssl.SSLError) as error:
            problem = f"TOOLRUNNER_EGRESS_AUTHORITIES_FILE {authorities_file} holds no certificates"
            raise ConfigurationError(f"{problem} that can be read: {error}") from error
    return trust


@asynccontextmanager
async def _known(
    settings: Settings,
    process: Process,
    neighbours: Neighbours,
    reporter: Reporter,
    secrets: LateSecrets,
    quotas: Quotas,
) -> AsyncIterator[None]:
    """Measure what is hosted, hold it to its quotas, and be known to chatd where there is one."""
    async with (
        neighbours.channels(ServiceName.CHATD, settings.chatd) as channels,
        asyncio.TaskGroup() as tasks,
    ):
        registration = Registration(
            registry=GrpcRegistry(channels, reporter),
            host=reporter.host,
            hosted=reporter.hosted,
            clock=process.clock,
            chance=process.random.random,
            new_id=process.new_id,
        )
        secrets.source = GrpcSecrets(
            channels,
            registration,
            reporter.facts.node_id,
            reporter.host.placements,
            process.new_id,
            process.telemetry.redact,
        )
        running = [tasks.create_task(reporter.measure()), tasks.create_task(quotas.run())]
        if settings.chatd:
            running.append(tasks.create_task(registration.run()))
        try:
            yield
        finally:
            for task in running:
                task.cancel()
            if settings.leaves_at_stop:
                await registration.leave()


def _facts(
    settings: Settings, node_id: str, journal_generation: str, overlays: Overlays
) -> NodeFacts:
    labels = (label.partition("=") for label in settings.labels)
    return NodeFacts(
        node_id=node_id,
        name=settings.name or socket.gethostname(),
        address=str(settings.advertise or settings.listen),
        version=version("parley"),
        journal_generation=journal_generation,
        workspaces_max=settings.workspaces_max,
        labels=tuple((name, value) for name, _, value in labels),
        directories=settings.local_directories,
        has_overlays=overlays.is_available,
    )


async def _until_stopped(stopping: asyncio.Event, gone: "asyncio.Future[None]") -> None:
    """Return when asked to stop.

    Raises:
        SpawnerGone: Nothing can be started any more, so the service has to start anew.
    """
    gone.add_done_callback(lambda _: stopping.set())
    await stopping.wait()
    if gone.done():
        raise SpawnerGone


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Be the only one who works in a directory; the kernel forgets it when this process ends.

    Raises:
        JournalUnusable: Another process does.
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


def _sandbox(settings: Settings, directory: Path) -> Sandbox:
    """Find out how commands can be confined, and say so.

    Raises:
        ConfigurationError: It is less than the minimum.
    """
    forced = settings.sandbox_level
    try:
        sandbox = find_sandbox(
            directory,
            minimum=settings.sandbox_minimum.level,
            forced=None if forced is None else forced.level,
        )
    except BelowMinimum as error:
        raise ConfigurationError(str(error)) from error
    logger.info(sandbox.report.summary, extra={"sandbox_level": sandbox.report.level.word})
    return sandbox


def _data_directory(directory: Path) -> Path:
    try:
        directory.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
        if os.geteuid() == 0:
            # The users of workspaces walk through; all that is private inside is closed itself.
            directory.chmod(PASSABLE)
    except OSError as error:
        problem = f"TOOLRUNNER_DATA_DIRECTORY {directory} cannot be made: {error.strerror}"
        raise ConfigurationError(f"{problem}; choose another one") from error
    return directory.resolve()
