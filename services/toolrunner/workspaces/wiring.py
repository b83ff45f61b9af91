"""Construction of the host service from its parts."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from parley.clock import Clock
from parley.tasks import Supervision
from toolrunner.directories.users import Users
from toolrunner.directories.workspaces import Workspaces
from toolrunner.files.service import FileService
from toolrunner.filesystem.trash import Trash
from toolrunner.journal.records import ProcessRecord
from toolrunner.primitives.domain import Limits
from toolrunner.processes.node_sandbox import Sandbox
from toolrunner.processes.service import Processes
from toolrunner.spawner.client.fault_points import Points
from toolrunner.spawner.client.node_programs import Programs
from toolrunner.spawner.client.spawner import Spawner
from toolrunner.workspaces.domain.spec import LocalDirectory
from toolrunner.workspaces.egress import WorkspaceEgress
from toolrunner.workspaces.host import Host
from toolrunner.workspaces.merge.service import Merges
from toolrunner.workspaces.preparation import Preparing
from toolrunner.workspaces.preparation_runs import HostResources
from toolrunner.workspaces.setup_script import SetupScript
from toolrunner.workspaces.sources.builder import OwnedByService, SourceBuilder
from toolrunner.workspaces.sources.clone import Cloner
from toolrunner.workspaces.sources.git_command import NodeGit
from toolrunner.workspaces.sources.mirrors import Bounds, Mirrors
from toolrunner.workspaces.sources.overlays import Overlays
from toolrunner.workspaces.sources.remotes import Remotes, SystemResolver
from toolrunner.workspaces.store import Placements, open_placements

PLACEMENTS: Final = "placements.sqlite"


@dataclass(frozen=True, slots=True)
class Parts:
    """The dependencies and settings of hosting.

    Attributes:
        directory: The data directory of this node.
        encode_started: Encodes a process as the response of the method that started it.
        workspaces_max: The maximum of workspaces that are not stopped.
        local_directories: Directories offered to local workspaces.
        git_protocols: Transports that git may use.
        git_private_hosts: Hosts that it may fetch from although their addresses are not public.
        git_limits: The limits of the node's own git.
        mirror_bounds: The limits on mirrors.
        requires_placement: Whether calls to workspaces that were not placed here are refused.
    """

    directory: Path
    processes: Processes
    files: FileService
    workspaces: Workspaces
    spawner: Spawner
    sandbox: Sandbox
    exits: WorkspaceEgress
    overlays: Overlays
    users: Users | None
    points: Points
    clock: Clock
    supervision: Supervision
    new_id: Callable[[], str]
    encode_started: Callable[[ProcessRecord], bytes]
    workspaces_max: int
    local_directories: tuple[LocalDirectory, ...]
    git_protocols: tuple[str, ...]
    git_private_hosts: tuple[str, ...]
    git_limits: Limits
    mirror_bounds: Bounds
    requires_placement: bool


@dataclass(frozen=True, slots=True)
class Hosting:
    """The host service and its parts for the rest of the service."""

    host: Host
    merges: Merges
    mirrors: Mirrors
    node_id: str


@asynccontextmanager
async def hosting(parts: Parts) -> AsyncIterator[Hosting]:
    """Run the host service; operations in which an earlier run was killed are continued.

    Raises:
        JournalUnusable: The file of the placements cannot be read or written.
    """
    path = parts.directory / PLACEMENTS
    async with open_placements(path, new_id=parts.new_id) as placements:
        parts.exits.placements = placements.all
        trash = Trash(parts.directory / "trash")
        git = NodeGit(Programs(parts.spawner, parts.new_id), parts.sandbox, parts.git_limits)
        mirrors = _mirrors(parts, git, trash, placements)
        resources = _resources(parts, placements, Cloner(mirrors, git), trash)
        log_directory = parts.directory / "preparations"
        async with Host(
            resources,
            log_directory=log_directory,
            workspaces_max=parts.workspaces_max,
            supervision=parts.supervision,
            requires_placement=parts.requires_placement,
        ) as host:
            merges = Merges(host, resources)
            for workspace_id in tuple(placements.all):
                # Processes that outlived the service may have open listeners.
                await parts.exits.egress_route(workspace_id)
            for placement in tuple(host.placements.values()):
                await merges.recover(placement)
            yield Hosting(host, merges, mirrors, placements.node_id)


def _mirrors(parts: Parts, git: NodeGit, trash: Trash, placements: Placements) -> Mirrors:
    def is_borrowed(mirror: Path) -> bool:
        objects = str(mirror / "objects")
        return any(objects in placement.readable for placement in placements.all.values())

    remotes = Remotes(
        parts.git_protocols, parts.git_private_hosts, SystemResolver(), str(parts.directory)
    )
    return Mirrors(
        parts.directory / "mirrors",
        git,
        remotes,
        parts.exits,
        parts.mirror_bounds,
        trash,
        parts.clock,
        is_borrowed,
    )


def _resources(parts: Parts, placements: Placements, cloner: Cloner, trash: Trash) -> HostResources:
    source_builder = SourceBuilder(
        parts.workspaces,
        cloner,
        parts.overlays,
        parts.local_directories,
        trash,
        parts.users or OwnedByService(),
        # A workspace with its own user may not read files of another user.
        parts.users is None,
    )
    setup = SetupScript(parts.processes, parts.encode_started)
    return HostResources(
        placements=placements,
        workspaces=parts.workspaces,
        processes=parts.processes,
        files=parts.files,
        source_builder=source_builder,
        preparing=Preparing(
            placements, parts.workspaces, source_builder, setup, parts.points, parts.clock
        ),
        trash=trash,
        points=parts.points,
        sandbox=parts.sandbox,
        exits=parts.exits,
        clock=parts.clock,
    )
