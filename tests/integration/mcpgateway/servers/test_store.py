"""Servers and their secrets in PostgreSQL."""

import asyncio
from dataclasses import replace

import asyncpg
import pytest

from mcpgateway.servers.domain import (
    AuthKind,
    Availability,
    Credentials,
    Limits,
    OAuthSettings,
    Server,
    ServerId,
    ServerSettings,
    Transport,
)
from mcpgateway.servers.errors import (
    CredentialsNeeded,
    RequestIdReused,
    ServerNotFound,
    SlugTaken,
)
from mcpgateway.servers.store import STORED_KEYS, RequestRecord, ServerFilter, Servers
from mcpgateway.servers.validation import check_origins
from parley.postgres import Database
from parley.secrets import Keyring, SecretBox
from support.mcpgateway.values import SERVER_ID, new_id

SECRET = "hunter2-hunter2"
PLAIN = ServerSettings(slug="plain", display_name="Plain", url="https://mcp.example/mcp")
FULL = ServerSettings(
    slug="full",
    display_name="Full",
    url="https://mcp.example/sse",
    transport=Transport.SSE,
    auth_kind=AuthKind.OAUTH2,
    description="everything",
    icon="x",
    oauth=OAuthSettings(client_id="us", scopes=("a", "b")),
    tool_allow_list=("a",),
    tool_deny_list=("b",),
    availability=Availability.FORCE_ON,
    is_enabled=True,
    allow_in_plan_mode=True,
    is_trusted=True,
    is_stateful=True,
    limits=Limits(calls_max=3),
)


def a_request(request_id: str = "r1", body: bytes = b"b") -> RequestRecord:
    return RequestRecord("gateway:ann", request_id, body)


def an_id(number: int) -> ServerId:
    return ServerId(f"01900000-0000-7000-8000-{number:012}")


async def test_every_setting_comes_back(servers: Servers) -> None:
    created = await servers.create(SERVER_ID, FULL, Credentials(), a_request())

    assert created.settings == FULL
    assert await servers.get(SERVER_ID) == created


async def test_secrets_are_sealed_and_opened_for_use_only(
    servers: Servers, database: Database
) -> None:
    credentials = Credentials({"X-Key": SECRET})
    settings = replace(PLAIN, auth_kind=AuthKind.API_KEY)
    server = await servers.create(SERVER_ID, settings, credentials, a_request())

    stored = await database.pool.fetchval("SELECT servers::text FROM mcp.servers AS servers")
    assert (server.has_credentials, server.header_names) == (True, ("X-Key",))
    assert await servers.credentials(server) == credentials
    assert SECRET not in stored
    assert SECRET.encode().hex() not in stored


async def test_a_slug_is_taken_once(servers: Servers) -> None:
    await servers.create(an_id(1), PLAIN, Credentials(), a_request("r1"))

    with pytest.raises(SlugTaken):
        await servers.create(an_id(2), PLAIN, Credentials(), a_request("r2"))


async def test_a_repeated_request_returns_the_first_server(servers: Servers) -> None:
    first = await servers.create(an_id(1), PLAIN, Credentials(), a_request())
    again = await servers.create(an_id(2), PLAIN, Credentials(), a_request())

    assert again == first


async def test_a_request_id_with_another_body_is_refused(servers: Servers) -> None:
    await servers.create(an_id(1), PLAIN, Credentials(), a_request(body=b"one"))

    with pytest.raises(RequestIdReused):
        await servers.create(an_id(2), FULL, Credentials(), a_request(body=b"two"))


async def test_a_deleted_server_is_gone_and_deleting_again_changes_nothing(
    servers: Servers,
) -> None:
    await servers.create(SERVER_ID, PLAIN, Credentials(), a_request())

    await servers.delete(SERVER_ID)
    await servers.delete(SERVER_ID)
    await servers.delete("nonsense")

    with pytest.raises(ServerNotFound):
        await servers.get(SERVER_ID)


async def test_pages_go_by_display_name_and_filters_apply(servers: Servers) -> None:
    for number, name in enumerate(["b", "a", "c_%"]):
        settings = replace(PLAIN, slug=f"s{number}", display_name=name, is_enabled=name != "a")
        await servers.create(an_id(number), settings, Credentials(), a_request(name))

    async def names(wanted: ServerFilter, limit: int = 9) -> list[str]:
        return [each.settings.display_name for each in await servers.page(wanted, limit)]

    assert await names(ServerFilter(), 2) == ["a", "b"]
    assert await names(ServerFilter(after=("b", an_id(0)))) == ["c_%"]
    assert await names(ServerFilter(enabled_only=True)) == ["b", "c_%"]
    assert await names(ServerFilter(query="C_%")) == ["c_%"]
    assert await names(ServerFilter(availability=Availability.FORCE_ON)) == []


