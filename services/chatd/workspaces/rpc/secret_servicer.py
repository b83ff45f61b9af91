"""SecretService: stores secrets for workspaces; values are never returned to users."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Final

import grpc
import msgspec

from chatd.primitives.domain.errors import InvalidRequest, NotPermitted, all_of
from chatd.primitives.domain.ids import Owner
from chatd.primitives.rpc import fields
from chatd.primitives.rpc.page_tokens import length_of, place_of, token_of
from chatd.users.rpc.callers import caller_as_owner
from chatd.workspaces.clients.specs import DELIVERIES as SENT
from chatd.workspaces.clients.specs import grant_to_proto
from chatd.workspaces.domain.commands import Grant
from chatd.workspaces.domain.secrets import (
    HEADER,
    NAME,
    OF_THE_MESSAGE,
    Delivery,
    RecordedUse,
    Secret,
    SecretNotFound,
    canonical_pattern,
)
from chatd.workspaces.domain.workspace import Workspace
from chatd.workspaces.rpc.convert import OffsetPage
from chatd.workspaces.store.secrets import PostgresSecrets, SecretPlace, UsePlace, new_secret_id
from chatd.workspaces.store.workspaces import PostgresWorkspaces
from parley.api.workspace.v1 import secret_pb2
from parley.api.workspace.v1 import secret_service_pb2 as api
from parley.api.workspace.v1.secret_service_pb2_grpc import SecretServiceServicer
from parley.telemetry import audit

Context = grpc.aio.ServicerContext

ADMINISTRATORS: Final = frozenset({"owner", "admin"})
DELIVERIES: Final = {
    secret_pb2.SECRET_DELIVERY_UNSPECIFIED: Delivery.PROXY,
    secret_pb2.SECRET_DELIVERY_PROXY: Delivery.PROXY,
    secret_pb2.SECRET_DELIVERY_GIT: Delivery.GIT,
    secret_pb2.SECRET_DELIVERY_ENVIRONMENT: Delivery.ENVIRONMENT,
}

#: Called with a workspace whose grants changed, to update its node.
Granted = Callable[[Workspace], Awaitable[None]]


class SecretPage(msgspec.Struct, frozen=True):
    """The page token of a list of secrets."""

    name: str
    id: str


class UsePage(msgspec.Struct, frozen=True):
    """The page token of a list of uses."""

    used_at: datetime
    id: str


class SecretServicer(SecretServiceServicer):
    """Serves secrets; the server's error table converts errors to problems.

    Args:
        secrets: The store of secrets.
        workspaces: The store of workspaces.
        granted: Called with a workspace whose grants changed.
    """

    def __init__(
        self, secrets: PostgresSecrets, workspaces: PostgresWorkspaces, granted: Granted
    ) -> None:
        self._secrets = secrets
        self._workspaces = workspaces
        self._granted = granted

    async def ListSecrets(
        self, request: api.ListSecretsRequest, context: Context
    ) -> api.ListSecretsResponse:
        """List the caller's secrets and the installation's."""
        length = length_of(request.page_size)
        page = place_of(request.page_token, SecretPage)
        after = None if page is None else SecretPlace(page.name, page.id)
        found = await self._secrets.list(caller_as_owner().id, after, length + 1)
        shown = found[:length]
        last = SecretPage(shown[-1].name, shown[-1].id) if len(found) > length else None
        return api.ListSecretsResponse(
            secrets=map(secret_to_proto, shown),
            next_page_token="" if last is None else token_of(last),
        )

    async def PutSecret(
        self, request: api.PutSecretRequest, context: Context
    ) -> api.PutSecretResponse:
        """Store a secret, or a new value under its name."""
        owner = caller_as_owner()
        if request.shared and not _is_administrator(owner):
            raise NotPermitted("store secrets of the installation")
        # The value is compared after decryption; a hash of it could be brute-forced.
        without = api.PutSecretRequest()
        without.CopyFrom(request)
        without.ClearField("value")
        key = fields.client_key_of(without, request.request_id)
        secret = _secret_of(request.secret, "" if request.shared else owner.id, key.key)
        put = await self._secrets.put(secret, request.value, key.body_hash, request.secret.etag)
        if put.replaced is not None and put.replaced.hosts != put.secret.hosts:
            audit(
                "secret.hosts_changed",
                user_id=owner.id,
                secret_id=put.secret.id,
                secret_name=put.secret.name,
                old_hosts=put.replaced.hosts,
                new_hosts=put.secret.hosts,
            )
        return api.PutSecretResponse(secret=secret_to_proto(put.secret))

    async def DeleteSecret(
        self, request: api.DeleteSecretRequest, context: Context
    ) -> api.DeleteSecretResponse:
        """Delete a secret."""
        owner = caller_as_owner()
        await self._secrets.delete(
            fields.uuid_of(request.secret_id, "secret_id"),
            owner.id,
            is_administrator=_is_administrator(owner),
        )
        return api.DeleteSecretResponse()

    async def SetGrants(
        self, request: api.SetGrantsRequest, context: Context
    ) -> api.SetGrantsResponse:
        """Replace the secrets that a workspace may use."""
        owner = caller_as_owner()
        workspace_id = fields.uuid_of(request.workspace_id, "workspace_id")
        await self._workspaces.own(workspace_id, owner.id)
        names = tuple(dict.fromkeys(request.secret_names))
        found = await self._secrets.named(owner.id, names)
        missing = set(names) - {secret.name for secret in found}
        if missing:
            raise SecretNotFound(min(missing))
        _, after = await self._workspaces.apply(workspace_id, Grant(names))
        await self._granted(after)
        return api.SetGrantsResponse(grants=map(grant_to_proto, found))

    async def ListGrants(
        self, request: api.ListGrantsRequest, context: Context
    ) -> api.ListGrantsResponse:
        """List the secrets that a workspace may use; deleted secrets are left out."""
        owner = caller_as_owner()
        length = length_of(request.page_size)
        page = place_of(request.page_token, OffsetPage)
        first = 0 if page is None else page.after
        workspace = await self._workspaces.own(
            fields.uuid_of(request.workspace_id, "workspace_id"), owner.id
        )
        found = await self._secrets.named(owner.id, workspace.spec.secret_names)
        has_more = first + length < len(found)
        return api.ListGrantsResponse(
            grants=map(grant_to_proto, found[first : first + length]),
            next_page_token=token_of(OffsetPage(first + length)) if has_more else "",
        )

    async def ListSecretUses(
        self, request: api.ListSecretUsesRequest, context: Context
    ) -> api.ListSecretUsesResponse:
        """List the uses of secrets by the caller's workspaces, newest first."""
        length = length_of(request.page_size)
        page = place_of(request.page_token, UsePage)
        after = None if page is None else UsePlace(page.used_at, page.id)
        workspace_id = request.workspace_id and fields.uuid_of(request.workspace_id, "workspace_id")
        found = await self._secrets.uses(caller_as_owner().id, workspace_id, after, length + 1)
        shown = found[:length]
        last = UsePage(shown[-1].used_at, shown[-1].id) if len(found) > length else None
        return api.ListSecretUsesResponse(
            uses=map(use_to_proto, shown), next_page_token="" if last is None else token_of(last)
        )


