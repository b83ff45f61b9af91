"""Upgrade of a schema by Alembic, in the caller's transaction."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Connection, text

from parley.postgres.errors import MigrationFailed, SchemaTooNew
from parley.postgres.session import quoted

ENVIRONMENT = Path(__file__).with_name("environment")


def upgrade(connection: Connection, schema: str, scripts: Path) -> str | None:
    """Upgrade `schema`, and return its revision; None when there are no revisions.

    Raises:
        SchemaTooNew: A newer Parley migrated this schema.
        MigrationFailed: The scripts are wrong.
        DBAPIError: A migration failed.
    """
    try:
        return _upgrade(connection, schema, scripts)
    except CommandError as error:
        raise MigrationFailed(schema, str(error)) from error


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


def _escaped(path: Path) -> str:
    """Return `path` for the config parser, with percent signs escaped."""
    return str(path).replace("%", "%%")
