"""The calls about providers."""

from chatd.domain.catalogue import Provider, ProviderType
from chatd.domain.errors import ResourceNotFound
from chatd.rpc import fields
from chatd.rpc.callers import caller_as_owner
from chatd.rpc.convert_models import provider_to_proto
from chatd.rpc.managing import body_hash, made_id, note, page_of
from chatd.rpc.model_fields import (
    PROVIDER_FIELDS,
    masked,
    provider_with,
    version_of,
)
from chatd.rpc.model_ports import ModelPorts
from parley.api.chat.v1 import model_service_pb2 as api


class ProviderCalls:
    """Manages providers for administrators."""

    def __init__(self, ports: ModelPorts) -> None:
        self._ports = ports

    async def list(self, request: api.ListProvidersRequest) -> api.ListProvidersResponse:
        """List providers."""
        catalogue = await self._ports.catalogue()
        listed = [each for each in catalogue.providers.values() if not each.is_deleted]
        page, token = page_of(listed, lambda each: each.id, request.page_size, request.page_token)
        return api.ListProvidersResponse(
            providers=[provider_to_proto(provider) for provider in page], next_page_token=token
        )

    async def create(self, request: api.CreateProviderRequest) -> api.CreateProviderResponse:
        """Make a provider known."""
        caller = caller_as_owner()
        new_id = made_id(request, request.request_id, caller)
        blank = Provider(new_id, "", "", ProviderType.SCRIPTED)
        provider = provider_with(blank, request.provider, frozenset(PROVIDER_FIELDS))
        stored = await self._ports.providers.create(provider, body_hash(request))
        note("a provider was made known", caller, provider_id=stored.id, provider=stored.name)
        return api.CreateProviderResponse(provider=provider_to_proto(stored))

    async def update(self, request: api.UpdateProviderRequest) -> api.UpdateProviderResponse:
        """Change a provider."""
        fields.request_id_of(request.request_id)
        changed = masked(tuple(request.update_mask.paths), PROVIDER_FIELDS)
        provider_id = await self._ports.stored_provider_id(request.provider.id, "provider.id")
        stored = await self._ports.providers.update(
            provider_id,
            lambda provider: provider_with(provider, request.provider, changed),
            version_of(request.provider.etag, "provider.etag"),
        )
        note(
            "a provider was changed",
            caller_as_owner(),
            provider_id=provider_id,
            fields=sorted(changed),
        )
        return api.UpdateProviderResponse(provider=provider_to_proto(stored))

    async def delete(self, request: api.DeleteProviderRequest) -> api.DeleteProviderResponse:
        """Forget a provider, its models and its keys."""
        fields.request_id_of(request.request_id)
        provider_id = await self._ports.stored_provider_id(request.provider_id, "provider_id")
        await self._ports.providers.delete(provider_id)
        note("a provider was deleted", caller_as_owner(), provider_id=provider_id)
        return api.DeleteProviderResponse()

    async def check(self, request: api.CheckProviderRequest) -> api.CheckProviderResponse:
        """Ask a provider whether its keys work and which models it offers."""
        snapshot = await self._ports.configuration.current()
        provider = snapshot.catalogue.providers.get(request.provider_id)
        if provider is None or provider.is_deleted:
            raise ResourceNotFound("provider", request.provider_id[:64])
        checked = await self._ports.check(provider, snapshot.values)
        return api.CheckProviderResponse(
            keys=[
                api.KeyCheck(key_id=each.key_id, works=not each.problem, problem=each.problem)
                for each in checked.keys
            ],
            model_names=checked.model_names,
        )
