"""The models of agents for which their callers name none."""

import logging

from chatd.models.domain.own_model_choice import agent_choice
from chatd.models.domain.profile import ModelChoice
from chatd.models.engine.configuration import ConfigurationCache
from chatd.primitives.domain.ids import OwnerId

logger = logging.getLogger(__name__)


class ConfiguredAgentModels:
    """Returns the models that owners or administrators chose for agents."""

    def __init__(self, configuration: ConfigurationCache) -> None:
        self._configuration = configuration

    async def of_agents(self, owner_id: OwnerId, *, is_explorer: bool) -> ModelChoice:
        """Return the model of a new agent of an owner; empty for that of its parent."""
        snapshot = await self._configuration.current()
        user = await self._configuration.user(owner_id)
        own_keys = {key.provider_id for key in user.keys}
        return agent_choice(
            snapshot.catalogue, user.settings, own_keys, log_skipped, is_explorer=is_explorer
        )


def log_skipped(model_id: str) -> None:
    """Log that a configured model cannot be used."""
    logger.warning("a model of an override cannot be used", extra={"model_id": model_id})
