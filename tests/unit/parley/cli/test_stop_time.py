from parley.cli.supervision.stop_deadline import DATABASE_S_MIN, ORPHANS_S_MIN, StopDeadline
from parley.clock import FakeClock


def test_what_one_part_takes_is_not_there_for_the_next() -> None:
    clock = FakeClock()
    stopping = StopDeadline(clock.monotonic, whole_s=10.0)
    clock.advance(100)
    assert stopping.for_services_s() == 10.0 - DATABASE_S_MIN - ORPHANS_S_MIN
    clock.advance(2)
    assert stopping.for_database_s() == 8.0 - ORPHANS_S_MIN
    clock.advance(3)
    assert stopping.for_orphans_s() == 5.0


def test_the_time_runs_from_when_the_stop_began() -> None:
    clock = FakeClock()
    stopping = StopDeadline(clock.monotonic, whole_s=10.0)
    stopping.begin()
    clock.advance(4)
    stopping.begin()
    assert stopping.for_orphans_s() == 6.0


def test_services_that_hang_leave_time_for_the_database_and_that_for_the_orphans() -> None:
    clock = FakeClock()
    stopping = StopDeadline(clock.monotonic)
    clock.advance(stopping.for_services_s())
    assert stopping.for_services_s() == 0.0
    assert stopping.for_database_s() == DATABASE_S_MIN
    clock.advance(stopping.for_database_s())
    assert stopping.for_orphans_s() == ORPHANS_S_MIN
    clock.advance(60)
    assert stopping.for_orphans_s() == 0.0
