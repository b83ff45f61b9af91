"""The models of agents: those that their callers may name, and the one if they name none."""

import logging
from typing import Protocol

from chatd.models.domain.agent_model import AgentModel, agent_model
from chatd.models.domain.catalogue import Model
from chatd.models.domain.own_model_choice import agent_choice, offered_models
from chatd.models.domain.price_book import PriceBook
from chatd.models.domain.profile import ModelChoice
from chatd.models.store.catalogue import Snapshot, UserConfig
from chatd.primitives.domain.ids import OwnerId

logger = logging.getLogger(__name__)


class Configuration(Protocol):
    """The current configuration."""

    async def current(self) -> Snapshot:
        """Return the configuration of the installation."""
        ...

    async def user(self, user_id: OwnerId) -> UserConfig:
        """Return the settings and keys of a user."""
        ...


class ConfiguredAgentModels:
    """Returns the models that agents may have, and the one that was chosen for them."""

    def __init__(self, configuration: Configuration, book: PriceBook) -> None:
        self._configuration = configuration
        self._book = book

    async def of_agents(self, owner_id: OwnerId, *, is_explorer: bool) -> ModelChoice:
        """Return the model of a new agent of an owner; empty for that of its parent."""
        snapshot = await self._configuration.current()
        user = await self._configuration.user(owner_id)
        own_keys = {key.provider_id for key in user.keys}
        return agent_choice(
            snapshot.catalogue, user.settings, own_keys, log_skipped, is_explorer=is_explorer
        )

    async def named(self, owner_id: OwnerId, reference: str) -> str:
        """Return the id of a model that agents of an owner may have, by its id or name.

        It is empty if there is no such model, or several.
        """
        catalogue = (await self._configuration.current()).catalogue
        found = catalogue.find(reference)
        is_offered = found in await self._offered(owner_id)
        return found.id if found is not None and is_offered else ""

    async def names(self, owner_id: OwnerId) -> tuple[str, ...]:
        """Return the names of the models that agents of an owner may have."""
        catalogue = (await self._configuration.current()).catalogue
        return tuple(catalogue.reference_of(each.id) for each in await self._offered(owner_id))

    async def described(self, owner_id: OwnerId) -> tuple[AgentModel, ...]:
        """Return the models that agents of an owner may have, with what they can."""
        catalogue = (await self._configuration.current()).catalogue
        offered = await self._offered(owner_id)
        return tuple(agent_model(each, catalogue, self._book) for each in offered)

    async def name_of(self, model_id: str) -> str:
        """Return the name of a model, its id if it is unknown."""
        catalogue = (await self._configuration.current()).catalogue
        return catalogue.reference_of(model_id) or model_id

    async def _offered(self, owner_id: OwnerId) -> tuple[Model, ...]:
        snapshot = await self._configuration.current()
        user = await self._configuration.user(owner_id)
        own_keys = {key.provider_id for key in user.keys}
        return offered_models(snapshot.catalogue, user.settings, own_keys)


def log_skipped(model_id: str) -> None:
    """Log that a configured model cannot be used."""
    logger.warning("a model of an override cannot be used", extra={"model_id": model_id})
