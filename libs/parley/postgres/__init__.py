"""PostgreSQL access: sessions, migrations, notifications, roles, and an embedded server."""

from parley.postgres.address import compose_url, with_database, without_password
from parley.postgres.conflicts import ConflictRetries
from parley.postgres.database import Database
from parley.postgres.embedded import EmbeddedServer
from parley.postgres.errors import (
    BinariesMissing,
    DatabaseBusy,
    DatabaseError,
    DatabaseMisconfigured,
    DatabaseUnavailable,
    Deadlocked,
    DirectoryInUse,
    DirectoryUnusable,
    EmbeddedServerError,
    MigrationFailed,
    PoolExhausted,
    SchemaTooNew,
    SerializationFailed,
    ServerStartFailed,
    ServerTooOld,
    StatementEnded,
    WrongMajorVersion,
)
from parley.postgres.listener import Connected, Listener, ListenerTiming, ListenEvent, Notified
from parley.postgres.migration import migrate
from parley.postgres.pool import Connection, Pool
from parley.postgres.provisioning import ServiceRole, provision
from parley.postgres.session import Session, SessionLimits, is_unavailable, typed_outages

__all__ = [
    "BinariesMissing",
    "ConflictRetries",
    "Connected",
    "Connection",
    "Database",
    "DatabaseBusy",
    "DatabaseError",
    "DatabaseMisconfigured",
    "DatabaseUnavailable",
    "Deadlocked",
    "DirectoryInUse",
    "DirectoryUnusable",
    "EmbeddedServer",
    "EmbeddedServerError",
    "ListenEvent",
    "Listener",
    "ListenerTiming",
    "MigrationFailed",
    "Notified",
    "Pool",
    "PoolExhausted",
    "SchemaTooNew",
    "SerializationFailed",
    "ServerStartFailed",
    "ServerTooOld",
    "ServiceRole",
    "Session",
    "SessionLimits",
    "StatementEnded",
    "WrongMajorVersion",
    "compose_url",
    "is_unavailable",
    "migrate",
    "provision",
    "typed_outages",
    "with_database",
    "without_password",
]
