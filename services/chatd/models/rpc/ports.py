"""Dependencies of the methods of ModelService."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

import grpc

from chatd.models.domain.catalogue import Catalogue, Provider
from chatd.models.domain.preferences import UserSettings
from chatd.models.domain.price_book import PriceBook
from chatd.models.domain.provider_keys import ProviderChecked
from chatd.models.store.catalogue import KeyValues, Snapshot, UserConfig
from chatd.models.store.models import Models
from chatd.models.store.providers import Providers
from chatd.primitives.domain.errors import InvalidRequest
from chatd.primitives.domain.ids import Owner, OwnerId
from chatd.primitives.rpc import fields
from parley.api.chat.v1.model_service_pb2_grpc import ModelServiceServicer

Context = grpc.aio.ServicerContext

ADMINISTRATORS = frozenset({"owner", "admin"})
READERS_OF_ALL = frozenset({"owner", "admin", "auditor"})


class Configuration(Protocol):
    """The current configuration."""

    async def current(self) -> Snapshot:
        """Return the catalogue."""
        ...

    async def user(self, user_id: OwnerId) -> UserConfig:
        """Return the settings and keys of a user."""
        ...


@dataclass(frozen=True, slots=True)
class ModelPorts:
    """Dependencies of the service.

    Attributes:
        providers: The store of providers and keys.
        models: The store of models.
        configuration: The configuration cache.
        book: The shipped prices.
        check: Checks the keys of a provider.
    """

    providers: Providers
    models: Models
    configuration: Configuration
    book: PriceBook
    check: Callable[[Provider, KeyValues], Awaitable[ProviderChecked]]

    async def catalogue(self) -> Catalogue:
        """Return the catalogue of the installation."""
        return (await self.configuration.current()).catalogue

    async def settings_of(self, user: Owner) -> UserSettings:
        """Return the settings of a user."""
        return (await self.configuration.user(user.id)).settings

    async def stored_model_id(self, text: str, field: str) -> str:
        """Return the id of a model that can be changed here.

        Raises:
            InvalidRequest: It is no id, or the model comes from the environment.
        """
        model = (await self.catalogue()).models.get(text)
        if model is not None and model.is_given:
            raise InvalidRequest(field, "comes from the environment; change it there")
        return fields.uuid_of(text, field)

    async def stored_provider_id(self, text: str, field: str) -> str:
        """Return the id of a provider that can be changed here.

        Raises:
            InvalidRequest: It is no id, or the provider comes from the environment.
        """
        provider = (await self.catalogue()).providers.get(text)
        if provider is not None and provider.is_given:
            raise InvalidRequest(field, "comes from the environment; change it there")
        return fields.uuid_of(text, field)


class CatalogueMethods(ModelServiceServicer):
    """Methods of the service; errors are mapped to statuses by the server's table."""

    def __init__(self, ports: ModelPorts) -> None:
        self._ports = ports
