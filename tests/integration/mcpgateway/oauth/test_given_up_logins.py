"""Logins that are given up where the authorization server does not help, or access was lost."""

import logging
from pathlib import Path

import pytest
from starlette.responses import Response

from parley.api.mcp.v1 import authorization_service_pb2 as api
from parley.api.mcp.v1 import server_pb2, server_service_pb2
from parley.postgres import Database
from parley.rpc import acting_for
from support.mcpgateway.authorization_server import fake_authorization_server
from support.mcpgateway.gateway import ADMIN, mcp_gateway
from support.mcpgateway.logins import LoginLab, create_server
from support.mcpgateway.restrictions import restrict

GONE = api.DisconnectResponse(revocation=api.REVOCATION_OUTCOME_NOT_NEEDED)


async def test_a_failed_revocation_is_told_without_what_the_server_said(
    lab: LoginLab, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    await lab.log_in()
    lab.issuer.answers["/revoke"] = Response("a secret text", status_code=500)
    given_up = await lab.disconnect()
    assert given_up == api.DisconnectResponse(
        was_connected=True, revocation=api.REVOCATION_OUTCOME_FAILED
    )
    assert "a secret text" not in caplog.text
    # It is given up nevertheless, and giving it up again changes nothing.
    assert await lab.disconnect() == GONE
    status = (await lab.status()).status
    assert status == server_pb2.AUTHORIZATION_STATUS_NOT_CONNECTED


async def test_the_refresh_token_is_revoked_first_and_else_the_access_token(
    lab: LoginLab,
) -> None:
    lab.issuer.refused_hints = frozenset({"refresh_token"})
    await lab.log_in()
    [login] = lab.issuer.logins
    [access_token], refresh_token = login.access_tokens, login.refresh_token
    given_up = await lab.disconnect()
    assert given_up.revocation == api.REVOCATION_OUTCOME_REVOKED
    assert [(form["token_type_hint"], form["token"]) for form in lab.issuer.revoked] == [
        ("refresh_token", refresh_token),
        ("access_token", access_token),
    ]
    assert login.is_revoked


async def test_a_server_without_revocation_is_told(lab: LoginLab) -> None:
    lab.issuer.metadata = {"revocation_endpoint": None}
    await lab.log_in()
    assert await lab.disconnect() == api.DisconnectResponse(
        was_connected=True, revocation=api.REVOCATION_OUTCOME_NOT_SUPPORTED
    )


async def test_a_user_who_lost_access_can_still_give_up_a_login(lab: LoginLab) -> None:
    await lab.log_in()
    await restrict(lab.gateway, lab.server_id, user_ids=[ADMIN.id])
    request = server_service_pb2.UpdateServerRequest(
        request_id="announce",
        server_id=lab.server_id,
        settings=server_pb2.McpServerSettings(description="For administrators."),
    )
    request.update_mask.paths.append("description")
    with acting_for(ADMIN):
        await lab.gateway.servers.UpdateServer(request)
    given_up = await lab.disconnect()
    assert given_up == api.DisconnectResponse(
        was_connected=True, revocation=api.REVOCATION_OUTCOME_REVOKED
    )


async def test_another_issuer_gets_a_client_of_its_own(tmp_path: Path, mcp_database: str) -> None:
    async with fake_authorization_server() as first, fake_authorization_server() as second:
        allowed = f"{first.place},{second.place}"
        async with mcp_gateway(tmp_path / "one", mcp_database, allowed=allowed) as gateway:
            lab = LoginLab(gateway, first, await create_server(gateway, first.mcp_url))
            first.agree(await lab.begin())
            assert (len(first.registrations), len(second.registrations)) == (1, 0)
            first.resource_metadata = {"authorization_servers": [second.url]}
        # A restart forgets what was discovered, and no client.
        async with mcp_gateway(tmp_path / "one", mcp_database, allowed=allowed) as gateway:
            moved = LoginLab(gateway, second, lab.server_id)
            second.agree(await moved.begin(request_id="moved"))
        assert (len(first.registrations), len(second.registrations)) == (1, 1)


async def test_the_logins_of_a_deleted_server_are_deleted_with_it(
    lab: LoginLab, database: Database
) -> None:
    await lab.log_in()
    await lab.begin(request_id="another")
    tables = ("grants", "oauth_flows", "oauth_clients")

    async def counts() -> list[int]:
        return [await database.pool.fetchval(f"SELECT count(*) FROM mcp.{each}") for each in tables]

    before = await counts()
    with acting_for(ADMIN):
        await lab.gateway.servers.DeleteServer(
            server_service_pb2.DeleteServerRequest(request_id="delete", server_id=lab.server_id)
        )

    assert (min(before) > 0, await counts(), await lab.logins()) == (True, [0, 0, 0], [])