def use_to_proto(use: RecordedUse) -> secret_pb2.SecretUse:
    """Convert a use to its proto, for the owner of its workspace."""
    shown = secret_pb2.SecretUse(
        use_id=use.id,
        workspace_id=use.workspace_id,
        node_id=use.node_id,
        secret_name=use.secret_name,
        host=use.host,
        purpose=use.purpose,
        outcome=secret_pb2.SecretUseOutcome.Value(f"SECRET_USE_OUTCOME_{use.outcome.name}"),
    )
    shown.used_at.FromDatetime(use.used_at)
    return shown


def secret_to_proto(secret: Secret) -> secret_pb2.Secret:
    """Convert a secret to its proto, without its value."""
    shown = secret_pb2.Secret(
        secret_id=secret.id,
        name=secret.name,
        description=secret.description,
        owner_id=secret.owner_id,
        username=secret.username,
        delivery=SENT[secret.delivery],
        hosts=secret.hosts,
        header=secret.header,
        hint=secret.hint,
        etag=str(secret.version),
    )
    if secret.created_at is not None:
        shown.created_at.FromDatetime(secret.created_at)
    if secret.last_used_at is not None:
        shown.last_used_at.FromDatetime(secret.last_used_at)
    return shown


def _secret_of(given: secret_pb2.Secret, owner_id: str, request_id: str) -> Secret:
    delivery = DELIVERIES.get(given.delivery)
    if delivery is None:
        raise InvalidRequest("secret.delivery", "is not known")
    checks: tuple[Callable[[], object], ...] = (
        lambda: _check_name(given.name),
        lambda: _check_header(given.header),
        lambda: _username_of(given),
        lambda: _hosts_of(given, delivery),
    )
    all_of(checks)
    return Secret(
        id=new_secret_id(owner_id, given.name, request_id),
        name=given.name,
        owner_id=owner_id,
        delivery=delivery,
        hosts=_hosts_of(given, delivery),
        description=given.description.strip(),
        username=_username_of(given),
        header=given.header,
    )


def _check_name(name: str) -> None:
    if not NAME.fullmatch(name):
        raise InvalidRequest("secret.name", "needs 1 to 64 letters, digits, '_' and '-'")


def _check_header(header: str) -> None:
    if header and (not HEADER.fullmatch(header) or header.lower() in OF_THE_MESSAGE):
        raise InvalidRequest("secret.header", "is no header that can carry a secret")


def _username_of(given: secret_pb2.Secret) -> str:
    username = given.username.strip()
    if ":" in username or not username.isprintable():
        raise InvalidRequest("secret.username", "holds a colon or a control character")
    return username


def _hosts_of(given: secret_pb2.Secret, delivery: Delivery) -> tuple[str, ...]:
    if not given.hosts and delivery is not Delivery.ENVIRONMENT:
        raise InvalidRequest("secret.hosts", "needs at least one host to send it to")
    hosts = []
    for index, text in enumerate(given.hosts):
        pattern = canonical_pattern(text)
        if pattern is None:
            raise InvalidRequest(
                f"secret.hosts[{index}]", "is no host, as in github.com or *.example.org:443"
            )
        hosts.append(pattern)
    return tuple(dict.fromkeys(hosts))


def _is_administrator(owner: Owner) -> bool:
    return owner.role in ADMINISTRATORS
