import math

from support.stack.fairness import WayFigures, compared, table, unfair

CALM = [100.0] * 98 + [200.0] * 2
SLOWER = [100.0] * 98 + [310.0] * 2


def test_a_way_that_slows_turns_down_too_much_is_named() -> None:
    found = {
        "deletes": WayFigures({"kept": CALM, "anew": CALM}, {"kept": CALM, "anew": CALM}),
        "waits": WayFigures({"kept": CALM, "anew": CALM}, {"kept": CALM, "anew": SLOWER}),
    }
    assert unfair(found, 1.5) == [
        "waits: p99 of turns of kind 'anew' is 1.55 times as long, at most 1.5"
    ]
    assert unfair(found, 1.6) == []


def test_a_way_that_ends_processes_refuses_messages_or_stops_all_turns_is_named() -> None:
    found = {
        "streams": WayFigures({"kept": CALM}, {"kept": CALM}, refused={"503": 2, "cut stream": 1}),
        "deletes": WayFigures({"kept": CALM}, {"kept": CALM}, restarts=1),
        "stops": WayFigures({"commands": CALM}, {"commands": []}),
    }
    assert unfair(found, 1.5) == [
        "streams: the other user met 503 2 times",
        "streams: the other user met cut stream 1 times",
        "deletes: 1 processes were started again",
        "stops: no turns of kind 'commands' to compare",
    ]


def test_figures_and_the_table_have_a_ratio_for_each_kind_of_turns() -> None:
    way = WayFigures({"kept": CALM, "commands": CALM}, {"kept": SLOWER, "commands": []}, {"503": 1})
    assert way.ratios() == {"kept": 1.55, "commands": math.inf}
    assert way.figures() == {
        "kept": {
            "ratio_p99": 1.55,
            "without_ms": {"turns": 100, "p50": 100.0, "p99": 200.0},
            "during_ms": {"turns": 100, "p50": 100.0, "p99": 310.0},
        },
        "commands": {"failed": {"turns_without": 100, "turns_during": 0}},
        "refused": {"503": 1},
        "restarts": 0,
    }
    assert way.figures()["kept"] == compared(CALM, SLOWER)
    assert table({"stops": way}) == [
        "way    turns     p99 without  p99 with  ratio",
        "stops  kept      200 ms       310 ms    1.55",
        "stops  commands  200 ms       none      inf",
    ]
