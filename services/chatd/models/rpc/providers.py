"""Methods for providers."""

from chatd.models.domain.catalogue import Catalogue, Provider, ProviderKey, ProviderType
from chatd.models.domain.provider_keys import ProviderChange, effect_on_keys
from chatd.models.rpc.administration import body_hash, made_id, note, page_of
from chatd.models.rpc.convert import provider_to_proto
from chatd.models.rpc.fields import (
    PROVIDER_FIELDS,
    key_origin,
    masked,
    provider_with,
    version_of,
)
from chatd.models.rpc.keys import key_value
from chatd.models.rpc.ports import CatalogueMethods, Context
from chatd.models.store.providers import NewKey, hint_of
from chatd.primitives.domain.errors import ResourceNotFound
from chatd.users.rpc.callers import caller_as_owner
from parley.api.chat.v1 import model_service_pb2 as api
from parley.telemetry import audit

KEY = "key"
CHANGEABLE = (*PROVIDER_FIELDS, KEY)


class ProviderMethods(CatalogueMethods):
    """Manages providers for administrators."""

    async def ListProviders(
        self, request: api.ListProvidersRequest, context: Context
    ) -> api.ListProvidersResponse:
        """List providers."""
        catalogue = await self._ports.catalogue()
        listed = [each for each in catalogue.providers.values() if not each.is_deleted]
        page, token = page_of(listed, lambda each: each.id, request.page_size, request.page_token)
        return api.ListProvidersResponse(
            providers=[provider_to_proto(provider) for provider in page], next_page_token=token
        )

    async def GetProvider(
        self, request: api.GetProviderRequest, context: Context
    ) -> api.GetProviderResponse:
        """Return a provider."""
        provider = _found(await self._ports.catalogue(), request.provider_id)
        return api.GetProviderResponse(provider=provider_to_proto(provider))

    async def CreateProvider(
        self, request: api.CreateProviderRequest, context: Context
    ) -> api.CreateProviderResponse:
        """Create a provider."""
        caller = caller_as_owner()
        new_id = made_id(request, request.request_id, caller)
        blank = Provider(new_id, "", "", ProviderType.SCRIPTED)
        provider = provider_with(blank, request.provider, frozenset(PROVIDER_FIELDS))
        stored = await self._ports.providers.create(provider, body_hash(request))
        note("a provider was made known", caller, provider_id=stored.id, provider=stored.name)
        return api.CreateProviderResponse(provider=provider_to_proto(stored))

    async def UpdateProvider(
        self, request: api.UpdateProviderRequest, context: Context
    ) -> api.UpdateProviderResponse:
        """Update a provider."""
        changed = masked(tuple(request.update_mask.paths), CHANGEABLE)
        provider_id = await self._ports.stored_provider_id(request.provider.id, "provider.id")
        new_key = _new_key(request, provider_id) if KEY in changed and request.key else None
        moves: list[tuple[str, str]] = []

        def edit(before: Provider, stored_keys: int) -> ProviderChange:
            after = provider_with(before, request.provider, changed)
            old_origin, new_origin = key_origin(before), key_origin(after)
            effect = effect_on_keys(
                old_origin=old_origin,
                new_origin=new_origin,
                stored_keys=stored_keys,
                is_key_given=KEY in changed,
            )
            moves[:] = [(old_origin, new_origin)] if old_origin != new_origin else []
            return ProviderChange(after, effect)

        stored = await self._ports.providers.update(
            provider_id, edit, version_of(request.provider.etag, "provider.etag"), new_key
        )
        caller = caller_as_owner()
        note("a provider was changed", caller, provider_id=provider_id, fields=sorted(changed))
        for old_origin, new_origin in moves:
            audit(
                "provider.origin_changed",
                user_id=caller.id,
                provider_id=provider_id,
                old_origin=old_origin,
                new_origin=new_origin,
            )
        return api.UpdateProviderResponse(provider=provider_to_proto(stored))

    async def DeleteProvider(
        self, request: api.DeleteProviderRequest, context: Context
    ) -> api.DeleteProviderResponse:
        """Delete a provider, its models and its keys."""
        provider_id = await self._ports.stored_provider_id(request.provider_id, "provider_id")
        await self._ports.providers.delete(provider_id)
        note("a provider was deleted", caller_as_owner(), provider_id=provider_id)
        return api.DeleteProviderResponse()

    async def CheckProvider(
        self, request: api.CheckProviderRequest, context: Context
    ) -> api.CheckProviderResponse:
        """Check whether the keys of a provider work, and list its models."""
        snapshot = await self._ports.configuration.current()
        provider = _found(snapshot.catalogue, request.provider_id)
        checked = await self._ports.check(provider, snapshot.values)
        return api.CheckProviderResponse(
            keys=[
                api.KeyCheck(key_id=each.key_id, works=not each.problem, problem=each.problem)
                for each in checked.keys
            ],
            model_names=checked.model_names,
        )


def _found(catalogue: Catalogue, provider_id: str) -> Provider:
    provider = catalogue.providers.get(provider_id)
    if provider is None or provider.is_deleted:
        raise ResourceNotFound("provider", provider_id[:64])
    return provider


def _new_key(request: api.UpdateProviderRequest, provider_id: str) -> NewKey:
    value = key_value(request.key)
    key_id = made_id(request, request.request_id, caller_as_owner())
    # No hash of a key is stored, only of the other fields of the request.
    without_key = api.UpdateProviderRequest()
    without_key.CopyFrom(request)
    without_key.ClearField("key")
    key = ProviderKey(key_id, provider_id, hint_of(value))
    return NewKey(key, value, body_hash(without_key))
