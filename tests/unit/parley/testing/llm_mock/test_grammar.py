import pytest

from parley.testing.llm_mock import BehaviourUnknown, grammar_help
from parley.testing.llm_mock.behaviour.grammar import WORDS, behaviour_of, change
from parley.testing.llm_mock.behaviour.options import (
    Behaviour,
    FailureRule,
    Fault,
    FaultKind,
    Ids,
    RetryForm,
    Stop,
)

DEFAULT = Behaviour(deltas=3)
ARGS = '{"a":[1,2],"b":3}'


@pytest.mark.parametrize(
    ("model", "behaviour"),
    [
        ("mock", DEFAULT),
        ("mock:", DEFAULT),
        ("gpt-5", DEFAULT),
        ("llama3:8b", DEFAULT),
        ("anthropic.claude-3-5-sonnet-20241022-v2:0", DEFAULT),
        ("mock:deltas=40,size=12", Behaviour(deltas=40, size=12)),
        ("mock-slow:delay=20ms", Behaviour(deltas=3, delay_s=0.02)),
        (
            "claude-sonnet-4-5?reasoning=8&latency=1.5s",
            Behaviour(deltas=3, reasoning=8, latency_s=1.5),
        ),
        ("mock:wait=2m", Behaviour(deltas=3, wait_s=120)),
        ("mock:text=a%2Cb", Behaviour(deltas=3, text="a,b")),
        ("mock:tool_like=read_*", Behaviour(deltas=3, tool_like="read_*")),
        (f"mock:tool=t,args={ARGS}", Behaviour(deltas=3, tool="t", args=ARGS)),
        ("mock:args=not json", Behaviour(deltas=3, args="not json")),
        ("mock:tools=2,ids=missing", Behaviour(deltas=3, tools=2, ids=Ids.MISSING)),
        ("mock:stop=filter", Behaviour(deltas=3, stop=Stop.FILTER)),
        ("mock:endless,no_done", Behaviour(deltas=3, is_endless=True, has_done=False)),
    ],
)
def test_a_name_says_how_its_model_behaves(model: str, behaviour: Behaviour) -> None:
    assert behaviour_of(model, DEFAULT) == behaviour


@pytest.mark.parametrize(
    ("words", "failures"),
    [
        ("fail=429*2+529", (FailureRule(429, times=2), FailureRule(529))),
        ("fail=401*", (FailureRule(401, times=None),)),
        ("fail=quota", (FailureRule(429, is_quota=True),)),
        ("fail=503@30s", (FailureRule(503, times=None, for_s=30.0),)),
    ],
)
def test_failures_are_a_list_of_statuses(words: str, failures: tuple[FailureRule, ...]) -> None:
    assert change(Behaviour(), words) == Behaviour(failures=failures)


@pytest.mark.parametrize(
    ("words", "behaviour"),
    [
        ("retry_after=7", Behaviour(retry_form=RetryForm.SECONDS, retry_s=7.0)),
        ("retry_after_ms=1500", Behaviour(retry_form=RetryForm.MILLISECONDS, retry_s=1500.0)),
        ("retry_date=1e9", Behaviour(retry_form=RetryForm.DATE, retry_s=1e9)),
        ("cut=3", Behaviour(fault=Fault(FaultKind.CUT, 3))),
        ("stall=2", Behaviour(fault=Fault(FaultKind.STALL, 2))),
        ("stall=2@5s", Behaviour(fault=Fault(FaultKind.STALL, 2, 5.0))),
        ("huge_line=1", Behaviour(fault=Fault(FaultKind.HUGE_LINE, 1, 10_000_000))),
        ("huge_line=1@64kB", Behaviour(fault=Fault(FaultKind.HUGE_LINE, 1, 64_000))),
    ],
)
def test_faults_say_where_and_how_much(words: str, behaviour: Behaviour) -> None:
    assert change(Behaviour(), words) == behaviour


@pytest.mark.parametrize(
    "words",
    [
        "dltas=3",
        "deltas",
        "deltas=many",
        "delay=soon",
        "endless=1",
        "stop=never",
        "fail=200",
        "fail=often",
        "cut=3@2s",
        "retry_after=soon",
        "retry_after=nan",
        "retry_date=inf",
        "args_bytes=2GB",
    ],
)
def test_a_word_that_means_nothing_is_refused(words: str) -> None:
    with pytest.raises(BehaviourUnknown):
        change(Behaviour(), words)


def test_a_word_that_is_nearly_one_is_recognised() -> None:
    with pytest.raises(BehaviourUnknown) as refused:
        change(Behaviour(), "dltas=3")
    assert "'deltas'" in str(refused.value)


def test_the_help_has_a_line_for_every_word() -> None:
    assert [line.partition("=")[0].split()[0] for line in grammar_help().splitlines()] == [*WORDS]
