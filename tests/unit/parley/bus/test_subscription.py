import asyncio

import pytest

from parley.bus import BusItem, Notice, NoticeTooLong, Resync
from parley.bus.subscription import Subscription


async def take(subscription: Subscription, count: int) -> list[BusItem]:
    async with asyncio.timeout(5):
        return [await anext(subscription) for _ in range(count)]


def is_idle(subscription: Subscription) -> bool:
    return not subscription._something.is_set()


async def test_items_wait_in_order() -> None:
    subscription = Subscription()
    subscription.offer(Notice("chat", "a", 1))
    subscription.offer(Notice("chat", "b", 1))
    assert await take(subscription, 2) == [Notice("chat", "a", 1), Notice("chat", "b", 1)]
    assert is_idle(subscription)


async def test_only_the_newest_version_of_an_id_waits() -> None:
    subscription = Subscription()
    for version in (2, 5, 3):
        subscription.offer(Notice("chat", "a", version))
    assert await take(subscription, 1) == [Notice("chat", "a", 5)]
    assert is_idle(subscription)


async def test_too_many_ids_become_a_resync() -> None:
    subscription = Subscription(waiting_max=2)
    for id_ in "abc":
        subscription.offer(Notice("chat", id_, 1))
    subscription.offer(Notice("chat", "d", 1))
    assert await take(subscription, 2) == [Resync(), Notice("chat", "d", 1)]
    assert is_idle(subscription)


async def test_a_known_id_fits_into_a_full_queue() -> None:
    subscription = Subscription(waiting_max=1)
    subscription.offer(Notice("chat", "a", 1))
    subscription.offer(Notice("chat", "a", 2))
    assert await take(subscription, 1) == [Notice("chat", "a", 2)]


async def test_a_resync_replaces_what_waits_and_precedes_what_follows() -> None:
    subscription = Subscription()
    subscription.offer(Notice("chat", "a", 1))
    subscription.offer_resync()
    subscription.offer_resync()
    subscription.offer(Notice("chat", "b", 1))
    assert await take(subscription, 2) == [Resync(), Notice("chat", "b", 1)]
    assert is_idle(subscription)


@pytest.mark.parametrize(("topic", "id_"), [("t" * 65, "a"), ("chat", "ü" * 257)])
def test_a_notice_carries_names_and_no_data(topic: str, id_: str) -> None:
    with pytest.raises(NoticeTooLong):
        Notice(topic, id_, 1)


@pytest.mark.parametrize(("id_", "version"), [("\ud800", 1), ("a", -1), ("a", 2**63)])
def test_a_notice_that_could_not_be_sent_is_refused(id_: str, version: int) -> None:
    with pytest.raises(ValueError, match=r"surrogates|version"):
        Notice("chat", id_, version)