async def test_ensuring_a_server_moves_it_and_keeps_what_an_admin_changed(
    servers: Servers, database: Database
) -> None:
    await servers.ensure(an_id(1), FULL)
    await database.pool.execute("UPDATE mcp.servers SET is_enabled = false")
    await servers.ensure(an_id(2), FULL)
    unmoved = await servers.get(an_id(1))
    await servers.ensure(an_id(3), replace(FULL, url="https://new.example/mcp"))
    moved = await servers.get(an_id(1))

    assert unmoved.version == 1
    assert moved.version == 2
    assert moved.settings == replace(FULL, url="https://new.example/mcp", is_enabled=False)


async def test_credentials_do_not_move_with_a_server(servers: Servers) -> None:
    await servers.create(an_id(1), FULL, Credentials({"X-Key": "secret"}), a_request("r1"))

    await servers.ensure(an_id(2), replace(FULL, url="https://new.example/mcp"))

    moved = await servers.get(an_id(1))
    assert moved.settings.url == "https://new.example/mcp"
    assert (moved.has_credentials, moved.header_names) == (False, ())


async def test_a_move_sees_credentials_that_were_stored_while_it_waited(
    servers: Servers, database: Database
) -> None:
    await servers.create(SERVER_ID, FULL, Credentials(), a_request("create"))

    def store(before: Server, _: Credentials) -> tuple[ServerSettings, Credentials]:
        return before.settings, Credentials(oauth_client_secret=SECRET)

    def move(before: Server, _: Credentials) -> tuple[ServerSettings, None]:
        moved = replace(before.settings, url="https://new.example/mcp")
        check_origins(before, moved)
        return moved, None

    async def refuse_move() -> None:
        with pytest.raises(CredentialsNeeded):
            await servers.update(SERVER_ID, 0, move, a_request("move"))

    async with (
        asyncio.timeout(20),
        asyncio.TaskGroup() as tasks,
        database.pool.acquire() as connection,
        connection.transaction(),
    ):
        await connection.execute("SELECT 1 FROM mcp.servers FOR UPDATE")
        tasks.create_task(servers.update(SERVER_ID, 0, store, a_request("store")))
        await until_waiting(database, 1)
        tasks.create_task(refuse_move())
        await until_waiting(database, 2)

    after = await servers.get(SERVER_ID)
    assert (after.settings.url, after.has_credentials) == (FULL.url, True)


async def until_waiting(database: Database, sessions: int) -> None:
    """Wait until that many sessions of the database wait for a lock."""
    waiting = """
        SELECT count(*) FROM pg_stat_activity
        WHERE wait_event_type = 'Lock' AND datname = current_database()
    """
    while await database.pool.fetchval(waiting) < sessions:
        await database.pool.execute("SELECT pg_sleep(0.005)")


async def test_only_enabled_forced_servers_are_forced(servers: Servers) -> None:
    await servers.create(an_id(1), FULL, Credentials(), a_request("r1"))
    await servers.create(an_id(2), PLAIN, Credentials(), a_request("r2"))
    off = replace(FULL, slug="off", is_enabled=False)
    await servers.create(an_id(3), off, Credentials(), a_request("r3"))

    assert list(await servers.enabled(Availability.FORCE_ON)) == [an_id(1)]


async def test_credentials_open_with_the_new_master_key_alone_after_a_rotation(
    database: Database,
) -> None:
    old = Keyring.generate()
    new = old.with_readable_key().with_newest_first()
    await STORED_KEYS.adopt(database.pool, old)
    before = Servers(database, SecretBox(old), new_id)
    server = await before.create(SERVER_ID, PLAIN, Credentials({"X-Key": SECRET}), a_request())

    assert (await STORED_KEYS.adopt(database.pool, new)).changed == 1

    after = Servers(database, SecretBox(new.without_old_keys()), new_id)
    assert await after.credentials(server) == Credentials({"X-Key": SECRET})


@pytest.mark.parametrize("column", ["transport", "auth_kind", "availability", "approval_policy"])
async def test_the_database_itself_refuses_unknown_kinds(
    servers: Servers, database: Database, column: str
) -> None:
    await servers.ensure(SERVER_ID, PLAIN)

    with pytest.raises(asyncpg.CheckViolationError):
        await database.pool.execute(f"UPDATE mcp.servers SET {column} = 'unheard-of'")
