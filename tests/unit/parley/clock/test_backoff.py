from parley.clock import backoff_s


def test_the_delay_doubles_from_the_first_to_the_last() -> None:
    delays_s = [backoff_s(failures, 0.1, 1.0) for failures in (1, 2, 3, 4, 5, 6)]
    assert delays_s == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]
    assert backoff_s(10_000, 0.1, 5.0) == 5.0
