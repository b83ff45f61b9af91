"""The report of a run: figures, failures, and whether it passed; pure."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields

from parley.testing.scaletest.checker import Counts
from parley.testing.scaletest.costs import DatabaseCost, MachineCost, ServiceCost
from parley.testing.scaletest.outcome import ChatOutcome, Stage, TurnTimes


@dataclass(frozen=True, slots=True)
class Percentiles:
    """The percentiles of a duration, in milliseconds."""

    count: int
    p50_ms: float
    p95_ms: float
    p99_ms: float
    max_ms: float

    @classmethod
    def of(cls, values_s: Iterable[float]) -> "Percentiles | None":
        """Return the percentiles of durations in seconds; None if there are none."""
        ordered = sorted(values_s)
        if not ordered:
            return None
        shown = [
            round(ordered[_place(share, len(ordered))] * 1000, 1) for share in (0.5, 0.95, 0.99, 1)
        ]
        return cls(len(ordered), *shown)


def _place(share: float, count: int) -> int:
    """Return the index of the smallest value that this share of all values does not exceed."""
    return max(0, math.ceil(share * count) - 1)


PROBLEMS_MAX = 10
INITIAL, FOLLOW_UP = "initial", "follow_up"
#: Metric of a turn -> the field with its time.
METRICS = {
    "request": "answered_s",
    "running": "running_s",
    "first_output": "output_s",
    "turn": "over_s",
}


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a run for passing; None for no limit."""

    first_output_p95_ms: float | None = None
    turn_p95_ms: float | None = None
    wall_s: float | None = None


@dataclass(frozen=True, slots=True)
class Load:
    """The requested load."""

    chats: int
    turns: int
    clients: int
    tool_calls: int = 0
    deltas: int = 0
    delta_interval_ms: float = 0.0
    turn_start_delay_s: float = 0.0
    start_jitter_s: float = 0.0
    cut_every: int = 0
    seed: int = 0
    model: str = ""


@dataclass(frozen=True, slots=True)
class Costs:
    """The cost of the run; None for values that cannot be measured from here.

    Attributes:
        services: By service; None unless they run on this machine.
        clients: The load test's own processes.
        database: The activity of PostgreSQL.
        machine: The machine that all of it ran on.
    """

    services: Mapping[str, ServiceCost] | None = None
    clients: ServiceCost | None = None
    database: DatabaseCost | None = None
    machine: MachineCost | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """The complete report.

    Attributes:
        latency: Metric -> phase -> percentiles; `request` is create in the first phase and send
            in the second.
        failures: Stage -> chats.
        exceeded: Exceeded limits, as text.
        problems: The texts of the first failures.
    """

    load: Load
    wall_s: float
    turns_completed: int
    turns_per_s: float
    chats_failed: int
    failures: Mapping[str, int]
    latency: Mapping[str, Mapping[str, Percentiles | None]]
    stream: Mapping[str, int]
    costs: Costs
    exceeded: Sequence[str] = ()
    problems: Sequence[str] = field(default_factory=tuple)

    @property
    def is_passed(self) -> bool:
        """Whether nothing failed, no event was repeated or missing, and every limit was kept."""
        is_whole = self.turns_completed == self.load.chats * self.load.turns
        return is_whole and not self.chats_failed and not self.exceeded


def wall_of(outcomes: Iterable[ChatOutcome]) -> float:
    """Return the seconds from the first request to the end of the last turn."""
    turns = [turn for outcome in outcomes for turn in outcome.turns]
    ends = [turn.began_at + turn.over_s for turn in turns if turn.over_s is not None]
    return max(ends) - min(turn.began_at for turn in turns) if ends else 0.0


def report_on(
    load: Load, outcomes: Sequence[ChatOutcome], costs: Costs, limits: Limits | None = None
) -> Report:
    """Return the report of a run."""
    wall_s = wall_of(outcomes)
    turns = sum(outcome.turns_completed for outcome in outcomes)
    failed = [outcome for outcome in outcomes if outcome.failure is not None]
    latency = {metric: _phases(outcomes, name) for metric, name in METRICS.items()}
    return Report(
        load=load,
        wall_s=round(wall_s, 3),
        turns_completed=turns,
        turns_per_s=round(turns / wall_s, 1) if wall_s else 0.0,
        chats_failed=len(failed),
        failures={stage.value: _count(failed, stage) for stage in Stage},
        latency=latency,
        stream=_stream(outcomes),
        costs=costs,
        exceeded=tuple(_exceeded(limits or Limits(), latency, wall_s)),
        problems=tuple(_problems(failed)),
    )


def _phases(outcomes: Iterable[ChatOutcome], name: str) -> dict[str, Percentiles | None]:
    """Return the percentiles of a time in first turns and in all others."""
    phases: dict[str, list[float]] = {INITIAL: [], FOLLOW_UP: []}
    for outcome in outcomes:
        for number, turn in enumerate(outcome.turns):
            took_s = _time(turn, name)
            if took_s is not None:
                phases[FOLLOW_UP if number else INITIAL].append(took_s)
    return {phase: Percentiles.of(times) for phase, times in phases.items()}


def _time(turn: TurnTimes, name: str) -> float | None:
    found: float | None = getattr(turn, name)
    return found


def _count(failed: Iterable[ChatOutcome], stage: Stage) -> int:
    return sum(outcome.failure is stage for outcome in failed)


def _stream(outcomes: Iterable[ChatOutcome]) -> dict[str, int]:
    names = [each.name for each in fields(Counts)]
    found: Counter[str] = Counter(dict.fromkeys(names, 0))
    for outcome in (ChatOutcome(0), *outcomes):
        found.update({name: getattr(outcome.counts, name) for name in names})
        found.update(
            bytes=outcome.stream_bytes,
            cuts=outcome.cuts,
            breaks=outcome.breaks,
            openings_refused=outcome.refused,
            requests_resent=outcome.resent,
            chats_left_behind=outcome.is_left,
        )
    return dict(found)


def _exceeded(
    limits: Limits, latency: Mapping[str, Mapping[str, Percentiles | None]], wall_s: float
) -> Iterable[str]:
    for metric, limit_ms in (
        ("first_output", limits.first_output_p95_ms),
        ("turn", limits.turn_p95_ms),
    ):
        for phase, found in latency[metric].items():
            if limit_ms is not None and found is not None and found.p95_ms > limit_ms:
                yield f"{metric} p95 in {phase} is {found.p95_ms:g} ms, over {limit_ms:g} ms"
    if limits.wall_s is not None and wall_s > limits.wall_s:
        yield f"the run took {wall_s:.1f} s, over {limits.wall_s:g} s"


def _problems(failed: Iterable[ChatOutcome]) -> Iterable[str]:
    """Yield the most frequent failure texts, each with one of its chats."""
    examples: dict[tuple[str, str], list[str]] = {}
    for outcome in failed:
        said = (str(outcome.failure), outcome.problem)
        examples.setdefault(said, []).append(outcome.chat_id or f"number {outcome.number}")
    often = sorted(examples.items(), key=lambda item: -len(item[1]))
    for (stage, problem), chats in often[:PROBLEMS_MAX]:
        yield f"{stage} ({len(chats)} chats, such as {chats[0]}): {problem}"
