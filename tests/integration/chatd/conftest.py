from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from chatd.schema import MIGRATIONS, SCHEMA
from parley.identity import Role as UserRole
from parley.postgres import Database, Pool, migrate
from support.chatd.chats.chat_people import Person
from support.chatd.chats.served_chats import ServedChats, served_chats
from support.chatd.workspaces.served_catalogue import Catalogue
from support.database.postgres import TestPostgres, postgres

__all__ = ["postgres"]


async def migrate_chat(url: str) -> None:
    await migrate(url, schema=SCHEMA, scripts=MIGRATIONS)


@pytest.fixture
async def chat_database(postgres: TestPostgres) -> AsyncIterator[str]:
    """The URL of a database with the schema `chat`."""
    async with postgres.database(template="chat", prepare=migrate_chat) as url:
        yield url


@pytest.fixture
async def pool(chat_database: str) -> AsyncIterator[Pool]:
    async with Database.open(chat_database, application_name="test", connections_max=8) as database:
        yield database.pool


@pytest.fixture
async def served(pool: Pool, tmp_path: Path) -> AsyncIterator[ServedChats]:
    """ChatService over that database, with a worker that only takes notes."""
    async with served_chats(pool, tmp_path) as running:
        yield running


@pytest.fixture
def admin(served: ServedChats) -> Person:
    """Bob, who is an administrator today."""
    served.bob.role = UserRole.ADMIN
    return served.bob


@pytest.fixture
def catalogue(served: ServedChats) -> Catalogue:
    """The templates, workspaces and nodes of that ChatService."""
    return served.catalogue
