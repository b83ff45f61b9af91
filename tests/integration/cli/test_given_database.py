import asyncpg
import pytest

from parley.cli.database import database
from parley.cli.errors import ConfigurationProblem
from parley.cli.home import Home
from parley.cli.progress import RecordedProgress
from parley.clock import SystemClock
from support.postgres import TestPostgres


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
