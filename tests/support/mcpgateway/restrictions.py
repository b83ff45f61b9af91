"""Servers that were restricted while a gateway answered, for tests without one."""

from collections.abc import Sequence

import asyncpg

from support.mcpgateway.gateway import McpGateway

RESTRICT = """
    UPDATE mcp.servers SET user_ids = $2, group_ids = $3, version = version + 1 WHERE id = $1
"""


async def restrict(
    gateway: McpGateway,
    server_id: str,
    *,
    user_ids: Sequence[str] = (),
    group_ids: Sequence[str] = (),
) -> None:
    """Store who may use a server, without a check; the next change over gRPC announces it."""
    connection = await asyncpg.connect(gateway.settings.database_url.reveal())
    try:
        await connection.execute(RESTRICT, server_id, list(user_ids), list(group_ids))
    finally:
        await connection.close()
