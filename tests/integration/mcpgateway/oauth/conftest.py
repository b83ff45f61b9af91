"""A mcpgateway with a server that needs logins."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from support.mcpgateway.authorization_server import (
    FakeAuthorizationServer,
    fake_authorization_server,
)
from support.mcpgateway.gateway import mcp_gateway
from support.mcpgateway.logins import LoginLab, create_server


@pytest.fixture
async def issuer() -> AsyncIterator[FakeAuthorizationServer]:
    async with fake_authorization_server() as running:
        yield running


@pytest.fixture
async def lab(
    tmp_path: Path, mcp_database: str, issuer: FakeAuthorizationServer
) -> AsyncIterator[LoginLab]:
    async with mcp_gateway(tmp_path / "one", mcp_database, allowed=issuer.place) as gateway:
        limits = {"calls_per_user_max": 64}
        server_id = await create_server(gateway, issuer.mcp_url, limits=limits)
        yield LoginLab(gateway, issuer, server_id)
