"""Methods for keys of providers: the installation's, and those of users."""

from chatd.models.domain.catalogue import Provider, ProviderKey
from chatd.models.rpc.administration import body_hash, made_id, note
from chatd.models.rpc.convert import key_to_proto, provider_to_proto
from chatd.models.rpc.fields import version_of
from chatd.models.rpc.ports import ADMINISTRATORS, CatalogueMethods, Context
from chatd.models.store.providers import hint_of
from chatd.primitives.domain.errors import InvalidRequest, NotPermitted, ResourceNotFound
from chatd.primitives.domain.ids import Owner
from chatd.primitives.rpc import fields
from chatd.users.rpc.callers import caller_as_owner
from parley.api.chat.v1 import model_service_pb2 as api
from parley.settings import Secret


class KeyMethods(CatalogueMethods):
    """Stores keys and never returns their values."""

    async def AddProviderKey(
        self, request: api.AddProviderKeyRequest, context: Context
    ) -> api.AddProviderKeyResponse:
        """Store a key: the installation's by administrators, a user's own by that user."""
        caller = caller_as_owner()
        provider = await self._keyable_provider(request, caller)
        value = key_value(request.key)
        key = ProviderKey(
            made_id(request, request.request_id, caller),
            provider.id,
            hint_of(value),
            user_id=caller.id if request.personal else "",
        )
        # No hash of a key is stored, only of the other fields of the request.
        without_key = api.AddProviderKeyRequest(
            provider_id=request.provider_id, personal=request.personal
        )
        stored = await self._ports.providers.add_key(key, value, body_hash(without_key))
        note(
            "a key was stored",
            caller,
            provider_id=provider.id,
            key_id=stored.id,
            personal=request.personal,
        )
        return api.AddProviderKeyResponse(key=key_to_proto(stored))

    async def DeleteProviderKey(
        self, request: api.DeleteProviderKeyRequest, context: Context
    ) -> api.DeleteProviderKeyResponse:
        """Delete a key, under the same rule."""
        caller = caller_as_owner()
        key_id = fields.uuid_of(request.key_id, "key_id")
        await self._ports.providers.delete_key(
            key_id, user_id=caller.id, is_administrator=caller.role in ADMINISTRATORS
        )
        note("a key was deleted", caller, key_id=key_id)
        return api.DeleteProviderKeyResponse()

    async def SetProviderKeyOrder(
        self, request: api.SetProviderKeyOrderRequest, context: Context
    ) -> api.SetProviderKeyOrderResponse:
        """Change the order in which the installation's keys of a provider are tried."""
        provider_id = await self._ports.stored_provider_id(request.provider_id, "provider_id")
        stored = await self._ports.providers.order_keys(
            provider_id, tuple(request.key_ids), version_of(request.etag, "etag")
        )
        note("the keys of a provider were ordered", caller_as_owner(), provider_id=provider_id)
        return api.SetProviderKeyOrderResponse(provider=provider_to_proto(stored))

    async def ListProviderKeys(
        self, request: api.ListProviderKeysRequest, context: Context
    ) -> api.ListProviderKeysResponse:
        """List the caller's own keys, and the providers that accept such keys."""
        catalogue = await self._ports.catalogue()
        user = await self._ports.configuration.user(caller_as_owner().id)
        return api.ListProviderKeysResponse(
            keys=[key_to_proto(key) for key in user.keys],
            providers=[
                api.ProviderName(
                    id=each.id, name=each.name, display_name=each.display_name or each.name
                )
                for each in catalogue.providers.values()
                if each.user_keys_allowed and each.is_enabled and not each.is_deleted
            ],
        )

    async def _keyable_provider(
        self, request: api.AddProviderKeyRequest, caller: Owner
    ) -> Provider:
        """Return the provider that the caller may add a key to."""
        provider_id = fields.uuid_of(request.provider_id, "provider_id")
        await self._ports.stored_provider_id(provider_id, "provider_id")
        provider = (await self._ports.catalogue()).providers.get(provider_id)
        is_administrator = caller.role in ADMINISTRATORS
        if provider is None or provider.is_deleted:
            raise ResourceNotFound("provider", provider_id)
        if request.personal and not provider.user_keys_allowed:
            raise NotPermitted("add keys to this provider")
        if not request.personal and not is_administrator:
            raise NotPermitted("add keys for everybody")
        return provider


def key_value(text: str) -> Secret:
    """Return the key of a request.

    Raises:
        InvalidRequest: It is not a valid key.
    """
    value = text.strip()
    if not value:
        raise InvalidRequest("key", "is empty")
    if not value.isprintable() or any(each.isspace() for each in value):
        raise InvalidRequest("key", "has spaces or line breaks inside; copy it once more")
    return Secret(value)
