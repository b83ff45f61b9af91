"""`parley up` from start to end, over the embedded PostgreSQL and services that are fakes."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from parley.cli.errors import CliError
from parley.cli.home.credentials import prepare_secrets
from parley.cli.home.layout import Home
from parley.cli.invocation import Invocation
from parley.cli.main import run
from parley.cli.stack.ports import any_free_port
from parley.cli.supervision import process_table
from parley.cli.supervision.database import embedded_server
from parley.cli.supervision.detach import Outcome, start_in_background
from parley.cli.supervision.stale_processes import leftovers, running
from parley.clock import SystemClock
from support.cli import fake_stack
from support.cli.recorded_progress import RecordedProgress
from support.host.ports import free_port

SERVICES = ("postgres", "mcp-demo", "toolrunner", "mcpgateway", "chatd", "gateway")
WAIT_S = 120.0


@pytest.fixture(scope="module")
def module_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give one home to all tests here: making its database is the slow part."""
    return tmp_path_factory.mktemp("stack")


@pytest.fixture
def home(module_home: Path) -> Iterator[Home]:
    """Give the home, and see that nothing is left in it after the test."""
    home = Home.at(module_home)
    yield home
    table = process_table.load(home.processes_file)
    parley(home, "down")
    assert leftovers(table) == ()


@pytest.fixture
def http() -> str:
    return f"127.0.0.1:{free_port()}"


def parley(home: Home, *arguments: str) -> int:
    return run([*arguments, "--home", str(home.root)], Invocation({}, "parley"))


def start(home: Home, http: str, *options: str) -> "subprocess.Popen[str]":
    return fake_stack.start(home.root, http, *options)


def pids(home: Home) -> dict[str, int]:
    table = process_table.load(home.processes_file)
    return {record.service: record.identity.pid for record in table.processes}


def ended(process: "subprocess.Popen[str]") -> tuple[int, str]:
    output, _ = process.communicate(timeout=WAIT_S)
    return process.returncode, output


def test_a_stack_starts_tells_how_to_reach_it_and_stops(
    home: Home, http: str, capsys: pytest.CaptureFixture[str]
) -> None:
    stack = start(home, http, "toolrunner=--orphan")
    lines = fake_stack.until_line(stack, "stop it:")
    assert f"Parley is ready at http://{http}" in lines
    endpoints = json.loads(home.endpoints_file.read_text())
    assert endpoints["http"] == f"http://{http}"
    assert endpoints["api_key_file"] == str(home.api_key_file)
    assert endpoints["grpc"]["chatd"] == [f"unix:{home.socket('chatd-0')}"]
    assert endpoints["database"].startswith("postgresql://")
    assert home.endpoints_file.stat().st_mode & 0o777 == 0o600
    assert parley(home, "status", "--json") == 0
    status = json.loads(capsys.readouterr().out)
    assert status["http"] == f"http://{http}"
    assert [process["service"] for process in status["processes"]] == list(SERVICES)
    assert all(process["healthy"] for process in status["processes"])
    assert all(process["rss_bytes"] > 0 for process in status["processes"])
    everyone = psutil.Process(stack.pid).children(recursive=True)
    assert parley(home, "down") == 0
    assert capsys.readouterr().err == ""
    assert ended(stack)[0] == 0
    assert [process for process in everyone if process.is_running()] == []
    assert not home.endpoints_file.exists()
    assert not home.processes_file.exists()


def test_ctrl_c_stops_everything(home: Home, http: str) -> None:
    stack = start(home, http)
    fake_stack.until_line(stack, "stop it:")
    everyone = psutil.Process(stack.pid).children(recursive=True)
    stack.send_signal(signal.SIGINT)
    assert ended(stack)[0] == 0
    assert [process for process in everyone if process.is_running()] == []


