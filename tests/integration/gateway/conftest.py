"""A migrated database and a running gateway for each test."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from support.database.postgres import TestPostgres, postgres
from support.gateway.stack import GatewayStack, gateway_stack, migrate_identity

__all__ = ["identity_database", "postgres", "stack"]


@pytest.fixture
async def identity_database(postgres: TestPostgres) -> AsyncIterator[str]:
    """The URL of a database with the gateway's schema and nothing in it."""
    async with postgres.database(template="identity", prepare=migrate_identity) as url:
        yield url


@pytest.fixture
async def stack(tmp_path: Path, identity_database: str) -> AsyncIterator[GatewayStack]:
    """A running gateway with a fake chatd behind it."""
    async with gateway_stack(tmp_path, identity_database) as running:
        yield running
