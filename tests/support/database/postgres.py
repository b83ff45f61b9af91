"""PostgreSQL for tests: one embedded server per session, one cheap database per test.

Import the fixtures into a `conftest.py`; however many do so, one server is started:

    from support.database.postgres import empty_database, postgres

    @pytest.fixture
    async def chat_database(postgres: TestPostgres) -> AsyncIterator[str]:
        async with postgres.database(template="chat", prepare=migrate_chat) as url:
            yield url
"""

import asyncio
import itertools
import tempfile
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg
import pytest

from parley.postgres import EmbeddedServer

Prepare = Callable[[str], Awaitable[object]]


class Superuser:
    """One connection of the superuser, kept for the whole session.

    Each test has an event loop of its own, and a connection belongs to one loop: so this one has
    a loop in a thread.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._turn = asyncio.Lock()
        self._connection: asyncpg.Connection[asyncpg.Record] | None = None

    async def execute(self, statement: str) -> None:
        """Run a statement, outside of any test's database."""
        await asyncio.wrap_future(
            asyncio.run_coroutine_threadsafe(self._execute(statement), self._loop)
        )

    def close(self) -> None:
        """End the connection and the thread."""
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _execute(self, statement: str) -> None:
        async with self._turn:
            # A test may have ended all connections.
            if self._connection is None or self._connection.is_closed():
                self._connection = await asyncpg.connect(self._url)
            await self._connection.execute(statement)

    async def _end(self) -> None:
        if self._connection is not None:
            await self._connection.close()


class TestPostgres:
    """A running server that hands out databases."""

    __test__ = False

    def __init__(self, server: EmbeddedServer, superuser: Superuser) -> None:
        self.server = server
        self._superuser = superuser
        self._numbers = itertools.count(1)
        self._templates: set[str] = set()

    @asynccontextmanager
    async def database(
        self, *, template: str | None = None, prepare: Prepare | None = None
    ) -> AsyncIterator[str]:
        """Give the superuser's URL of a new database, removed afterwards.

        Args:
            template: A name for the state it starts from; made once per session.
            prepare: Brings an empty database to that state, given its URL; for example by
                migrating it. It must leave no connection open.
        """
        if template is not None and template not in self._templates:
            await self._create(f"template_{template}", "template0")
            if prepare is not None:
                await prepare(self.server.admin_url(f"template_{template}"))
            self._templates.add(template)
        name = f"test_{next(self._numbers)}"
        await self._create(name, "template0" if template is None else f"template_{template}")
        try:
            yield self.server.admin_url(name)
        finally:
            await self.execute(f'DROP DATABASE "{name}" WITH (FORCE)')

    async def execute(self, statement: str) -> None:
        """Run a statement as the superuser, outside of any test's database."""
        await self._superuser.execute(statement)

    async def _create(self, name: str, template: str) -> None:
        await self.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')


_POSTGRES = pytest.StashKey[TestPostgres]()


@pytest.fixture(scope="session")
def postgres(request: pytest.FixtureRequest) -> TestPostgres:
    """The session's server. It is kept with the configuration, so several imports share it."""
    config = request.config
    if _POSTGRES not in config.stash:
        # Not pytest's own directory: a server that is stopped last must outlive its cleaning.
        directory = tempfile.TemporaryDirectory(prefix="parley-test-")
        config.add_cleanup(directory.cleanup)
        server = EmbeddedServer(Path(directory.name) / "postgres", tcp_port=0, is_durable=False)
        asyncio.run(server.start())
        config.add_cleanup(lambda: asyncio.run(server.stop()))
        superuser = Superuser(server.admin_url())
        config.add_cleanup(superuser.close)
        config.stash[_POSTGRES] = TestPostgres(server, superuser)
    return config.stash[_POSTGRES]


@pytest.fixture
async def empty_database(postgres: TestPostgres) -> AsyncIterator[str]:
    """The superuser's URL of a database with nothing in it."""
    async with postgres.database() as url:
        yield url
