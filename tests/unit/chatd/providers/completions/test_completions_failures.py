"""Errors inside a stream that began well."""

from typing import Any

import pytest

from chatd.models.domain.language_model import TextDelta, UsageReported
from chatd.providers.wire import Failure
from support.chatd.providers.completions import DONE, chunk, data, decoded

TEXT = chunk(content="a")


def failure(event: dict[str, Any]) -> tuple[str, int]:
    """Return text and status of the failure that an event makes."""
    sent = data(event)
    answer = decoded(TEXT, sent, chunk("stop"), DONE)
    assert answer.events == (TextDelta("a"),)
    assert answer.failure is not None
    assert answer.failure == Failure(answer.failure.text, answer.failure.status_code, body=sent)
    return answer.failure.text, answer.failure.status_code


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ({"message": "busy", "code": 503}, ("busy; 503", 503)),
        ({"message": "busy", "code": "429", "type": "t"}, ("busy; t; 429", 429)),
        (
            {"message": "no", "code": "insufficient_quota", "type": "insufficient_quota"},
            ("no; insufficient_quota", 0),
        ),
        ({"message": "no", "status_code": 401, "code": None}, ("no", 401)),
        ({"message": "no", "code": 7}, ("no; 7", 0)),
        (
            {"message": "failed", "code": 429, "metadata": {"raw": "slow down", "provider": "x"}},
            ("failed; slow down; 429", 429),
        ),
        ({"message": {"nested": 1}}, ('{"nested":1}', 0)),
        ("plain words", ("plain words", 0)),
        (["odd"], ('["odd"]', 0)),
        ({"reason": "odd"}, ("unknown error", 0)),
    ],
)
def test_an_error_object_ends_the_answer(error: object, expected: tuple[str, int]) -> None:
    assert failure({"error": error}) == expected


def test_errors_may_lie_beside_the_fields_of_a_chunk() -> None:
    assert failure({"object": "error", "message": "bad", "code": 400}) == ("bad; 400", 400)
    assert failure({"detail": "not found"}) == ("not found", 0)


def test_errors_may_come_with_choices_or_in_one() -> None:
    choice = {"index": 0, "delta": {"content": ""}, "finish_reason": "error"}
    error = {"code": 502, "message": "upstream is gone"}
    assert failure({"error": error, "choices": [choice]}) == ("upstream is gone; 502", 502)
    assert failure({"choices": [{**choice, "error": error}]}) == ("upstream is gone; 502", 502)


@pytest.mark.parametrize("nothing", [None, {}, "", False])
def test_an_empty_error_is_none(nothing: object) -> None:
    choice = {"index": 0, "delta": {"content": "b"}, "finish_reason": "stop", "error": nothing}
    answer = decoded(data({"error": nothing, "choices": [choice]}))
    assert answer.failure is None


@pytest.mark.parametrize(
    ("reason", "word"),
    [
        ("error", "server error"),
        ("network_error", "server error"),
        ("abort", "server error"),
        ("insufficient_system_resource", "overloaded"),
    ],
)
def test_some_reasons_to_finish_are_failures(reason: str, word: str) -> None:
    answer = decoded(TEXT, chunk(reason), DONE)
    assert answer.events == (TextDelta("a"),)
    assert answer.failure is not None
    assert word in answer.failure.text


def test_an_error_after_the_answer_finished_is_a_failure_with_its_usage() -> None:
    choice = {"index": 0, "delta": {"content": ""}, "finish_reason": None}
    error = {"code": 400, "message": "limit reached"}
    counts = {"prompt_tokens": 5, "completion_tokens": 2}
    last = data({"error": error, "choices": [choice], "usage": counts})
    answer = decoded(TEXT, chunk("length"), last, DONE)
    assert answer.events == (TextDelta("a"), UsageReported(5, 2))
    assert answer.failure == Failure("limit reached; 400", 400, body=last)


def test_a_long_error_is_cut() -> None:
    answer = decoded(data({"error": {"message": "x" * 100_000}}))
    assert answer.failure is not None
    assert (len(answer.failure.text), len(answer.failure.body)) == (2000, 16 * 1024)
