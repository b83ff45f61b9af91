"""The demo tells results in sentences, lists and code blocks, never as JSON on one line."""

import json
from typing import Any

import pytest

from chatd.content.domain.parts import ToolOutcome, ToolResult
from chatd.providers.demo.report import OUTPUT_CHARACTERS_MAX, report, told

RAN = {"ok": True, "process_id": "p-1", "exit_code": 0, "output": "hello\n", "next_cursor": 6}
FAILED = {
    "ok": False,
    "error": "It ended with exit code 2.",
    "reason": "EXIT_CODE",
    "hint": "Its output says what went wrong.",
    "output": "red\n",
}
TIME = {"content": [{"type": "text", "text": '{"timezone": "UTC", "is_dst": false}'}]}
NESTED = {"a": {"b": [1]}}


def result(found: Any, outcome: ToolOutcome = ToolOutcome.DONE) -> ToolResult:
    return ToolResult("call", "tool", json.dumps(found), outcome)


@pytest.mark.parametrize(
    ("found", "outcome", "words"),
    [
        (RAN, ToolOutcome.DONE, "`tool` answered:\n\n```\nhello\n```"),
        (
            FAILED,
            ToolOutcome.FAILED,
            "`tool` failed: It ended with exit code 2. Its output says what went wrong."
            "\n\n```\nred\n```",
        ),
        ({"error": "No."}, ToolOutcome.FAILED, "`tool` failed: No."),
        ([], ToolOutcome.CANCELLED, "`tool` failed."),
        (TIME, ToolOutcome.DONE, "`tool` answered:\n\n- timezone: `UTC`\n- is dst: no"),
        ({"entries": ["a", "b/"]}, ToolOutcome.DONE, "`tool` answered:\n\n```\na\nb/\n```"),
        ({"ok": True}, ToolOutcome.DONE, "`tool` is done."),
        ({**RAN, "output": ""}, ToolOutcome.DONE, "`tool` is done."),
        ({}, ToolOutcome.DONE, "`tool` is done."),
        (
            NESTED,
            ToolOutcome.DONE,
            f"`tool` answered:\n\n```\n{json.dumps(NESTED, indent=2)}\n```",
        ),
        ("a ``` b", ToolOutcome.DONE, "`tool` answered:\n\n````\na ``` b\n````"),
    ],
)
def test_a_result_is_told_in_words(found: Any, outcome: ToolOutcome, words: str) -> None:
    assert told(result(found, outcome)) == words


def test_what_is_no_json_is_shown_as_it_is() -> None:
    assert told(ToolResult("call", "tool", "plain", ToolOutcome.DONE)) == (
        "`tool` answered:\n\n```\nplain\n```"
    )


def test_long_output_is_cut_and_the_report_ends_with_the_same_sentence() -> None:
    long = report([result({"output": "x" * (OUTPUT_CHARACTERS_MAX + 1)}), result({})])
    assert long.count("x") == OUTPUT_CHARACTERS_MAX
    assert "The rest is in the card of the call." in long
    assert long.endswith("`tool` is done.\n\nThat is all the demo does.")
