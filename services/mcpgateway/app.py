"""The composition root of mcpgateway: opens what it needs and serves until it is stopped."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from functools import partial
from typing import Final

from mcpgateway.desk import CallDesk
from mcpgateway.domain import ApprovalPolicy, Availability, ServerId, ServerSettings
from mcpgateway.egress import Policy
from mcpgateway.journal import Journal
from mcpgateway.listing import Catalogues, ToolListing
from mcpgateway.refusals import DOMAIN, ERRORS
from mcpgateway.rpc import registrations
from mcpgateway.runtime_servicer import Runtime, RuntimeServicer
from mcpgateway.schema import MIGRATIONS, SCHEMA
from mcpgateway.server_servicer import ServerServicer
from mcpgateway.sessions import Sessions
from mcpgateway.settings import Settings
from mcpgateway.store import Servers
from parley.clock import Clock
from parley.identity import (
    CertificateUnreadable,
    Guard,
    InMemoryRevocations,
    Revocations,
    ServiceName,
    Signer,
    SigningKey,
    SigningKeyUnreadable,
    Trust,
    TrustFileUnreadable,
)
from parley.postgres import (
    Database,
    DatabaseMisconfigured,
    DatabaseUnavailable,
    MigrationFailed,
    migrate,
)
from parley.process import ConfigurationError, Environment, Process
from parley.rpc import (
    AddressUnusable,
    Channels,
    FollowedRevocations,
    RunningServer,
    Scheme,
    TlsFiles,
    connect,
    serve,
)
from parley.secrets import Keyring, KeyringUnreadable, SecretBox, WrongKey

RENEW_S: Final = 3.0
TIDY_S: Final = 600.0
QUIET_LIBRARIES: Final = ("httpx2", "httpcore2", "mcp")
MISCONFIGURATIONS: Final = (
    SigningKeyUnreadable,
    TrustFileUnreadable,
    CertificateUnreadable,
    KeyringUnreadable,
    WrongKey,
    DatabaseMisconfigured,
    MigrationFailed,
    AddressUnusable,
)

logger = logging.getLogger(__name__)


async def run(settings: Settings, process: Process) -> None:
    """Serve until the process is asked to stop."""
    # They would log URLs, session ids and what servers say; failures are told by us.
    for library in QUIET_LIBRARIES:
        logging.getLogger(library).setLevel(logging.CRITICAL)
    with _configuration_errors():
        async with mcpgateway(settings, process):
            await process.stopping.wait()


@asynccontextmanager
async def mcpgateway(settings: Settings, process: Process) -> AsyncIterator[RunningServer]:
    """Migrate, check the keys, and serve until the context ends."""
    url = settings.database_url.reveal()
    keyring = Keyring.load(settings.master_key_file)
    await migrate(url, schema=SCHEMA, scripts=MIGRATIONS, clock=process.clock)
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(
            Database.open(
                url,
                application_name=process.instance,
                connections_max=settings.database_connections_max,
            )
        )
        servers = Servers(database, SecretBox(keyring))
        await servers.check_keys(keyring)
        policy = await _with_demo(settings, servers, process)
        journal = await Journal.open(database, process.new_id())
        sessions = await stack.enter_async_context(Sessions.open(policy, process.clock))
        desk = await stack.enter_async_context(CallDesk.open(journal, sessions, process.clock))
        catalogues = Catalogues(sessions, process.clock)
        listing = ToolListing(servers, catalogues)
        runtime = RuntimeServicer(Runtime(servers, listing, catalogues, journal, desk))
        background = await stack.enter_async_context(asyncio.TaskGroup())
        keeping = background.create_task(keep(desk, journal, process.clock))
        stack.callback(keeping.cancel)
        guard = Guard(
            ServiceName.MCPGATEWAY,
            Trust(settings.trust_file, process.clock),
            _revocations(settings, process, stack, background),
            process.clock,
            peers_by_certificate=settings.listen.scheme is Scheme.TLS,
        )
        yield await stack.enter_async_context(
            serve(
                settings.listen,
                registrations(runtime, ServerServicer(servers, journal, desk, process.new_id)),
                guard=guard,
                errors=ERRORS,
                domain=DOMAIN,
                telemetry=process.telemetry,
                tls=_tls(settings),
                is_development=settings.environment is Environment.DEVELOPMENT,
            )
        )


async def keep(desk: CallDesk, journal: Journal, clock: Clock) -> None:
    """Renew this process's lease, and end the calls of processes that no longer do."""
    tidied_at = clock.monotonic() - TIDY_S
    while True:
        try:
            await desk.reconcile()
            await journal.give_up_dead()
            if clock.monotonic() - tidied_at >= TIDY_S:
                await journal.tidy()
                tidied_at = clock.monotonic()
        except DatabaseUnavailable as error:
            logger.warning("the lease was not renewed: %s", error)
        await clock.sleep(RENEW_S)


async def _with_demo(settings: Settings, servers: Servers, process: Process) -> Policy:
    """Make sure of the demo's server, and return what may be reached."""
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


def _revocations(
    settings: Settings, process: Process, stack: AsyncExitStack, tasks: asyncio.TaskGroup
) -> Revocations:
    """Return the revoked service tokens as the gateways tell them; without any, all are refused."""
    if not settings.gateway:
        return InMemoryRevocations()
    signing_key = SigningKey.load(settings.signing_key_file)
    open_channel = partial(
        connect,
        audience=ServiceName.GATEWAY,
        signer=Signer(ServiceName.MCPGATEWAY, signing_key, process.clock),
        telemetry=process.telemetry,
        tls=_tls(settings),
    )
    channels = Channels(settings.gateway, open_channel)
    stack.push_async_callback(channels.close)
    revocations = FollowedRevocations(channels, clock=process.clock, random=process.random)
    following = tasks.create_task(revocations.run())
    stack.callback(following.cancel)
    return revocations


def _tls(settings: Settings) -> TlsFiles | None:
    return None if settings.tls_directory is None else TlsFiles(settings.tls_directory)


@contextmanager
def _configuration_errors() -> Iterator[None]:
    """Tell what an operator can set right as a problem of configuration, without a traceback."""
    try:
        yield
    # Task groups that were open when it happened have put it into groups.
    except* MISCONFIGURATIONS as group:
        raise ConfigurationError(str(_innermost(group))) from group


def _innermost(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
