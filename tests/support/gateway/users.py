"""Users of a test's gateway, with API keys of their own."""

import asyncpg

from parley.identity import ApiKey, Role
from support.gateway.stack import GatewayStack
from support.net.http_client import HttpClient

USER_ID = "00000000-0000-0000-0000-000000000002"

INSERT_USER = """
    INSERT INTO identity.users (id, login, display_name, role, state, version, created_at,
        updated_at) VALUES ($1, 'ada', 'Ada', $2, 'active', 1, now(), now())
"""
INSERT_KEY = """
    INSERT INTO identity.api_keys (id, user_id, digest, is_from_setting, created_at, expires_at)
    VALUES ($1, $2, $3, false, now(), timestamptz '2026-01-02 00:00:00+00')
"""


async def client_with(stack: GatewayStack, database_url: str, role: Role) -> HttpClient:
    """Return a client with the key of a new user of that role."""
    key = ApiKey.generate()
    connection = await asyncpg.connect(database_url)
    try:
        await connection.execute(INSERT_USER, USER_ID, role)
        await connection.execute(INSERT_KEY, key.id, USER_ID, key.digest())
    finally:
        await connection.close()
    return HttpClient(stack.gateway.http.port, {"Authorization": f"Bearer {key.reveal()}"})
