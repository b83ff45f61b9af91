"""Of two administrators who choose the same slug at once, one is refused, and nothing is left."""

import asyncio

import grpc

from parley.api.mcp.v1 import server_service_pb2
from parley.contract.errors import error_spec
from parley.postgres import Database
from parley.rpc import acting_for, problem_of
from support.mcpgateway.authorization_server import FakeAuthorizationServer
from support.mcpgateway.gateway import ADMIN
from support.mcpgateway.logins import LoginLab, create_server

ATTEMPTS = 4


async def test_who_loses_a_slug_gets_409_and_registers_no_client(
    lab: LoginLab, issuer: FakeAuthorizationServer, database: Database
) -> None:
    async def attempt(number: int) -> str:
        settings = {"slug": "same", "description": f"attempt {number}"}
        try:
            return await create_server(
                lab.gateway, issuer.mcp_url, request_id=f"create-{number}", **settings
            )
        except grpc.aio.AioRpcError as error:
            return problem_of(error).reason

    async with asyncio.TaskGroup() as tasks:
        attempts = [tasks.create_task(attempt(number)) for number in range(ATTEMPTS)]
    results = [task.result() for task in attempts]
    (won,) = [each for each in results if each != "SLUG_TAKEN"]
    assert (results.count("SLUG_TAKEN"), error_spec("SLUG_TAKEN").http_status) == (3, 409)
    # Neither the winner nor a loser has met the authorization server.
    assert (issuer.paths, issuer.registrations) == ([], [])
    with acting_for(ADMIN):
        shown = await lab.gateway.servers.GetServer(
            server_service_pb2.GetServerRequest(server_id=won)
        )
    assert shown.server.settings.slug == "same"
    stored = "SELECT (SELECT count(*) FROM mcp.servers), (SELECT count(*) FROM mcp.oauth_clients)"
    row = await database.pool.fetchrow(stored)
    assert row is not None
    assert tuple(row) == (2, 0)
