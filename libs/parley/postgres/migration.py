"""Migration of a schema to its newest revision."""

from pathlib import Path

import asyncpg
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool

from parley.clock import Clock, SystemClock
from parley.postgres.database import STARTUP_PATIENCE_S
from parley.postgres.errors import MigrationFailed
from parley.postgres.session import Session, SessionLimits, first_line, quoted, typed_outages

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

    A script's name begins with its revision, and the last name is that of the newest one.

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
    newest = _newest_revision(scripts)
    first = await session.open_patiently(clock=clock or SystemClock(), patience_s=patience_s)
    try:
        with typed_outages():
            is_newest = newest is not None and await _revisions(first, schema) == [newest]
    finally:
        await first.close()
    if is_newest:
        return newest
    # Here, because it loads Alembic, and nearly every start of a process finds nothing to do.
    from parley.postgres.schema_upgrade import upgrade

    engine = _engine(session)
    try:
        with typed_outages():
            async with engine.begin() as connection:
                await connection.execute(
                    text("SELECT pg_advisory_xact_lock(hashtextextended(:name, 0))"),
                    {"name": f"parley migrate {schema}"},
                )
                await connection.execute(text(f"SET LOCAL lock_timeout = '{TABLE_LOCK_TIMEOUT}'"))
                return await connection.run_sync(upgrade, schema, scripts)
    except DBAPIError as error:
        reason = first_line(error)
        if getattr(error.orig, "sqlstate", None) == INSUFFICIENT_PRIVILEGE:
            reason += RESTORED
        raise MigrationFailed(schema, reason) from error
    finally:
        await engine.dispose()


def _newest_revision(scripts: Path) -> str | None:
    """Return the newest revision by the names of the scripts; None when there are none."""
    names = [path.stem for path in (scripts / "versions").glob("*.py")]
    return max((name.partition("_")[0] for name in names), default=None)


async def _revisions(
    connection: "asyncpg.Connection[asyncpg.Record]", schema: str
) -> list[str] | None:
    """Return the revisions that a schema is at; None if they cannot be read."""
    table = f"{quoted(schema)}.alembic_version"
    try:
        if await connection.fetchval("SELECT to_regclass($1)::text", table) is None:
            return None
        rows = await connection.fetch(f"SELECT version_num FROM {table}")
    except asyncpg.InsufficientPrivilegeError:
        # The upgrade fails likewise, and says what to do.
        return None
    return [row["version_num"] for row in rows]


def _engine(session: Session) -> AsyncEngine:
    return create_async_engine(
        "postgresql+asyncpg://", async_creator=session.open_untyped, poolclass=NullPool
    )
