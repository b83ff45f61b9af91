"""The stack as its user meets it: up, status, run, kill, down."""

import json
import re
import stat
import subprocess
from collections import Counter
from typing import Any

import psutil
import pytest

from parley.secrets import Keyring
from support.host.conditions import until
from support.stack.local_stack import CLOCK_RESULT, SHELL_RESULT, LocalStack, lines_of

pytestmark = pytest.mark.slow

SERVICES = ("postgres", "mcp-demo", "toolrunner", "mcpgateway", "chatd", "gateway")
RECONNECTED_S_MAX = 60.0
ENDED_S_MAX = 30.0
CONFIGURATION = 2


def answer(stack: LocalStack, prompt: str) -> str:
    """Return what a run printed; it must succeed."""
    ran = stack.parley("run", prompt, "--timeout", "60")
    assert ran.returncode == 0, ran.stderr
    assert f'You said "{prompt}"' in ran.stdout
    return ran.stdout


def has_both_results(text: str) -> bool:
    """Tell whether the answer holds what both kinds of tools said."""
    return SHELL_RESULT in text and re.search(CLOCK_RESULT, text) is not None


def assert_answers(stack: LocalStack, prompt: str) -> None:
    """See that a run succeeds and that both tools worked in it."""
    text = answer(stack, prompt)
    assert has_both_results(text), text


def is_spawner(process: psutil.Process) -> bool:
    """Tell whether a process is what toolrunner starts all others with."""
    return any("spawner" in word for word in process.cmdline())


def family_of(process: psutil.Process) -> list[psutil.Process]:
    """Return a process and all that descends from it."""
    return [process, *process.children(recursive=True)]


def test_up_in_the_background_returns_when_everything_is_ready(
    stack: LocalStack, first_start: "subprocess.CompletedProcess[str]"
) -> None:
    started = first_start
    assert (started.returncode, started.stderr) == (0, "")
    assert f"Parley is ready at http://{stack.http}" in started.stdout
    assert re.search(rf"http://{stack.http}/login\?token=[\w-]{{43}}\n", started.stdout)
    assert all(process["healthy"] for process in stack.status()["processes"])


def test_status_tells_what_is_documented_and_nothing_else(stack: LocalStack) -> None:
    status = stack.status()
    assert set(status) == {"http", "public_url", "models", "processes"}
    assert status["models"].startswith("the scripted demo answers")
    assert status["http"] == f"http://{stack.http}"
    assert {tuple(process) for process in status["processes"]} == {
        ("service", "pid", "address", "healthy", "restarts", "rss_bytes", "metrics", "problem")
    }
    assert set(Counter(process["service"] for process in status["processes"])) == set(SERVICES)
    assert all(process["rss_bytes"] > 0 for process in status["processes"])


def test_endpoints_tell_other_programs_how_to_reach_it(stack: LocalStack) -> None:
    endpoints = stack.endpoints()
    assert set(endpoints) == {"http", "public_url", "api_key_file", "grpc", "metrics", "database"}
    assert set(endpoints["grpc"]) == {"gateway", "chatd", "toolrunner", "mcpgateway"}
    assert stat.S_IMODE(stack.home.endpoints_file.stat().st_mode) == 0o600


def test_a_run_streams_an_answer_with_the_results_of_both_kinds_of_tools(stack: LocalStack) -> None:
    assert_answers(stack, "hello")


def test_a_run_prints_events_as_json(stack: LocalStack) -> None:
    events = events_of_run(stack, "hello")
    messages = [event["message"]["role"] for event in events if event["type"] == "message"]
    assert messages == ["user", "assistant", "tool", "tool", "assistant"]
    assert events[-1]["status"]["status"] == "waiting"


def test_a_run_prints_parts_of_an_answer_that_takes_its_time(stack: LocalStack) -> None:
    # Whoever comes while it counts gets what was counted before, too.
    events = events_of_run(stack, "count to 60")
    parts = [event["message_part"]["part"] for event in events if event["type"] == "message_part"]
    assert "".join(part["text"] for part in parts).split()[:3] == ["1", "2", "3"]


