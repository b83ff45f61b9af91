"""Construction of the egress proxy of a node."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from parley.process import ConfigurationError, Process
from toolrunner.directories.workspaces import Workspaces
from toolrunner.egress import Dialer, LoggedAccess, Proxy, ProxyListeners, SystemNetwork
from toolrunner.egress.reached_hosts import NoNotes, ReachedHosts
from toolrunner.settings import Settings
from toolrunner.workspaces.egress import WorkspaceEgress
from toolrunner.workspaces.node.secret_client import DeferredSecrets


@asynccontextmanager
async def running_egress(
    settings: Settings, process: Process, secrets: DeferredSecrets, workspaces: Workspaces
) -> AsyncIterator[WorkspaceEgress]:
    """Run the egress proxy; what the node itself fetches is not of the workspace's processes."""
    trust = _trust(settings.egress_authorities_file)
    reached = ReachedHosts(lambda workspace_id: workspaces.at(workspace_id).directory)
    proxy = Proxy(
        Dialer(SystemNetwork(), trust),
        secrets,
        LoggedAccess(process.telemetry.meter),
        process.clock,
        reached=reached,
    )
    private = frozenset(settings.egress_private_hosts)
    async with (
        reached,
        ProxyListeners(proxy, process.new_id, process.supervision) as listeners,
        ProxyListeners(
            replace(proxy, reached=NoNotes()), process.new_id, process.supervision
        ) as fetch_listeners,
    ):
        yield WorkspaceEgress(
            listeners, fetch_listeners, secrets, private, settings.egress_presets, reached=reached
        )


def _trust(authorities_file: Path | None) -> ssl.SSLContext:
    """Return the trusted authorities: those of the system, and those of the configured file.

    Raises:
        ConfigurationError: The file cannot be read.
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
