"""`parley race`: the table that compares candidates, and their names."""

import pytest

from parley.cli.chats.race import applied_lines, position_of, row_of
from parley.cli.errors import CliError

CANDIDATE = {
    "position": 2,
    "chat_id": "c2",
    "model": "fast",
    "model_id": "m2",
    "status": "done",
    "answer": "All\ndone. " + "x" * 100,
    "error": None,
    "duration_ms": 1500,
    "cost_micros": 12_300,
    "check": {"passed": False, "exit_code": 1, "output": ""},
}
REPORT = {
    "merged_paths": ["a", "b"],
    "conflicts": [],
    "patches": [{"path": "a", "patch": "--- a\n+++ a\n@@\n-old\n+new\n+more\n"}],
}


def test_a_candidate_is_a_line_with_check_changes_time_cost_and_answer() -> None:
    row = row_of(CANDIDATE, REPORT)
    assert row[:8] == ("2", "fast", "done", "failed", "2", "+2 -1", "1.5 s", "$0.0123")
    assert row[8].startswith("All done. xxx")
    assert len(row[8]) == 61
    assert row_of({**CANDIDATE, "check": None}, None)[3:6] == ("", "", "")


def test_changes_of_a_candidate_that_were_applied_are_still_compared() -> None:
    applied = {**REPORT, "applied_at": "2026-01-02T03:04:05Z", "paths": ["a", "b"], "omitted": 0}
    report = {"merged_paths": [], "conflicts": [], "patches": [], "applied_merges": [applied]}
    assert row_of(CANDIDATE, report)[4:6] == ("2", "+2 -1")
    assert applied_lines([({**CANDIDATE, "position": 1}, None), (CANDIDATE, report)]) == [
        "candidate 2 (fast): applied at 2026-01-02T03:04:05Z, 2 files"
    ]


def test_an_answer_that_is_not_complete_is_marked() -> None:
    row = row_of({**CANDIDATE, "answer": "Half", "cut": "length"}, None)
    assert row[8] == "Half (cut: length)"


def test_a_candidate_is_named_by_place_or_model() -> None:
    for named in ("2", "fast", "m2", "c2"):
        assert position_of([CANDIDATE], named) == 2
    with pytest.raises(CliError, match=r"it has 2 \(fast\)"):
        position_of([CANDIDATE], "slow")
