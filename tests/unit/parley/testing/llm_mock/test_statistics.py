from parley.clock import FakeClock
from parley.testing.llm_mock.exchange.request import HttpRequest
from parley.testing.llm_mock.http.statistics import RequestCounters, Served, Statistics

HEADERS = {"x-api-key": "secret", "authorization": "Bearer secret", "host": "mock"}
REQUEST = HttpRequest("POST", "/v1/messages?beta=true", "/v1/messages", {}, HEADERS, b"{}")


def test_everything_is_counted() -> None:
    tally = RequestCounters(FakeClock(), keep=2)
    tally.count(REQUEST, "mock", 200)
    tally.count(REQUEST, "mock", 429)
    tally.opened()
    assert tally.statistics() == Statistics(
        requests=2,
        by_model={"mock": 2},
        by_path={"/v1/messages": 2},
        by_status={200: 1, 429: 1},
        open_streams=1,
        open_streams_peak=1,
        peak_per_s=2,
    )


def test_the_peak_is_the_fullest_second_wherever_it_begins() -> None:
    clock = FakeClock()
    tally = RequestCounters(clock, keep=2)
    for pause_s in (0.0, 0.6, 0.3, 0.3, 5.0):
        clock.advance(pause_s)
        tally.count(REQUEST, "mock", 200)
    assert tally.statistics().peak_per_s == 3


def test_the_last_requests_are_kept_without_their_keys() -> None:
    tally = RequestCounters(FakeClock(), keep=2)
    for status in (200, 400, 500):
        tally.count(REQUEST, "mock", status)
    headers = {"host": "mock"}
    kept = [
        Served(0.0, "/v1/messages?beta=true", "mock", status, headers, b"{}")
        for status in (400, 500)
    ]
    assert tally.served(10) == tuple(kept)
    assert tally.served(1) == (kept[1],)


def test_a_reset_forgets_all_but_what_goes_on() -> None:
    tally = RequestCounters(FakeClock(), keep=2)
    tally.count(REQUEST, "mock", 200)
    tally.opened()
    tally.reset()
    assert tally.statistics() == Statistics(0, {}, {}, {}, 1, 1, 0)
    assert tally.served(10) == ()
