"""Migration of a schema to its newest revision."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool

from parley.clock import Clock, SystemClock
from parley.postgres.database import STARTUP_PATIENCE_S
from parley.postgres.errors import MigrationFailed, SchemaTooNew
from parley.postgres.session import Session, SessionLimits, first_line, quoted, typed_outages

ENVIRONMENT = Path(__file__).with_name("environment")
# A data migration may take long, and a process that waits for another's needs the same timeout.
LIMITS = SessionLimits(
    statement_timeout_s=900.0, lock_timeout_s=0, idle_in_transaction_timeout_s=60
)
TABLE_LOCK_TIMEOUT = "10s"
INSUFFICIENT_PRIVILEGE = "42501"
RESTORED = (
    "; if the database was restored from a dump, its tables belong to other roles: "
    "`parley up --database URL` or `parley init --database URL` as a superuser gives them back"
)


async def migrate(
    url: str,
    *,
    schema: str,
    scripts: Path,
    clock: Clock | None = None,
    patience_s: float = STARTUP_PATIENCE_S,
) -> str | None:
    """Upgrade `schema` to the newest revision under `scripts/versions`, in one transaction.

    Any number of processes may call this concurrently: one migrates, the others wait for it and
    then find nothing to do. There are no downgrades; a failed upgrade leaves the schema unchanged.

    Args:
        url: The database, as the role that owns the schema.
        schema: The schema of the tables and the version table; created if the role may.
        scripts: The directory that holds `versions/`.
        clock: Times the wait for the server.
        patience_s: How long to wait for a server that is not up yet.

    Returns:
        The current revision of the schema, or None when there are no revisions.

    Raises:
        SchemaTooNew: A newer Parley migrated this schema.
        MigrationFailed: A migration failed, or the schema could not be created.
        DatabaseUnavailable: The server did not answer.
        DatabaseMisconfigured: The URL, role, password or database is wrong.
    """
    if not (scripts / "versions").is_dir():
        raise MigrationFailed(schema, f"there is no directory {scripts / 'versions'}")
    session = Session(url, f"migrate {schema}", LIMITS, search_path=quoted(schema))
    first = await session.open_patiently(clock=clock or SystemClock(), patience_s=patience_s)
    await first.close()
    engine = _engine(session)
    try:
        with typed_outages():
            async with engine.begin() as connection:
                await connection.execute(
                    text("SELECT pg_advisory_xact_lock(hashtextextended(:name, 0))"),
                    {"name": f"parley migrate {schema}"},
                )
                await connection.execute(text(f"SET LOCAL lock_timeout = '{TABLE_LOCK_TIMEOUT}'"))
                return await connection.run_sync(_upgrade, schema, scripts)
    except DBAPIError as error:
        reason = first_line(error)
        if getattr(error.orig, "sqlstate", None) == INSUFFICIENT_PRIVILEGE:
            reason += RESTORED
        raise MigrationFailed(schema, reason) from error
    except CommandError as error:
        raise MigrationFailed(schema, str(error)) from error
    finally:
        await engine.dispose()


def _upgrade(connection: Connection, schema: str, scripts: Path) -> str | None:
    config = Config()
    config.set_main_option("script_location", _escaped(ENVIRONMENT))
    config.set_main_option("path_separator", "newline")
    config.set_main_option("version_locations", _escaped(scripts / "versions"))
    config.attributes.update(connection=connection, schema=schema)
    directory = ScriptDirectory.from_config(config)
    _create_schema(connection, schema)
    known = {script.revision for script in directory.walk_revisions()}
    for revision in _revisions(connection, schema):
        if revision not in known:
            raise SchemaTooNew(schema, revision)
    command.upgrade(config, "head")
    return next(iter(_revisions(connection, schema)), None)


def _create_schema(connection: Connection, schema: str) -> None:
    """Create the schema if it does not exist; checked first for roles that may not create one."""
    found = connection.scalar(text("SELECT to_regnamespace(:name)::text"), {"name": quoted(schema)})
    if found is None:
        connection.execute(text(f"CREATE SCHEMA {quoted(schema)}"))


def _revisions(connection: Connection, schema: str) -> tuple[str, ...]:
    context = MigrationContext.configure(connection, opts={"version_table_schema": schema})
    return context.get_current_heads()


def _engine(session: Session) -> AsyncEngine:
    return create_async_engine(
        "postgresql+asyncpg://", async_creator=session.open_untyped, poolclass=NullPool
    )


def _escaped(path: Path) -> str:
    """Return `path` for the config parser, with percent signs escaped."""
    return str(path).replace("%", "%%")
