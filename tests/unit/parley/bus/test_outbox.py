import asyncio

from parley.bus import Notice
from parley.bus.outbox import Batch, Outbox

A1, A2, B1 = Notice("chat", "a", 1), Notice("chat", "a", 2), Notice("chat", "b", 1)


async def test_an_outbox_gives_the_newest_version_of_each_id_once() -> None:
    outbox = Outbox()
    outbox.put([A2, B1, A1])
    async with asyncio.timeout(5):
        await outbox.until_something()
    assert outbox.take() == Batch((A2, B1), has_lost=False)
    assert outbox.take() == Batch((), has_lost=False)


def test_the_same_id_of_two_topics_is_two_things() -> None:
    outbox = Outbox()
    outbox.put([A1, Notice("user", "a", 1)])
    assert outbox.take() == Batch((A1, Notice("user", "a", 1)), has_lost=False)


def test_too_much_becomes_one_word_that_it_was_lost() -> None:
    outbox = Outbox(waiting_max=1)
    outbox.put([A1, B1])
    assert len(outbox) == 1
    batch = outbox.take()
    assert batch == Batch((), has_lost=True)
    assert batch.payloads() == ["[]"]


def test_a_batch_that_failed_goes_back_without_hiding_newer_versions() -> None:
    outbox = Outbox()
    outbox.put([A1, B1])
    failed = outbox.take()
    outbox.put([A2])
    outbox.put_back(failed)
    assert outbox.take() == Batch((A2, B1), has_lost=False)


def test_a_lost_word_that_failed_goes_back_too() -> None:
    outbox = Outbox()
    outbox.put_back(Batch((), has_lost=True))
    assert outbox.take() == Batch((), has_lost=True)
