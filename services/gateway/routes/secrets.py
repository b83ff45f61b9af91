"""HTTP routes of secrets for workspaces; their values are never returned."""

from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response

from gateway.api.convert.parts import Json, enum_names, time_of
from gateway.api.inputs.secrets import GrantsInput, NewSecret, SecretDelivery
from gateway.api.paging import page_request, page_to_json
from gateway.api.path_parameters import secret_id_of, workspace_id_of
from gateway.http.authentication import Principal
from gateway.http.preconditions import conditional, if_match, refuse_condition, tagged
from gateway.http.request_body import idempotency_key, read_json, read_query
from gateway.http.responses import json_response
from gateway.streams.chatd_client import ChatdClient
from parley.api.workspace.v1 import secret_pb2
from parley.api.workspace.v1 import secret_service_pb2 as api

DELIVERIES = {
    SecretDelivery.PROXY: secret_pb2.SECRET_DELIVERY_PROXY,
    SecretDelivery.GIT: secret_pb2.SECRET_DELIVERY_GIT,
    SecretDelivery.ENVIRONMENT: secret_pb2.SECRET_DELIVERY_ENVIRONMENT,
}
OUTCOMES = enum_names(secret_pb2.SecretUseOutcome, "SECRET_USE_OUTCOME_")
WORDS = {number: word.value for word, number in DELIVERIES.items()}


class SecretRoutes:
    """The routes under /secrets, and the grants of workspaces."""

    def __init__(self, chatd: ChatdClient, *, new_id: Callable[[], str]) -> None:
        self._chatd = chatd
        self._new_id = new_id

    async def list(self, request: Request, principal: Principal) -> Response:
        """List the caller's secrets and the installation's."""
        page = page_request(read_query(request, "limit", "cursor"))
        asked = api.ListSecretsRequest(page_size=page.page_size, page_token=page.page_token)
        answer = await self._chatd.ask_any(
            principal.user, lambda stubs: stubs.secrets.ListSecrets(asked)
        )
        return json_response(
            page_to_json(map(secret_to_json, answer.secrets), answer.next_page_token)
        )

    async def put(self, request: Request, principal: Principal) -> Response:
        """Store a secret, or a new value under its name."""
        read_query(request)
        tag = if_match(request)
        key = idempotency_key(request) or self._new_id()
        body = await read_json(request, NewSecret)
        asked = api.PutSecretRequest(
            request_id=key,
            secret=secret_pb2.Secret(
                name=body.name,
                description=body.description,
                username=body.username,
                delivery=DELIVERIES[body.delivery],
                hosts=body.hosts,
                header=body.header,
                etag=tag,
            ),
            value=body.value.encode(),
            shared=body.shared,
        )
        with conditional(tag):
            answer = await self._chatd.ask_any(
                principal.user, lambda stubs: stubs.secrets.PutSecret(asked)
            )
        return json_response(secret_to_json(answer.secret), headers=tagged(answer.secret.etag))

    async def delete(self, request: Request, principal: Principal) -> Response:
        """Delete a secret."""
        read_query(request)
        refuse_condition(request)
        key = idempotency_key(request) or self._new_id()
        asked = api.DeleteSecretRequest(request_id=key, secret_id=secret_id_of(request))
        await self._chatd.ask_any(principal.user, lambda stubs: stubs.secrets.DeleteSecret(asked))
        return Response(status_code=204)

    async def uses(self, request: Request, principal: Principal) -> Response:
        """List the uses of secrets by the caller's workspaces, newest first."""
        query = read_query(request, "workspace_id", "limit", "cursor")
        page = page_request(query)
        asked = api.ListSecretUsesRequest(
            workspace_id=query.get("workspace_id", ""),
            page_size=page.page_size,
            page_token=page.page_token,
        )
        answer = await self._chatd.ask_any(
            principal.user, lambda stubs: stubs.secrets.ListSecretUses(asked)
        )
        return json_response(page_to_json(map(use_to_json, answer.uses), answer.next_page_token))

    async def grants(self, request: Request, principal: Principal) -> Response:
        """List the secrets that a workspace may use."""
        page = page_request(read_query(request, "limit", "cursor"))
        asked = api.ListGrantsRequest(
            workspace_id=workspace_id_of(request),
            page_size=page.page_size,
            page_token=page.page_token,
        )
        answer = await self._chatd.ask_any(
            principal.user, lambda stubs: stubs.secrets.ListGrants(asked)
        )
        return json_response(
            page_to_json(map(grant_to_json, answer.grants), answer.next_page_token)
        )

    async def grant(self, request: Request, principal: Principal) -> Response:
        """Replace the secrets that a workspace may use."""
        read_query(request)
        refuse_condition(request)
        key = idempotency_key(request) or self._new_id()
        body = await read_json(request, GrantsInput)
        asked = api.SetGrantsRequest(
            request_id=key,
            workspace_id=workspace_id_of(request),
            secret_names=body.secret_names,
        )
        answer = await self._chatd.ask_any(
            principal.user, lambda stubs: stubs.secrets.SetGrants(asked)
        )
        return json_response(page_to_json(map(grant_to_json, answer.grants), ""))


def secret_to_json(secret: secret_pb2.Secret) -> Json:
    """Convert a secret, without its value."""
    return {
        "id": secret.secret_id,
        "name": secret.name,
        "description": secret.description,
        "owner_id": secret.owner_id or None,
        "username": secret.username or None,
        "delivery": WORDS.get(secret.delivery),
        "hosts": list(secret.hosts),
        "header": secret.header or None,
        "hint": secret.hint or None,
        "created_at": time_of(secret, "created_at"),
        "last_used_at": time_of(secret, "last_used_at"),
    }


def use_to_json(use: secret_pb2.SecretUse) -> Json:
    """Convert a use of a secret."""
    return {
        "id": use.use_id,
        "workspace_id": use.workspace_id,
        "node_id": use.node_id,
        "secret_name": use.secret_name,
        "host": use.host or None,
        "purpose": use.purpose,
        "outcome": OUTCOMES.get(use.outcome),
        "used_at": time_of(use, "used_at"),
    }


def grant_to_json(grant: secret_pb2.SecretGrant) -> Json:
    """Convert a grant of a secret."""
    return {
        "name": grant.name,
        "delivery": WORDS.get(grant.delivery),
        "hosts": list(grant.hosts),
        "header": grant.header or None,
        "variable": grant.variable or None,
    }
