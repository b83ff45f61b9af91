"""What a process remembers of the configuration, over a store that counts how often it is asked."""

import asyncio
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TypeVar

import pytest

from chatd.content.domain.messages import ChatMode
from chatd.models.domain.catalogue import Catalogue
from chatd.models.domain.preferences import UserSettings
from chatd.models.domain.profile import NO_CHOICE
from chatd.models.engine.configuration import CHAT_PREFIX, REPAIR_S, ConfigurationCache
from chatd.models.store.catalogue import ChatFacts, KeyValues, Snapshot, UserConfig
from chatd.models.store.config_version import CATALOGUE
from chatd.primitives.domain.ids import ChatId, OwnerId
from parley.clock import FakeClock
from parley.postgres import DatabaseUnavailable

T = TypeVar("T")

ANN = OwnerId("ann")
CHAT = ChatId("c")
ROOT = ChatId("r")
PLAIN = ChatFacts(NO_CHOICE, ChatMode.ORDINARY)


@dataclass(slots=True)
class CountingStore:
    """A configuration whose every reading is counted, and can be held or refused."""

    number: int = 1
    asked: Counter[str] = field(default_factory=Counter)
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    is_away: bool = False
    facts: dict[ChatId, ChatFacts] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.gate.set()

    async def version(self) -> int:
        return await self._answer("version", self.number)

    async def load(self) -> Snapshot:
        read = Snapshot(Catalogue(version=self.number), KeyValues())
        return await self._answer("load", read)

    async def user(self, user_id: OwnerId) -> UserConfig:
        return await self._answer("user", UserConfig(UserSettings(str(self.number))))

    async def chat(self, chat_id: ChatId) -> ChatFacts:
        return await self._answer("chat", self.facts.get(chat_id, PLAIN))

    async def _answer(self, what: str, answer: T) -> T:
        self.asked[what] += 1
        self.begun.set()
        await self.gate.wait()
        if self.is_away:
            raise DatabaseUnavailable("away")
        return answer


def cache_over(store: CountingStore, clock: FakeClock | None = None) -> ConfigurationCache:
    return ConfigurationCache(store, Catalogue(), KeyValues(), clock or FakeClock())


async def test_a_warm_configuration_asks_nobody() -> None:
    store = CountingStore()
    cache = cache_over(store)
    for _ in range(5):
        await cache.current()
        await cache.user(ANN)
        await cache.chat(CHAT)
    assert store.asked == {"load": 1, "user": 1, "chat": 1}


async def test_one_reads_for_all_who_ask_at_once() -> None:
    store = CountingStore()
    store.gate.clear()
    cache = cache_over(store)
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        asked = [tasks.create_task(cache.current()) for _ in range(10)]
        await store.begun.wait()
        store.gate.set()
    assert store.asked == {"load": 1}
    assert {task.result().catalogue.version for task in asked} == {1}


async def test_whoever_is_cancelled_while_reading_leaves_it_to_the_next() -> None:
    store = CountingStore()
    store.gate.clear()
    cache = cache_over(store)
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        first = tasks.create_task(cache.current())
        second = tasks.create_task(cache.current())
        await store.begun.wait()
        first.cancel()
        store.gate.set()
        assert (await second).catalogue.version == 1


async def test_a_change_is_read_once_and_one_that_is_known_not_at_all() -> None:
    store = CountingStore()
    cache = cache_over(store)
    await cache.current()
    cache.on_notice(CATALOGUE, 1)
    await cache.current()
    assert store.asked["load"] == 1
    store.number = 2
    cache.on_notice(CATALOGUE, 2)
    assert (await cache.current()).catalogue.version == 2
    assert (await cache.current()).catalogue.version == 2
    assert store.asked["load"] == 2


