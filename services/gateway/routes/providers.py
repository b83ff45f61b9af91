"""HTTP routes of model providers and their keys; the value of a key is never returned."""

from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response

from gateway.api.convert.models import (
    check_to_json,
    key_to_json,
    new_provider_to_proto,
    provider_name_to_json,
    provider_patch_to_proto,
    provider_to_json,
)
from gateway.api.inputs.chats import Nothing
from gateway.api.inputs.models import NewProvider, NewProviderKey, ProviderPatch
from gateway.api.paging import LIMIT_MAX, page_request, page_to_json
from gateway.api.path_parameters import name_of, resource_not_found
from gateway.http.authentication import Principal
from gateway.http.preconditions import (
    conditional,
    if_match,
    refuse_condition,
    tagged,
    tagged_response,
)
from gateway.http.request_body import (
    idempotency_key,
    read_json,
    read_optional_json,
    read_patch,
    read_query,
)
from gateway.http.responses import json_response
from gateway.streams.chatd_client import ChatdClient
from parley.api.chat.v1 import model_pb2
from parley.api.chat.v1 import model_service_pb2 as api

KEYS = "/api/v1/provider-keys"
OWN_KEYS = "/api/v1/me/provider-keys"


class ProviderRoutes:
    """The routes /providers, /provider-keys and /me/provider-keys."""

    def __init__(self, chatd: ChatdClient, *, new_id: Callable[[], str]) -> None:
        self._chatd = chatd
        self._new_id = new_id

    async def list(self, request: Request, principal: Principal) -> Response:
        """List providers."""
        page = page_request(read_query(request, "limit", "cursor"))
        asked = api.ListProvidersRequest(page_size=page.page_size, page_token=page.page_token)
        answer = await self._chatd.ask_any(
            principal.user, lambda stubs: stubs.models.ListProviders(asked)
        )
        items = map(provider_to_json, answer.providers)
        return json_response(page_to_json(items, answer.next_page_token))

    async def read(self, request: Request, principal: Principal) -> Response:
        """Read one provider."""
        read_query(request)
        provider = await self._found(principal, name_of(request, "provider_id", "provider"))
        return tagged_response(request, provider_to_json(provider), provider.etag)

    async def create(self, request: Request, principal: Principal) -> Response:
        """Create a provider."""
        read_query(request)
        key = idempotency_key(request) or self._new_id()
        body = await read_json(request, NewProvider)
        asked = api.CreateProviderRequest(request_id=key, provider=new_provider_to_proto(body))
        answer = await self._chatd.ask_any(
            principal.user, lambda stubs: stubs.models.CreateProvider(asked)
        )
        made = answer.provider
        headers = {"location": f"/api/v1/providers/{made.id}", **tagged(made.etag)}
        return json_response(provider_to_json(made), status=201, headers=headers)

    async def update(self, request: Request, principal: Principal) -> Response:
        """Change a provider."""
        read_query(request)
        provider_id, tag = name_of(request, "provider_id", "provider"), if_match(request)
        key = idempotency_key(request) or self._new_id()
        body = await read_patch(request, ProviderPatch)
        asked = provider_patch_to_proto(body, request_id=key, provider_id=provider_id, etag=tag)
        with conditional(tag):
            answer = await self._chatd.ask_any(
                principal.user, lambda stubs: stubs.models.UpdateProvider(asked)
            )
        changed = answer.provider
        return json_response(provider_to_json(changed), headers=tagged(changed.etag))

    async def delete(self, request: Request, principal: Principal) -> Response:
        """Delete a provider, its models and its keys."""
        read_query(request)
        refuse_condition(request)
        provider_id = name_of(request, "provider_id", "provider")
        key = idempotency_key(request) or self._new_id()
        asked = api.DeleteProviderRequest(request_id=key, provider_id=provider_id)
        await self._chatd.ask_any(principal.user, lambda stubs: stubs.models.DeleteProvider(asked))
        return Response(status_code=204)

    async def check(self, request: Request, principal: Principal) -> Response:
        """Check at a provider whether its keys work and which models it offers."""
        read_query(request)
        provider_id = name_of(request, "provider_id", "provider")
        await read_optional_json(request, Nothing)
        asked = api.CheckProviderRequest(provider_id=provider_id)
        answer = await self._chatd.ask_any(
            principal.user, lambda stubs: stubs.models.CheckProvider(asked)
        )
        return json_response(check_to_json(answer))

    async def add_key(self, request: Request, principal: Principal) -> Response:
        """Store a key of the installation."""
        return await self._add_key(request, principal, is_personal=False)

    async def add_own_key(self, request: Request, principal: Principal) -> Response:
        """Store a key of the caller."""
        return await self._add_key(request, principal, is_personal=True)

    async def delete_key(self, request: Request, principal: Principal) -> Response:
        """Delete a key: the installation's by administrators, a user's own by that user."""
        read_query(request)
        refuse_condition(request)
        key_id = name_of(request, "key_id", "key")
        key = idempotency_key(request) or self._new_id()
        asked = api.DeleteProviderKeyRequest(request_id=key, key_id=key_id)
        await self._chatd.ask_any(
            principal.user, lambda stubs: stubs.models.DeleteProviderKey(asked)
        )
        return Response(status_code=204)

    async def list_own_keys(self, request: Request, principal: Principal) -> Response:
        """List the caller's keys, and the providers that accept user keys."""
        read_query(request)
        asked = api.ListProviderKeysRequest()
        answer = await self._chatd.ask_any(
            principal.user, lambda stubs: stubs.models.ListProviderKeys(asked)
        )
        document = {
            "items": [key_to_json(key) for key in answer.keys],
            "providers": [provider_name_to_json(each) for each in answer.providers],
        }
        return json_response(document)

    async def _add_key(
        self, request: Request, principal: Principal, *, is_personal: bool
    ) -> Response:
        read_query(request)
        key = idempotency_key(request) or self._new_id()
        body = await read_json(request, NewProviderKey)
        asked = api.AddProviderKeyRequest(
            request_id=key, provider_id=body.provider_id, key=body.key, personal=is_personal
        )
        answer = await self._chatd.ask_any(
            principal.user, lambda stubs: stubs.models.AddProviderKey(asked)
        )
        place = OWN_KEYS if is_personal else KEYS
        headers = {"location": f"{place}/{answer.key.id}"}
        return json_response(key_to_json(answer.key), status=201, headers=headers)

    async def _found(self, principal: Principal, provider_id: str) -> model_pb2.Provider:
        """Return one provider from the list, which has a few entries at most."""
        asked = api.ListProvidersRequest(page_size=LIMIT_MAX)
        while True:
            answer = await self._chatd.ask_any(
                principal.user, lambda stubs: stubs.models.ListProviders(asked)
            )
            for provider in answer.providers:
                if provider.id == provider_id:
                    return provider
            if not answer.next_page_token:
                raise resource_not_found("provider")
            asked.page_token = answer.next_page_token
