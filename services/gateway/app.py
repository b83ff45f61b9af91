"""The gateway put together: its database, its neighbours, its two servers, and its orderly end."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from gateway.application import Application, Surroundings, served_operation
from gateway.authentication import Authentication
from gateway.chatd import Chatd
from gateway.event_stream import StreamLimits
from gateway.group_store import GroupStore
from gateway.groups import Groups
from gateway.http_server import serve_http
from gateway.identity_errors import DOMAIN, ERRORS
from gateway.identity_store import IdentityStore
from gateway.links import Links
from gateway.open_streams import OpenStreams
from gateway.recent_keys import RecentKeys
from gateway.replica_watch import ReplicaWatch
from gateway.revocation_feed import RevocationFeed
from gateway.route_table import Rooms, routes
from gateway.routes_chats import ChatRoutes
from gateway.routes_checkpoints import CheckpointRoutes
from gateway.routes_events import EventRoutes
from gateway.routes_export import ExportRoutes
from gateway.routes_files import FileRoutes
from gateway.routes_groups import GroupRoutes
from gateway.routes_messages import MessageRoutes
from gateway.routes_models import ModelRoutes
from gateway.routes_pages import PageRoutes
from gateway.routes_processes import ProcessRoutes
from gateway.routes_providers import ProviderRoutes
from gateway.routes_queue import QueueRoutes
from gateway.routes_secrets import SecretRoutes
from gateway.routes_settings import SettingsRoutes
from gateway.routes_shares import ShareRoutes
from gateway.routes_templates import TemplateRoutes
from gateway.routes_terminal import TerminalRoutes
from gateway.routes_tokens import TokenRoutes
from gateway.routes_turns import TurnRoutes
from gateway.routes_usage import UsageRoutes
from gateway.routes_users import UserRoutes
from gateway.routes_workspace_files import WorkspaceFileRoutes
from gateway.routes_workspaces import WorkspaceRoutes
from gateway.rpc.groups import GroupServicer
from gateway.rpc.tokens import ServiceTokenServicer
from gateway.rpc.users import UserServicer
from gateway.schema import MIGRATIONS, SCHEMA
from gateway.scopes import known_scopes
from gateway.service_tokens import ServiceTokens
from gateway.settings import GatewaySettings, HttpAddress
from gateway.sign_in_watch import SignInWatch
from gateway.token_store import TokenStore
from gateway.user_store import UserStore
from gateway.users import TOPIC as USERS_TOPIC
from gateway.users import Users
from gateway.workspaces import Workspaces
from parley.bus import Bus, PostgresBus
from parley.identity import ApiKey, MalformedApiKey, ServiceName, Signer
from parley.postgres import Database, migrate
from parley.process import ConfigurationError, Neighbours, Process
from parley.rpc import Channels, RunningServer
from parley.telemetry import Statements

NAME = "gateway"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Gateway:
    """A gateway that serves.

    Attributes:
        http: Where it serves HTTP.
        grpc: Its gRPC side.
        feed: Whom it tells of revocations.
        draining: Set once it stops.
        streams: The open streams of its clients.
    """

    http: HttpAddress
    grpc: RunningServer
    feed: RevocationFeed
    draining: asyncio.Event
    streams: OpenStreams

    def stop(self) -> None:
        """Say that it is not ready any more, and bye on every stream."""
        self.draining.set()
        self.streams.stop()
        self.grpc.set_serving(False)
        self.feed.stop()


async def run(settings: GatewaySettings, process: Process) -> None:
    """Serve until the process is asked to stop."""
    async with (
        PostgresBus.open(
            settings.database_url.reveal(), application_name=NAME, clock=process.clock
        ) as bus,
        gateway(settings, process, bus) as running,
    ):
        _log.info("serving HTTP on %s and gRPC on %s", running.http, running.grpc.address)
        await process.stopping.wait()


@asynccontextmanager
async def gateway(
    settings: GatewaySettings, process: Process, bus: Bus, limits: StreamLimits | None = None
) -> AsyncIterator[Gateway]:
    """Migrate, make sure of the owner, and serve until the context ends.

    The end: say that it is not ready, say bye on every stream, let running requests end, then the
    calls of other services.
    """
    url = settings.database_url.reveal()
    await migrate(url, schema=SCHEMA, scripts=MIGRATIONS)
    neighbours = Neighbours(settings, process)
    draining = asyncio.Event()
    async with AsyncExitStack() as stack:
        connections_max = settings.database_connections_max
        database = await stack.enter_async_context(
            Database.open(
                url,
                application_name=NAME,
                connections_max=connections_max,
                statements=Statements(process.telemetry, served_operation),
            )
        )
        identity = _identity(settings, database, bus, neighbours.signer, process)
        await identity.people.ensure_owner(
            new_user_id=process.new_id(),
            key=_owner_key(settings),
            now=process.clock.now(),
        )
        channels = await stack.enter_async_context(
            neighbours.channels(ServiceName.CHATD, settings.chatd)
        )
        streams = OpenStreams(process.clock)
        streams.measure(process.telemetry.meter)
        links = await stack.enter_async_context(_linked(channels, neighbours.signer, process))
        chatd = Chatd(channels)
        events = EventRoutes(
            links,
            streams,
            identity.sign_ins,
            clock=process.clock,
            chance=process.random,
            limits=limits or StreamLimits(),
        )
        # None is known before a ticket names one.
        nodes = await stack.enter_async_context(neighbours.channels(ServiceName.TOOLRUNNER, ()))
        terminal = TerminalRoutes(
            chatd, nodes, identity.sign_ins, new_id=process.new_id, clock=process.clock
        )
        app = _application(settings, process, identity, chatd, events, terminal, draining)
        server = await stack.enter_async_context(_serve_grpc(neighbours, process, identity))
        http = await stack.enter_async_context(
            serve_http(app, settings.http_listen, connections_max=settings.http_connections_max)
        )
        await stack.enter_async_context(_running(identity, streams, bus))
        running = Gateway(http, server, identity.feed, draining, streams)
        try:
            yield running
        finally:
            running.stop()


@dataclass(frozen=True, slots=True)
class _Identity:
    """People, groups and tokens, as both servers need them."""

    people: IdentityStore
    keys: RecentKeys
    authentication: Authentication
    sign_ins: SignInWatch
    tokens: ServiceTokens
    users: Users
    group_store: GroupStore
    groups: Groups
    feed: RevocationFeed


def _identity(
    settings: GatewaySettings, database: Database, bus: Bus, signer: Signer, process: Process
) -> _Identity:
    people, tokens, clock = IdentityStore(database), TokenStore(database), process.clock
    group_store = GroupStore(database)
    keys = RecentKeys(people.find_api_key, clock)
    authentication = Authentication(people, keys, public_url=settings.public_url, clock=clock)
    service_tokens = ServiceTokens(
        tokens,
        people,
        signer=signer,
        bus=bus,
        clock=clock,
        new_id=process.new_id,
        scopes=known_scopes(),
    )
    return _Identity(
        people,
        keys,
        authentication,
        SignInWatch(authentication, clock=clock),
        service_tokens,
        Users(
            UserStore(database),
            people,
            bus=bus,
            clock=clock,
            new_id=process.new_id,
            changed=keys.forget,
        ),
        group_store,
        Groups(group_store, bus=bus, clock=clock, new_id=process.new_id),
        RevocationFeed(tokens, bus=bus, clock=clock),
    )


def _application(
    settings: GatewaySettings,
    process: Process,
    identity: _Identity,
    chatd: Chatd,
    events: EventRoutes,
    terminal: TerminalRoutes,
    draining: asyncio.Event,
) -> Application:
    clock, new_id, workspaces = process.clock, process.new_id, Workspaces(chatd)
    pages = PageRoutes(
        identity.authentication,
        identity.people,
        chatd,
        login_token=settings.login_token,
        clock=clock,
        draining=draining,
    )
    around = Surroundings(
        authentication=identity.authentication,
        telemetry=process.telemetry,
        public_url=settings.public_url,
        allowed_hosts=settings.allowed_hosts,
        new_id=new_id,
    )
    rooms = Rooms(
        pages=pages,
        events=events,
        chats=ChatRoutes(chatd, new_id=new_id),
        messages=MessageRoutes(chatd, new_id=new_id),
        queue=QueueRoutes(chatd, new_id=new_id),
        turns=TurnRoutes(chatd, new_id=new_id),
        shares=ShareRoutes(chatd, new_id=new_id),
        export=ExportRoutes(chatd),
        processes=ProcessRoutes(workspaces, new_id=new_id, draining=draining),
        terminal=terminal,
        workspace_files=WorkspaceFileRoutes(workspaces, stream=events.stream),
        templates=TemplateRoutes(chatd, new_id=new_id),
        secrets=SecretRoutes(chatd, new_id=new_id),
        workspaces=WorkspaceRoutes(chatd, stream=events.stream, new_id=new_id),
        checkpoints=CheckpointRoutes(workspaces, new_id=new_id),
        files=FileRoutes(chatd, new_id=new_id, clock=clock),
        models=ModelRoutes(chatd, new_id=new_id),
        providers=ProviderRoutes(chatd, new_id=new_id),
        settings=SettingsRoutes(chatd, new_id=new_id),
        usage=UsageRoutes(chatd, new_id=new_id),
        users=UserRoutes(identity.users, identity.people, new_id=new_id),
        groups=GroupRoutes(identity.groups, identity.group_store, identity.people, new_id=new_id),
        tokens=TokenRoutes(identity.tokens, new_id=new_id),
    )
    return Application(routes(rooms), around)


@asynccontextmanager
async def _linked(channels: Channels, signer: Signer, process: Process) -> AsyncIterator[Links]:
    """Follow chats for clients until the context ends."""
    async with asyncio.TaskGroup() as tasks:
        replicas = ReplicaWatch(channels, clock=process.clock)
        links = Links(channels, signer, tasks=tasks, clock=process.clock, is_live=replicas.is_live)
        running = [tasks.create_task(work) for work in (links.run(), replicas.run())]
        try:
            yield links
        finally:
            for task in running:
                task.cancel()
            links.close()


@asynccontextmanager
async def _running(identity: _Identity, streams: OpenStreams, bus: Bus) -> AsyncIterator[None]:
    async with asyncio.TaskGroup() as tasks:
        works = (
            identity.feed.run(),
            identity.keys.follow(bus, USERS_TOPIC),
            identity.sign_ins.run(),
            streams.run(),
        )
        running = [tasks.create_task(work) for work in works]
        try:
            yield
        finally:
            for task in running:
                task.cancel()


def _serve_grpc(
    neighbours: Neighbours, process: Process, identity: _Identity
) -> AbstractAsyncContextManager[RunningServer]:
    tokens = ServiceTokenServicer(identity.tokens, identity.feed, clock=process.clock)
    users = UserServicer(identity.people, identity.users, identity.group_store)
    groups = GroupServicer(identity.group_store, identity.groups)
    return neighbours.serve(
        (tokens, users, groups),
        revocations=identity.feed,
        errors=ERRORS,
        domain=DOMAIN,
    )


def _owner_key(settings: GatewaySettings) -> ApiKey:
    try:
        return ApiKey.parse(settings.owner_api_key.reveal())
    except MalformedApiKey as error:
        raise ConfigurationError(f"GATEWAY_OWNER_API_KEY is {error}") from None
