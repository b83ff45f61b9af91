"""All keys are rotated while calls with logins at an MCP server run, and none of them fails."""

import asyncio
import threading
import urllib.error
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest

from parley.identity import Role, User, UserId
from parley.secrets import Keyring
from support.mcpgateway.authorization_server import (
    FakeAuthorizationServer,
    fake_authorization_server,
)
from support.mcpgateway.gateway import McpGateway
from support.mcpgateway.logins import LoginLab
from support.stack.faulty_stack import FaultyStack, watching
from support.stack.local_stack import LocalStack
from support.stack.mcp_authorization import authorizing

pytestmark = pytest.mark.slow

CALLERS = 20


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[LocalStack]:
    """Give a stack whose operator allows MCP servers on this machine."""
    stack = LocalStack.at(tmp_path / "home", MCPGATEWAY_ALLOWED_HOSTS="127.0.0.0/8")
    started = stack.up()
    assert started.returncode == 0, started.stderr
    yield stack
    stack.parley("down")


async def logged_in(watched: FaultyStack, issuer: FakeAuthorizationServer) -> str:
    """Create a server that needs logins, log the owner in, and return its id."""
    body = {
        "slug": "guarded",
        "url": issuer.mcp_url,
        "is_enabled": True,
        "auth_kind": "oauth2",
        "pin_policy": "off",
        "limits": {"calls_per_user_max": 64},
    }
    made = await asyncio.to_thread(watched.request, "POST", "/mcp/servers", body, "create")
    me = await asyncio.to_thread(watched.request, "GET", "/me")
    owner = User(UserId(me["id"]), Role.OWNER)
    async with authorizing(watched.stack) as gateway:
        await LoginLab(cast(McpGateway, gateway), issuer, made["id"]).log_in(owner)
    server_id: str = made["id"]
    return server_id


@dataclass(slots=True)
class Calls:
    """Calls that are made again and again."""

    made: int = 0
    failures: list[str] = field(default_factory=list)


@contextmanager
def calling(watched: FaultyStack, server_id: str) -> Iterator[Calls]:
    """Call a tool in many threads until the context ends."""
    calls, done = Calls(), threading.Event()
    body = {"original_name": "whoami", "arguments": {}}

    def work(caller: int) -> None:
        number = 0
        while not done.is_set():
            number += 1
            path, key = f"/mcp/servers/{server_id}/tools/call", f"call-{caller}-{number}"
            try:
                answer = watched.request("POST", path, body, key=key)
            except urllib.error.URLError as error:
                text = error.read().decode() if isinstance(error, urllib.error.HTTPError) else ""
                calls.failures.append(f"{error} {text}")
            else:
                calls.made += 1
                if answer["outcome"] != "succeeded":
                    calls.failures.append(str(answer))

    workers = [threading.Thread(target=work, args=(caller,)) for caller in range(CALLERS)]
    for worker in workers:
        worker.start()
    try:
        yield calls
    finally:
        done.set()
        for worker in workers:
            worker.join()


async def test_keys_are_rotated_while_calls_with_logins_run_and_none_fails(
    stack: LocalStack,
) -> None:
    async with fake_authorization_server() as issuer, watching(stack) as watched:
        server_id = await logged_in(watched, issuer)

        def rotated() -> Calls:
            with calling(watched, server_id) as calls:
                # New tokens are sealed while the keys change.
                issuer.expire()
                done = stack.parley("keys", "rotate", "--overlap", "3")
                issuer.expire()
                assert done.returncode == 0, done.stdout + done.stderr
            return calls

        calls = await asyncio.to_thread(rotated)
        assert calls.failures == []
        assert calls.made >= CALLERS
        assert set(issuer.calls) == {"alice"}
        assert [login.is_revoked for login in issuer.logins] == [False]
        keys = Keyring.load(stack.home.master_key_file).keys
        stored = await watched.connection.fetch("SELECT DISTINCT key_id FROM mcp.grants")
        assert [row["key_id"] for row in stored] == [key.id for key in keys]
