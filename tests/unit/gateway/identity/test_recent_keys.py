"""Looking an API key up once a second, however busy its holder is."""

from datetime import UTC, datetime

import pytest

from gateway.identity.domain import StoredApiKey, UserRecord, UserState
from gateway.identity.engine.api_key_cache import KEYS_MAX, TTL_S, UNKNOWN_MAX, ApiKeyCache
from parley.clock import FakeClock
from parley.identity import Role, UserId

THEN = datetime(2026, 1, 1, tzinfo=UTC)
ANN = UserRecord(
    id=UserId("ann"),
    login="ann",
    display_name="Ann",
    email="",
    role=Role.MEMBER,
    state=UserState.ACTIVE,
    version=1,
    created_at=THEN,
    updated_at=THEN,
    deactivated_at=None,
)


class Keys:
    """A store of keys that notes what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.stored = {"k": StoredApiKey("k", b"", ANN, frozenset(), None, None, None)}

    async def find(self, key_id: str) -> StoredApiKey | None:
        self.asked.append(key_id)
        return self.stored.get(key_id)


@pytest.fixture
def keys() -> Keys:
    return Keys()


async def test_a_key_is_looked_up_once_a_second(keys: Keys) -> None:
    clock = FakeClock()
    recent = ApiKeyCache(keys.find, clock)
    assert [await recent.find("k"), await recent.find("k")] == [keys.stored["k"]] * 2
    assert keys.asked == ["k"]
    clock.advance(TTL_S)
    await recent.find("k")
    assert keys.asked == ["k", "k"]


async def test_an_unknown_id_is_looked_up_once_a_second(keys: Keys) -> None:
    clock = FakeClock()
    recent = ApiKeyCache(keys.find, clock)
    assert [await recent.find("x"), await recent.find("x")] == [None, None]
    assert keys.asked == ["x"]
    clock.advance(TTL_S)
    keys.stored["x"] = keys.stored["k"]
    assert await recent.find("x") == keys.stored["k"]


async def test_an_unknown_id_is_looked_up_anew_when_a_key_was_created(keys: Keys) -> None:
    recent = ApiKeyCache(keys.find, FakeClock())
    await recent.find("x")
    keys.stored["x"] = keys.stored["k"]
    recent.forget()
    assert await recent.find("x") == keys.stored["k"]


async def test_a_key_that_is_created_while_its_id_is_read_is_found_after_it(keys: Keys) -> None:
    async def find(key_id: str) -> StoredApiKey | None:
        found = await keys.find(key_id)
        keys.stored["x"] = keys.stored["k"]
        recent.forget()
        return found

    recent = ApiKeyCache(find, FakeClock())
    assert [await recent.find("x"), await recent.find("x")] == [None, keys.stored["k"]]


async def test_unknown_ids_are_bounded_and_evict_no_key(keys: Keys) -> None:
    recent = ApiKeyCache(keys.find, FakeClock())
    await recent.find("k")
    for number in range(max(KEYS_MAX, UNKNOWN_MAX) + 1):
        await recent.find(f"x{number}")
    keys.asked.clear()
    await recent.find("k")
    await recent.find("x0")
    assert keys.asked == ["x0"]


async def test_a_forgotten_key_is_looked_up_anew(keys: Keys) -> None:
    recent = ApiKeyCache(keys.find, FakeClock())
    await recent.find("k")
    recent.forget()
    del keys.stored["k"]
    assert await recent.find("k") is None


async def test_what_is_read_while_something_changes_is_not_remembered(keys: Keys) -> None:
    async def find(key_id: str) -> StoredApiKey | None:
        found = await keys.find(key_id)
        recent.forget()
        return found

    recent = ApiKeyCache(find, FakeClock())
    await recent.find("k")
    await recent.find("k")
    assert keys.asked == ["k", "k"]


async def test_only_so_many_keys_are_remembered(keys: Keys) -> None:
    recent = ApiKeyCache(keys.find, FakeClock())
    names = [f"k{number}" for number in range(KEYS_MAX + 1)]
    keys.stored = dict.fromkeys(names, keys.stored["k"])
    for name in names:
        await recent.find(name)
    keys.asked.clear()
    await recent.find(names[-1])
    await recent.find(names[0])
    assert keys.asked == [names[0]]
