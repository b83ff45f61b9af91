"""Users of one server under load: none of them gets a credential, an answer or tools of another."""

import asyncio
import io
import json
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import grpc
import pytest

from parley.api.mcp.v1 import server_pb2, tool_pb2
from parley.api.mcp.v1 import server_service_pb2 as api
from parley.api.mcp.v1 import tool_service_pb2 as tools_api
from parley.identity import Role, User, UserId
from parley.postgres import Database
from parley.rpc import acting_for, problem_of
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
#: Of what is printed about a call that went wrong.
PRINTED_MAX = 400

T = TypeVar("T")


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


@contextmanager
def logged() -> Iterator[io.StringIO]:
    """Yield all that is logged meanwhile; the report of a failure does not repeat it."""
    text, root = io.StringIO(), logging.getLogger()
    handler = logging.StreamHandler(text)
    handler.setFormatter(logging.Formatter("%(levelname)s %(name)s %(message)s"))
    handlers, level, grpc_level = root.handlers, root.level, logging.getLogger("grpc").level
    root.handlers = [handler]
    root.setLevel(logging.DEBUG)
    logging.getLogger("grpc").setLevel(logging.INFO)
    try:
        yield text
    finally:
        root.handlers = handlers
        root.setLevel(level)
        logging.getLogger("grpc").setLevel(grpc_level)


async def answered(user: User, what: str, asking: Awaitable[T]) -> T:
    """Return an answer; a failure names the user, the call and what came back."""
    try:
        return await asking
    except grpc.aio.AioRpcError as error:
        problem = problem_of(error)
        text = f"{what} of user {user.id}: {problem.status} {problem.reason}: {problem.message}"
        raise AssertionError(text[:PRINTED_MAX]) from None


def text_of(user: User, what: str, result: tools_api.ServerCallResult) -> str:
    """Return the only text of a result; anything else fails with what came back."""
    parts = json.loads(result.content_json or "[]")
    outcome = tool_pb2.CallOutcome.Name(result.outcome)
    if outcome != "CALL_OUTCOME_SUCCEEDED" or len(parts) != 1 or "text" not in parts[0]:
        text = f"{what} of user {user.id}: {outcome} {result.reason} {result.message}: {parts}"
        raise AssertionError(text[:PRINTED_MAX])
    found: str = parts[0]["text"]
    return found


async def together(work: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """Do everything at once; the failure of one stops the others and is the only one printed."""
    try:
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(each) for each in work]
    except ExceptionGroup as failures:
        raise AssertionError("\n".join(str(each) for each in failures.exceptions)) from None
    return [task.result() for task in running]


async def heard(
    gateway: McpGateway, server_id: str, user: User, part: str, calls: int
) -> Counter[str]:
    """Call one after the other, list the tools now and then, and count the names that came back."""
    names: Counter[str] = Counter()
    for number in range(calls):
        what, text = f"call {number} of part {part}", f"{CALLER} {part} {number}"
        asking = called(gateway, user, server_id, "echo", f"{part}-{number}", text=text)
        came = text_of(user, what, await answered(user, what, asking))
        name, _, rest = came.partition(" ")
        assert rest == f"{part} {number}", f"{what} of user {user.id}: {came[:PRINTED_MAX]}"
        names[name] += 1
        if number % LISTED_EVERY == 0:
            what = f"listing at call {number} of part {part}"
            tools = (await answered(user, what, listed(gateway, user, server_id))).tools
            echo = next(tool for tool in tools if tool.original_name == "echo")
            names[echo.description.removeprefix("Repeat a text for ").rstrip(".")] += 1
    return names


async def test_users_under_load_get_their_own_answers_and_tools_only(
    gateway: McpGateway,
    server: CallerServer,
    database: Database,
    request: pytest.FixtureRequest,
) -> None:
    calls = CALLS_FULL_SIZE if request.config.getoption("--full-size") else CALLS
    each = calls // (len(USERS) * AT_ONCE)
    server_id = await create(gateway, server.url)
    parts = [(value, user, part) for value, user in USERS.items() for part in range(AT_ONCE)]
    with logged() as log:
        found = await together(
            [heard(gateway, server_id, user, f"{user.id}-{part}", each) for _, user, part in parts]
        )
    listings = -(-each // LISTED_EVERY)
    for (value, user, part), names in zip(parts, found, strict=True):
        assert names == Counter({name_of(value): each + listings}), (user.id, part)
    assert {value for value in server.seen if value} == set(USERS)
    assert min(server.seen[value] for value in USERS) >= each * AT_ONCE
    # Nothing that was logged or stored meanwhile has a credential.
    text = log.getvalue() + await stored_text(database)
    assert name_of(next(iter(USERS))) in text
    assert [value for value in USERS if value in text] == []


async def subjects_seen(lab: LoginLab, user: User, part: str, calls: int) -> Counter[str]:
    """Call one after the other, and count the subjects whose logins came to the server."""
    subjects: Counter[str] = Counter()
    for number in range(calls):
        what = f"call {number} of part {part}"
        result = await answered(user, what, lab.call(f"{part}-{number}", user))
        subjects[text_of(user, what, result)] += 1
        if part == "alice-0" and number % RENEWED_EVERY == 0:
            # The tokens of all users end, and are renewed while others call.
            lab.issuer.expire()
    return subjects


async def test_two_users_under_load_use_their_own_logins_only(
    tmp_path: Path,
    mcp_database: str,
    database: Database,
    request: pytest.FixtureRequest,
) -> None:
    calls = CALLS_FULL_SIZE if request.config.getoption("--full-size") else LOGIN_CALLS
    each = calls // (len(SUBJECTS) * AT_ONCE)
    parts = [(subject, user, part) for subject, user in SUBJECTS.items() for part in range(AT_ONCE)]
    with logged() as log:
        async with (
            fake_authorization_server() as issuer,
            mcp_gateway(tmp_path, mcp_database, allowed=issuer.place) as gateway,
        ):
            lab = LoginLab(gateway, issuer, await create_server(gateway, issuer.mcp_url))
            for subject, user in SUBJECTS.items():
                await lab.log_in(user, subject)
            found = await together(
                [
                    subjects_seen(lab, user, f"{subject}-{part}", each)
                    for subject, user, part in parts
                ]
            )
    for (subject, _, part), subjects in zip(parts, found, strict=True):
        assert subjects == Counter({subject: each}), (subject, part)
    assert Counter(issuer.calls) == dict.fromkeys(SUBJECTS, each * AT_ONCE)
    assert [login.is_revoked for login in issuer.logins] == [False] * len(SUBJECTS)
    text = log.getvalue() + await stored_text(database)
    assert len(issuer.given) > len(SUBJECTS) * 3
    assert [token for token in issuer.given if token in text] == []
