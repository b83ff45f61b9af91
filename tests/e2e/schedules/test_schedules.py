"""Schedules in a real stack: made at the terminal, run by chatd, answered by the scripted model."""

import json
from datetime import timedelta
from typing import Any

import pytest

from parley.clock import SystemClock
from support.host.conditions import until
from support.stack.local_stack import LocalStack

pytestmark = pytest.mark.slow

RUN_S_MAX = 90.0


def shown(stack: LocalStack, schedule_id: str) -> Any:
    """Return a schedule with its runs."""
    said = stack.parley("schedule", "show", schedule_id, "--json")
    assert said.returncode == 0, said.stderr
    return json.loads(said.stdout)


def added(stack: LocalStack, *options: str) -> Any:
    said = stack.parley("schedule", "add", *options, "--json")
    assert said.returncode == 0, said.stderr
    return json.loads(said.stdout)


def soon() -> str:
    return (SystemClock().now() + timedelta(seconds=8)).isoformat()


def completed(stack: LocalStack, schedule_id: str) -> Any:
    """Wait until the only run of a schedule has ended, and return it."""

    def run() -> Any:
        runs = shown(stack, schedule_id)["runs"]
        return runs[0] if runs and runs[0]["outcome"] in ("completed", "failed") else None

    return until(run, "a run", within_s=RUN_S_MAX)


def test_a_schedule_is_edited(stack: LocalStack) -> None:
    daily = added(stack, "Look.", "--cron", "30 9 * * *", "--zone", "Europe/Berlin")
    edited = stack.parley("schedule", "edit", daily["id"], "--text", "say: edited", "--at", soon())
    assert edited.returncode == 0, edited.stderr
    assert "Changed; it is active" in edited.stdout
    found = shown(stack, daily["id"])
    assert (found["text"], found["cron"], found["time_zone"]) == ("say: edited", None, None)
    run = completed(stack, daily["id"])
    assert "say: edited" in stack.parley("show", run["chat_id"]).stdout
    refused = stack.parley("schedule", "edit", daily["id"], "--cron", "99 * * * *")
    assert "Minute: 99 is not within 0-59" in refused.stderr
    assert stack.parley("schedule", "edit", daily["id"]).returncode != 0
    assert stack.parley("schedule", "rm", daily["id"]).returncode == 0


def test_a_schedule_runs_and_is_shown_paused_resumed_and_deleted(stack: LocalStack) -> None:
    once = added(stack, "say: the report", "--at", soon(), "--name", "e2e report", "--unattended")
    assert (once["state"], once["runs_count"]) == ("active", 0)
    run = completed(stack, once["id"])
    assert (run["outcome"], run["error"]) == ("completed", None)
    chat = stack.parley("show", run["chat_id"])
    assert "e2e report" in chat.stdout
    ended = shown(stack, once["id"])
    assert (ended["state"], ended["next_run_at"], len(ended["runs"])) == ("ended", None, 1)

    into = added(stack, "say: and more", "--at", soon(), "--chat", run["chat_id"])
    assert completed(stack, into["id"])["chat_id"] == run["chat_id"]
    assert "and more" in stack.parley("show", run["chat_id"]).stdout

    daily = added(stack, "Look.", "--cron", "30 9 * * mon-fri", "--zone", "Europe/Berlin")
    assert "30 9 * * mon-fri Europe/Berlin" in stack.parley("schedule", "ls").stdout
    assert stack.parley("schedule", "pause", daily["id"]).stdout == "It is paused.\n"
    assert shown(stack, daily["id"])["next_run_at"] is None
    resumed = stack.parley("schedule", "resume", daily["id"])
    assert resumed.stdout == f"It runs next at {daily['next_run_at']}.\n"
    refused = stack.parley("schedule", "add", "Look.", "--cron", "99 * * * *")
    assert refused.returncode != 0
    assert "Minute: 99 is not within 0-59" in refused.stderr
    for each in (once, into, daily):
        assert stack.parley("schedule", "rm", each["id"]).returncode == 0
    assert daily["id"] not in stack.parley("schedule", "ls").stdout