def events_of_run(stack: LocalStack, prompt: str) -> list[dict[str, Any]]:
    ran = stack.parley("run", prompt, "--json")
    assert ran.returncode == 0, ran.stderr
    events: list[dict[str, Any]] = [json.loads(line) for line in lines_of(ran.stdout)]
    assert all({"type", "cursor", "chat_id"} <= set(event) for event in events)
    return events


def test_a_second_start_in_the_same_home_is_refused(stack: LocalStack) -> None:
    before = stack.status()["processes"]
    refused = stack.up()
    assert refused.returncode == 1
    (line,) = lines_of(refused.stderr)
    assert line.startswith(f"parley: Parley already runs in {stack.home.root} (process ")
    assert "down" in line
    pids = [process["pid"] for process in before]
    assert [process["pid"] for process in stack.status()["processes"]] == pids


@pytest.mark.parametrize("service", SERVICES)
def test_a_killed_process_is_started_again_and_the_next_run_succeeds(
    stack: LocalStack, service: str
) -> None:
    before = {process["address"]: process for process in stack.status()["processes"]}
    victim = next(process for process in before.values() if process["service"] == service)
    with stack.repeating("run", "again", "--timeout", "5"):
        psutil.Process(victim["pid"]).kill()
        after = stack.until_whole(without=victim["pid"])
    restarts = {process["address"]: process["restarts"] for process in after}
    assert restarts[victim["address"]] == victim["restarts"] + 1
    # The very next run succeeds; a tool may be missing until its connection is made again.
    answer(stack, "still there?")
    until(
        lambda: has_both_results(answer(stack, "whole again?")),
        f"a run with both tools after the end of {service}",
        within_s=RECONNECTED_S_MAX,
    )


def test_after_a_killed_supervisor_the_next_start_recovers(stack: LocalStack) -> None:
    before = stack.everyone()
    # What runs in workspaces outlives its toolrunner, for the next one to have it.
    kept = {member for each in before if is_spawner(each) for member in family_of(each)}
    assert kept
    stack.supervisor().kill()
    started = stack.up()
    assert started.returncode == 0, started.stderr
    _, left = psutil.wait_procs(set(before) - kept, timeout=ENDED_S_MAX)
    assert left == []
    assert_answers(stack, "recovered?")
    assert stack.parley("down").returncode == 0
    _, left = psutil.wait_procs(kept, timeout=ENDED_S_MAX)
    assert left == []


def test_nothing_is_left_after_down(stack: LocalStack) -> None:
    assert_answers(stack, "goodbye")
    everyone = stack.everyone()
    assert len(everyone) > len(SERVICES)
    stopped = stack.parley("down")
    # A supervisor that took too long would have been killed, and that said.
    assert (stopped.returncode, stopped.stderr) == (0, "")
    assert [process for process in everyone if process.is_running()] == []
    assert stack.strangers() == []
    home = stack.home
    assert list(home.run.glob("*.sock")) == []
    assert not home.endpoints_file.exists()
    assert not home.processes_file.exists()
    assert not (home.postgres / "data" / "postmaster.pid").exists()


def test_a_key_that_does_not_open_what_is_stored_is_noticed_and_nothing_is_lost(
    session_stack: LocalStack,
) -> None:
    stack = session_stack
    assert stack.parley("down").returncode == 0
    file = stack.home.master_key_file
    right = file.read_bytes()
    file.unlink()
    try:
        Keyring.generate().save(file)
        refused = stack.up()
        assert refused.returncode == CONFIGURATION, refused.stdout + refused.stderr
        last = lines_of(refused.stderr)[-1]
        assert "start with the key file that belongs to this database" in last
        assert "Traceback" not in refused.stderr
        assert stack.strangers() == []
    finally:
        file.write_bytes(right)
    assert stack.up().returncode == 0
    assert_answers(stack, "still here?")
