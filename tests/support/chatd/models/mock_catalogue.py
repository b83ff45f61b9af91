"""Providers and models of the mock as a configuration: three protocols, one provider each."""

from dataclasses import replace
from enum import StrEnum

from chatd.content.domain.messages import ChatMode
from chatd.models.domain.catalogue import (
    Catalogue,
    Model,
    ModelOverride,
    Provider,
    ProviderKey,
    ProviderType,
    Purpose,
)
from chatd.models.domain.profile import NO_CHOICE
from chatd.models.store.catalogue import ChatFacts, KeyValues, Snapshot, UserConfig
from chatd.primitives.domain.ids import ChatId, OwnerId
from parley.settings import Secret


class Way(StrEnum):
    """A protocol of the mock; each is a provider of its own."""

    ANTHROPIC = "anthropic"
    RESPONSES = "responses"
    COMPLETIONS = "completions"


def provider_at(url: str, way: Way) -> Provider:
    """Return the provider that speaks a protocol at the mock's address."""
    kind = ProviderType.ANTHROPIC if way is Way.ANTHROPIC else ProviderType.OPENAI
    return Provider(
        id=way,
        name=way,
        display_name="Acme",
        type=kind,
        base_url=url if way is Way.ANTHROPIC else f"{url}/v1",
        options={} if way is Way.ANTHROPIC else {"wire": way},
        keys=(ProviderKey(f"key of {way}", way, "0123"),),
    )


class StagedConfiguration:
    """Three providers with a key each, and models as tests name them."""

    def __init__(self, providers: dict[str, Provider]) -> None:
        self.catalogue = Catalogue(providers)
        self._values = KeyValues(
            given={key.id: Secret("sk-0123") for each in providers.values() for key in each.keys}
        )

    def add(self, model: Model) -> str:
        """Make a model known; return its id."""
        models = {**self.catalogue.models, model.id: model}
        self.catalogue = replace(self.catalogue, models=models)
        return model.id

    def summarise_with(self, model_id: str) -> None:
        """Let a model make the summaries of all chats."""
        override = ModelOverride(Purpose.COMPACTION, model_id)
        self.catalogue = replace(self.catalogue, overrides={Purpose.COMPACTION: override})

    async def current(self) -> Snapshot:
        """Return the catalogue."""
        return Snapshot(self.catalogue, self._values)

    async def user(self, user_id: OwnerId) -> UserConfig:
        """Return nothing special."""
        return UserConfig()

    async def chat(self, chat_id: ChatId) -> ChatFacts:
        """Return nothing special."""
        return ChatFacts(NO_CHOICE, ChatMode.ORDINARY)
