"""Construction of a node's reporter and registration."""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version

from parley.identity import ServiceName
from parley.process import Neighbours, Process
from parley.tasks import BackgroundTasks
from toolrunner.processes.command_check import CommandCheck
from toolrunner.quotas.enforcement import Quotas
from toolrunner.resources import NodeResources
from toolrunner.settings import Settings
from toolrunner.workspaces.node.registration import Registration
from toolrunner.workspaces.node.registry_client import GrpcRegistry
from toolrunner.workspaces.node.reporter import NodeFacts, Reporter
from toolrunner.workspaces.node.secret_client import DeferredSecrets, GrpcSecrets
from toolrunner.workspaces.sources.overlays import Overlays
from toolrunner.workspaces.wiring import Hosting


def reporter_of(
    settings: Settings,
    process: Process,
    resources: NodeResources,
    hosted: Hosting,
    overlays: Overlays,
) -> Reporter:
    """Return the reporter of this node."""
    return Reporter(
        facts=_facts(settings, hosted.node_id, resources.journal.generation, overlays),
        host=hosted.host,
        processes=resources.processes,
        workspaces=resources.workspaces,
        mirrors=hosted.mirrors,
        sandbox=resources.sandbox,
        clock=process.clock,
        directory=resources.directory,
    )


@asynccontextmanager
async def known(
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
        tasks.keep("usage.measure", reporter.measure)
        tasks.keep("quotas.check", quotas.run)
        tasks.keep("commands.check", check.run)
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
