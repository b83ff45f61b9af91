"""Users of one server under load: none of them gets a credential, an answer or tools of another."""

import asyncio
import json
import logging
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from parley.api.mcp.v1 import server_pb2
from parley.api.mcp.v1 import server_service_pb2 as api
from parley.identity import Role, User, UserId
from parley.postgres import Database
from parley.rpc import acting_for
from support.mcpgateway.authorization_server import fake_authorization_server
from support.mcpgateway.caller_server import CALLER, CallerServer, caller_server, name_of
from support.mcpgateway.gateway import ADMIN, MEMBER, McpGateway, mcp_gateway
from support.mcpgateway.logins import LoginLab, create_server
from support.mcpgateway.server_calls import called, listed
from support.mcpgateway.stored_text import stored_text

pytestmark = pytest.mark.slow

OTHER = User(UserId("01900000-0000-7000-8000-00000000000c"), Role.MEMBER)
CALLS = 2_000
CALLS_FULL_SIZE = 10_000
LISTED_EVERY = 10
#: The credentials of users.
USERS = {
    "secret-7c1f0a52-of-the-admin": ADMIN,
    "secret-93be4d07-of-the-member": MEMBER,
    "secret-e02a6b91-of-the-other": OTHER,
}
#: Who the users are at the authorization server.
SUBJECTS = {"alice": MEMBER, "bob": OTHER}
RENEWED_EVERY = 50
LOGIN_CALLS = 600
AT_ONCE = 4


@pytest.fixture
async def server() -> AsyncIterator[CallerServer]:
    """Give a server that tells each caller whose credential came."""
    async with caller_server() as running:
        yield running


@pytest.fixture
async def gateway(
    tmp_path: Path, mcp_database: str, server: CallerServer
) -> AsyncIterator[McpGateway]:
    """Give a mcpgateway that may reach the server."""
    async with mcp_gateway(tmp_path, mcp_database, allowed=server.place) as running:
        yield running


async def create(gateway: McpGateway, url: str) -> str:
    """Add a server to which each user gives a credential, and return its id."""
    slot = server_pb2.UserValueSlot(header="X-Key", description="Your key.")
    settings = server_pb2.McpServerSettings(
        slug="every",
        url=url,
        is_enabled=True,
        user_values=[slot],
        # It describes its tools differently to each user.
        pin_policy=server_pb2.PIN_POLICY_OFF,
    )
    with acting_for(ADMIN):
        made = await gateway.servers.CreateServer(
            api.CreateServerRequest(request_id="create", settings=settings)
        )
    server_id: str = made.server.server_id
    for value, user in USERS.items():
        with acting_for(user):
            await gateway.servers.SetUserValues(
                api.SetUserValuesRequest(
                    request_id="values", server_id=server_id, values={"X-Key": value}
                )
            )
    return server_id


async def heard(
    gateway: McpGateway, server_id: str, user: User, part: str, calls: int
) -> Counter[str]:
    """Call one after the other, list the tools now and then, and count the names that came back."""
    names: Counter[str] = Counter()
    for number in range(calls):
        result = await called(
            gateway, user, server_id, "echo", f"{part}-{number}", text=f"{CALLER} {part} {number}"
        )
        (content,) = json.loads(result.content_json)
        name, _, rest = content["text"].partition(" ")
        assert rest == f"{part} {number}"
        names[name] += 1
        if number % LISTED_EVERY == 0:
            tools = (await listed(gateway, user, server_id)).tools
            echo = next(tool for tool in tools if tool.original_name == "echo")
            names[echo.description.removeprefix("Repeat a text for ").rstrip(".")] += 1
    return names


async def test_users_under_load_get_their_own_answers_and_tools_only(
    gateway: McpGateway,
    server: CallerServer,
    database: Database,
    request: pytest.FixtureRequest,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.INFO, logger="grpc")
    calls = CALLS_FULL_SIZE if request.config.getoption("--full-size") else CALLS
    each = calls // (len(USERS) * AT_ONCE)
    server_id = await create(gateway, server.url)
    async with asyncio.TaskGroup() as tasks:
        running = [
            (value, tasks.create_task(heard(gateway, server_id, user, f"{user.id}-{part}", each)))
            for value, user in USERS.items()
            for part in range(AT_ONCE)
        ]
    listings = -(-each // LISTED_EVERY)
    for value, task in running:
        assert task.result() == Counter({name_of(value): each + listings})
    assert {value for value in server.seen if value} == set(USERS)
    assert min(server.seen[value] for value in USERS) >= each * AT_ONCE
    # Nothing that was logged or stored meanwhile has a credential.
    text = caplog.text + await stored_text(database)
    assert name_of(next(iter(USERS))) in text
    assert [value for value in USERS if value in text] == []


async def told(lab: LoginLab, user: User, part: str, calls: int) -> Counter[str]:
    """Call one after the other, and count the subjects whose logins came to the server."""
    subjects: Counter[str] = Counter()
    for number in range(calls):
        result = await lab.call(f"{part}-{number}", user)
        (content,) = json.loads(result.content_json)
        subjects[content["text"]] += 1
        if part == "alice-0" and number % RENEWED_EVERY == 0:
            # The tokens of all users end, and are renewed while others call.
            lab.issuer.expire()
    return subjects


async def test_two_users_under_load_use_their_own_logins_only(
    tmp_path: Path,
    mcp_database: str,
    database: Database,
    request: pytest.FixtureRequest,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.INFO, logger="grpc")
    calls = CALLS_FULL_SIZE if request.config.getoption("--full-size") else LOGIN_CALLS
    each = calls // (len(SUBJECTS) * AT_ONCE)
    async with (
        fake_authorization_server() as issuer,
        mcp_gateway(tmp_path, mcp_database, allowed=issuer.place) as gateway,
    ):
        lab = LoginLab(gateway, issuer, await create_server(gateway, issuer.mcp_url))
        for subject, user in SUBJECTS.items():
            await lab.log_in(user, subject)
        async with asyncio.TaskGroup() as tasks:
            running = [
                (subject, tasks.create_task(told(lab, user, f"{subject}-{part}", each)))
                for subject, user in SUBJECTS.items()
                for part in range(AT_ONCE)
            ]
        assert [(subject, task.result()) for subject, task in running] == [
            (subject, Counter({subject: each})) for subject, _ in running
        ]
        assert Counter(issuer.calls) == dict.fromkeys(SUBJECTS, each * AT_ONCE)
        assert [login.is_revoked for login in issuer.logins] == [False] * len(SUBJECTS)
    text = caplog.text + await stored_text(database)
    assert len(issuer.given) > len(SUBJECTS) * 3
    assert [token for token in issuer.given if token in text] == []
