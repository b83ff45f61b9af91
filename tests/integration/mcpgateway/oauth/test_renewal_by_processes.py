"""Renewing a login in two processes of mcpgateway at once: the refresh token is used once."""

import asyncio
import shutil
from pathlib import Path

from parley.api.mcp.v1 import tool_pb2
from parley.postgres import Database
from parley.secrets import Keyring
from support.mcpgateway.authorization_server import FakeAuthorizationServer
from support.mcpgateway.logins import LoginLab, create_server
from support.mcpgateway.processes import gateway_process

CALLS = 20


async def test_twenty_calls_in_two_processes_renew_a_login_once(
    issuer: FakeAuthorizationServer, database: Database, mcp_database: str, tmp_path: Path
) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for directory in (one, two):
        directory.mkdir(mode=0o700)
    Keyring.generate().save(one / "master.json")
    shutil.copy(one / "master.json", two / "master.json")
    async with (
        gateway_process(one, mcp_database, allowed=issuer.place) as first,
        gateway_process(two, mcp_database, allowed=issuer.place) as second,
    ):
        limits = {"calls_per_user_max": 64}
        lab = LoginLab(first, issuer, await create_server(first, issuer.mcp_url, limits=limits))
        await lab.log_in()
        for number, gateway in enumerate((first, second)):
            await lab.call(f"before-{number}", gateway=gateway)
        issuer.expire()
        await database.pool.execute(
            "UPDATE mcp.grants SET expires_at = now() - interval '1 minute', "
            "refresh_at = now() - interval '2 minutes'"
        )
        async with asyncio.TaskGroup() as tasks:
            calls = [
                tasks.create_task(lab.call(str(number), gateway=(first, second)[number % 2]))
                for number in range(CALLS)
            ]
        assert {call.result().outcome for call in calls} == {tool_pb2.CALL_OUTCOME_SUCCEEDED}
    assert issuer.calls == ["alice"] * (CALLS + 2)
    assert len(issuer.refreshes) == 1
    assert [login.is_revoked for login in issuer.logins] == [False]
