"""Running calls of users who may not make them any more end, whichever process makes them."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from parley.api.mcp.v1 import server_pb2, tool_pb2
from parley.api.mcp.v1 import server_service_pb2 as api
from parley.rpc import acting_for
from support.mcpgateway.gateway import ADMIN, MEMBER, McpGateway, mcp_gateway
from support.mcpgateway.logins import LoginLab
from support.mcpgateway.restrictions import restrict

WITHIN_S = 60


@pytest.fixture
async def other(lab: LoginLab, tmp_path: Path, mcp_database: str) -> AsyncIterator[McpGateway]:
    """Another mcpgateway on the same database."""
    (tmp_path / "two").mkdir(mode=0o700)
    shutil.copy2(tmp_path / "one" / "master.json", tmp_path / "two")
    async with mcp_gateway(tmp_path / "two", mcp_database, allowed=lab.issuer.place) as running:
        yield running


async def update(lab: LoginLab, path: str, settings: server_pb2.McpServerSettings) -> None:
    request = api.UpdateServerRequest(
        request_id="update", server_id=lab.server_id, settings=settings
    )
    request.update_mask.paths.append(path)
    with acting_for(ADMIN):
        await lab.gateway.servers.UpdateServer(request)


async def restrict_to_admin(lab: LoginLab) -> None:
    """Let only the administrator use the server, and announce it by another change."""
    await restrict(lab.gateway, lab.server_id, user_ids=[ADMIN.id])
    await update(lab, "display_name", server_pb2.McpServerSettings(display_name="Restricted"))


@pytest.mark.parametrize("change", ["switched off", "restricted", "login given up"])
@pytest.mark.parametrize("place", ["here", "at another process"])
async def test_a_running_call_ends(
    lab: LoginLab, other: McpGateway, change: str, place: str
) -> None:
    await lab.log_in()
    lab.issuer.call_gate.clear()
    async with asyncio.timeout(WITHIN_S), asyncio.TaskGroup() as tasks:
        making = other if place == "at another process" else lab.gateway
        running = tasks.create_task(lab.call("held", gateway=making))
        await lab.issuer.called.acquire()
        match change:
            case "switched off":
                await update(lab, "is_enabled", server_pb2.McpServerSettings())
            case "restricted":
                await restrict_to_admin(lab)
            case _:
                await lab.disconnect()
        ended = await running

    assert ended.outcome == tool_pb2.CALL_OUTCOME_CANCELLED


async def test_calls_of_users_who_keep_their_access_go_on(lab: LoginLab, other: McpGateway) -> None:
    await lab.log_in(MEMBER)
    await lab.log_in(ADMIN, "root")
    lab.issuer.call_gate.clear()
    async with asyncio.timeout(WITHIN_S), asyncio.TaskGroup() as tasks:
        excluded = tasks.create_task(lab.call("held", MEMBER, gateway=other))
        allowed = tasks.create_task(lab.call("held", ADMIN, gateway=other))
        await lab.issuer.called.acquire()
        await lab.issuer.called.acquire()
        await restrict_to_admin(lab)
        assert (await excluded).outcome == tool_pb2.CALL_OUTCOME_CANCELLED
        assert not allowed.done()
        lab.issuer.call_gate.set()

    assert allowed.result().outcome == tool_pb2.CALL_OUTCOME_SUCCEEDED
