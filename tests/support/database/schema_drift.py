"""Comparison of a migrated schema with the tables that the code declares."""

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, MetaData
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from parley.postgres.session import Session
from support.database.schema_diff import describe


async def drift(url: str, metadata: MetaData, schema: str) -> tuple[str, ...]:
    """Return how the database's `schema` differs from `metadata`, one sentence per difference.

    Tables, columns, types, defaults, keys, indexes and the names of check constraints are
    compared; the text of check constraints, triggers and functions is not.
    """
    # With an empty search path every reflected name has its schema, as in the metadata.
    session = Session(url, f"drift {schema}", search_path="")
    engine = create_async_engine(
        "postgresql+asyncpg://", async_creator=session.open_untyped, poolclass=NullPool
    )
    try:
        async with engine.connect() as connection:
            return await connection.run_sync(_compare, metadata, schema)
    finally:
        await engine.dispose()


def _compare(connection: Connection, metadata: MetaData, schema: str) -> tuple[str, ...]:
    def belongs(name: str | None, kind: str, parents: object) -> bool:
        if kind == "schema":
            return name == schema
        return not (kind == "table" and name == "alembic_version")

    context = MigrationContext.configure(
        connection,
        opts={
            "compare_type": True,
            "compare_server_default": True,
            "include_schemas": True,
            "include_name": belongs,
            "autogenerate_plugins": [
                "alembic.autogenerate.*",
                "alembic.ext.checkconstraint_byname",
            ],
        },
    )
    return describe(compare_metadata(context, metadata))
