import logging

import pytest

from parley.clock import FakeClock
from parley.telemetry import OutageLog

LOG = logging.getLogger("test.outages")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def outages(clock: FakeClock, caplog: pytest.LogCaptureFixture) -> OutageLog:
    caplog.set_level(logging.INFO, LOG.name)
    return OutageLog(LOG, clock, "no gateway answers", normal_s=15.0)


def logged(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    return [(record.levelname, record.getMessage()) for record in caplog.records]


def test_an_outage_of_a_start_is_no_warning(
    outages: OutageLog, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    outages.failed("refused")
    clock.advance(14.0)
    outages.failed("refused")
    outages.succeeded()
    assert logged(caplog) == [("INFO", "no gateway answers: refused")]


def test_an_outage_that_lasts_is_one_warning_and_its_end_another(
    outages: OutageLog, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(5):
        outages.failed("refused")
        clock.advance(10.0)
    outages.succeeded()
    outages.succeeded()
    assert [entry for entry in logged(caplog) if entry[0] == "WARNING"] == [
        ("WARNING", "no gateway answers for 20 s: refused"),
        ("WARNING", "no gateway answers: over after 50 s"),
    ]


def test_a_later_outage_is_counted_from_its_own_beginning(
    outages: OutageLog, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    outages.failed("refused")
    outages.succeeded()
    clock.advance(100.0)
    outages.failed("refused")
    assert {level for level, _ in logged(caplog)} == {"INFO"}
