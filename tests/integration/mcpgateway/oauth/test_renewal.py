"""Renewing logins: once over all processes, ahead of their end, and never with an old token."""

import asyncio
from datetime import timedelta

from starlette.responses import Response

from mcpgateway.oauth.store.grants import GrantStore
from mcpgateway.runtime.journal import Journal
from mcpgateway.servers.store import Servers
from parley.api.mcp.v1 import authorization_service_pb2 as api
from parley.api.mcp.v1 import error_reason_pb2, server_pb2, tool_pb2
from parley.postgres import Database
from parley.secrets import Keyring, SecretBox
from support.mcpgateway.logins import LoginLab

DEAD = "01900000-0000-7000-8000-0000000000dd"
LIVING = "01900000-0000-7000-8000-0000000000ee"


async def expire_stored(database: Database) -> None:
    """Let the stored access tokens have ended a minute ago."""
    await database.pool.execute(
        "UPDATE mcp.grants SET expires_at = now() - interval '1 minute', "
        "refresh_at = now() - interval '2 minutes'"
    )


async def test_a_refused_token_is_renewed_once_and_the_call_repeated(lab: LoginLab) -> None:
    await lab.log_in()
    await lab.call("1")
    # The stored expiry is an hour away: only the server knows that the tokens have ended.
    lab.issuer.expire()
    async with asyncio.TaskGroup() as tasks:
        calls = [tasks.create_task(lab.call(f"again-{number}")) for number in range(8)]
    assert {call.result().outcome for call in calls} == {tool_pb2.CALL_OUTCOME_SUCCEEDED}
    assert len(lab.issuer.refreshes) == 1


async def test_a_login_is_renewed_ahead_of_its_end(lab: LoginLab, database: Database) -> None:
    await lab.log_in()
    await database.pool.execute("UPDATE mcp.grants SET refresh_at = now() - interval '1 second'")
    assert (await lab.call("1")).outcome == tool_pb2.CALL_OUTCOME_SUCCEEDED
    assert (await lab.call("2")).outcome == tool_pb2.CALL_OUTCOME_SUCCEEDED
    assert [form["resource"] for form in lab.issuer.refreshes] == [lab.issuer.mcp_url]


async def test_a_revoked_login_has_to_be_made_again(lab: LoginLab, database: Database) -> None:
    await lab.log_in()
    lab.issuer.logins[0].is_revoked = True
    await expire_stored(database)
    listed = (await lab.listed()).servers[0]
    told = (
        "The login at Guarded has ended: it was revoked there, or not used for too long. "
        "Connect again."
    )
    assert (listed.state, listed.reason, listed.message) == (
        server_pb2.SERVER_STATE_NEEDS_AUTHORIZATION,
        error_reason_pb2.ERROR_REASON_NEEDS_RECONNECT,
        told,
    )
    status = await lab.status()
    assert (status.status, status.message) == (
        server_pb2.AUTHORIZATION_STATUS_NEEDS_RECONNECT,
        told,
    )
    # Nobody asks again before the user has connected.
    await lab.listed()
    assert len(lab.issuer.refreshes) == 1
    await lab.log_in()
    assert (await lab.call("1")).outcome == tool_pb2.CALL_OUTCOME_SUCCEEDED


async def test_a_server_that_refuses_every_token_is_not_asked_for_ever(lab: LoginLab) -> None:
    await lab.log_in()
    await lab.call("1")
    for login in lab.issuer.logins:
        login.resource = "https://elsewhere.example"
    refused = await lab.call("2")
    assert (refused.outcome, refused.reason, refused.message) == (
        tool_pb2.CALL_OUTCOME_FAILED,
        error_reason_pb2.ERROR_REASON_NEEDS_RECONNECT,
        "Guarded no longer accepts your login. Connect again.",
    )
    assert len(lab.issuer.refreshes) == 1
    assert (await lab.status()).status == server_pb2.AUTHORIZATION_STATUS_NEEDS_RECONNECT


