"""ModelService: providers, keys, models and overrides, managed by administrators."""

import hashlib
import logging
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

import grpc
import msgspec
from google.protobuf.message import Message

from chatd.domain.catalogue import Catalogue, Model, Provider, ProviderKey, ProviderType
from chatd.domain.chat import Owner, OwnerId
from chatd.domain.errors import (
    InvalidRequest,
    ModelNotFound,
    NotPermitted,
    ResourceNotFound,
)
from chatd.domain.price_book import PriceBook
from chatd.providers.checking import ProviderChecked
from chatd.rpc import fields
from chatd.rpc.callers import caller_as_owner
from chatd.rpc.convert_models import (
    key_to_proto,
    model_to_proto,
    override_to_proto,
    provider_to_proto,
)
from chatd.rpc.model_fields import (
    MODEL_FIELDS,
    PROVIDER_FIELDS,
    masked,
    model_with,
    override_from_proto,
    provider_with,
    version_of,
)
from chatd.rpc.page_tokens import length_of, place_of, token_of
from chatd.store.catalogue import KeyValues, Snapshot, UserConfig
from chatd.store.models import Models
from chatd.store.providers import Providers, hint_of
from parley.api.chat.v1 import model_pb2
from parley.api.chat.v1 import model_service_pb2 as api
from parley.api.chat.v1.model_service_pb2_grpc import ModelServiceServicer
from parley.settings import Secret

Context = grpc.aio.ServicerContext
T = TypeVar("T")

KEY_BYTES_MAX = 8 * 1024
ADMINISTRATORS = frozenset({"owner", "admin"})
READERS_OF_ALL = frozenset({"owner", "admin", "auditor"})

logger = logging.getLogger(__name__)


class Configuration(Protocol):
    """What is configured now."""

    async def current(self) -> Snapshot:
        """Return the catalogue."""
        ...

    async def user(self, user_id: OwnerId) -> UserConfig:
        """Return what a user set and brought."""
        ...


@dataclass(frozen=True, slots=True)
class ModelPorts:
    """What the service is made of.

    Attributes:
        providers: Where providers and keys are stored.
        models: Where models are stored.
        configuration: All of it as this process knows it.
        book: The shipped prices.
        check: Tries the keys of a provider.
    """

    providers: Providers
    models: Models
    configuration: Configuration
    book: PriceBook
    check: Callable[[Provider, KeyValues], Awaitable[ProviderChecked]]


class _PageToken(msgspec.Struct, frozen=True, array_like=True):
    after_id: str