async def test_what_was_read_before_a_change_was_heard_of_is_not_kept() -> None:
    store = CountingStore()
    store.gate.clear()
    cache = cache_over(store)
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        early = tasks.create_task(cache.current())
        await store.begun.wait()
        store.number = 2
        cache.on_notice(CATALOGUE, 2)
        store.gate.set()
        assert (await early).catalogue.version == 1
    assert (await cache.current()).catalogue.version == 2


async def test_users_and_chats_are_forgotten_one_by_one() -> None:
    store = CountingStore()
    cache = cache_over(store)
    await cache.user(ANN)
    await cache.chat(CHAT)
    store.number = 2
    cache.on_notice("ann", 2)
    assert (await cache.user(ANN)).settings.custom_prompt == "2"
    cache.on_notice(f"{CHAT_PREFIX}{CHAT}", 0)
    await cache.chat(CHAT)
    assert (store.asked["user"], store.asked["chat"], store.asked["load"]) == (2, 2, 0)


async def test_a_chat_explores_while_one_above_it_plans_and_a_warm_one_asks_nobody() -> None:
    store = CountingStore(facts={CHAT: replace(PLAIN, ancestor_ids=(ChatId("parent"), ROOT))})
    cache = cache_over(store)
    assert await cache.chat(CHAT) == store.facts[CHAT]
    store.facts[ROOT] = replace(PLAIN, mode=ChatMode.PLAN)
    assert not await cache.is_restricted(CHAT)
    assert store.asked == {"chat": 3}
    cache.on_notice(f"{CHAT_PREFIX}{ROOT}", 0)
    for _ in range(3):
        facts = await cache.chat(CHAT)
        assert (facts.mode, facts.is_restricted) == (ChatMode.EXPLORE, True)
        assert await cache.is_restricted(CHAT)
    assert (await cache.chat(ROOT)).mode is ChatMode.PLAN
    assert store.asked == {"chat": 4}


async def test_a_gap_in_the_news_forgets_everything() -> None:
    store = CountingStore()
    cache = cache_over(store)
    for _ in range(2):
        await cache.current()
        await cache.user(ANN)
        await cache.chat(CHAT)
        cache.on_resync()
    assert store.asked == {"load": 2, "user": 2, "chat": 2}


async def test_the_number_is_compared_every_few_seconds_and_repairs_what_was_not_heard() -> None:
    store, clock = CountingStore(), FakeClock()
    cache = cache_over(store, clock)
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        running = tasks.create_task(cache.run())
        assert await clock.until_sleeping() == REPAIR_S
        clock.advance(REPAIR_S)
        await clock.until_sleeping()
        assert store.asked == {"load": 1, "version": 1}
        store.number = 7
        clock.advance(REPAIR_S)
        await clock.until_sleeping()
        assert store.asked == {"load": 2, "version": 2}
        running.cancel()
    assert (await cache.current()).catalogue.version == 7


async def test_whoever_misses_something_gets_the_catalogue_of_this_moment() -> None:
    store = CountingStore()
    cache = cache_over(store)
    await cache.current()
    assert (await cache.newest()).catalogue.version == 1
    store.number = 2
    assert (await cache.current()).catalogue.version == 1
    assert (await cache.newest()).catalogue.version == 2
    assert store.asked == {"version": 2, "load": 2}


async def test_what_is_known_outlives_the_database() -> None:
    store = CountingStore()
    cache = cache_over(store)
    await cache.current()
    store.is_away = True
    cache.on_notice(CATALOGUE, 2)
    assert (await cache.current()).catalogue.version == 1
    store.is_away, store.number = False, 2
    assert (await cache.current()).catalogue.version == 2


async def test_what_was_never_read_cannot_be_guessed() -> None:
    store = CountingStore(is_away=True)
    with pytest.raises(DatabaseUnavailable):
        await cache_over(store).current()


async def test_what_the_environment_gives_later_is_taken_in() -> None:
    cache = cache_over(CountingStore())
    await cache.current()
    cache.add_discovered(replace(Catalogue(), given_default_id="new"))
    assert (await cache.current()).catalogue.given_default_id == "new"
