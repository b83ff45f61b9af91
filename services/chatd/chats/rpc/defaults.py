"""What a request leaves to the configuration: names of models, and how a new chat begins."""

from dataclasses import replace
from typing import Protocol

from chatd.chats.domain.chat import NewMessage
from chatd.chats.store.creation import NewChat
from chatd.content.domain.messages import Role, Visibility
from chatd.content.domain.parts import Text
from chatd.models.domain.choice import ModelChoice
from chatd.models.domain.errors import ModelNotFound
from chatd.models.store.catalogue import Snapshot


class Defaults(Protocol):
    """What the configuration says to a request."""

    async def choice(self, wanted: ModelChoice) -> ModelChoice:
        """Return the choice with the id of the model that it names.

        Raises:
            ModelNotFound: there is no such model, or it is switched off.
        """
        ...

    async def complete(self, new: NewChat) -> NewChat:
        """Return a new chat with what every chat begins with.

        Raises:
            ModelNotFound: there is no such model, or it is switched off.
        """
        ...


class NoDefaults:
    """Takes every request as it is."""

    async def choice(self, wanted: ModelChoice) -> ModelChoice:
        """Return it as it is."""
        return wanted

    async def complete(self, new: NewChat) -> NewChat:
        """Return it as it is."""
        return new


class Configuration(Protocol):
    """What is configured now."""

    async def current(self) -> Snapshot:
        """Return the catalogue."""
        ...

    async def newest(self) -> Snapshot:
        """Return the catalogue of this moment."""
        ...


class ConfiguredDefaults:
    """Completes requests with what is configured."""

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration

    async def choice(self, wanted: ModelChoice) -> ModelChoice:
        """Return the choice with the id of the model that it names."""
        if not wanted.model_id:
            return wanted
        model = (await self._configuration.current()).catalogue.find(wanted.model_id)
        if model is None:
            # Another process may have made it a moment ago: a refusal needs the present state.
            model = (await self._configuration.newest()).catalogue.find(wanted.model_id)
        if model is None:
            raise ModelNotFound(wanted.model_id)
        return replace(wanted, model_id=model.id)

    async def complete(self, new: NewChat) -> NewChat:
        """Return a new chat with the installation's instructions before all others."""
        choice = await self.choice(ModelChoice(new.model_id, new.reasoning_effort))
        prompt = (await self._configuration.current()).catalogue.settings.system_prompt
        *before, message = new.messages
        if prompt.strip():
            told = NewMessage(Role.SYSTEM, (Text(prompt),), visibility=Visibility.MODEL)
            before.insert(0, told)
        return replace(
            new,
            messages=(*before, replace(message, choice=choice)),
            model_id=choice.model_id,
        )
