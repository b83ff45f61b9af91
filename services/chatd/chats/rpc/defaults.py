"""Resolves model names of requests, and completes new chats from the configuration."""

from dataclasses import replace
from typing import Protocol

from chatd.chats.domain.chat import NewMessage
from chatd.chats.rpc.reference_checks import ReferenceChecks
from chatd.chats.store.creation import NewChat
from chatd.content.domain.messages import Role, Visibility
from chatd.content.domain.parts import Text
from chatd.models.domain.errors import ModelNotFound
from chatd.models.domain.preferences import NO_FALLBACK
from chatd.models.domain.profile import ModelChoice
from chatd.models.store.catalogue import Snapshot


class Defaults(Protocol):
    """Completes requests from the configuration."""

    async def choice(self, wanted: ModelChoice) -> ModelChoice:
        """Return the choice with the id of the model that it names.

        Raises:
            ModelNotFound: There is no such model, or it is disabled.
        """
        ...

    async def complete(self, new: NewChat) -> NewChat:
        """Return a new chat with the configured initial messages.

        Raises:
            ModelNotFound: There is no such model, or it is disabled.
            UnknownIds: Neither its model nor its fallback model can be used.
        """
        ...


async def fallback_id(defaults: Defaults, wanted: str) -> str:
    """Return the id of the fallback model that a chat names, or that it has none.

    Raises:
        ModelNotFound: There is no such model, or it is disabled.
    """
    if wanted == NO_FALLBACK:
        return wanted
    return (await defaults.choice(ModelChoice(wanted))).model_id


class Configuration(Protocol):
    """The current configuration."""

    async def current(self) -> Snapshot:
        """Return the catalogue, which may be cached."""
        ...

    async def newest(self) -> Snapshot:
        """Return the catalogue, read now."""
        ...


class ConfiguredDefaults:
    """Completes requests from the configuration."""

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration

    async def choice(self, wanted: ModelChoice) -> ModelChoice:
        """Return the choice with the id of the model that it names."""
        if not wanted.model_id:
            return wanted
        model = (await self._configuration.current()).catalogue.find(wanted.model_id)
        if model is None:
            # Another process may have created it just before: a refusal needs the current state.
            model = (await self._configuration.newest()).catalogue.find(wanted.model_id)
        if model is None:
            raise ModelNotFound(wanted.model_id)
        return replace(wanted, model_id=model.id)

    async def complete(self, new: NewChat) -> NewChat:
        """Return a new chat with the installation's system prompt before all other messages."""
        checks, wanted = ReferenceChecks(), ModelChoice(new.model_id, new.reasoning_effort)
        choice = await checks.model(self.choice(wanted), "model_id", wanted)
        fallback_model_id = await checks.model(
            fallback_id(self, new.fallback_model_id), "fallback_model_id", new.fallback_model_id
        )
        checks.finish()
        prompt = (await self._configuration.current()).catalogue.settings.system_prompt
        *before, message = new.messages
        if prompt.strip():
            instructions = NewMessage(Role.SYSTEM, (Text(prompt),), visibility=Visibility.MODEL)
            before.insert(0, instructions)
        return replace(
            new,
            messages=(*before, replace(message, choice=choice)),
            model_id=choice.model_id,
            fallback_model_id=fallback_model_id,
        )
