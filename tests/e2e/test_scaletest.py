"""`parley scaletest` on a real stack: nothing fails, comes twice or is lost, cut or not."""

import json
import signal
import subprocess
from typing import Any

import pytest

from support.host.conditions import until
from support.stack.faulty_stack import watching
from support.stack.local_stack import LocalStack

pytestmark = pytest.mark.slow


def scaletest(stack: LocalStack, *options: str) -> dict[str, Any]:
    """Run a load test that must pass, and return its report."""
    ran = stack.parley("scaletest", *options, "--json")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def faults(report: dict[str, Any]) -> dict[str, int]:
    names = ("duplicates", "missing", "reordered", "wrong_texts", "chats_left_behind")
    return {name: report["stream"][name] for name in names if report["stream"][name]}


def chats(stack: LocalStack) -> list[str]:
    listed = stack.parley("ls", "--json", "-n", "10000")
    return [chat["id"] for chat in json.loads(listed.stdout)["items"]]


def test_ten_chats_with_three_turns_pass_with_all_figures(stack: LocalStack) -> None:
    before = chats(stack)
    report = scaletest(stack, "--chats", "10", "--turns", "3", "--turn-start-delay", "0.1")
    assert (report["turns_completed"], report["chats_failed"], faults(report)) == (30, 0, {})
    for metric, phases in report["latency"].items():
        # A turn may be over before its stream is open; then nobody saw that it was running.
        least = 0 if metric == "running" else 10
        assert (phases["initial"] or {"count": 0})["count"] >= least
        assert phases["follow_up"]["count"] == 20
    assert {*report["costs"]["services"]} > {"chatd", "gateway", "postgres", "llm-mock"}
    assert report["costs"]["clients"]["cpu_ms_per_turn"] > 0
    database = report["costs"]["database"]
    assert database["statements_per_turn"] > 2
    assert database["commits_per_turn"] >= 2
    assert 0 < database["connections_peak"] < database["connections_max"]
    # Nothing is left of it: no chat, no model, no provider.
    assert chats(stack) == before


def test_streams_that_are_cut_at_random_resume_exactly(stack: LocalStack) -> None:
    paced = ("--deltas", "20", "--delta-interval-ms", "15")
    report = scaletest(
        stack, "--chats", "8", "--turns", "2", "--cut-every", "4", "--clients", "2", *paced
    )
    assert (report["turns_completed"], faults(report)) == (16, {})
    assert report["stream"]["cuts"] > 8


def test_turns_with_tool_calls_pass(stack: LocalStack) -> None:
    report = scaletest(stack, "--chats", "3", "--turns", "2", "--tool-calls", "2")
    assert (report["turns_completed"], faults(report)) == (6, {})
    assert report["stream"]["events"] > 6 * 10


def test_a_limit_that_is_not_kept_fails_the_run(stack: LocalStack) -> None:
    ran = stack.parley("scaletest", "--chats", "1", "--turns", "1", "--max-turn-p95-ms", "0.001")
    assert ran.returncode == 1
    assert "turn p95 in initial" in ran.stdout


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL])
async def test_a_run_that_is_ended_leaves_neither_chats_nor_settings(
    stack: LocalStack, sent: signal.Signals
) -> None:
    before = chats(stack)
    paced = ("--turns", "100", "--delta-interval-ms", "30")
    command = stack.command("scaletest", "--chats", "5", *paced)
    with subprocess.Popen(  # noqa: ASYNC220 (it returns at once)
        command, env=stack.variables()
    ) as running:
        until(lambda: len(chats(stack)) >= len(before) + 5, "five chats", within_s=120)
        running.send_signal(sent)
        assert running.wait(120) != 0
    until(lambda: chats(stack) == before, "the end of the chats", within_s=120)
    async with watching(stack) as watched:
        while await watched.connection.fetchval("SHOW log_min_duration_sample") != "-1":
            await watched.pause(0.05)
        if sent is signal.SIGKILL:
            # Its model stays until the next one is over.
            scaletest(stack, "--chats", "1", "--turns", "1")
        names = await watched.connection.fetch(
            "SELECT name FROM chat.providers WHERE deleted_at IS NULL"
        )
    assert "scaletest" not in [row["name"] for row in names]
