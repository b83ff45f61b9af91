"""A small catalogue: two providers, three models, a book that knows some of them."""

from dataclasses import replace
from datetime import date
from decimal import Decimal

from chatd.content.domain.messages import ChatMode
from chatd.models.domain.catalogue import Catalogue, Model, Provider, ProviderKey, ProviderType
from chatd.models.domain.price import Price
from chatd.models.domain.price_book import BookEntry, PriceBook
from chatd.models.domain.profile import NO_CHOICE, ReasoningEffort
from chatd.models.store.catalogue import ChatFacts, KeyValues, Snapshot, UserConfig
from chatd.primitives.domain.ids import ChatId, OwnerId
from parley.settings import Secret

FIRST_KEY = ProviderKey("key-1", "anthropic", "aaaa", order=1)
SECOND_KEY = ProviderKey("key-2", "anthropic", "bbbb", order=2)
OWN_KEY = ProviderKey("key-own", "anthropic", "oooo", user_id="ann")
VALUES = {key.id: Secret(f"value of {key.id}") for key in (FIRST_KEY, SECOND_KEY, OWN_KEY)}

ANTHROPIC = Provider(
    "anthropic", "anthropic", "Anthropic", ProviderType.ANTHROPIC, keys=(FIRST_KEY, SECOND_KEY)
)
LOCAL = Provider(
    "local", "local", "Local", ProviderType.OPENAI_COMPATIBLE, base_url="http://localhost:1/v1"
)
SONNET = Model("sonnet", "anthropic", "claude-sonnet-9", "Sonnet", is_default=True)
OPUS = Model("opus", "anthropic", "claude-opus-9", "Opus", max_effort=ReasoningEffort.MEDIUM)
LLAMA = Model("llama", "local", "llama-9", "Llama")

SONNET_PRICE = Price(Decimal(3), Decimal(15), Decimal("0.3"), Decimal("3.75"))
BOOK = PriceBook(
    date(2026, 1, 1),
    (BookEntry("claude-sonnet-9", SONNET_PRICE, 200_000, 64_000, ReasoningEffort.HIGH),),
)


def catalogue(*changed: Provider | Model) -> Catalogue:
    """Return the catalogue with some things changed or added."""
    providers = {each.id: each for each in (ANTHROPIC, LOCAL)}
    models = {each.id: each for each in (SONNET, OPUS, LLAMA)}
    for thing in changed:
        if isinstance(thing, Provider):
            providers[thing.id] = thing
        else:
            models[thing.id] = thing
    return Catalogue(providers, models, version=1)


class KnownConfiguration:
    """A configuration that tests hold in their hands."""

    def __init__(self, known: Catalogue, user: UserConfig | None = None) -> None:
        self.catalogue = known
        self.config = user or UserConfig()
        self.facts = ChatFacts(NO_CHOICE, ChatMode.ORDINARY)

    async def current(self) -> Snapshot:
        """Return the catalogue."""
        return Snapshot(self.catalogue, KeyValues(given=VALUES))

    async def newest(self) -> Snapshot:
        """Return the catalogue, which has not changed since."""
        return await self.current()

    async def user(self, user_id: OwnerId) -> UserConfig:
        """Return what the user set, whoever it is."""
        return self.config

    async def chat(self, chat_id: ChatId) -> ChatFacts:
        """Return the facts of the chat, whichever it is."""
        return self.facts


def own_key_of_ann() -> UserConfig:
    """Return what a user with a key of their own brought."""
    return UserConfig(keys=(OWN_KEY,), values=KeyValues(given=VALUES))


def allowing_own_keys(provider: Provider = ANTHROPIC) -> Provider:
    """Return a provider that takes keys of users."""
    return replace(provider, user_keys_allowed=True)
