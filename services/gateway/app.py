"""The composition root of the gateway: database, channels, HTTP and gRPC servers, shutdown."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from gateway.api.contract import access_table
from gateway.audit_log.wiring import AuditComponents, open_audit_log
from gateway.exports.runner import ExportRunner
from gateway.http.access_log import AccessLog
from gateway.http.addresses import HttpAddress
from gateway.http.application import Application, ApplicationDependencies, served_operation
from gateway.http.cors import Cors
from gateway.http.forwarding import Forwarding
from gateway.http.limits.admission import Admission, AdmissionLimits
from gateway.http.limits.client_address import ClientAddresses
from gateway.http.limits.connections import OpenConnections
from gateway.http.limits.rates import RateQuotas
from gateway.http.limits.shared_rates import SharedRates
from gateway.http.server import serve_http
from gateway.identity.domain import OidcIssuer
from gateway.identity.engine.oidc_issuers import read_issuers
from gateway.identity.engine.revocation_feed import RevocationFeed
from gateway.identity.engine.user_names import UserNames
from gateway.identity.engine.users import TOPIC as USERS_TOPIC
from gateway.identity.problems import DOMAIN, ERRORS
from gateway.identity.store.oidc_issuers import STORED_KEYS
from gateway.identity.store.request_rates import RequestRateStore
from gateway.identity.store.schema import MIGRATIONS, SCHEMA
from gateway.identity.wiring import Identity, open_identity
from gateway.routes.table import routes
from gateway.routes.wiring import Dependencies, Handlers, open_handlers
from gateway.settings import GatewaySettings
from gateway.streams.chatd_client import ChatdClient
from gateway.streams.event_stream import StreamLimits
from gateway.streams.frames import Frames
from gateway.streams.links import Links
from gateway.streams.open_streams import OpenStreams
from gateway.streams.replica_watch import ReplicaWatch
from parley.bus import Bus, PostgresBus
from parley.identity import ApiKey, MalformedApiKey, ServiceName, Signer
from parley.postgres import Database, migrate
from parley.process import ConfigurationError, KeyRotation, Neighbours, Process
from parley.rpc import Channels, RunningServer
from parley.secrets import KeyringFile
from parley.tasks import BackgroundTasks
from parley.telemetry import Statements

NAME = "gateway"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Gateway:
    """A running gateway.

    Attributes:
        http: The address of its HTTP server.
        grpc: Its gRPC server.
        feed: Publishes revocations to watchers.
        draining: Set once it stops.
        streams: The open streams of its clients.
    """

    http: HttpAddress
    grpc: RunningServer
    feed: RevocationFeed
    draining: asyncio.Event
    streams: OpenStreams

    def stop(self) -> None:
        """Report that it is not ready any more, and send bye on every stream."""
        self.draining.set()
        self.streams.stop()
        self.grpc.set_serving(False)
        self.feed.stop()


async def run(settings: GatewaySettings, process: Process) -> None:
    """Serve until the process is asked to stop."""
    async with (
        PostgresBus.open(
            settings.database_url.reveal(), application_name=NAME, supervision=process.supervision
        ) as bus,
        gateway(settings, process, bus) as running,
    ):
        _log.info("serving HTTP on %s and gRPC on %s", running.http, running.grpc.address)
        await process.stopping.wait()


@asynccontextmanager
async def gateway(
    settings: GatewaySettings, process: Process, bus: Bus, limits: StreamLimits | None = None
) -> AsyncIterator[Gateway]:
    """Migrate the database, create the owner, and serve until the context ends.

    At the end it reports that it is not ready, sends bye on every stream, and waits for running
    requests, then for the calls of other services.
    """
    url = settings.database_url.reveal()
    await migrate(url, schema=SCHEMA, scripts=MIGRATIONS)
    neighbours = Neighbours(settings, process)
    keyring = None if settings.master_key_file is None else KeyringFile(settings.master_key_file)
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(
            Database.open(
                url,
                application_name=NAME,
                connections_max=settings.database_connections_max,
                statements=Statements(process.telemetry, served_operation),
            )
        )
        rotation = await _open_rotation(keyring, database, process)
        audit = open_audit_log(settings, database, process)
        identity = open_identity(
            settings, database, bus, neighbours, process, keyring, _issuers(settings), audit
        )
        stack.callback(identity.passwords.close)
        await identity.people.ensure_owner(
            new_user_id=process.new_id(),
            key=_owner_key(settings),
            now=process.clock.now(),
        )
        behind = await _open_dependencies(settings, process, neighbours, identity, stack)
        forwarding = Forwarding(settings.trusted_proxies, settings.forwarded_headers)
        handlers = open_handlers(
            behind, process, login_token=settings.login_token, limits=limits or StreamLimits()
        )
        admission = _admission(settings, process)
        rates = SharedRates(admission.rates, RequestRateStore(database), process.clock)
        app = _application(settings, process, behind, forwarding, handlers, admission)
        server = await stack.enter_async_context(_serve_grpc(neighbours, identity, rotation))
        http = await stack.enter_async_context(
            serve_http(
                app,
                settings.http_listen,
                public_url=str(settings.public_url),
                open_connections=_open_connections(settings, process, forwarding.addresses),
                clock=process.clock,
            )
        )
        await stack.enter_async_context(
            _running(behind, audit, bus, process, handlers.export_runner, rotation, rates)
        )
        running = Gateway(http, server, identity.feed, behind.draining, behind.streams)
        try:
            yield running
        finally:
            running.stop()


async def _open_dependencies(
    settings: GatewaySettings,
    process: Process,
    neighbours: Neighbours,
    identity: Identity,
    stack: AsyncExitStack,
) -> Dependencies:
    """Return the dependencies of the routes; the stack closes their channels."""
    channels = await stack.enter_async_context(
        neighbours.channels(ServiceName.CHATD, settings.chatd)
    )
    streams = OpenStreams(process.clock)
    streams.measure(process.telemetry.meter)
    names = UserNames(identity.people)
    await names.load()
    frames = Frames(names.name_of)
    links = await stack.enter_async_context(_linked(channels, neighbours.signer, process, frames))
    return Dependencies(
        identity=identity,
        chatd=ChatdClient(channels, links),
        links=links,
        # No node is known before a ticket names one.
        nodes=await stack.enter_async_context(neighbours.channels(ServiceName.TOOLRUNNER, ())),
        mcpgateways=await stack.enter_async_context(
            neighbours.channels(ServiceName.MCPGATEWAY, settings.mcpgateway)
        ),
        streams=streams,
        draining=asyncio.Event(),
        names=names,
    )


def _open_connections(
    settings: GatewaySettings, process: Process, addresses: ClientAddresses
) -> OpenConnections:
    allowed = process.open_files.connections_max
    if allowed < settings.http_connections_max:
        _log.info(
            "at most %d connections are taken, not %d, because this process may have %d files open",
            allowed,
            settings.http_connections_max,
            process.open_files.limit,
        )
    connections = OpenConnections(
        min(allowed, settings.http_connections_max),
        address_max=settings.address_connections_max,
        addresses=addresses,
    )
    connections.measure(process.telemetry.meter)
    return connections


def _admission(settings: GatewaySettings, process: Process) -> Admission:
    limits = AdmissionLimits(
        requests_max=min(process.open_files.connections_max, settings.http_connections_max),
        user_requests_max=settings.user_requests_max,
        address_requests_max=settings.address_connections_max,
        user_long_running_max=settings.user_long_running_requests_max,
        user_calls_max=settings.user_calls_max,
        shared_user_calls_max=settings.shared_user_calls_max,
        quotas=RateQuotas(
            settings.address_requests_per_minute,
            settings.user_requests_per_minute,
            settings.key_requests_per_minute,
        ),
    )
    return Admission(limits, process.clock, process.telemetry.meter)


def _application(
    settings: GatewaySettings,
    process: Process,
    behind: Dependencies,
    forwarding: Forwarding,
    handlers: Handlers,
    admission: Admission,
) -> Application:
    around = ApplicationDependencies(
        authentication=behind.identity.authentication,
        telemetry=process.telemetry,
        public_url=settings.public_url,
        allowed_hosts=settings.allowed_hosts,
        new_id=process.new_id,
        admission=admission,
        forwarding=forwarding,
        cors=Cors(settings.cors_origins),
        access_log=AccessLog(settings.access_log, process.random),
    )
    return Application(routes(handlers), around, access_table(), absent=handlers.pages.absent)


@asynccontextmanager
async def _linked(
    channels: Channels, signer: Signer, process: Process, frames: Frames
) -> AsyncIterator[Links]:
    """Run the shared streams to chatd until the context ends."""
    async with BackgroundTasks(process.supervision) as tasks:
        replicas = ReplicaWatch(channels, clock=process.clock, changed=lambda: links.rebalance())
        links = Links(
            channels,
            signer,
            tasks=tasks,
            clock=process.clock,
            frames=frames,
            is_live=replicas.is_live,
        )
        tasks.keep("streams.renew", links.run)
        tasks.keep("replicas.follow", replicas.run)
        try:
            yield links
        finally:
            links.close()


@asynccontextmanager
async def _running(
    behind: Dependencies,
    audit: AuditComponents,
    bus: Bus,
    process: Process,
    exports: ExportRunner,
    rotation: KeyRotation | None,
    rates: SharedRates,
) -> AsyncIterator[None]:
    """Run the background tasks until the context ends."""
    identity = behind.identity
    async with BackgroundTasks(process.supervision) as tasks:
        if rotation is not None:
            tasks.keep("master_keys.follow", rotation.run)
        tasks.keep("revocations.read", identity.feed.run)
        tasks.keep("keys.follow", lambda: identity.keys.follow(bus, USERS_TOPIC))
        tasks.keep("names.follow", lambda: behind.names.follow(bus, USERS_TOPIC))
        tasks.keep("rates.share", rates.run)
        tasks.keep("sign_ins.check", identity.sign_ins.run)
        tasks.keep("streams.time", behind.streams.run)
        if audit.signer is not None:
            tasks.keep("audit_log.sign", audit.signer.run)
        if audit.pruner is not None:
            tasks.keep("audit_log.prune", audit.pruner.run)
        tasks.keep("exports.run", exports.run)
        yield


async def _open_rotation(
    keyring: KeyringFile | None, database: Database, process: Process
) -> KeyRotation | None:
    """Check the master keys; return their rotation, if there are any."""
    if keyring is None:
        return None
    rotation = KeyRotation(STORED_KEYS, database.pool, keyring, process.clock)
    await rotation.adopt(keyring.current)
    return rotation


def _serve_grpc(
    neighbours: Neighbours, identity: Identity, rotation: KeyRotation | None
) -> AbstractAsyncContextManager[RunningServer]:
    return neighbours.serve(
        identity.servicers.all,
        revocations=identity.feed,
        errors=ERRORS,
        domain=DOMAIN,
        master_keys=rotation,
    )


def _issuers(settings: GatewaySettings) -> tuple[OidcIssuer, ...]:
    try:
        return read_issuers(settings.oidc_issuers_file)
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"GATEWAY_OIDC_ISSUERS_FILE cannot be used: {error}") from None


def _owner_key(settings: GatewaySettings) -> ApiKey:
    try:
        return ApiKey.parse(settings.owner_api_key.reveal())
    except MalformedApiKey as error:
        raise ConfigurationError(f"GATEWAY_OWNER_API_KEY is {error}") from None
