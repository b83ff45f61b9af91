"""Where commands run and files lie: all that a node needs before anybody hosts anything on it."""

import logging
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from parley.process import ConfigurationError, Process
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
    """What commands and files are worked on with.

    Attributes:
        directory: Everything of this node is below it.
        sandbox: How commands are confined.
        spawner: Starts them.
        journal: What was asked of this node, and what became of it.
        users: As whom they run, where each workspace has a user.
        workspaces: Where they run.
        exits: Their way out.
        secrets: What they may use on it.
        processes: What runs.
        files: What lies there.
        git: The repositories among it.
    """

    directory: Path
    sandbox: Sandbox
    spawner: RunningSpawner
    journal: JournalThread
    users: Users | None
    workspaces: Workspaces
    exits: WorkspaceEgress
    secrets: DeferredSecrets
    processes: Processes
    files: FileService
    git: GitService


async def open_resources(
    settings: Settings, process: Process, directory: Path, stack: AsyncExitStack
) -> NodeResources:
    """Return where commands run; what is left of an earlier node is adopted or ended.

    Raises:
        ConfigurationError: Commands cannot be confined as they must.
    """
    sandbox = _sandbox(settings, directory)
    # First of all: this is the last fork, and there is no other thread yet.
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
    # Whoever looked after these was killed too, and some may have outlived it.
    end_marked(journal.lost)
    places = directory / "workspaces"
    users = sandbox.users(places)
    secrets = DeferredSecrets()
    exits = await stack.enter_async_context(running_egress(settings, process, secrets))
    spawner.process.serve_listeners(exits.exits.take_listener)
    tools = _Tools(sandbox, spawner, journal, Workspaces(places, users, settings.quota), exits)
    processes = await stack.enter_async_context(_processes(settings, process, tools))
    files = await stack.enter_async_context(_files(process, tools))
    return NodeResources(
        directory=directory,
        sandbox=sandbox,
        spawner=spawner,
        journal=journal,
        users=users,
        workspaces=tools.workspaces,
        exits=exits,
        secrets=secrets,
        processes=processes,
        files=files,
        git=await stack.enter_async_context(GitService(files, process.clock, process.supervision)),
    )


@dataclass(frozen=True, slots=True)
class _Tools:
    """What running commands and working on files have in common."""

    sandbox: Sandbox
    spawner: RunningSpawner
    journal: JournalThread
    workspaces: Workspaces
    exits: WorkspaceEgress


def _processes(settings: Settings, process: Process, tools: _Tools) -> Processes:
    points = settings.faultpoints_directory
    return Processes(
        journal=tools.journal,
        spawner=with_fault_points(tools.spawner.process, points, process.clock),
        adopted=tools.spawner.adopted,
        workspaces=tools.workspaces,
        sandbox=tools.sandbox,
        clock=process.clock,
        supervision=process.supervision,
        new_id=process.new_id,
        encode_started=encode_started,
        cursor_of=cursor_of,
        limits=settings.process_limits,
        exits=tools.exits,
    )


def _files(process: Process, tools: _Tools) -> FileService:
    return FileService(
        journal=tools.journal,
        spawner=tools.spawner.process,
        workspaces=tools.workspaces,
        sandbox=tools.sandbox,
        clock=process.clock,
        supervision=process.supervision,
        new_id=process.new_id,
    )


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
