"""Secrets of logins are in no log and in no row, and survive the rotation of the master key."""

import logging
from pathlib import Path

import pytest

from parley.api.mcp.v1 import tool_pb2
from parley.postgres import Database
from parley.secrets import Keyring
from support.mcpgateway.authorization_server import FakeAuthorizationServer
from support.mcpgateway.gateway import mcp_gateway
from support.mcpgateway.logins import LoginLab, create_server
from support.mcpgateway.stored_text import stored_text


async def test_no_secret_of_a_login_is_readable_anywhere(
    tmp_path: Path,
    mcp_database: str,
    database: Database,
    issuer: FakeAuthorizationServer,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    directory = tmp_path / "one"
    secret = "secret-of-the-configured-client"
    async with mcp_gateway(directory, mcp_database, allowed=issuer.place) as gateway:
        oauth = {"client_id": "by hand"}
        server_id = await create_server(gateway, issuer.mcp_url, oauth=oauth, secret=secret)
        lab = LoginLab(gateway, issuer, server_id)
        await lab.log_in()
        issuer.expire()
        assert (await lab.call("1")).outcome == tool_pb2.CALL_OUTCOME_SUCCEEDED
        state = issuer.agree(await lab.begin(request_id="open"))["state"]

    verifiers = [form["code_verifier"] for form in issuer.forms if "code_verifier" in form]
    secrets = [secret, state, *verifiers, *issuer.given]
    assert len(secrets) >= 8
    text = await stored_text(database) + caplog.text
    assert [each for each in secrets if each in text] == []

    path = directory / "master.json"
    old = Keyring.load(path)
    path.unlink()
    Keyring((Keyring.generate().writing_key, *old.keys)).save(path)
    async with mcp_gateway(directory, mcp_database, allowed=issuer.place) as gateway:
        again = LoginLab(gateway, issuer, server_id)
        assert (await again.call("2")).outcome == tool_pb2.CALL_OUTCOME_SUCCEEDED
    used = await database.pool.fetch("SELECT DISTINCT key_id FROM mcp.grants")
    assert [row["key_id"] for row in used] == [Keyring.load(path).writing_key.id]


async def test_a_token_in_the_row_of_another_user_does_not_open(
    lab: LoginLab, database: Database
) -> None:
    await lab.log_in()
    await database.pool.execute("UPDATE mcp.grants SET id = gen_random_uuid()")
    status = await lab.status()
    assert status.message == "Your login at Guarded cannot be decrypted. Connect again."
