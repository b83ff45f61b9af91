"""What endpoints say a call used."""

from typing import Any

import pytest

from chatd.models.domain.language_model import Finished, TextDelta, UsageReported
from support.chatd.providers.completions import DONE, chunk, data, decoded, usage

TEXT = chunk(content="a")
STOP = chunk("stop")


def reported(**counts: Any) -> list[UsageReported]:
    answer = decoded(TEXT, STOP, usage(**counts), DONE)
    assert answer.events[-1] == Finished()
    return [event for event in answer.events if isinstance(event, UsageReported)]


def test_usage_after_the_reason_to_finish_comes_before_the_end() -> None:
    answer = decoded(TEXT, STOP, usage(prompt_tokens=5, completion_tokens=2), DONE)
    assert answer.events == (TextDelta("a"), UsageReported(5, 2), Finished())


def test_an_answer_without_usage_reports_none() -> None:
    assert decoded(TEXT, STOP, DONE).events == (TextDelta("a"), Finished())


def test_the_input_is_what_no_cache_had() -> None:
    assert reported(
        prompt_tokens=100,
        completion_tokens=20,
        total_tokens=120,
        prompt_tokens_details={"cached_tokens": 60, "cache_write_tokens": 30},
        completion_tokens_details={"reasoning_tokens": 15},
    ) == [UsageReported(10, 20, 15, 60, 30)]


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ({"prompt_cache_hit_tokens": 4, "prompt_cache_miss_tokens": 6}, UsageReported(6, 2, 0, 4)),
        ({"cached_tokens": 4}, UsageReported(6, 2, 0, 4)),
        ({"cache_creation_input_tokens": 3}, UsageReported(7, 2, 0, 0, 3)),
        ({"prompt_tokens_details": None}, UsageReported(10, 2)),
        ({"reasoning_tokens": 1}, UsageReported(10, 2, 1)),
        ({"prompt_tokens_details": {"cached_tokens": 11}}, UsageReported(0, 2, 0, 11)),
    ],
)
def test_caches_are_named_in_many_ways(counts: Any, expected: UsageReported) -> None:
    assert reported(prompt_tokens=10, completion_tokens=2, **counts) == [expected]


def test_thoughts_that_are_counted_beside_the_output_belong_to_it() -> None:
    counts = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 62}
    details = {"completion_tokens_details": {"reasoning_tokens": 50}}
    (usage,) = reported(**counts, **details)
    assert usage == UsageReported(10, 2, 50, is_reasoning_apart=True)
    assert usage.written_tokens == 52


@pytest.mark.parametrize(
    "nonsense",
    [-1, 10**9, 10**400, 1e300, "7", None, True, [], {}],
    ids=lambda value: str(value)[:9],
)
def test_counts_that_make_no_sense_count_nothing(nonsense: object) -> None:
    assert reported(
        prompt_tokens=nonsense,
        completion_tokens=3.0,
        prompt_tokens_details={"cached_tokens": nonsense},
        completion_tokens_details=nonsense,
    ) == [UsageReported(0, 3)]


def test_usage_that_is_empty_is_not_told() -> None:
    assert reported() == []
    assert reported(prompt_tokens=0, completion_tokens=0) == []
    assert decoded(TEXT, data({"choices": [], "usage": "none"}), STOP).finished == Finished()


def test_usage_may_come_with_every_chunk_and_is_told_when_it_changes() -> None:
    def counted(content: str, tokens: int, reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": {"content": content}, "finish_reason": reason}
        counts = {"prompt_tokens": 5, "completion_tokens": tokens}
        return data({"choices": [choice], "usage": counts})

    answer = decoded(counted("a", 1), counted("b", 2), counted("", 2, "stop"))
    assert answer.events == (
        TextDelta("a"),
        UsageReported(5, 1),
        TextDelta("b"),
        UsageReported(5, 2),
        Finished(),
    )


def test_usage_may_lie_in_the_choice_or_in_a_field_of_groq() -> None:
    counts = {"prompt_tokens": 5, "completion_tokens": 2}
    choice = {"index": 0, "delta": {}, "finish_reason": "stop"}
    in_choice = data({"choices": [{**choice, "usage": counts}]})
    in_field = data({"choices": [choice], "x_groq": {"id": "req_1", "usage": counts}})
    for last in (in_choice, in_field):
        assert decoded(TEXT, last).events == (TextDelta("a"), UsageReported(5, 2), Finished())
