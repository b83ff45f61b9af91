import asyncpg
import pytest

from parley.postgres import DatabaseMisconfigured, ServiceRole, provision, with_database
from support.database.postgres import TestPostgres

ROLES = (
    ServiceRole("test_gateway", "identity", "gateway-password"),
    ServiceRole("test_chatd", "chat", "chatd-password"),
    ServiceRole("test_mcpgateway", "mcp", "mcpgateway-password"),
)
DATABASE = "provisioned"


async def connect(postgres: TestPostgres, role: ServiceRole) -> asyncpg.Connection:
    return await asyncpg.connect(
        postgres.server.url(role=role.name, password=role.password, database=DATABASE)
    )


async def test_each_role_owns_its_schema_and_reads_no_other(postgres: TestPostgres) -> None:
    for _ in range(2):
        await provision(postgres.server.admin_url(), roles=ROLES, database=DATABASE)
    for role in ROLES:
        connection = await connect(postgres, role)
        await connection.execute("CREATE TABLE things (id int)")
        assert await connection.fetchval("SELECT current_schema()") == role.schema
        await connection.close()
    for role in ROLES:
        connection = await connect(postgres, role)
        for other in ROLES:
            if other == role:
                continue
            for statement in (
                f"SELECT * FROM {other.schema}.things",
                f"INSERT INTO {other.schema}.things VALUES (1)",
                f"CREATE TABLE {other.schema}.mine (id int)",
                f"SET ROLE {other.name}",
                "CREATE TABLE public.mine (id int)",
                "CREATE SCHEMA mine",
                "CREATE TEMPORARY TABLE mine (id int)",
                f"CREATE DATABASE mine OWNER {role.name}",
                "CREATE ROLE mine",
            ):
                with pytest.raises(asyncpg.InsufficientPrivilegeError):
                    await connection.execute(statement)
        await connection.close()


async def test_a_new_password_replaces_the_old_one(postgres: TestPostgres) -> None:
    await provision(postgres.server.admin_url(), roles=ROLES, database=DATABASE)
    renewed = ServiceRole("test_chatd", "chat", "another-password")
    await provision(postgres.server.admin_url(), roles=[renewed], database=DATABASE)
    await (await connect(postgres, renewed)).close()
    with pytest.raises(asyncpg.InvalidPasswordError):
        await connect(postgres, ROLES[1])


async def test_a_role_that_may_not_provision_is_told_so(postgres: TestPostgres) -> None:
    await provision(postgres.server.admin_url(), roles=ROLES, database=DATABASE)
    role = ROLES[0]
    url = postgres.server.url(role=role.name, password=role.password, database=DATABASE)
    with pytest.raises(DatabaseMisconfigured):
        await provision(url, roles=[ServiceRole("somebody", "new", "password")])


async def test_an_administrator_need_not_be_superuser(
    postgres: TestPostgres, empty_database: str
) -> None:
    name = empty_database.partition("@/")[2].partition("?")[0]
    await postgres.execute("CREATE ROLE renter LOGIN CREATEROLE PASSWORD 'rent'")
    await postgres.execute(f"ALTER DATABASE {name} OWNER TO renter")
    url = postgres.server.url(role="renter", password="rent", database=name)
    roles = [ServiceRole("tenant", "flat", "key")]
    for _ in range(2):
        await provision(url, roles=roles)
    connection = await asyncpg.connect(
        with_database(postgres.server.url(role="tenant", password="key", database="x"), name)
    )
    await connection.execute("CREATE TABLE flat.things (id int)")
    await connection.close()


async def test_the_password_itself_is_never_sent(postgres: TestPostgres) -> None:
    await provision(postgres.server.admin_url(), roles=ROLES, database=DATABASE)
    connection = await asyncpg.connect(postgres.server.admin_url())
    stored = await connection.fetchval(
        "SELECT rolpassword FROM pg_authid WHERE rolname = 'test_gateway'"
    )
    await connection.close()
    assert stored.startswith("SCRAM-SHA-256$4096:")


async def test_a_role_of_another_installation_keeps_its_password(postgres: TestPostgres) -> None:
    url = postgres.server.admin_url()
    await provision(url, roles=ROLES, database=DATABASE)
    theirs = ServiceRole("test_chatd", "chat", "stolen", is_ours=False)
    with pytest.raises(DatabaseMisconfigured):
        await provision(url, roles=[theirs], database=DATABASE)
    connection = await asyncpg.connect(
        postgres.server.url(role="test_chatd", password="chatd-password", database=DATABASE)
    )
    await connection.close()


async def test_a_given_database_keeps_the_rights_that_everybody_has(empty_database: str) -> None:
    roles = [ServiceRole("given_chatd", "chat", "password")]
    await provision(empty_database, roles=roles)
    connection = await asyncpg.connect(empty_database)
    rights = await connection.fetchval(
        "SELECT has_database_privilege('public', current_database(), 'CONNECT')"
    )
    await connection.close()
    assert rights
