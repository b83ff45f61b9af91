"""How large the prompts of turns are, and how much of the window they fill, as metrics."""

from collections.abc import Iterable

from prometheus_client.core import HistogramMetricFamily

from chatd.chats.domain.commands import RequestCompaction
from chatd.content.domain.messages import ErrorKind
from chatd.models.domain.language_model import (
    Finished,
    ModelError,
    ModelEvent,
    ModelRequest,
    TextDelta,
    UsageReported,
)
from chatd.models.domain.profile import ModelProfile
from chatd.turns.domain.turn import TurnSetup
from chatd.turns.engine.context_metrics import MeasuredCalls
from parley.telemetry import Histograms
from support.chatd.turns.absent_ports import NoCallObserver
from support.chatd.turns.turn_stage import WORKER, Stage

LABELS = {"provider": "maker", "model": "large"}


def profile(window_tokens: int) -> TurnSetup:
    return TurnSetup(ModelProfile("m", window_tokens, provider="maker", name="large"))


def answering(request: ModelRequest) -> Iterable[ModelEvent]:
    yield TextDelta("answer")
    yield UsageReported(300, 10, cache_read_tokens=100)
    yield Finished()


def failing(request: ModelRequest) -> Iterable[ModelEvent]:
    raise ModelError(ErrorKind.AUTH, "no", is_retryable=False)


def families(metric: Histograms) -> HistogramMetricFamily:
    (family,) = metric.collect()
    return family


def sums(metric: Histograms) -> dict[str, tuple[float, float]]:
    """Return how many values were recorded for a purpose, and their sum."""
    found: dict[str, list[float]] = {}
    for sample in families(metric).samples:
        assert sample.labels.items() >= LABELS.items()
        if sample.name.endswith(("_count", "_sum")):
            found.setdefault(sample.labels["purpose"], []).append(sample.value)
    return {purpose: (values[0], values[1]) for purpose, values in found.items()}


async def test_the_prompts_of_turns_and_summaries_are_measured_against_the_window() -> None:
    measured = MeasuredCalls(NoCallObserver())
    stage = Stage(answering, setup=profile(1000), calls=measured)
    await stage.ask()
    await stage.ask("more")
    stage.do(RequestCompaction(WORKER))
    await stage.run()
    assert sums(measured.tokens) == {"turn": (2, 800), "compaction": (1, 400)}
    assert sums(measured.ratios) == {"turn": (2, 0.8), "compaction": (1, 0.4)}
    assert [families(each).name for each in measured.metrics] == [
        "chatd_prompt_tokens",
        "chatd_context_use_ratio",
    ]


async def test_a_window_that_is_not_known_and_a_call_that_failed_are_not_measured() -> None:
    measured = MeasuredCalls(NoCallObserver())
    await Stage(answering, setup=profile(0), calls=measured).ask()
    assert (len(measured.tokens.series), measured.ratios.series) == (1, ())
    failed = MeasuredCalls(NoCallObserver())
    await Stage(failing, setup=profile(1000), calls=failed).ask()
    assert failed.tokens.series == ()
