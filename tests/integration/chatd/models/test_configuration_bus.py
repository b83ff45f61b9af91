"""Two processes over one database and one bus: what one changes, the other knows."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from chatd.bus_handlers import CONFIG_TOPIC, follow_config
from chatd.models.domain.catalogue import Catalogue, Model, Provider, ProviderKey, ProviderType
from chatd.models.engine.configuration import ConfigurationCache
from chatd.models.store.catalogue import KeyValues, StoredCatalogue
from chatd.models.store.config_version import ConfigChanges
from chatd.models.store.models import Models
from chatd.models.store.preferences import Preferences
from chatd.models.store.providers import Providers
from chatd.primitives.domain.ids import OwnerId
from parley.bus import Bus, Notice, PostgresBus
from parley.clock import SystemClock
from parley.postgres import Pool
from parley.secrets import Keyring, SecretBox
from parley.settings import Secret
from support.host.supervised import supervision

PROVIDER_ID = "00000000-0000-0000-0000-0000000000b1"
MODEL_ID = "00000000-0000-0000-0000-0000000000c1"
KEY_ID = "00000000-0000-0000-0000-0000000000d1"
ANN = OwnerId("00000000-0000-0000-0000-00000000000a")
PROVIDER = Provider(PROVIDER_ID, "ours", "Ours", ProviderType.OPENAI)
BOX = SecretBox(Keyring.generate())


@asynccontextmanager
async def other_process(pool: Pool, url: str) -> AsyncIterator[ConfigurationCache]:
    """Give the cache of a process that hears of changes over the bus alone."""
    async with AsyncExitStack() as stack:
        bus = await stack.enter_async_context(
            PostgresBus.open(url, application_name="other", supervision=supervision())
        )
        cache = ConfigurationCache(
            StoredCatalogue(pool, BOX), Catalogue(), KeyValues(), SystemClock()
        )
        await cache.current()
        group = await stack.enter_async_context(asyncio.TaskGroup())
        for task in (
            group.create_task(follow_config(bus, cache)),
            group.create_task(cache.run()),
        ):
            stack.callback(task.cancel)
        yield cache


def changes_over(pool: Pool, bus: Bus) -> ConfigChanges:
    return ConfigChanges(
        pool, lambda what, version: bus.publish(Notice(CONFIG_TOPIC, what, version))
    )


async def until_version(cache: ConfigurationCache, version: int) -> Catalogue:
    """Wait until the other process has read a change that it only heard of."""
    async with asyncio.timeout(5):
        while True:
            known = (await cache.current()).catalogue
            if known.version >= version:
                return known
            await SystemClock().sleep(0.01)


async def test_what_one_process_changes_the_other_knows_soon(
    pool: Pool, chat_database: str
) -> None:
    async with (
        other_process(pool, chat_database) as other,
        PostgresBus.open(chat_database, application_name="one", supervision=supervision()) as bus,
    ):
        changes = changes_over(pool, bus)
        providers, models = Providers(changes, BOX), Models(changes)
        await providers.create(PROVIDER, b"h")
        await models.create(Model(MODEL_ID, PROVIDER_ID, "m", "M"), b"h")
        await providers.add_key(ProviderKey(KEY_ID, PROVIDER_ID, "hint"), Secret("sk-1234"), b"h")
        version = await StoredCatalogue(pool, BOX).version()
        catalogue = await until_version(other, version)
        assert [model.name for model in catalogue.models.values()] == ["m"]
        (key,) = catalogue.providers[PROVIDER_ID].keys
        assert (await other.current()).values.open(key) == Secret("sk-1234")
        assert "sk-1234" not in repr(await other.current())


async def test_what_a_user_sets_is_known_elsewhere(pool: Pool, chat_database: str) -> None:
    async with (
        other_process(pool, chat_database) as other,
        PostgresBus.open(chat_database, application_name="one", supervision=supervision()) as bus,
    ):
        assert (await other.user(ANN)).settings.custom_prompt == ""
        preferences = Preferences(changes_over(pool, bus))
        await preferences.change_user(ANN, {"custom_prompt": "new"})
        async with asyncio.timeout(5):
            while (await other.user(ANN)).settings.custom_prompt != "new":
                await SystemClock().sleep(0.01)


async def test_a_change_that_nobody_told_of_is_found_by_comparing_numbers(
    pool: Pool,
) -> None:
    cache = ConfigurationCache(StoredCatalogue(pool, BOX), Catalogue(), KeyValues(), SystemClock())
    await cache.current()
    await Providers(ConfigChanges(pool), BOX).create(PROVIDER, b"h")
    assert not (await cache.current()).catalogue.providers
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        running = group.create_task(cache.run())
        while not (await cache.current()).catalogue.providers:
            await SystemClock().sleep(0.01)
        running.cancel()
