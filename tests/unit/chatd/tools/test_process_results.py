"""What a model is told of processes, however they end."""

import json
from typing import Any

import pytest

from chatd.content.domain.parts import ToolOutcome
from chatd.tools.workspace.process_results import PIPES_NOTE, process_outcome
from chatd.tools.workspace.process_wait import Observed
from parley.api.workspace.v1 import process_pb2

EXITED = process_pb2.PROCESS_STATE_EXITED
OUTPUT = process_pb2.ProcessOutput(text="out\n", next_cursor=4)
CUT = process_pb2.ProcessOutput(
    text="head\n[...]\ntail\n",
    next_cursor=9000,
    truncation=process_pb2.OutputTruncation(
        original_bytes=9000, retained_bytes=10, omitted_bytes=8990, omitted_lines=7
    ),
)


def told(
    process: process_pb2.Process, output: process_pb2.ProcessOutput = OUTPUT
) -> tuple[ToolOutcome, dict[str, Any]]:
    outcome = process_outcome(Observed(process, output, process_pb2.WAIT_REASON_EXITED))
    return outcome.outcome, json.loads(outcome.result_json)


@pytest.mark.parametrize(
    ("ended", "reason", "fields"),
    [
        (
            process_pb2.ProcessExit(signal="SIGKILL", shell_exit_code=137),
            "SIGNALLED",
            {"exit_code": None, "signal": "SIGKILL", "shell_exit_code": 137},
        ),
        (
            process_pb2.ProcessExit(signal="SIGKILL", shell_exit_code=137, oom_killed=True),
            "OUT_OF_MEMORY",
            {"exit_code": None, "oom_killed": True},
        ),
        (
            process_pb2.ProcessExit(signal="SIGTERM", shell_exit_code=143, timed_out=True),
            "TIME_LIMIT",
            {"reached_time_limit": True},
        ),
        (process_pb2.ProcessExit(exit_code=1, shell_exit_code=1), "EXIT_CODE", {"exit_code": 1}),
    ],
)
def test_a_process_that_failed_is_told_with_why(
    ended: process_pb2.ProcessExit, reason: str, fields: dict[str, object]
) -> None:
    outcome, result = told(process_pb2.Process(process_id="p", state=EXITED, exit=ended))
    assert (outcome, result["ok"], result["reason"]) == (ToolOutcome.FAILED, False, reason)
    assert result["process_id"] == "p"
    assert fields.items() <= result.items()


@pytest.mark.parametrize(
    ("log_path", "next_step"),
    [
        (".parley/p.log", "All of the output is in .parley/p.log: search_files or read_file"),
        ("../logs/p.log", "All of the output is in ../logs/p.log: grep or sed by execute"),
        ("", "If what was left out matters, run it again"),
    ],
)
def test_output_that_was_cut_says_where_the_rest_is(log_path: str, next_step: str) -> None:
    ended = process_pb2.ProcessExit(exit_code=0)
    process = process_pb2.Process(process_id="p", state=EXITED, exit=ended, log_path=log_path)
    outcome, result = told(process, CUT)
    assert outcome is ToolOutcome.DONE
    assert result["truncation"] == {
        "original_bytes": 9000,
        "retained_bytes": 10,
        "omitted_bytes": 8990,
        "omitted_lines": 7,
    }
    assert result["next_step"].startswith(next_step)
    assert "log_path" not in told(process)[1]


def test_a_child_that_holds_the_output_is_told_and_spoils_no_exit_code() -> None:
    ended = process_pb2.ProcessExit(exit_code=0, pipes_open=True)
    outcome, result = told(process_pb2.Process(process_id="p", state=EXITED, exit=ended))
    assert (outcome, result["exit_code"], result["notes"]) == (ToolOutcome.DONE, 0, [PIPES_NOTE])


def test_a_process_that_never_ran_says_why() -> None:
    failed = process_pb2.PROCESS_STATE_START_FAILED
    process = process_pb2.Process(process_id="p", state=failed, start_error="no such directory")
    outcome, result = told(process, process_pb2.ProcessOutput())
    assert (outcome, result["error"], result["reason"]) == (
        ToolOutcome.FAILED,
        "no such directory",
        "START_FAILED",
    )


@pytest.mark.parametrize(
    ("dimension", "words"), [("disk_bytes", "disk space"), ("inodes", "files and directories")]
)
def test_a_process_that_was_ended_by_a_quota_says_which_and_what_to_do(
    dimension: str, words: str
) -> None:
    ended = process_pb2.ProcessExit(signal="SIGKILL", shell_exit_code=137, exceeded=dimension)
    outcome, result = told(process_pb2.Process(process_id="p", state=EXITED, exit=ended))
    assert (outcome, result["reason"]) == (ToolOutcome.FAILED, "QUOTA_EXCEEDED")
    assert result["exceeded_quota"] == dimension
    assert words in result["error"]
    assert "rm" in result["hint"]