class ModelServicer(ModelServiceServicer):
    """Serves the catalogue; errors become problems in the server's table."""

    def __init__(self, ports: ModelPorts) -> None:
        self._ports = ports

    async def ListModels(  # noqa: N802 (the name is the proto's)
        self, request: api.ListModelsRequest, context: Context
    ) -> api.ListModelsResponse:
        """List the models the caller may use; administrators see all."""
        is_full = caller_as_owner().role in READERS_OF_ALL
        catalogue = await self._catalogue()
        listed = [
            model
            for model in catalogue.models.values()
            if not model.is_deleted and (is_full or catalogue.is_usable(model))
        ]
        page, token = _page(listed, lambda model: model.id, request.page_size, request.page_token)
        return api.ListModelsResponse(
            models=[
                model_to_proto(model, catalogue, self._ports.book, is_full=is_full)
                for model in page
            ],
            next_page_token=token,
        )

    async def CreateModel(  # noqa: N802 (the name is the proto's)
        self, request: api.CreateModelRequest, context: Context
    ) -> api.CreateModelResponse:
        """Make a model known."""
        caller = caller_as_owner()
        provider_id = fields.uuid_of(request.model.provider_id, "model.provider_id")
        await self._require_stored_provider(provider_id)
        blank = Model(_made_id(request, request.request_id, caller), provider_id, "", "")
        model = model_with(blank, request.model, frozenset(MODEL_FIELDS))
        stored = await self._ports.models.create(model, _hash(request))
        _note("a model was made known", caller, model_id=stored.id, model=stored.name)
        return api.CreateModelResponse(model=await self._model(stored))

    async def UpdateModel(  # noqa: N802 (the name is the proto's)
        self, request: api.UpdateModelRequest, context: Context
    ) -> api.UpdateModelResponse:
        """Change a model."""
        fields.request_id_of(request.request_id)
        changed = masked(tuple(request.update_mask.paths), MODEL_FIELDS)
        model_id = await self._stored_model_id(request.model.id, "model.id")
        stored = await self._ports.models.update(
            model_id,
            lambda model: model_with(model, request.model, changed),
            version_of(request.model.etag, "model.etag"),
        )
        _note("a model was changed", caller_as_owner(), model_id=model_id, fields=sorted(changed))
        return api.UpdateModelResponse(model=await self._model(stored))

    async def DeleteModel(  # noqa: N802 (the name is the proto's)
        self, request: api.DeleteModelRequest, context: Context
    ) -> api.DeleteModelResponse:
        """Forget a model."""
        fields.request_id_of(request.request_id)
        model_id = await self._stored_model_id(request.model_id, "model_id")
        await self._ports.models.delete(model_id)
        _note("a model was deleted", caller_as_owner(), model_id=model_id)
        return api.DeleteModelResponse()

    async def ListProviders(  # noqa: N802 (the name is the proto's)
        self, request: api.ListProvidersRequest, context: Context
    ) -> api.ListProvidersResponse:
        """List providers."""
        catalogue = await self._catalogue()
        listed = [each for each in catalogue.providers.values() if not each.is_deleted]
        page, token = _page(listed, lambda each: each.id, request.page_size, request.page_token)
        return api.ListProvidersResponse(
            providers=[provider_to_proto(provider) for provider in page], next_page_token=token
        )

    async def CreateProvider(  # noqa: N802 (the name is the proto's)
        self, request: api.CreateProviderRequest, context: Context
    ) -> api.CreateProviderResponse:
        """Make a provider known."""
        caller = caller_as_owner()
        made_id = _made_id(request, request.request_id, caller)
        blank = Provider(made_id, "", "", ProviderType.SCRIPTED)
        provider = provider_with(blank, request.provider, frozenset(PROVIDER_FIELDS))
        stored = await self._ports.providers.create(provider, _hash(request))
        _note("a provider was made known", caller, provider_id=stored.id, provider=stored.name)
        return api.CreateProviderResponse(provider=provider_to_proto(stored))

    async def UpdateProvider(  # noqa: N802 (the name is the proto's)
        self, request: api.UpdateProviderRequest, context: Context
    ) -> api.UpdateProviderResponse:
        """Change a provider."""
        fields.request_id_of(request.request_id)
        changed = masked(tuple(request.update_mask.paths), PROVIDER_FIELDS)
        provider_id = await self._stored_provider_id(request.provider.id, "provider.id")
        stored = await self._ports.providers.update(
            provider_id,
            lambda provider: provider_with(provider, request.provider, changed),
            version_of(request.provider.etag, "provider.etag"),
        )
        _note(
            "a provider was changed",
            caller_as_owner(),
            provider_id=provider_id,
            fields=sorted(changed),
        )
        return api.UpdateProviderResponse(provider=provider_to_proto(stored))

    async def DeleteProvider(  # noqa: N802 (the name is the proto's)
        self, request: api.DeleteProviderRequest, context: Context
    ) -> api.DeleteProviderResponse:
        """Forget a provider, its models and its keys."""
        fields.request_id_of(request.request_id)
        provider_id = await self._stored_provider_id(request.provider_id, "provider_id")
        await self._ports.providers.delete(provider_id)
        _note("a provider was deleted", caller_as_owner(), provider_id=provider_id)
        return api.DeleteProviderResponse()

    async def AddProviderKey(  # noqa: N802 (the name is the proto's)
        self, request: api.AddProviderKeyRequest, context: Context
    ) -> api.AddProviderKeyResponse:
        """Store a key: the installation's by administrators, a user's own by that user."""
        caller = caller_as_owner()
        provider = await self._keyable_provider(request, caller)
        value = _key_value(request.key)
        key = ProviderKey(
            _made_id(request, request.request_id, caller),
            provider.id,
            hint_of(value),
            user_id=caller.id if request.personal else "",
        )
        # No hash of a key is kept, only of what the request says beside it.
        without_key = api.AddProviderKeyRequest(
            provider_id=request.provider_id, personal=request.personal
        )
        stored = await self._ports.providers.add_key(key, value, _hash(without_key))
        _note(
            "a key was stored",
            caller,
            provider_id=provider.id,
            key_id=stored.id,
            personal=request.personal,
        )
        return api.AddProviderKeyResponse(key=key_to_proto(stored))

    async def DeleteProviderKey(  # noqa: N802 (the name is the proto's)
        self, request: api.DeleteProviderKeyRequest, context: Context
    ) -> api.DeleteProviderKeyResponse:
        """Forget a key, under the same rule."""
        fields.request_id_of(request.request_id)
        caller = caller_as_owner()
        key_id = fields.uuid_of(request.key_id, "key_id")
        await self._ports.providers.delete_key(
            key_id, user_id=caller.id, is_administrator=caller.role in ADMINISTRATORS
        )
        _note("a key was deleted", caller, key_id=key_id)
        return api.DeleteProviderKeyResponse()

    async def ListProviderKeys(  # noqa: N802 (the name is the proto's)
        self, request: api.ListProviderKeysRequest, context: Context
    ) -> api.ListProviderKeysResponse:
        """List the caller's own keys, and the providers that take such keys."""
        catalogue = await self._catalogue()
        user = await self._ports.configuration.user(caller_as_owner().id)
        return api.ListProviderKeysResponse(
            keys=[key_to_proto(key) for key in user.keys],
            providers=[
                model_pb2.Provider(
                    id=each.id,
                    name=each.name,
                    display_name=each.display_name,
                    enabled=each.is_enabled,
                    user_keys_allowed=True,
                )
                for each in catalogue.providers.values()
                if each.user_keys_allowed and each.is_enabled and not each.is_deleted
            ],
        )

    async def CheckProvider(  # noqa: N802 (the name is the proto's)
        self, request: api.CheckProviderRequest, context: Context
    ) -> api.CheckProviderResponse:
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

    async def ListModelOverrides(  # noqa: N802 (the name is the proto's)
        self, request: api.ListModelOverridesRequest, context: Context
    ) -> api.ListModelOverridesResponse:
        """List which purposes have a model of their own."""
        overrides = (await self._catalogue()).overrides
        return api.ListModelOverridesResponse(
            overrides=[override_to_proto(overrides[purpose]) for purpose in sorted(overrides)]
        )

    async def SetModelOverride(  # noqa: N802 (the name is the proto's)
        self, request: api.SetModelOverrideRequest, context: Context
    ) -> api.SetModelOverrideResponse:
        """Give a purpose a model of its own, or take it away."""
        fields.request_id_of(request.request_id)
        override = override_from_proto(request.override)
        if override.model_id:
            model = (await self._catalogue()).find(override.model_id)
            if model is None:
                raise ModelNotFound(override.model_id)
            override = replace(override, model_id=model.id)
            await self._ports.models.set_override(override)
        else:
            await self._ports.models.clear_override(override.purpose)
        _note(
            "the model of a purpose was set",
            caller_as_owner(),
            purpose=override.purpose.value,
            model_id=override.model_id,
        )
        return api.SetModelOverrideResponse(override=override_to_proto(override))

    async def _catalogue(self) -> Catalogue:
        return (await self._ports.configuration.current()).catalogue

    async def _model(self, stored: Model) -> model_pb2.Model:
        catalogue = await self._catalogue()
        return model_to_proto(stored, catalogue, self._ports.book, is_full=True)

    async def _keyable_provider(
        self, request: api.AddProviderKeyRequest, caller: Owner
    ) -> Provider:
        """Return the provider that the caller may add a key to."""
        provider_id = fields.uuid_of(request.provider_id, "provider_id")
        await self._require_stored_provider(provider_id)
        provider = (await self._catalogue()).providers.get(provider_id)
        is_administrator = caller.role in ADMINISTRATORS
        if provider is None or provider.is_deleted:
            raise ResourceNotFound("provider", provider_id)
        if request.personal and not provider.user_keys_allowed:
            raise NotPermitted("add keys to this provider")
        if not request.personal and not is_administrator:
            raise NotPermitted("add keys for everybody")
        return provider

    async def _stored_model_id(self, text: str, field: str) -> str:
        model = (await self._catalogue()).models.get(text)
        if model is not None and model.is_given:
            raise InvalidRequest(field, "comes from the environment; change it there")
        return fields.uuid_of(text, field)

    async def _stored_provider_id(self, text: str, field: str) -> str:
        provider = (await self._catalogue()).providers.get(text)
        if provider is not None and provider.is_given:
            raise InvalidRequest(field, "comes from the environment; change it there")
        return fields.uuid_of(text, field)

    async def _require_stored_provider(self, provider_id: str) -> None:
        await self._stored_provider_id(provider_id, "provider_id")


