"""A dump that was restored under another name, by another role, or without owners."""

import itertools
import subprocess
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import asyncpg
import pytest

from chatd import schema as chat
from gateway.identity.store import schema as identity
from mcpgateway.servers import schema as mcp
from parley.cli.errors import ConfigurationProblem
from parley.cli.home.layout import Home
from parley.cli.supervision.database import SCHEMAS, database
from parley.clock import SystemClock
from parley.postgres import MigrationFailed, migrate
from parley.postgres.binaries import installed_binaries
from support.cli.recorded_progress import RecordedProgress
from support.database.postgres import TestPostgres

MODULES = {"gateway": identity, "chatd": chat, "mcpgateway": mcp}
# Roles outlive their database, so each test restores under a name of its own.
NUMBERS = itertools.count(1)
# What the tables of Parley do not have today, and a restore brings back as well.
MORE = """
    CREATE TYPE chat.mood AS ENUM ('good', 'bad');
    CREATE FUNCTION chat."Odd name"(a int, b text) RETURNS int LANGUAGE sql AS 'SELECT 1';
    CREATE SEQUENCE chat.numbers;
    CREATE VIEW chat.names AS SELECT 1 AS name;
    CREATE TABLE chat."Odd table" (id serial, a int, b int);
    CREATE STATISTICS chat.both ON a, b FROM chat."Odd table";
"""
OWNERS = """
    SELECT DISTINCT pg_get_userbyid(c.relowner) FROM pg_class c
    JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1
    UNION SELECT pg_get_userbyid(proowner) FROM pg_proc p
    JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = $1
    UNION SELECT pg_get_userbyid(typowner) FROM pg_type t
    JOIN pg_namespace n ON n.oid = t.typnamespace WHERE n.nspname = $1
    UNION SELECT pg_get_userbyid(nspowner) FROM pg_namespace WHERE nspname = $1
"""


@dataclass(frozen=True)
class Dumped:
    """A dump of a database that was in use, and the programs that read and write dumps."""

    programs: Path
    file: Path
    postgres: TestPostgres
    name: str

    def restore(self, url: str, *options: str) -> None:
        """Restore the dump with pg_restore, as an operator does."""
        run(str(self.programs / "pg_restore"), "--dbname", url, *options, str(self.file))


def run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


def home_at(directory: Path) -> Home:
    home = Home.at(directory)
    home.prepare()
    return home


def service_url(home: Home, service: str) -> str:
    return home.database_url_file(service).read_text().strip()


async def migrate_all(home: Home) -> None:
    for service, module in MODULES.items():
        await migrate(service_url(home, service), schema=module.SCHEMA, scripts=module.MIGRATIONS)


async def executed(url: str, statement: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


@pytest.fixture
async def dumped(postgres: TestPostgres, tmp_path: Path) -> AsyncIterator[Dumped]:
    home = home_at(tmp_path / "first")
    async with postgres.database() as url:
        async with database(home, url, clock=SystemClock(), progress=RecordedProgress()):
            await migrate_all(home)
            await executed(service_url(home, "chatd"), MORE)
        programs = installed_binaries()[max(installed_binaries())]
        file = tmp_path / "parley.dump"
        run(str(programs / "pg_dump"), "--format=custom", "--file", str(file), url)
        name = f"restored_{next(NUMBERS)}"
        await postgres.execute(f"CREATE DATABASE {name} TEMPLATE template0")
        yield Dumped(programs, file, postgres, name)
        await postgres.execute(f"DROP DATABASE {name} WITH (FORCE)")


async def assert_usable(dumped: Dumped, home: Home, url: str) -> None:
    """Start with a restored database, and use it as each service does."""
    async with database(home, url, clock=SystemClock(), progress=RecordedProgress()):
        await migrate_all(home)
        for service, schema in SCHEMAS.items():
            connection = await asyncpg.connect(service_url(home, service))
            owners = {row[0] for row in await connection.fetch(OWNERS, schema)}
            assert owners == {f"{dumped.name}_{service}"}
            await connection.execute(f"CREATE TABLE {schema}.another (id int)")
            await connection.close()


async def test_a_dump_restored_under_another_name_is_taken_over(
    dumped: Dumped, tmp_path: Path
) -> None:
    url = dumped.postgres.server.admin_url(dumped.name)
    dumped.restore(url)

    await assert_usable(dumped, home_at(tmp_path / "second"), url)


async def test_a_dump_restored_by_another_superuser_without_owners_is_taken_over(
    dumped: Dumped, tmp_path: Path
) -> None:
    server = dumped.postgres.server
    await dumped.postgres.execute("CREATE ROLE restorer LOGIN SUPERUSER PASSWORD 'restore'")
    dumped.restore(
        server.url(role="restorer", password="restore", database=dumped.name), "--no-owner"
    )

    await assert_usable(dumped, home_at(tmp_path / "second"), server.admin_url(dumped.name))


async def test_a_dump_restored_by_the_owner_of_the_database_is_taken_over(
    dumped: Dumped, tmp_path: Path
) -> None:
    await dumped.postgres.execute("CREATE ROLE keeper LOGIN CREATEROLE PASSWORD 'keep'")
    await dumped.postgres.execute(f"ALTER DATABASE {dumped.name} OWNER TO keeper")
    url = dumped.postgres.server.url(role="keeper", password="keep", database=dumped.name)
    dumped.restore(url, "--no-owner", "--no-privileges")

    await assert_usable(dumped, home_at(tmp_path / "second"), url)


async def test_an_administrator_who_may_not_take_over_is_told_how(
    dumped: Dumped, tmp_path: Path
) -> None:
    await dumped.postgres.execute("CREATE ROLE lodger LOGIN CREATEROLE PASSWORD 'lodge'")
    dumped.restore(dumped.postgres.server.admin_url(dumped.name))
    await dumped.postgres.execute(f"ALTER DATABASE {dumped.name} OWNER TO lodger")
    url = dumped.postgres.server.url(role="lodger", password="lodge", database=dumped.name)

    home = home_at(tmp_path / "second")

    with pytest.raises(ConfigurationProblem) as refused:
        async with database(home, url, clock=SystemClock(), progress=RecordedProgress()):
            raise AssertionError("it was let in")

    (problem,) = refused.value.problems
    assert "schema identity belong to" in problem
    assert "start once with --database as a superuser" in problem
    # It gave the schemas of all services to one role, and PostgreSQL refuses it for "postgres".
    assert "REASSIGN" not in problem
    # What it says works: as a superuser once, and as before from then on.
    await assert_usable(dumped, home, dumped.postgres.server.admin_url(dumped.name))
    async with database(home, url, clock=SystemClock(), progress=RecordedProgress()):
        await migrate_all(home)


async def test_a_service_that_may_not_use_restored_tables_says_what_to_do(
    dumped: Dumped, tmp_path: Path
) -> None:
    home = home_at(tmp_path / "second")
    url = dumped.postgres.server.admin_url(dumped.name)
    async with database(home, url, clock=SystemClock(), progress=RecordedProgress()):
        await executed(url, "DROP SCHEMA chat, identity, mcp CASCADE")
        dumped.restore(url)

        with pytest.raises(MigrationFailed, match="parley up --database"):
            await migrate_all(home)
