"""Creates a role and a schema for each service, so that none can read another's tables."""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import asyncpg

from parley.postgres.address import with_database
from parley.postgres.errors import DatabaseMisconfigured
from parley.postgres.ownership import take_ownership
from parley.postgres.session import Session, first_line, quoted, typed_outages


@dataclass(frozen=True, slots=True)
class ServiceRole:
    """A login role and the schema it owns.

    Attributes:
        name: The role; roles are global to the server, so other installations see it too.
        schema: The schema it owns.
        password: Its password from now on.
        is_ours: Whether the role may exist because Parley created it. A role that exists and is not
            ours belongs to another application, whose password must not be changed.
    """

    name: str
    schema: str
    password: str = field(repr=False)
    is_ours: bool = True


async def provision(
    admin_url: str,
    *,
    roles: Sequence[ServiceRole],
    database: str | None = None,
    store: Callable[[], None] = lambda: None,
) -> None:
    """Create roles, schemas and (when named) the database; repeating it changes nothing.

    Args:
        admin_url: A role that may create roles, and the database if one is to be created.
        roles: The roles and their schemas. A password given here replaces the role's earlier one.
        database: The database to create and use; without it that of `admin_url` is used.
        store: Stores the passwords. It is called before they become valid, and only if all roles
            can be created, so that a stored password proves that the role is the caller's.

    An existing database keeps the rights that PUBLIC has in it. Objects in the schemas that belong
    to other roles, as after restoring a dump, are transferred to `roles`.

    Raises:
        DatabaseMisconfigured: The administrator's role may not do this, or a role is not the
            caller's.
        DatabaseUnavailable: The server does not answer.
    """
    try:
        with typed_outages():
            await _provision(admin_url, tuple(roles), database, store)
    except asyncpg.InsufficientPrivilegeError as error:
        remedy = "give the address of a role that may create roles, schemas and databases"
        raise DatabaseMisconfigured(first_line(error), remedy) from error


async def _provision(
    admin_url: str,
    roles: tuple[ServiceRole, ...],
    database: str | None,
    store: Callable[[], None],
) -> None:
    admin = await Session(admin_url, "provision").open()
    try:
        # Two concurrent calls would conflict in the catalogues with a concurrent update.
        await admin.execute("SELECT pg_advisory_lock(hashtextextended('parley provision', 0))")
        async with admin.transaction():
            await _refuse_roles_of_others(admin, roles)
            for role in roles:
                await _make_role(admin, role)
            # A role whose password was lost could not log in any more.
            store()
        if database is None:
            await _make_schemas(admin, roles, is_own_database=False)
            return
        if not await admin.fetchval("SELECT 1 FROM pg_database WHERE datname = $1", database):
            await admin.execute(
                f"CREATE DATABASE {quoted(database)} ENCODING 'UTF8' TEMPLATE template0"
            )
        inside = await Session(with_database(admin_url, database), "provision").open()
        try:
            await _make_schemas(inside, roles, is_own_database=True)
        finally:
            await inside.close()
    finally:
        await admin.close()


async def _refuse_roles_of_others(
    admin: "asyncpg.Connection[asyncpg.Record]", roles: tuple[ServiceRole, ...]
) -> None:
    names = [role.name for role in roles if not role.is_ours]
    rows = await admin.fetch(
        "SELECT rolname FROM pg_roles WHERE rolname = ANY($1) ORDER BY rolname", names
    )
    if rows:
        found = ", ".join(row["rolname"] for row in rows)
        reason = f"another installation of Parley made the roles {found}"
        remedy = (
            "use the home that made them, or give another database; if that home is lost, rename "
            "each of them (ALTER ROLE name RENAME TO another_name) and start as a superuser"
        )
        raise DatabaseMisconfigured(reason, remedy)


async def _make_role(admin: "asyncpg.Connection[asyncpg.Record]", role: ServiceRole) -> None:
    name = quoted(role.name)
    if not await admin.fetchval("SELECT 1 FROM pg_roles WHERE rolname = $1", role.name):
        await admin.execute(f"CREATE ROLE {name} LOGIN")
    await admin.execute(f"ALTER ROLE {name} LOGIN PASSWORD '{scram_verifier(role.password)}'")
    if not await admin.fetchval("SELECT rolsuper FROM pg_roles WHERE rolname = current_user"):
        # Only a member of the role may create a schema that it owns.
        await admin.execute(f"GRANT {name} TO CURRENT_USER")


async def _make_schemas(
    admin: "asyncpg.Connection[asyncpg.Record]",
    roles: tuple[ServiceRole, ...],
    *,
    is_own_database: bool,
) -> None:
    database = quoted(await admin.fetchval("SELECT current_database()"))
    async with admin.transaction():
        if is_own_database:
            await admin.execute(f"REVOKE ALL ON DATABASE {database} FROM PUBLIC")
            await admin.execute("REVOKE ALL ON SCHEMA public FROM PUBLIC")
        for role in roles:
            name, schema = quoted(role.name), quoted(role.schema)
            await admin.execute(f"GRANT CONNECT ON DATABASE {database} TO {name}")
            if not await admin.fetchval("SELECT to_regnamespace($1)::text", schema):
                await admin.execute(f"CREATE SCHEMA {schema} AUTHORIZATION {name}")
            await take_ownership(admin, schema=role.schema, role=role.name)
            await admin.execute(f"REVOKE ALL ON SCHEMA {schema} FROM PUBLIC")
            await admin.execute(
                f"ALTER ROLE {name} IN DATABASE {database} SET search_path = {schema}"
            )


ITERATIONS = 4096


def scram_verifier(password: str, *, salt: bytes | None = None) -> str:
    """Return the verifier that PostgreSQL stores for `password` under SCRAM-SHA-256.

    Args:
        password: ASCII only, so that no normalisation is needed.
        salt: Sixteen random bytes unless a test needs a known result.
    """
    salt = secrets.token_bytes(16) if salt is None else salt
    salted = hashlib.pbkdf2_hmac("sha256", password.encode("ascii"), salt, ITERATIONS)
    stored_key = hashlib.sha256(_keyed(salted, b"Client Key")).digest()
    server_key = _keyed(salted, b"Server Key")
    return f"SCRAM-SHA-256${ITERATIONS}:{_text(salt)}${_text(stored_key)}:{_text(server_key)}"


def _keyed(key: bytes, message: bytes) -> bytes:
    return hmac.digest(key, message, "sha256")


def _text(raw: bytes) -> str:
    return base64.b64encode(raw).decode("ascii")
