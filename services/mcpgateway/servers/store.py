"""MCP servers in PostgreSQL; their secrets are encrypted, and decrypted only for a call."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import msgspec
from sqlalchemy import Row, Select, delete, func, insert, or_, select, tuple_, update
from sqlalchemy.dialects.postgresql import insert as insert_or
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from mcpgateway.servers.changes import ADD_CHANGE, ChangeKind, NewChange, changed_fields
from mcpgateway.servers.constraints import Constraint
from mcpgateway.servers.domain import (
    ApprovalPolicy,
    AuthKind,
    Availability,
    Credentials,
    Limits,
    OAuthSettings,
    PinPolicy,
    Server,
    ServerId,
    ServerSettings,
    ToolSearch,
    Transport,
    UserValueSlot,
)
from mcpgateway.servers.errors import RequestIdReused, ServerNotFound, SlugTaken, VersionConflict
from mcpgateway.servers.schema import (
    SCHEMA,
    grants,
    oauth_clients,
    oauth_flows,
    requests,
    servers,
    tool_definitions,
    user_values,
)
from parley.audit_log import AuditAction, AuditEvent
from parley.audit_log.outbox import arguments_of, insert_statement
from parley.postgres import Database
from parley.process.stored_keys import SealedColumn, StoredKeys
from parley.secrets import Sealed, SecretBox, SecretsError

TABLE = "mcp.servers"
COLUMN = "credentials"
VALUES_TABLE = "mcp.user_values"
VALUES_COLUMN = "sealed"
STORED_KEYS = StoredKeys(
    "mcp.keys",
    (
        SealedColumn(TABLE, COLUMN, "credentials_key_id"),
        SealedColumn(VALUES_TABLE, VALUES_COLUMN, "key_id"),
        SealedColumn("mcp.oauth_clients", "sealed", "key_id"),
        SealedColumn("mcp.oauth_flows", "sealed", "key_id"),
        SealedColumn("mcp.grants", "sealed", "key_id"),
    ),
)

#: A row with all columns of a server, or of its secrets.
AnyRow = Row[*tuple[Any, ...]]
#: Returns the new settings and credentials of a stored server; None keeps the credentials.
Change = Callable[[Server, Credentials], tuple[ServerSettings, Credentials | None]]


# All columns except the ciphertext; built once, because SQLAlchemy takes a millisecond for it.
_SECRET = (servers.c.credentials, servers.c.credentials_key_id)
_COLUMNS: list[Any] = [column for column in servers.c if column not in _SECRET]
_EVERYTHING: Select[*tuple[Any, ...]] = select(
    *_COLUMNS,
    servers.c.credentials.is_not(None).label("has_credentials"),
)


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """Identifies a repeated request."""

    caller: str
    request_id: str
    sha256: bytes


@dataclass(frozen=True, slots=True)
class ServerFilter:
    """The filter of a listing.

    Attributes:
        after: Display name and id after which the page starts.
        availability: Only servers with this availability.
        enabled_only: Only enabled servers.
        query: Only those whose slug, name or description contains it.
    """

    after: tuple[str, str] | None = None
    availability: Availability | None = None
    enabled_only: bool = False
    query: str = ""


class Servers:
    """The stored servers; each change is recorded in its transaction.

    Args:
        database: Where they are stored.
        box: Encrypts their secrets.
        new_id: Returns ids of changes, time-ordered.
    """

    def __init__(self, database: Database, box: SecretBox, new_id: Callable[[], str]) -> None:
        self._database = database
        self._box = box
        self._new_id = new_id

    async def create(
        self,
        server_id: ServerId,
        settings: ServerSettings,
        credentials: Credentials,
        request: RequestRecord,
    ) -> Server:
        """Store a new server, or return the one that the same request created.

        Raises:
            SlugTaken: Another server has the slug.
            RequestIdReused: The request id came with another body before.
            ServerNotFound: The same request created it, and it was deleted since.
        """
        change: NewChange | None = None
        try:
            async with self._database.transaction() as connection:
                earlier = await _remember(connection, request, server_id)
                if earlier is None:
                    row = await _insert(connection, self._values(server_id, settings, credentials))
                    fields = changed_fields(None, settings, has_new_credentials=bool(credentials))
                    change = self._change(_server(row), ChangeKind.CREATED, fields)
                    await _record(connection, AuditAction.MCP_SERVER_CREATED, change)
        except IntegrityError as error:
            if Constraint.SERVERS_SLUG_UNIQUE in str(error.orig):
                raise SlugTaken(settings.slug) from error
            raise
        if change is None:
            return await self.get(earlier or server_id)
        change.log()
        return change.server

    # May run: administrator.
    async def update(
        self, server_id: str, expected_version: int, change: Change, request: RequestRecord
    ) -> tuple[Server, Server]:
        """Change a server; return it before and after. A repeated request changes nothing.

        Values of users and approved definitions belong to one URL, logins to one URL and client;
        they are deleted with it.

        Raises:
            ServerNotFound: There is none.
            VersionConflict: It has another version.
            SlugTaken: Another server has the new slug.
            RequestIdReused: The request id came with another body before.
        """
        if not is_uuid(server_id):
            raise ServerNotFound(server_id)
        try:
            async with self._database.transaction() as connection:
                before = await _locked(connection, server_id)
                if await _remember(connection, request, before.id) is not None:
                    return before, before
                if expected_version not in (0, before.version):
                    raise VersionConflict(before.version)
                settings, credentials = change(before, await self._opened(connection, before))
                values = self._changed_values(before, settings, credentials)
                if settings.url != before.settings.url:
                    for table in (user_values, tool_definitions):
                        await connection.execute(
                            delete(table).where(table.c.server_id == server_id)
                        )
                if settings.login_terms != before.settings.login_terms:
                    # A token is never sent to another server than the one it was issued for.
                    for table in (grants, oauth_flows, oauth_clients):
                        await connection.execute(
                            delete(table).where(table.c.server_id == server_id)
                        )
                after = _server(await _update(connection, server_id, values))
                has_new = credentials is not None and (bool(credentials) or before.has_credentials)
                fields = changed_fields(before.settings, settings, has_new_credentials=has_new)
                recorded = self._change(after, ChangeKind.UPDATED, fields)
                await _record(connection, AuditAction.MCP_SERVER_UPDATED, recorded)
        except IntegrityError as error:
            if Constraint.SERVERS_SLUG_UNIQUE in str(error.orig):
                raise SlugTaken("") from error
            raise
        recorded.log()
        return before, after

    def _change(self, server: Server, kind: ChangeKind, fields: Mapping[str, Any]) -> NewChange:
        return NewChange(self._new_id(), server, kind, fields)

    def _changed_values(
        self, before: Server, settings: ServerSettings, credentials: Credentials | None
    ) -> dict[str, Any]:
        if credentials is None:
            values: dict[str, Any] = msgspec.to_builtins(settings)
        else:
            values = self._values(before.id, settings, credentials)
        return values | {"version": before.version + 1, "updated_at": func.now()}

    # May run: administrator.
    async def _opened(self, connection: AsyncConnection, server: Server) -> Credentials:
        """Return the secrets inside a transaction; ones that cannot be decrypted count as none."""
        statement = select(servers.c.credentials, servers.c.credentials_key_id)
        found = await connection.execute(statement.where(servers.c.id == server.id))
        try:
            return self._decrypted(server, found.one())
        except SecretsError:
            return Credentials()

    # May run: process.
    async def ensure(self, server_id: ServerId, settings: ServerSettings) -> None:
        """Create a server with this slug at this URL, or update its URL; other changes are kept.

        Credentials were given for one URL, so they are removed when it changes.
        """
        statement = insert_or(servers).values(self._values(server_id, settings, Credentials()))
        moved: dict[str, Any] = {
            "url": statement.excluded.url,
            "credentials": None,
            "credentials_key_id": None,
            "header_names": [],
            "version": servers.c.version + 1,
            "updated_at": func.now(),
        }
        statement = statement.on_conflict_do_update(
            index_elements=["slug"], set_=moved, where=servers.c.url != statement.excluded.url
        )
        async with self._database.transaction() as connection:
            changed = await connection.execute(statement.returning(servers.c.id, servers.c.version))
            row = changed.one_or_none()
            if row is not None:
                is_new = row.version == 1
                action = (
                    AuditAction.MCP_SERVER_CREATED if is_new else AuditAction.MCP_SERVER_UPDATED
                )
                event = AuditEvent(action, str(row.id))
                await connection.exec_driver_sql(insert_statement(SCHEMA), arguments_of(event))

    async def get(self, server_id: str) -> Server:
        """Return the server.

        Raises:
            ServerNotFound: There is none.
        """
        found = await self.find([server_id])
        if server_id not in found:
            raise ServerNotFound(server_id)
        return found[server_id]

    async def find(self, server_ids: Sequence[str]) -> Mapping[str, Server]:
        """Return the existing ones of these servers, by id."""
        known = [server_id for server_id in server_ids if is_uuid(server_id)]
        if not known:
            return {}
        return await self._read(_EVERYTHING.where(servers.c.id.in_(known)))

    async def enabled(self, availability: Availability) -> Mapping[str, Server]:
        """Return the enabled servers with an availability, ordered by slug."""
        statement = _EVERYTHING.where(servers.c.availability == availability, servers.c.is_enabled)
        return await self._read(statement.order_by(servers.c.slug))

    async def page(self, wanted: ServerFilter, limit: int) -> tuple[Server, ...]:
        """Return at most `limit` servers, ordered by display name and id."""
        statement = _EVERYTHING.order_by(servers.c.display_name, servers.c.id).limit(limit)
        if wanted.after is not None:
            place = tuple_(servers.c.display_name, servers.c.id)
            statement = statement.where(place > wanted.after)
        if wanted.availability is not None:
            statement = statement.where(servers.c.availability == wanted.availability)
        if wanted.enabled_only:
            statement = statement.where(servers.c.is_enabled)
        if wanted.query:
            columns = (servers.c.slug, servers.c.display_name, servers.c.description)
            matches = [each.icontains(wanted.query, autoescape=True) for each in columns]
            statement = statement.where(or_(*matches))
        found = await self._read(statement)
        return tuple(found.values())

    # May run: administrator.
    async def delete(self, server_id: str) -> Server | None:
        """Delete the server with its secrets and the values of users; return it if it existed."""
        if not is_uuid(server_id):
            return None
        statement = delete(servers).where(servers.c.id == server_id)
        async with self._database.transaction() as connection:
            deleted = await connection.execute(statement.returning(*_EVERYTHING.selected_columns))
            row = deleted.one_or_none()
            if row is None:
                return None
            change = self._change(_server(row), ChangeKind.DELETED, {})
            await _record(connection, AuditAction.MCP_SERVER_DELETED, change)
        change.log()
        return change.server

    # May run: process.
    async def credentials(self, server: Server) -> Credentials:
        """Return the server's secrets, decrypted; none of a server that changed since it was read.

        Raises:
            SecretsError: They cannot be decrypted with the keys of this process.
        """
        if not server.has_credentials:
            return Credentials()
        # New secrets are never sent to an old URL.
        statement = select(servers.c.credentials, servers.c.credentials_key_id).where(
            servers.c.id == server.id, servers.c.version == server.version
        )
        async with self._database.reading() as connection:
            found = await connection.execute(statement)
            row = found.one_or_none()
        if row is None:
            return Credentials()
        return self._decrypted(server, row)

    def _decrypted(self, server: Server, row: Any) -> Credentials:
        if row.credentials is None:
            return Credentials()
        sealed = Sealed(row.credentials, row.credentials_key_id)
        plain = self._box.open(sealed, table=TABLE, column=COLUMN, row_id=server.id)
        return msgspec.json.decode(plain, type=Credentials)

    # May run: user, service.
    async def _read(self, statement: Select[Any]) -> Mapping[str, Server]:
        async with self._database.reading() as connection:
            rows = await connection.execute(statement)
            return {row.id: _server(row) for row in rows}

    def _values(
        self, server_id: ServerId, settings: ServerSettings, credentials: Credentials
    ) -> dict[str, Any]:
        values: dict[str, Any] = msgspec.to_builtins(settings)
        sealed = None
        if credentials:
            plain = msgspec.json.encode(credentials)
            sealed = self._box.seal(plain, table=TABLE, column=COLUMN, row_id=server_id)
        return values | {
            "id": server_id,
            "version": 1,
            "credentials": None if sealed is None else sealed.ciphertext,
            "credentials_key_id": None if sealed is None else sealed.key_id,
            "header_names": sorted(credentials.headers),
        }


# May run: administrator.
async def _remember(
    connection: AsyncConnection, request: RequestRecord, server_id: ServerId
) -> ServerId | None:
    """Record the request; return the server of the same request if it was recorded before."""
    noted = await connection.execute(
        insert_or(requests)
        .values(
            caller=request.caller,
            request_id=request.request_id,
            sha256=request.sha256,
            server_id=server_id,
        )
        .on_conflict_do_nothing()
        .returning(requests.c.server_id)
    )
    if noted.one_or_none() is not None:
        return None
    found = await connection.execute(
        select(requests.c.sha256, requests.c.server_id).where(
            requests.c.caller == request.caller, requests.c.request_id == request.request_id
        )
    )
    row = found.one()
    if row.sha256 != request.sha256:
        raise RequestIdReused(request.request_id)
    return ServerId(row.server_id)


async def _record(connection: AsyncConnection, action: AuditAction, change: NewChange) -> None:
    event = AuditEvent(action, change.server.id)
    await connection.exec_driver_sql(insert_statement(SCHEMA), arguments_of(event))
    await connection.exec_driver_sql(ADD_CHANGE, change.arguments)


# May run: administrator.
async def _locked(connection: AsyncConnection, server_id: str) -> Server:
    statement = _EVERYTHING.where(servers.c.id == server_id).with_for_update()
    row = (await connection.execute(statement)).one_or_none()
    if row is None:
        raise ServerNotFound(server_id)
    return _server(row)


# May run: administrator.
async def _update(connection: AsyncConnection, server_id: str, values: dict[str, Any]) -> AnyRow:
    statement = update(servers).where(servers.c.id == server_id).values(values)
    updated = await connection.execute(statement.returning(*_EVERYTHING.selected_columns))
    return updated.one()


# May run: administrator.
async def _insert(connection: AsyncConnection, values: dict[str, Any]) -> AnyRow:
    inserted = await connection.execute(
        insert(servers).values(values).returning(*_EVERYTHING.selected_columns)
    )
    return inserted.one()


def _server(row: AnyRow) -> Server:
    oauth = row.oauth
    return Server(
        id=ServerId(row.id),
        version=row.version,
        settings=ServerSettings(
            slug=row.slug,
            display_name=row.display_name,
            url=row.url,
            transport=Transport(row.transport),
            auth_kind=AuthKind(row.auth_kind),
            description=row.description,
            icon=row.icon,
            oauth=None if oauth is None else msgspec.convert(oauth, OAuthSettings),
            api_key_header=row.api_key_header,
            tool_allow_list=tuple(row.tool_allow_list),
            tool_deny_list=tuple(row.tool_deny_list),
            availability=Availability(row.availability),
            is_enabled=row.is_enabled,
            allow_in_plan_mode=row.allow_in_plan_mode,
            is_trusted=row.is_trusted,
            is_stateful=row.is_stateful,
            approval_policy=ApprovalPolicy(row.approval_policy),
            limits=msgspec.convert(row.limits, Limits),
            user_ids=tuple(row.user_ids),
            group_ids=tuple(row.group_ids),
            is_required=row.is_required,
            pin_policy=PinPolicy(row.pin_policy),
            user_values=msgspec.convert(row.user_values, tuple[UserValueSlot, ...]),
            tool_search=ToolSearch(row.tool_search),
        ),
        has_credentials=row.has_credentials,
        header_names=tuple(row.header_names),
        created_at=row.created_at,
        updated_at=row.updated_at,
    )


def is_uuid(text: str) -> bool:
    """Return whether the text is a UUID in canonical form; no other text is a server id."""
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False
