"""Construction of the host service, and of the node's registration with chatd."""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Final

from parley.identity import ServiceName
from parley.process import Neighbours, Process
from parley.tasks import BackgroundTasks
from toolrunner.filesystem.trash import Trash
from toolrunner.processes.command_check import CommandCheck
from toolrunner.processes.rpc.process_servicer import encode_started
from toolrunner.quotas.enforcement import Quotas
from toolrunner.resources import NodeResources
from toolrunner.settings import Settings
from toolrunner.spawner.client.fault_points import points_of
from toolrunner.spawner.client.node_programs import NodePrograms
from toolrunner.workspaces.host import Host
from toolrunner.workspaces.merge.service import Merges
from toolrunner.workspaces.node.registration import Registration
from toolrunner.workspaces.node.registry_client import GrpcRegistry
from toolrunner.workspaces.node.reporter import NodeFacts, Reporter
from toolrunner.workspaces.node.secret_client import DeferredSecrets, GrpcSecrets
from toolrunner.workspaces.preparation import PreparationSteps
from toolrunner.workspaces.preparation_runs import HostResources
from toolrunner.workspaces.setup_script import SetupScript
from toolrunner.workspaces.sources.builder import OwnedByService, SourceBuilder
from toolrunner.workspaces.sources.clone import Cloner
from toolrunner.workspaces.sources.git_command import NodeGit
from toolrunner.workspaces.sources.mirrors import Mirrors
from toolrunner.workspaces.sources.overlays import KernelOverlays, Overlays
from toolrunner.workspaces.sources.remotes import Remotes, SystemResolver
from toolrunner.workspaces.store import Placements, open_placements

PLACEMENTS: Final = "placements.sqlite"


@asynccontextmanager
async def hosting(
    settings: Settings, process: Process, resources: NodeResources
) -> AsyncIterator[tuple[Host, Merges, Reporter]]:
    """Run the host service; operations in which an earlier run was killed are continued.

    Raises:
        JournalUnusable: The file of the placements cannot be read or written.
    """
    directory = resources.directory
    overlays = KernelOverlays(directory / "overlay-probe")
    async with open_placements(directory / PLACEMENTS, new_id=process.new_id) as placements:
        resources.egress.placements = placements.all
        trash = Trash(directory / "trash")
        programs = NodePrograms(resources.spawner.process, process.new_id)
        git = NodeGit(programs, resources.sandbox, settings.git_limits)
        mirrors = _mirrors(settings, process, resources, git, trash, placements)
        source_builder = SourceBuilder(
            resources.workspaces,
            Cloner(mirrors, git),
            overlays,
            settings.local_directories,
            trash,
            resources.users or OwnedByService(),
            # A workspace with its own user may not read files of another user.
            resources.users is None,
        )
        host_resources = _host_resources(
            settings, process, resources, placements, source_builder, trash
        )
        async with Host(
            host_resources,
            log_directory=directory / "preparations",
            workspaces_max=settings.workspaces_max,
            supervision=process.supervision,
            # With chatd, every workspace is placed by it.
            requires_placement=bool(settings.chatd),
        ) as host:
            merges = Merges(host, host_resources, resources.checkpoints, resources.journal)
            for workspace_id in tuple(placements.all):
                # Processes that outlived the service may have open listeners.
                await resources.egress.egress_route(workspace_id)
            for placement in tuple(host.placements.values()):
                await merges.recover(placement)
            yield (
                host,
                merges,
                Reporter(
                    facts=_facts(
                        settings, placements.node_id, resources.journal.generation, overlays
                    ),
                    host=host,
                    processes=resources.processes,
                    workspaces=resources.workspaces,
                    mirrors=mirrors,
                    sandbox=resources.sandbox,
                    clock=process.clock,
                    directory=directory,
                ),
            )


def _mirrors(
    settings: Settings,
    process: Process,
    resources: NodeResources,
    git: NodeGit,
    trash: Trash,
    placements: Placements,
) -> Mirrors:
    def is_borrowed(mirror: Path) -> bool:
        objects = str(mirror / "objects")
        return any(objects in placement.readable for placement in placements.all.values())

    directory = resources.directory
    return Mirrors(
        directory / "mirrors",
        git,
        Remotes(
            settings.git_protocols, settings.git_private_hosts, SystemResolver(), str(directory)
        ),
        resources.egress,
        settings.mirror_bounds,
        trash,
        process.clock,
        is_borrowed,
    )


def _host_resources(
    settings: Settings,
    process: Process,
    resources: NodeResources,
    placements: Placements,
    source_builder: SourceBuilder,
    trash: Trash,
) -> HostResources:
    workspaces, clock = resources.workspaces, process.clock
    points = points_of(settings.faultpoints_directory, clock)
    setup = SetupScript(resources.processes, encode_started)
    return HostResources(
        placements=placements,
        workspaces=workspaces,
        processes=resources.processes,
        files=resources.files,
        source_builder=source_builder,
        steps=PreparationSteps(placements, workspaces, source_builder, setup, points, clock),
        trash=trash,
        points=points,
        sandbox=resources.sandbox,
        egress=resources.egress,
        clock=clock,
    )


@asynccontextmanager
async def registered(
    settings: Settings,
    process: Process,
    neighbours: Neighbours,
    reporter: Reporter,
    secrets: DeferredSecrets,
    quotas: Quotas,
    check: CommandCheck,
) -> AsyncIterator[None]:
    """Measure workspaces, enforce quotas, and register with chatd if one is configured.

    The command check runs in the background too.
    """
    async with (
        neighbours.channels(ServiceName.CHATD, settings.chatd) as channels,
        BackgroundTasks(process.supervision) as tasks,
    ):
        registration = Registration(
            registry=GrpcRegistry(channels, reporter),
            host=reporter.host,
            hosted=reporter.hosted,
            clock=process.clock,
            rng=process.random.random,
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
        tasks.keep("usage.measure", reporter.measure)
        tasks.keep("quotas.check", quotas.run)
        tasks.keep("commands.check", check.run)
        if reporter.processes.has_unmasked:
            tasks.keep("processes.mask", reporter.processes.mask_adopted)
        registering = tasks.keep("node.register", registration.run) if settings.chatd else None
        try:
            yield
        finally:
            if registering is not None:
                registering.cancel()
            if settings.leaves_at_stop:
                await registration.leave()


def _facts(
    settings: Settings, node_id: str, journal_generation: str, overlays: Overlays
) -> NodeFacts:
    labels = (label.partition("=") for label in settings.labels)
    return NodeFacts(
        node_id=node_id,
        name=settings.name or socket.gethostname(),
        address=str(settings.address),
        version=version("parley"),
        journal_generation=journal_generation,
        workspaces_max=settings.workspaces_max,
        labels=tuple((name, value) for name, _, value in labels),
        directories=settings.local_directories,
        has_overlays=overlays.is_available,
    )
