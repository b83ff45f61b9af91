"""The resources of a node: sandbox, spawner, journal, workspaces, egress, processes and files."""

import logging
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

from parley.process import ConfigurationError, Process
from toolrunner.checkpoints.service import Checkpoints
from toolrunner.directories.users import Users
from toolrunner.directories.workspaces import Workspaces
from toolrunner.egress.wiring import running_egress
from toolrunner.files.service import FileService
from toolrunner.git.service import GitService
from toolrunner.journal.thread import JournalThread, open_journal
from toolrunner.processes.node_sandbox import Sandbox, find_sandbox
from toolrunner.processes.rpc.process_servicer import cursor_of, encode_started
from toolrunner.processes.service import Processes
from toolrunner.sandbox import BelowMinimum
from toolrunner.settings import Settings
from toolrunner.spawner import end_marked
from toolrunner.spawner.client.fault_points import with_fault_points
from toolrunner.spawner.client.startup import RunningSpawner, running_spawner
from toolrunner.workspaces.egress import WorkspaceEgress
from toolrunner.workspaces.node.secret_client import DeferredSecrets

logger = logging.getLogger(__name__)

JOURNAL: Final = "journal.sqlite"
BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True)
class NodeResources:
    """The resources of a node.

    Attributes:
        directory: The data directory of this node.
        sandbox: Confines commands.
        spawner: Starts processes.
        journal: The journal of requests and their outcomes.
        users: The Linux users of workspaces, where each has its own.
        workspaces: The directories of workspaces.
        egress: The egress routes of workspaces.
        secrets: The source of secrets for egress.
        checkpoints: The files before turns changed them.
        processes: The process service.
        files: The file service.
        git: The git service.
    """

    directory: Path
    sandbox: Sandbox
    spawner: RunningSpawner
    journal: JournalThread
    users: Users | None
    workspaces: Workspaces
    egress: WorkspaceEgress
    secrets: DeferredSecrets
    checkpoints: Checkpoints
    processes: Processes
    files: FileService
    git: GitService


async def open_resources(
    settings: Settings, process: Process, directory: Path, stack: AsyncExitStack
) -> NodeResources:
    """Open the resources; processes of an earlier run are adopted or ended.

    Raises:
        ConfigurationError: Commands cannot be confined at the required level.
    """
    sandbox = _sandbox(settings, directory)
    # First: this is the last fork, and there is no other thread yet.
    spawner = await stack.enter_async_context(
        running_spawner(
            directory,
            adoption_s=settings.adoption_s,
            has_groups=settings.control_groups,
            open_files=process.open_files,
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
    # Their spawner was killed too, and some of them may still run.
    end_marked(journal.lost)
    places = directory / "workspaces"
    users = sandbox.users(places)
    if users is not None:
        _log_users(users)
    secrets = DeferredSecrets()
    workspaces = Workspaces(places, users, settings.quota)
    egress = await stack.enter_async_context(running_egress(settings, process, secrets, workspaces))
    spawner.process.serve_listeners(egress.listeners.take_listener)
    checkpoints = Checkpoints(workspaces, process.clock, process.supervision)
    await stack.enter_async_context(checkpoints)
    processes = await stack.enter_async_context(
        _processes(settings, process, journal, spawner, workspaces, sandbox, egress, checkpoints)
    )
    files = await stack.enter_async_context(
        FileService(
            journal=journal,
            spawner=spawner.process,
            workspaces=workspaces,
            sandbox=sandbox,
            clock=process.clock,
            supervision=process.supervision,
            new_id=process.new_id,
            checkpoints=checkpoints,
        )
    )
    return NodeResources(
        directory=directory,
        sandbox=sandbox,
        spawner=spawner,
        journal=journal,
        users=users,
        workspaces=workspaces,
        egress=egress,
        secrets=secrets,
        checkpoints=checkpoints,
        processes=processes,
        files=files,
        git=await stack.enter_async_context(GitService(files, process.clock, process.supervision)),
    )


def _processes(
    settings: Settings,
    process: Process,
    journal: JournalThread,
    spawner: RunningSpawner,
    workspaces: Workspaces,
    sandbox: Sandbox,
    egress: WorkspaceEgress,
    checkpoints: Checkpoints,
) -> Processes:
    pruned = process.telemetry.meter.create_counter(
        "parley.journal.pruned",
        unit="{entry}",
        description="Entries of the journal that were replaced by tombstones.",
    )
    return Processes(
        journal=journal,
        spawner=with_fault_points(spawner.process, settings.faultpoints_directory, process.clock),
        adopted=spawner.adopted,
        workspaces=workspaces,
        sandbox=sandbox,
        clock=process.clock,
        supervision=process.supervision,
        new_id=process.new_id,
        encode_started=encode_started,
        cursor_of=cursor_of,
        limits=settings.process_limits,
        removed_kept=timedelta(seconds=settings.removed_kept_s),
        egress=egress,
        checkpoints=checkpoints,
        on_pruned=pruned.add,
    )


def _log_users(users: Users) -> None:
    logger.info("workspaces get the users %d to %d", users.range.first, users.range.last)
    if outside := users.outside():
        logger.warning(
            "workspaces keep a user outside of TOOLRUNNER_FIRST_USER and TOOLRUNNER_USERS_MAX, "
            "which another node of this machine may have too; make them anew to part them",
            extra={"workspaces": len(outside), "workspace_id": outside[0]},
        )


def _sandbox(settings: Settings, directory: Path) -> Sandbox:
    """Probe how commands can be confined, and log it.

    Raises:
        ConfigurationError: It is below the minimum.
    """
    forced = settings.sandbox_level
    try:
        sandbox = find_sandbox(
            directory,
            settings.user_range,
            minimum=settings.sandbox_minimum.level,
            forced=None if forced is None else forced.level,
        )
    except BelowMinimum as error:
        raise ConfigurationError(str(error)) from error
    logger.info(sandbox.report.summary, extra={"sandbox_level": sandbox.report.level.word})
    return sandbox