def test_a_killed_process_is_started_again_and_counted(
    home: Home, http: str, capsys: pytest.CaptureFixture[str]
) -> None:
    stack = start(home, http)
    fake_stack.until_line(stack, "stop it:")
    for service in SERVICES:
        before = pids(home)[service]
        os.kill(before, signal.SIGKILL)
        fake_stack.until_line(stack, f"{service}")
    fake_stack.until_line(stack, "gateway-0 ")
    until_healthy(home, capsys)
    assert parley(home, "status", "--json") == 0
    status = json.loads(capsys.readouterr().out)
    assert {process["service"]: process["restarts"] for process in status["processes"]} == (
        dict.fromkeys(SERVICES, 1)
    )
    assert parley(home, "down") == 0
    assert ended(stack)[0] == 0


def until_healthy(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline:
        capsys.readouterr()
        parley(home, "status", "--json")
        processes = json.loads(capsys.readouterr().out)["processes"]
        if len(processes) == len(SERVICES) and all(one["healthy"] for one in processes):
            return
    raise AssertionError("not everything got healthy again")


def test_a_second_start_in_the_same_home_is_refused(home: Home, http: str) -> None:
    stack = start(home, http)
    fake_stack.until_line(stack, "stop it:")
    exit_code, output = ended(start(home, http))
    assert exit_code == 1
    assert f"process {stack.pid}" in output
    assert "parley down" in output
    assert parley(home, "down") == 0
    assert ended(stack)[0] == 0


@pytest.mark.parametrize("next_command", ["up", "down"])
def test_what_a_killed_supervisor_leaves_is_ended_by_the_next_command(
    home: Home, http: str, next_command: str
) -> None:
    stack = start(home, http)
    fake_stack.until_line(stack, "stop it:")
    before = process_table.load(home.processes_file)
    secrets = kept_secrets(home)
    stack.kill()
    ended(stack)
    assert leftovers(before) != ()
    if next_command == "down":
        assert parley(home, "down") == 0
        assert leftovers(before) == ()
        return
    again = start(home, http)
    fake_stack.until_line(again, "stop it:")
    assert leftovers(before) == ()
    assert kept_secrets(home) == secrets
    assert parley(home, "down") == 0
    assert ended(again)[0] == 0


def kept_secrets(home: Home) -> list[str]:
    """Return what must be the same at every start of one home."""
    files = (home.api_key_file, home.master_key_file, home.trust_file)
    return [path.read_text() for path in (*files, home.database_url_file("chatd"))]


def test_a_process_that_does_not_want_to_stop_is_killed(
    home: Home, http: str, capsys: pytest.CaptureFixture[str]
) -> None:
    stack = start(home, http, "chatd=--ignore-term")
    fake_stack.until_line(stack, "stop it:")
    table = process_table.load(home.processes_file)
    assert parley(home, "down") == 0
    assert capsys.readouterr().err == ""
    assert ended(stack)[0] == 0
    assert all(running(record.identity) is None for record in table.processes)


def test_a_supervisor_whose_processes_all_hang_ends_them_in_time_for_down(
    home: Home, http: str, capsys: pytest.CaptureFixture[str]
) -> None:
    stack = start(home, http, "toolrunner=--orphan")
    fake_stack.until_line(stack, "stop it:")
    everyone = psutil.Process(stack.pid).children(recursive=True)
    for process in everyone:
        process.suspend()
    assert parley(home, "down") == 0
    # Otherwise it would say that the supervisor took too long and had to be killed.
    assert capsys.readouterr().err == ""
    assert ended(stack)[0] == 0
    assert [process for process in everyone if process.is_running()] == []


def test_a_home_with_an_odd_name_works_and_leaves_nothing_outside(
    tmp_path: Path, http: str
) -> None:
    home = Home.at(tmp_path / "a, b%41#c")
    stack = start(home, http)
    fake_stack.until_line(stack, "stop it:")
    outside = (home.run, embedded_server(home, SystemClock()).socket_directory.parent)
    assert [path.parent for path in outside] == [home.temporary] * 2
    assert all(path.exists() for path in outside)
    assert parley(home, "down") == 0
    assert ended(stack)[0] == 0
    assert [path for path in outside if path.exists()] == []


def test_after_a_killed_supervisor_down_leaves_nothing_outside_an_odd_home(
    tmp_path: Path, http: str
) -> None:
    home = Home.at(tmp_path / "a,b")
    stack = start(home, http)
    fake_stack.until_line(stack, "stop it:")
    database_runtime = embedded_server(home, SystemClock()).socket_directory.parent
    stack.kill()
    ended(stack)
    assert parley(home, "down") == 0
    assert [path for path in (home.run, database_runtime) if path.exists()] == []


def test_a_service_that_is_not_set_up_right_is_exit_code_2_with_its_own_words(
    home: Home, http: str
) -> None:
    stack = start(home, http, "chatd=--say=chatd: the key file is wrong", "chatd=--exit-with=2")
    exit_code, output = ended(stack)
    assert exit_code == 2
    assert output.splitlines()[-1] == "chatd: the key file is wrong"
    assert not home.processes_file.exists()


def test_what_is_not_set_up_right_in_several_services_is_told_at_once(
    home: Home, http: str
) -> None:
    wrong = ("toolrunner", "chatd", "gateway")
    options = [(f"{name}=--say={name}: wrong", f"{name}=--exit-with=2") for name in wrong]
    exit_code, output = ended(start(home, http, *(one for pair in options for one in pair)))
    assert exit_code == 2
    assert output.splitlines()[-3:] == [f"{name}: wrong" for name in wrong]


def test_a_service_that_crashes_at_its_start_is_exit_code_1_with_its_last_lines(
    home: Home, http: str
) -> None:
    exit_code, output = ended(start(home, http, "gateway=--say=oh no", "gateway=--exit-with=5"))
    assert exit_code == 1
    assert output.splitlines()[-2:] == [
        "gateway-0 ended with exit code 5 during the start; it said:",
        "oh no",
    ]


def test_a_port_in_use_and_a_damaged_key_are_reported_together(home: Home) -> None:
    home.prepare()
    prepare_secrets(home)
    key = home.signing_key_file("chatd")
    good = key.read_bytes()
    key.write_text("damaged")
    taken = any_free_port("127.0.0.1")
    try:
        with socket.create_server((taken.host, taken.port)):
            exit_code, output = ended(start(home, str(taken)))
    finally:
        key.write_bytes(good)
    assert exit_code == 2
    assert str(key) in output
    assert "--http" in output


def in_background(home: Home, *arguments: str) -> tuple[Outcome, list[str]]:
    home.prepare()
    progress = RecordedProgress()
    outcome = start_in_background(
        (str(home.root), *arguments),
        {"PATH": os.defpath},
        home=home,
        progress=progress,
        program=(sys.executable, fake_stack.__file__),
    )
    return outcome, progress.lines


def test_a_stack_in_the_background_reports_when_it_is_ready(home: Home, http: str) -> None:
    outcome, lines = in_background(home, http)
    assert outcome == Outcome(0)
    assert f"Parley is ready at http://{http}" in lines
    assert any("/login?token=" in line for line in lines)
    assert "token=" not in home.supervisor_log.read_text()
    assert parley(home, "status") == 0
    assert parley(home, "down") == 0


def test_a_stack_in_the_background_that_fails_reports_why_and_is_gone(
    home: Home, http: str
) -> None:
    outcome, _ = in_background(home, http, "chatd=--say=wrong key", "chatd=--exit-with=2")
    assert outcome == Outcome(2, ("wrong key",))
    assert not home.processes_file.exists()


def test_a_supervisor_that_dies_before_it_reports_is_an_error_with_its_last_words(
    home: Home,
) -> None:
    home.prepare()
    with pytest.raises(CliError, match="no such program"):
        start_in_background(
            ("-c", "raise SystemExit('no such program')"),
            {},
            home=home,
            progress=RecordedProgress(),
            program=(sys.executable,),
        )


def test_a_start_that_is_stopped_halfway_leaves_nothing(home: Home, http: str) -> None:
    stack = start(home, http, "toolrunner=--never-ready")
    fake_stack.until_line(stack, "mcp-demo-0")
    everyone = psutil.Process(stack.pid).children(recursive=True)
    stack.send_signal(signal.SIGTERM)
    ended(stack)
    assert [process for process in everyone if process.is_running()] == []
    assert not home.processes_file.exists()
