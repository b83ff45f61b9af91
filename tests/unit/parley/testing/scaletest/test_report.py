"""Figures out of outcomes, limits, and the table for people."""

from parley.testing.scaletest import (
    ChatOutcome,
    Costs,
    Counts,
    DatabaseActivity,
    Limits,
    Load,
    Stage,
    TurnTimes,
    Usage,
    costs,
    database_cost,
    lines_of,
    machine_cost,
    report_on,
    shares_of,
)
from parley.testing.scaletest.costs import DatabaseCost, MachineCost, MachineTime, ServiceCost
from parley.testing.scaletest.plan import Plan, Target
from parley.testing.scaletest.report import Percentiles

LOAD = Load(chats=2, turns=2, clients=1)


def outcome(number: int, began_at: float = 10.0) -> ChatOutcome:
    return ChatOutcome(
        number,
        f"chat-{number}",
        "waiting",
        turns=[
            TurnTimes(began_at, 0.010, 0.020, 0.030, 0.040),
            TurnTimes(began_at + 1, 0.001, 0.002, 0.003, 1.0),
        ],
        counts=Counts(events=7, unfinished_previews=1),
        stream_bytes=100,
    )


def test_a_run_without_failures_passes_with_its_figures() -> None:
    found = report_on(LOAD, [outcome(0), outcome(1, 10.5)], Costs())
    assert found.is_passed
    assert (found.wall_s, found.turns_completed, found.turns_per_s) == (2.5, 4, 1.6)
    assert found.latency["request"] == {
        "initial": Percentiles(2, 10.0, 10.0, 10.0, 10.0),
        "follow_up": Percentiles(2, 1.0, 1.0, 1.0, 1.0),
    }
    assert found.latency["turn"]["follow_up"] == Percentiles(2, 1000.0, 1000.0, 1000.0, 1000.0)
    assert {name: count for name, count in found.stream.items() if count} == {
        "events": 14,
        "bytes": 200,
        "unfinished_previews": 2,
    }


def test_percentiles_are_values_that_occurred() -> None:
    assert Percentiles.of(number / 1000 for number in range(1, 201)) == Percentiles(
        200, 100.0, 190.0, 198.0, 200.0
    )
    assert Percentiles.of([]) is None


def test_failures_are_counted_by_stage_and_said_once_for_all() -> None:
    broken = [ChatOutcome(number) for number in range(3)]
    for each in broken:
        each.fail(Stage.CREATE_CHAT, "answered with 403")
        each.fail(Stage.TIMEOUT, "the first one counts")
    found = report_on(Load(chats=4, turns=2, clients=1), [outcome(9), *broken], Costs())
    assert not found.is_passed
    assert found.chats_failed == 3
    assert {stage: count for stage, count in found.failures.items() if count} == {"create_chat": 3}
    assert found.problems == ("create_chat (3 chats, such as number 0): answered with 403",)


def test_a_turn_that_never_came_to_its_end_is_no_pass() -> None:
    short = outcome(0)
    short.turns[-1].over_s = None
    assert not report_on(LOAD, [short, outcome(1)], Costs()).is_passed


def test_limits_that_are_not_kept_are_told() -> None:
    limits = Limits(first_output_p95_ms=20, turn_p95_ms=2000, wall_s=1)
    found = report_on(LOAD, [outcome(0), outcome(1)], Costs(), limits)
    assert not found.is_passed
    assert found.exceeded == (
        "first_output p95 in initial is 30 ms, over 20 ms",
        "the run took 2.0 s, over 1 s",
    )


def test_a_run_without_any_turn_has_figures_too() -> None:
    found = report_on(LOAD, [], Costs())
    assert (found.wall_s, found.turns_per_s, found.is_passed) == (0.0, 0.0, False)
    assert list(lines_of(found))[-1] == "FAILED: 0 chats failed"


def test_costs_are_what_was_added_between_two_looks() -> None:
    before = {"chatd": Usage(2, 1.0, 0), "gateway": Usage(1, 5.0, 0)}
    # The gateway was started anew in between.
    after = {"chatd": Usage(2, 3.0, 2 << 20), "gateway": Usage(1, 0.5, 1 << 20)}
    assert costs(before, after, turns=1000, wall_s=4.0) == {
        "chatd": ServiceCost(2, 2.0, 0.5, 2.0),
        "gateway": ServiceCost(1, 0.5, 0.12, 1.0),
    }
    activity = DatabaseActivity(
        statements=6000, commits=2000, connections_peak=9, connections_max=50
    )
    assert database_cost(activity, turns=1000) == DatabaseCost(6.0, 2.0, 9, 50)
    assert database_cost(None, turns=1000) is None
    machine = machine_cost(
        MachineTime(2, 8 << 30, 10.0), MachineTime(2, 8 << 30, 16.0), 0.5, wall_s=4.0
    )
    assert machine == MachineCost(2, 8192, 1.5, 1.0)


def test_a_table_shows_all_of_it() -> None:
    cost = Costs(
        services={"chatd": ServiceCost(2, 2.0, 0.5, 240.0)},
        clients=ServiceCost(1, 0.5, 0.1, 31.0),
        database=DatabaseCost(None, 2.0, 9, 200),
        machine=MachineCost(2, 8192, 1.5, 1.0),
    )
    assert list(lines_of(report_on(LOAD, [outcome(0), outcome(1, 10.5)], cost))) == [
        "4 of 4 turns in 2.5 s: 1.6 turns/s with 2 chats, 1 client processes",
        "",
        "ms                       count     p50     p95     p99     max",
        "create                       2    10.0    10.0    10.0    10.0",
        "send                         2     1.0     1.0     1.0     1.0",
        "running, initial             2    20.0    20.0    20.0    20.0",
        "running, follow-up           2     2.0     2.0     2.0     2.0",
        "first output, initial        2    30.0    30.0    30.0    30.0",
        "first output, follow-up      2     3.0     3.0     3.0     3.0",
        "turn, initial                2    40.0    40.0    40.0    40.0",
        "turn, follow-up              2  1000.0  1000.0  1000.0  1000.0",
        "",
        "events 14, 0.0 MB: 0 duplicate, 0 missing, 0 out of order, 0 with another text",
        "connections cut on purpose 0, broken off 0, refused for the moment 0; begun anew 0;"
        " requests sent again 0; model retries 0; waited in line 0",
        "",
        "process           number  CPU ms/turn  cores   memory",
        "chatd                  2         2.00   0.50  240 MiB",
        "load test itself       1         0.50   0.10   31 MiB",
        "machine: 2 cores, 8 GiB; 1.50 cores busy, 1.00 of them elsewhere",
        "PostgreSQL: not available statements and 2.00 writing commits per turn, background"
        " included; at most 9 of 200 connections",
        "",
        "passed",
    ]


def test_what_cannot_be_seen_from_here_is_said() -> None:
    lines = list(lines_of(report_on(LOAD, [outcome(0), outcome(1)], Costs())))
    assert "processes of Parley: not available, they do not run here" in lines
    assert "PostgreSQL: not available" in lines


def test_chats_are_shared_out_evenly() -> None:
    plan = Plan(target=Target("http://h", "k"), run="r", chats=7)
    shares = [(share.first, share.chats) for share in shares_of(plan, 3)]
    assert shares == [(0, 3), (3, 2), (5, 2)]
    assert [(share.first, share.chats) for share in shares_of(plan, 9)][-1] == (6, 1)
