"""Ids that sort by the time they were made."""

import random  # noqa: TID251 (seeded, so that the test repeats itself)
from datetime import UTC, datetime, timedelta
from uuid import RFC_4122, UUID

from hypothesis import given
from hypothesis import strategies as st

from parley.clock import FakeClock
from parley.process import TimeOrderedIds

START = datetime(2026, 1, 1, tzinfo=UTC)


class SteppingClock(FakeClock):
    """A wall clock that someone sets, also backwards."""

    def __init__(self) -> None:
        super().__init__(START)
        self.offset_s = 0.0

    def now(self) -> datetime:
        return START + timedelta(seconds=self.offset_s)


def milliseconds(text: str) -> int:
    return UUID(text).int >> 80


def test_an_id_is_a_uuid_of_version_7_with_the_time_in_front() -> None:
    text = TimeOrderedIds(FakeClock(START), random.Random(1))()

    parsed = UUID(text)

    assert (parsed.version, parsed.variant) == (7, RFC_4122)
    assert milliseconds(text) == int(START.timestamp() * 1000)
    assert text == str(parsed)


def test_other_chance_gives_other_ids_at_the_same_time() -> None:
    clock = FakeClock(START)
    assert TimeOrderedIds(clock, random.Random(1))() != TimeOrderedIds(clock, random.Random(2))()


@given(steps_s=st.lists(st.floats(-10, 10), min_size=1, max_size=50), seed=st.integers())
def test_every_id_is_greater_than_the_one_before_whatever_the_clock_does(
    steps_s: list[float], seed: int
) -> None:
    clock = SteppingClock()
    new_id = TimeOrderedIds(clock, random.Random(seed))
    ids = [new_id()]
    for step_s in steps_s:
        clock.offset_s += step_s
        ids.append(new_id())

    assert ids == sorted(set(ids))
    assert {UUID(text).version for text in ids} == {7}


def test_a_full_millisecond_carries_into_the_next() -> None:
    class Highest(random.Random):
        def getrandbits(self, k: int, /) -> int:
            return (1 << k) - 1

        def randrange(self, *args: int, **_: int) -> int:  # type: ignore[override]
            return 1

    new_id = TimeOrderedIds(FakeClock(START), Highest())

    first, second = new_id(), new_id()

    assert milliseconds(second) == milliseconds(first) + 1
    assert UUID(second).version == 7
    assert first < second
