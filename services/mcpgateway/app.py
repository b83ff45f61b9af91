"""The composition root of mcpgateway: opens its components and serves until it is stopped."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from mcpgateway.admin.deleted_users import DeletedUsers
from mcpgateway.admin.excluded_calls import ExcludedCalls
from mcpgateway.admin.notices import SERVERS_TOPIC, Notices, login_given_up
from mcpgateway.admin.probing import Probing
from mcpgateway.admin.servicer import Governance, ServerServicer
from mcpgateway.admin.tool_servicer import ToolServicer
from mcpgateway.client.sessions import Sessions
from mcpgateway.oauth.errors import LOGIN_ERRORS
from mcpgateway.oauth.rpc.servicer import AuthorizationServicer
from mcpgateway.oauth.wiring import OpenLogins, open_logins
from mcpgateway.runtime.call_executor import CallExecutor
from mcpgateway.runtime.call_starter import CallStarter
from mcpgateway.runtime.catalogues import CatalogueCache
from mcpgateway.runtime.instances import Instances
from mcpgateway.runtime.journal import Journal
from mcpgateway.runtime.recorded_calls import RecordedCalls
from mcpgateway.runtime.servicer import RuntimeServicer
from mcpgateway.runtime.start_queue import StartQueue
from mcpgateway.runtime.stored_catalogues import StoredCatalogues
from mcpgateway.runtime.tool_listing import ToolListing
from mcpgateway.servers.access import Access
from mcpgateway.servers.changes import ServerChanges
from mcpgateway.servers.definitions import Definitions
from mcpgateway.servers.domain import (
    ApprovalPolicy,
    Availability,
    PinPolicy,
    ServerId,
    ServerSettings,
)
from mcpgateway.servers.groups import GatewayGroups, Grantees
from mcpgateway.servers.health import ServerHealth
from mcpgateway.servers.known_servers import KnownServers
from mcpgateway.servers.problems import DOMAIN, ERRORS
from mcpgateway.servers.schema import MIGRATIONS, SCHEMA
from mcpgateway.servers.store import STORED_KEYS, Servers
from mcpgateway.servers.user_values import StoredUsers, UserValues
from mcpgateway.settings import Settings
from parley.audit_log.delivery import AuditDelivery
from parley.bus import Notice, PostgresBus
from parley.egress.policy import Policy
from parley.identity import ServiceName
from parley.postgres import Database, migrate
from parley.process import KeyRotation, Neighbours, Process
from parley.rpc import Channels, RunningServer, current_method
from parley.secrets import KeyringFile, SecretBox
from parley.tasks import BackgroundTasks
from parley.telemetry import Statements

#: So that the lease is renewed whatever waits for the other connections.
LEASE_CONNECTIONS: Final = 1
QUIET_LIBRARIES: Final = ("httpx2", "httpcore2", "mcp")


@dataclass(frozen=True, slots=True)
class OpenCalls:
    """Everything about calls in a process."""

    journal: Journal
    executor: CallExecutor
    recorded: RecordedCalls
    instances: Instances


@dataclass(frozen=True, slots=True)
class Components:
    """The components of a process."""

    servers: Servers
    known_servers: KnownServers
    governance: Governance
    catalogues: CatalogueCache
    stored_catalogues: StoredCatalogues
    calls: OpenCalls
    sessions: Sessions
    policy: Policy
    logins: OpenLogins


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
    keyring = KeyringFile(settings.master_key_file)
    await migrate(url, schema=SCHEMA, scripts=MIGRATIONS, clock=process.clock)
    async with AsyncExitStack() as stack:
        enter, supervision = stack.enter_async_context, process.supervision
        database = await enter(_database(settings, process))
        box = SecretBox(keyring)
        servers = Servers(database, box, process.new_id)
        rotation = KeyRotation(STORED_KEYS, database.pool, keyring, process.clock)
        await rotation.adopt(keyring.current)
        policy = await _with_demo(settings, servers, process)
        process_id = process.new_id()
        journal = await Journal.open(database, process_id, _pruned_counter(process))
        instances = await enter(
            Instances.open(settings.instance_file, process_id, journal, process.clock)
        )

        def tools_changed(server_id: str) -> None:
            catalogues.expire(server_id)
            bus.publish(Notice(SERVERS_TOPIC, server_id, 0))

        logins = await enter(open_logins(database, box, servers, policy, process, process_id))
        sessions = await enter(Sessions.open(policy, supervision, tools_changed, logins.grants))
        executor = await enter(
            CallExecutor.open(journal, sessions, supervision, _login_url(settings))
        )
        bus = await enter(_bus(url, process))
        neighbours = Neighbours(settings, process)
        gateways = await enter(neighbours.channels(ServiceName.GATEWAY, settings.gateway))
        groups = GatewayGroups(gateways, process.clock)
        values = UserValues(database, box)
        known = KnownServers(servers, process.clock)
        access = Access(known, values, groups, logins.grants)
        governance = _governance(database, access, values, logins, gateways, policy, process)
        stored = StoredCatalogues(database, process.clock)
        catalogues = _catalogues(sessions, governance, stored, bus, process)
        recorded = RecordedCalls(database, timedelta(days=settings.recorded_calls_kept_days))
        calls = OpenCalls(journal, executor, recorded, instances)
        parts = Components(
            servers, known, governance, catalogues, stored, calls, sessions, policy, logins
        )
        background = await enter(BackgroundTasks(supervision))
        delivery = AuditDelivery(database.pool, SCHEMA, gateways, process.clock)
        background.keep("audit_events.deliver", delivery.run)
        background.keep("master_keys.follow", rotation.run)
        _keep_loops(background, parts, StoredUsers(database), groups, bus, process)
        revocations = await enter(neighbours.revocations(settings.gateway))
        yield await enter(
            neighbours.serve(
                _servicers(parts, bus, process),
                revocations=revocations,
                errors={**ERRORS, **LOGIN_ERRORS},
                domain=DOMAIN,
                master_keys=rotation,
            )
        )


def _catalogues(
    sessions: Sessions,
    governance: Governance,
    stored: StoredCatalogues,
    bus: PostgresBus,
    process: Process,
) -> CatalogueCache:
    return CatalogueCache(
        sessions,
        governance.definitions,
        governance.health,
        stored,
        process.clock,
        lambda server_id: bus.publish(Notice(SERVERS_TOPIC, server_id, 0)),
    )


def _login_url(settings: Settings) -> Callable[[str], str] | None:
    """Return what returns the page on which users log in to a server."""
    if settings.public_url is None:
        return None
    origin = settings.public_url.text.rstrip("/")
    return lambda server_id: f"{origin}/mcp/login/{server_id}"


def _database(settings: Settings, process: Process) -> AbstractAsyncContextManager[Database]:
    return Database.open(
        settings.database_url.reveal(),
        application_name=process.instance,
        connections_max=settings.database_connections_max,
        side_connections=LEASE_CONNECTIONS,
        statements=Statements(process.telemetry, current_method),
    )


def _bus(url: str, process: Process) -> AbstractAsyncContextManager[PostgresBus]:
    return PostgresBus.open(url, application_name=process.instance, supervision=process.supervision)


def _governance(
    database: Database,
    access: Access,
    values: UserValues,
    logins: OpenLogins,
    gateways: Channels,
    policy: Policy,
    process: Process,
) -> Governance:
    return Governance(
        access=access,
        values=values,
        health=ServerHealth(database, process.clock),
        definitions=Definitions(database, process.new_id),
        changes=ServerChanges(database),
        grants=logins.grants,
        grantees=Grantees(gateways),
        policy=policy,
    )


def _keep_loops(
    background: BackgroundTasks,
    parts: Components,
    stored_users: StoredUsers,
    groups: GatewayGroups,
    bus: PostgresBus,
    process: Process,
) -> None:
    notices = Notices(
        parts.known_servers,
        parts.governance,
        groups,
        parts.catalogues,
        parts.stored_catalogues,
        parts.sessions,
        parts.calls.executor,
    )
    executor, end_dead = parts.calls.executor, parts.calls.instances.end_dead
    background.keep("lease.renew", lambda: executor.renew_lease(end_dead))
    background.keep("catalogues.expire", lambda: parts.stored_catalogues.expire(process.clock))
    background.keep("catalogues.ask_failed", parts.catalogues.ask_failed)
    background.keep("recorded_calls.expire", lambda: parts.calls.recorded.expire(process.clock))
    background.keep("logins.follow", lambda: notices.follow_logins(bus))
    background.keep("servers.follow", lambda: notices.follow_servers(bus))
    deleted = DeletedUsers(stored_users, groups, notices.forget_user, process.clock)
    background.keep("users.follow", lambda: notices.follow_users(bus, deleted))
    background.keep("users.sweep", deleted.run)


def _servicers(parts: Components, bus: PostgresBus, process: Process) -> tuple[Any, ...]:
    def changed(server_id: str, version: int) -> None:
        parts.known_servers.forget(server_id)
        bus.publish(Notice(SERVERS_TOPIC, server_id, version))

    governance, known = parts.governance, parts.known_servers
    listing = ToolListing(known, governance.access, parts.catalogues)
    starter = CallStarter(parts.calls.executor, StartQueue(), known)
    probing = Probing(
        parts.sessions,
        governance.access,
        governance.health,
        policy=parts.policy,
        clock=process.clock,
        new_id=process.new_id,
    )
    return (
        RuntimeServicer(
            known,
            governance.access,
            listing,
            parts.catalogues,
            parts.calls.journal,
            parts.calls.executor,
            starter,
        ),
        ServerServicer(
            parts.servers,
            governance,
            parts.catalogues,
            parts.calls.journal,
            parts.calls.executor,
            probing,
            process.new_id,
            changed,
        ),
        ToolServicer(
            governance.access,
            listing,
            parts.catalogues,
            governance.definitions,
            parts.calls.executor,
            starter,
            parts.sessions,
            parts.calls.recorded,
        ),
        AuthorizationServicer(
            parts.servers,
            governance.access,
            parts.logins.logins,
            parts.logins.store,
            _given_up(parts, bus),
            process.clock,
            changed,
        ),
    )


def _given_up(parts: Components, bus: PostgresBus) -> Callable[[str, str], Awaitable[None]]:
    """Return what ends, in all processes, what a user does with a login that they gave up."""
    calls = ExcludedCalls(parts.calls.journal, parts.calls.executor, parts.governance.access)

    async def end(server_id: str, user_id: str) -> None:
        await calls.cancel_of_user(server_id, user_id)
        bus.publish(login_given_up(server_id, user_id))

    return end


def _pruned_counter(process: Process) -> Callable[[int], None]:
    """Return what counts the entries of the journal that were replaced by tombstones."""
    counter = process.telemetry.meter.create_counter(
        "parley.journal.pruned",
        unit="{entry}",
        description="Entries of the journal that were replaced by tombstones.",
    )
    return counter.add


async def _with_demo(settings: Settings, servers: Servers, process: Process) -> Policy:
    """Create or update the demo server, and return the egress policy that allows it."""
    policy = settings.allowed_hosts.named("MCPGATEWAY_ALLOWED_HOSTS")
    if settings.demo_server_url is None:
        return policy
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
        pin_policy=PinPolicy.OFF,
    )
    await servers.ensure(ServerId(process.new_id()), demo)
    return policy.with_url(url)
