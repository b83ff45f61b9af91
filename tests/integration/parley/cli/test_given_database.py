from contextlib import AbstractAsyncContextManager
from pathlib import Path

import asyncpg
import pytest

from parley.cli.errors import ConfigurationProblem
from parley.cli.home.layout import Home
from parley.cli.supervision.database import SCHEMAS, StackDatabase, database
from parley.clock import SystemClock
from support.cli.recorded_progress import RecordedProgress
from support.database.postgres import TestPostgres


@pytest.fixture
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    home = Home.at(tmp_path_factory.mktemp("home"))
    home.prepare()
    return home


async def test_each_service_gets_its_role_and_schema_in_the_given_database(
    home: Home, postgres: TestPostgres
) -> None:
    progress = RecordedProgress()
    async with (
        postgres.database() as url,
        database(home, url, clock=SystemClock(), progress=progress) as found,
    ):
        assert (found.url, found.record()) == (url, None)
        schemas = {}
        for service in ("gateway", "chatd", "mcpgateway"):
            connection = await asyncpg.connect(home.database_url_file(service).read_text().strip())
            schemas[service] = await connection.fetchval("SELECT current_schema()")
            await connection.close()
    assert schemas == {"gateway": "identity", "chatd": "chat", "mcpgateway": "mcp"}
    password = postgres.server.admin_url().partition(":")[2].partition(":")[2].partition("@")[0]
    assert password not in "".join(progress.lines)


async def test_a_database_that_refuses_is_a_configuration_problem(
    home: Home, postgres: TestPostgres
) -> None:
    url = postgres.server.url(role="nobody-here", password="x", database="postgres")
    with pytest.raises(ConfigurationProblem):
        async with database(home, url, clock=SystemClock(), progress=RecordedProgress()):
            raise AssertionError("it was let in")


def started(home: Home, url: str | None) -> AbstractAsyncContextManager[StackDatabase]:
    return database(home, url, clock=SystemClock(), progress=RecordedProgress())


async def assert_every_service_gets_in(home: Home) -> None:
    for service, schema in SCHEMAS.items():
        connection = await asyncpg.connect(home.database_url_file(service).read_text().strip())
        assert await connection.fetchval("SELECT current_schema()") == schema
        await connection.close()


async def test_a_home_goes_back_and_forth_between_its_databases(
    home: Home, postgres: TestPostgres
) -> None:
    async with postgres.database() as first, postgres.database() as second:
        for url in (first, None, second, first, None, second):
            async with started(home, url):
                await assert_every_service_gets_in(home)


async def test_a_home_of_an_earlier_version_goes_back_and_forth_as_well(
    home: Home, postgres: TestPostgres
) -> None:
    async with postgres.database() as url, postgres.database() as another:
        async with started(home, url):
            pass
        # Earlier versions had only the files of the last start.
        home.role_passwords_file.unlink()
        for each in (another, url):
            async with started(home, each):
                await assert_every_service_gets_in(home)


async def test_another_home_is_refused_however_often_it_tries_until_the_roles_are_renamed(
    home: Home, postgres: TestPostgres, tmp_path: Path
) -> None:
    other = Home.at(tmp_path / "other")
    other.prepare()
    async with postgres.database() as url:
        async with started(home, url):
            pass
        for _ in range(2):
            with pytest.raises(ConfigurationProblem, match="ALTER ROLE name RENAME TO"):
                async with started(other, url):
                    raise AssertionError("it was let in")
        await assert_every_service_gets_in(home)

        name = url.partition("@/")[2].partition("?")[0]
        for service in SCHEMAS:
            await postgres.execute(f"ALTER ROLE {name}_{service} RENAME TO lost_{service}")
        async with started(other, url):
            await assert_every_service_gets_in(other)


async def test_an_administrator_who_may_not_make_roles_does_not_make_them_this_homes(
    home: Home, postgres: TestPostgres, tmp_path: Path
) -> None:
    await postgres.execute("CREATE ROLE reader LOGIN PASSWORD 'read'")
    other = Home.at(tmp_path / "other")
    other.prepare()
    async with postgres.database() as url:
        name = url.partition("@/")[2].partition("?")[0]
        weak = postgres.server.url(role="reader", password="read", database=name)
        with pytest.raises(ConfigurationProblem, match="may create roles"):
            async with started(home, weak):
                raise AssertionError("it was let in")
        async with started(other, url):
            pass
        with pytest.raises(ConfigurationProblem, match="another installation"):
            async with started(home, url):
                raise AssertionError("it was let in")
        await assert_every_service_gets_in(other)


@pytest.mark.parametrize("text", ["{", "[]", '{"role": 1}'])
async def test_a_damaged_list_of_passwords_is_named(
    home: Home, postgres: TestPostgres, text: str
) -> None:
    home.role_passwords_file.write_text(text)
    async with postgres.database() as url:
        with pytest.raises(ConfigurationProblem, match=r"database_roles\.json"):
            async with started(home, url):
                raise AssertionError("it was let in")