def _page(
    listed: list[T], id_of: Callable[[T], str], page_size: int, page_token: str
) -> tuple[list[T], str]:
    """Return a page of a list in its order, and where the next one begins."""
    length = length_of(page_size)
    place = place_of(page_token, _PageToken)
    start = 0
    if place is not None:
        ids = [id_of(each) for each in listed]
        start = ids.index(place.after_id) + 1 if place.after_id in ids else len(ids)
    page = listed[start : start + length]
    has_more = start + length < len(listed)
    return page, token_of(_PageToken(id_of(page[-1]))) if has_more else ""


def _made_id(request: Message, request_id: str, caller: Owner) -> str:
    """Derive the id from caller and request, so that a repetition finds what it made."""
    kind = request.DESCRIPTOR.name
    return str(uuid.uuid5(uuid.UUID(caller.id), f"{kind} {fields.request_id_of(request_id)}"))


def _hash(request: Message) -> bytes:
    return hashlib.sha256(request.SerializeToString(deterministic=True)).digest()


def _key_value(text: str) -> Secret:
    value = fields.clean(text, "key", bytes_max=KEY_BYTES_MAX).strip()
    if not value:
        raise InvalidRequest("key", "is empty")
    if not value.isprintable() or any(each.isspace() for each in value):
        raise InvalidRequest("key", "has spaces or line breaks inside; copy it once more")
    return Secret(value)


def _note(what: str, caller: Owner, **facts: object) -> None:
    """Leave a line for whoever looks into who changed what."""
    logger.info(what, extra={"user_id": caller.id, **facts})
