"""The composition root of mcpgateway: opens its components and serves until it is stopped."""

import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

from mcpgateway.admin.servicer import ServerServicer
from mcpgateway.client.egress import Policy
from mcpgateway.client.sessions import Sessions
from mcpgateway.runtime.call_executor import CallExecutor
from mcpgateway.runtime.journal import Journal
from mcpgateway.runtime.servicer import RuntimeServicer
from mcpgateway.runtime.tool_listing import CatalogueCache, ToolListing
from mcpgateway.servers.domain import ApprovalPolicy, Availability, ServerId, ServerSettings
from mcpgateway.servers.problems import DOMAIN, ERRORS
from mcpgateway.servers.schema import MIGRATIONS, SCHEMA
from mcpgateway.servers.store import STORED_KEYS, Servers
from mcpgateway.settings import Settings
from parley.api.mcp.v1.authorization_service_pb2_grpc import McpAuthorizationServiceServicer
from parley.bus import Notice, PostgresBus
from parley.postgres import Database, migrate
from parley.process import Neighbours, Process
from parley.rpc import RunningServer, current_method
from parley.secrets import Keyring, SecretBox
from parley.tasks import BackgroundTasks
from parley.telemetry import Statements

SERVERS_TOPIC: Final = "mcp.servers"
QUIET_LIBRARIES: Final = ("httpx2", "httpcore2", "mcp")


async def run(settings: Settings, process: Process) -> None:
    """Serve until the process is asked to stop."""
    # These libraries would log URLs, session ids and server messages; mcpgateway logs failures
    # itself.
    for library in QUIET_LIBRARIES:
        logging.getLogger(library).setLevel(logging.CRITICAL)
    async with mcpgateway(settings, process):
        await process.stopping.wait()


@asynccontextmanager
async def mcpgateway(settings: Settings, process: Process) -> AsyncIterator[RunningServer]:
    """Migrate the database, check the keys, and serve until the context ends."""
    url = settings.database_url.reveal()
    keyring = Keyring.load(settings.master_key_file)
    await migrate(url, schema=SCHEMA, scripts=MIGRATIONS, clock=process.clock)
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(
            Database.open(
                url,
                application_name=process.instance,
                connections_max=settings.database_connections_max,
                statements=Statements(process.telemetry, current_method),
            )
        )
        servers = Servers(database, SecretBox(keyring))
        await STORED_KEYS.adopt(database.pool, keyring)
        policy = await _with_demo(settings, servers, process)
        pruned = process.telemetry.meter.create_counter(
            "parley.journal.pruned",
            unit="{entry}",
            description="Entries of the journal that were replaced by tombstones.",
        )
        journal = await Journal.open(database, process.new_id(), pruned.add)
        sessions = await stack.enter_async_context(Sessions.open(policy, process.supervision))
        executor = await stack.enter_async_context(
            CallExecutor.open(journal, sessions, process.supervision)
        )
        bus = await stack.enter_async_context(
            PostgresBus.open(
                url, application_name=process.instance, supervision=process.supervision
            )
        )

        def changed() -> None:
            bus.publish(Notice(SERVERS_TOPIC, SERVERS_TOPIC, 0))

        catalogues = CatalogueCache(sessions, process.clock, changed)
        listing = ToolListing(servers, catalogues)
        runtime = RuntimeServicer(servers, listing, catalogues, journal, executor)
        background = await stack.enter_async_context(BackgroundTasks(process.supervision))
        background.keep("lease.renew", executor.renew_lease)
        neighbours = Neighbours(settings, process)
        revocations = await stack.enter_async_context(neighbours.revocations(settings.gateway))
        servicers = (
            runtime,
            ServerServicer(servers, journal, executor, process.new_id, changed),
            # Not implemented; returns UNIMPLEMENTED.
            McpAuthorizationServiceServicer(),
        )
        yield await stack.enter_async_context(
            neighbours.serve(servicers, revocations=revocations, errors=ERRORS, domain=DOMAIN)
        )


async def _with_demo(settings: Settings, servers: Servers, process: Process) -> Policy:
    """Create or update the demo server, and return the egress policy that allows it."""
    if settings.demo_server_url is None:
        return settings.allowed_hosts
    url = settings.demo_server_url.text
    demo = ServerSettings(
        slug="demo",
        display_name="Demo",
        description="The time in any time zone.",
        url=url,
        availability=Availability.FORCE_ON,
        is_enabled=True,
        allow_in_plan_mode=True,
        is_trusted=True,
        approval_policy=ApprovalPolicy.NEVER,
    )
    await servers.ensure(ServerId(process.new_id()), demo)
    return settings.allowed_hosts.with_url(url)
