"""What a bounded cache keeps, for how long, and what it evicts."""

import asyncio
from collections.abc import Callable

from parley.cache import BoundedCache
from parley.clock import FakeClock


async def test_only_the_most_recently_used_are_kept() -> None:
    cache: BoundedCache[str, str] = BoundedCache(2)
    asked: list[str] = []

    async def read(key: str) -> str:
        asked.append(key)
        return key

    for key in ("a", "b", "a", "c", "a", "b"):
        assert await cache.get_or_read(key, lambda key=key: read(key)) == key  # type: ignore[misc]
    assert asked == ["a", "b", "c", "b"]
    assert list(cache.items()) == [("a", "a"), ("b", "b")]


def test_the_sum_of_the_sizes_is_bounded() -> None:
    cache: BoundedCache[str, bytes] = BoundedCache(size_max=4, size_of=len)
    cache.put("a", b"12")
    cache.put("b", b"12")
    cache.put("a", b"1")
    cache.put("c", b"1")
    assert dict(cache.items()) == {"b": b"12", "a": b"1", "c": b"1"}
    cache.put("d", b"1")
    assert dict(cache.items()) == {"a": b"1", "c": b"1", "d": b"1"}
    assert cache.pop("a") == b"1"
    cache.put("e", b"12")
    assert dict(cache.items()) == {"c": b"1", "d": b"1", "e": b"12"}
    cache.put("f", b"12345")
    assert dict(cache.items()) == {}


def test_a_value_expires_after_its_own_time() -> None:
    clock = FakeClock()
    cache: BoundedCache[str, float] = BoundedCache(9, clock=clock, ttl_of=lambda value: value)
    cache.put("short", 1.0)
    cache.put("long", 3.0)
    clock.advance(1)
    assert (cache.get("short"), cache.get("long")) == (None, 3.0)
    assert list(cache.items()) == [("long", 3.0)]


async def test_a_value_that_was_read_expires_by_the_time_of_the_request() -> None:
    clock = FakeClock()
    cache: BoundedCache[str, int] = BoundedCache(9, clock=clock, ttl_of=lambda _: 5.0)

    async def slow() -> int:
        clock.advance(3)
        return 7

    assert await cache.get_or_read("key", slow) == 7
    clock.advance(1)
    assert cache.get("key") == 7
    clock.advance(1)
    assert cache.get("key") is None


async def test_what_was_read_while_something_was_forgotten_is_not_kept() -> None:
    cache: BoundedCache[str, int] = BoundedCache(9)
    invalidations: tuple[Callable[[], None], ...] = (lambda: cache.forget("other"), cache.clear)
    for invalidate in invalidations:
        begun, proceed = asyncio.Event(), asyncio.Event()

        async def read(begun: asyncio.Event = begun, proceed: asyncio.Event = proceed) -> int:
            begun.set()
            await proceed.wait()
            return 7

        async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
            reading = tasks.create_task(cache.get_or_read("key", read))
            await begun.wait()
            invalidate()
            proceed.set()
        assert (reading.result(), cache.get("key")) == (7, None)


async def test_an_absent_value_is_read_again() -> None:
    cache: BoundedCache[str, int | None] = BoundedCache(9)
    found = [7, None]

    async def read() -> int | None:
        return found.pop()

    assert await cache.get_or_read("key", read) is None
    assert await cache.get_or_read("key", read) == 7
    assert await cache.get_or_read("key", read) == 7