async def test_an_outage_of_the_authorization_server_loses_no_login(
    lab: LoginLab, database: Database
) -> None:
    await lab.log_in()
    await expire_stored(database)
    lab.issuer.answers["/token"] = Response("a secret text", status_code=503)
    failed = (await lab.listed()).servers[0]
    assert (failed.state, failed.reason, "secret" in failed.message) == (
        server_pb2.SERVER_STATE_UNAVAILABLE,
        error_reason_pb2.ERROR_REASON_CONNECT_FAILED,
        False,
    )
    assert (await lab.status()).status == server_pb2.AUTHORIZATION_STATUS_EXPIRED_REFRESHABLE
    del lab.issuer.answers["/token"]
    assert (await lab.call("1")).outcome == tool_pb2.CALL_OUTCOME_SUCCEEDED


async def test_a_login_given_up_during_a_renewal_stays_given_up(
    lab: LoginLab, database: Database
) -> None:
    await lab.log_in()
    await expire_stored(database)
    lab.issuer.gate.clear()
    async with asyncio.TaskGroup() as tasks:
        listing = tasks.create_task(lab.listed())
        await lab.issuer.refreshing.wait()
        given_up = await lab.disconnect()
        lab.issuer.gate.set()
    assert given_up.revocation == api.REVOCATION_OUTCOME_REVOKED
    assert listing.result().servers[0].reason == error_reason_pb2.ERROR_REASON_NEEDS_CONNECT
    assert await database.pool.fetchval("SELECT count(*) FROM mcp.grants") == 0


async def test_a_renewal_that_is_refused_too_late_leaves_a_newer_login_alone(
    lab: LoginLab, database: Database
) -> None:
    await lab.log_in()
    await expire_stored(database)
    lab.issuer.gate.clear()
    async with asyncio.TaskGroup() as tasks:
        listing = tasks.create_task(lab.listed())
        await lab.issuer.refreshing.wait()
        # Meanwhile the login is revoked and made again: the renewal is refused for the old one.
        lab.issuer.logins[0].is_revoked = True
        await lab.log_in()
        lab.issuer.gate.set()
    assert listing.result().servers[0].state == server_pb2.SERVER_STATE_READY
    stored = await database.pool.fetchrow("SELECT version, failure FROM mcp.grants")
    assert stored is not None
    assert (stored["version"], stored["failure"]) == (2, "")
    assert (await lab.call("1")).outcome == tool_pb2.CALL_OUTCOME_SUCCEEDED
    assert (await lab.status()).status == server_pb2.AUTHORIZATION_STATUS_CONNECTED
    assert len(lab.issuer.refreshes) == 1


async def test_a_cancelled_caller_does_not_lose_the_new_token(
    lab: LoginLab, database: Database
) -> None:
    await lab.log_in()
    await expire_stored(database)
    lab.issuer.gate.clear()
    async with asyncio.TaskGroup() as tasks:
        listing = tasks.create_task(lab.listed())
        await lab.issuer.refreshing.wait()
        listing.cancel()
    lab.issuer.gate.set()
    assert (await lab.call("1")).outcome == tool_pb2.CALL_OUTCOME_SUCCEEDED
    assert len(lab.issuer.refreshes) == 1


async def test_a_renewal_is_free_after_the_proof_of_death_and_not_before(
    lab: LoginLab, database: Database
) -> None:
    await lab.log_in()
    journal = await Journal.open(database, DEAD)
    box = SecretBox(Keyring.load(lab.gateway.settings.master_key_file))
    of_dead, of_living = (GrantStore(database, box, each) for each in (DEAD, LIVING))
    server = (await Servers(database, box).find([lab.server_id]))[lab.server_id]
    user_id = await database.pool.fetchval("SELECT user_id FROM mcp.grants")
    grant = await of_living.find(server, user_id)
    assert grant is not None
    assert await of_dead.lease(grant, timedelta(minutes=1))
    await database.pool.execute("DELETE FROM mcp.gateways WHERE id = $1", DEAD)
    assert not await of_living.lease(grant, timedelta(minutes=1))
    await journal.end_process(DEAD)
    assert await of_living.lease(grant, timedelta(minutes=1))
