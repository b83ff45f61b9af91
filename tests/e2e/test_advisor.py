"""The advisor of the demo model, enabled by a command, asked in a turn, and paid for."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from support.stack.local_stack import LocalStack

pytestmark = pytest.mark.slow

ASK = 'call: advisor {"question": "Which way?"}'


@pytest.fixture
def advised(stack: LocalStack) -> Iterator[LocalStack]:
    """A stack whose agents may ask the advisor twice in a turn."""
    enabled = stack.parley("advisor", "enable", "--uses", "2")
    assert json.loads(enabled.stdout)["enabled"] is True
    yield stack
    disabled = stack.parley("advisor", "disable")
    assert json.loads(disabled.stdout)["enabled"] is False


def events_of(stack: LocalStack, text: str) -> list[dict[str, Any]]:
    """Run a turn in a new chat, and return its events."""
    ran = stack.parley("run", "--json", text)
    assert ran.returncode == 0, ran.stderr
    return [json.loads(line) for line in ran.stdout.splitlines()]


def results_in(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the stored results of calls among events."""
    return [
        part
        for event in events
        if event["type"] == "message"
        for part in event["message"]["content"]
        if part["type"] == "tool-result"
    ]


def test_an_agent_asks_as_often_as_it_may_and_goes_on(advised: LocalStack) -> None:
    events = events_of(advised, f"{ASK}\n{ASK}\n{ASK}\nrun: echo went on")
    results = results_in(events)
    advice = [part["result"] for part in results[:3]]
    assert [each["type"] for each in advice] == ["advice", "advice", "limit_reached"]
    assert [each["remaining_uses"] for each in advice] == [1, 0, 0]
    assert "Which way?" in advice[0]["advice"]
    assert "went on" in json.dumps(results[3])


def test_beside_another_call_nothing_runs(advised: LocalStack) -> None:
    results = results_in(events_of(advised, f"{ASK}\nand run: echo ran"))
    assert [part["outcome"] for part in results] == ["failed", "failed"]
    assert "only call" in json.dumps(results[0])
    assert "advisor" in json.dumps(results[1])


def test_without_an_administrators_consent_there_is_no_advisor(stack: LocalStack) -> None:
    (result,) = results_in(events_of(stack, ASK))
    assert result["outcome"] == "failed"
    assert "advisor" in json.dumps(result)
