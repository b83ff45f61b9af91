"""Two gateways over one database: what one client may do, it may do once."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg

from support.gateway.stack import gateway_stack
from support.net.http_client import HttpClient

ME = "/api/v1/me"
QUOTA = 40
COUNT_BUCKETS = "SELECT count(*) FROM identity.request_rates"


@asynccontextmanager
async def two_gateways(
    directory: Path, database: str, quota: int
) -> AsyncIterator[tuple[HttpClient, HttpClient]]:
    """Run two gateways; yield clients of both with one key of one user, who has that quota."""
    (directory / "first").mkdir(mode=0o700)
    (directory / "second").mkdir(mode=0o700)
    limits: dict[str, Any] = {"user_requests_per_minute": quota, "key_requests_per_minute": 0}
    async with asyncio.timeout(60), gateway_stack(directory / "first", database, **limits) as first:
        made = await first.owner.request("POST", "/api/v1/me/api-keys", {"name": "both"})
        headers = {"Authorization": f"Bearer {made.json()['key']}"}
        limits["master_key_file"] = first.settings.master_key_file
        async with gateway_stack(directory / "second", database, **limits) as second:
            first.clock.advance(120)
            second.clock.advance(120)
            yield (
                HttpClient(first.gateway.http.port, headers),
                HttpClient(second.gateway.http.port, headers),
            )


async def bucket_count(url: str) -> int:
    connection = await asyncpg.connect(url)
    try:
        return int(await connection.fetchval(COUNT_BUCKETS))
    finally:
        await connection.close()


async def test_two_gateways_give_one_quota_together(tmp_path: Path, identity_database: str) -> None:
    async with two_gateways(tmp_path, identity_database, QUOTA) as clients:
        replies = [await client.request("GET", ME) for _ in range(QUOTA) for client in clients]
        refused = [await client.request("GET", ME) for client in clients]

    accepted = sum(each.status == 200 for each in replies)
    assert {each.status for each in replies} == {200, 429}
    # Each gateway counted alone would accept 80. A block is 2 here, and may be on its way.
    assert QUOTA <= accepted <= QUOTA + 10
    for each in refused:
        assert (each.status, each.json()["code"]) == (429, "TOO_MANY_REQUESTS")
        assert each.headers["ratelimit"].startswith('"address";r=')
        assert '"user";r=0;' in each.headers["ratelimit"]
        assert int(each.headers["retry-after"]) >= 1


async def test_requests_within_a_block_cause_no_statement(
    tmp_path: Path, identity_database: str
) -> None:
    async with two_gateways(tmp_path, identity_database, 2000) as clients:
        replies = [await client.request("GET", ME) for _ in range(20) for client in clients]
        stored = await bucket_count(identity_database)

    assert {each.status for each in replies} == {200}
    assert stored == 0
