"""Resources shared by all components of the process: database, bus and channels to services."""

from contextlib import AsyncExitStack
from dataclasses import dataclass

from chatd.hooks.store import hooks
from chatd.models.store import providers as provider_keys
from chatd.push.store import keys as push_keys
from chatd.push.store import subscriptions as push_subscriptions
from chatd.schema import MIGRATIONS, SCHEMA
from chatd.settings import Settings
from chatd.streams.wiring import stream_connections
from chatd.workspaces.store import secrets as workspace_secrets
from parley.bus import PostgresBus
from parley.identity import ServiceName
from parley.postgres import Database, Pool, Session, migrate
from parley.process import Neighbours, Process
from parley.process.stored_keys import SealedColumn, StoredKeys
from parley.rpc import Channels, current_method
from parley.secrets import KeyringFile
from parley.telemetry import Statements

STORED_KEYS = StoredKeys(
    "chat.key_fingerprints",
    (
        SealedColumn(provider_keys.TABLE, provider_keys.COLUMN, "sealed_key_id"),
        SealedColumn(hooks.TABLE, hooks.COLUMN, "sealed_key_id"),
        SealedColumn(hooks.TABLE, hooks.PREVIOUS_COLUMN, "previous_sealed_key_id"),
        SealedColumn(workspace_secrets.TABLE, workspace_secrets.COLUMN, "sealed_key_id"),
        SealedColumn(push_subscriptions.TABLE, push_subscriptions.COLUMN, "sealed_key_id"),
        SealedColumn(push_keys.TABLE, push_keys.COLUMN, "sealed_key_id"),
    ),
)


@dataclass(frozen=True, slots=True)
class Resources:
    """The resources that are opened before any chat is read.

    Attributes:
        lease_session: A database connection used only for lease renewals.
    """

    settings: Settings
    process: Process
    neighbours: Neighbours
    keyring: KeyringFile
    database: Database
    lease_session: Session
    bus: PostgresBus
    toolrunners: Channels
    gateways: Channels

    @property
    def pool(self) -> Pool:
        """Return the connection pool for everything except lease renewals."""
        return self.database.pool


async def open_resources(settings: Settings, process: Process, stack: AsyncExitStack) -> Resources:
    """Migrate the database and open the shared resources; `stack` closes them."""
    url = settings.database_url.reveal()
    keyring = KeyringFile(settings.master_key_file)
    await migrate(url, schema=SCHEMA, scripts=MIGRATIONS, clock=process.clock)
    neighbours = Neighbours(settings, process)
    database = await stack.enter_async_context(
        Database.open(
            url,
            application_name=process.instance,
            connections_max=settings.database_connections_max,
            side_connections=stream_connections(settings.database_connections_max),
            statements=Statements(process.telemetry, current_method),
        )
    )
    await STORED_KEYS.adopt(database.pool, keyring.current)
    return Resources(
        settings=settings,
        process=process,
        neighbours=neighbours,
        keyring=keyring,
        database=database,
        lease_session=Session(url, f"{process.instance} lease"),
        bus=await stack.enter_async_context(
            PostgresBus.open(
                url, application_name=process.instance, supervision=process.supervision
            )
        ),
        toolrunners=await stack.enter_async_context(
            neighbours.channels(ServiceName.TOOLRUNNER, settings.toolrunner)
        ),
        gateways=await stack.enter_async_context(
            neighbours.channels(ServiceName.GATEWAY, settings.gateway)
        ),
    )
