import asyncio

from chatd.turns.worker.runners import Slots


def test_no_more_slots_are_reserved_than_there_are() -> None:
    slots = Slots(2)
    first, second = slots.reserve(), slots.reserve()
    assert first is not None
    assert second is not None
    assert slots.reserve() is None
    slots.use(first)
    assert slots.reserve() is None
    slots.release(first)
    assert slots.free == 1


def test_giving_a_slot_back_twice_frees_it_once() -> None:
    slots = Slots(1)
    slot = slots.reserve()
    assert slot is not None
    slots.release(slot)
    slots.release(slot)
    assert slots.free == 1


async def test_whoever_waits_for_reservations_goes_on_when_the_last_is_used_or_given_back() -> None:
    slots = Slots(2)
    first, second = slots.reserve(), slots.reserve()
    assert first is not None
    assert second is not None
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        waiting = group.create_task(slots.until_unreserved())
        slots.use(first)
        assert slots.is_reserved(second)
        assert not waiting.done()
        slots.release(second)
        await waiting
