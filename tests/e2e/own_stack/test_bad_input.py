"""What `parley up` says to things that are wrong: the remedy, in one message, and no traceback."""

import os
import socket
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from parley.cli.home.layout import Home
from support.stack.local_stack import LocalStack, lines_of

FAILED = 1
CONFIGURATION = 2
ANOTHER_USER = 54321


def nothing(home: Home) -> None:
    """Leave the home as it is: not there yet."""


def a_file(home: Home) -> None:
    home.root.write_text("mine")


def somebody_elses(home: Home) -> None:
    """Make a home that this user may not use; root may use all, but not by accident."""
    home.root.mkdir()
    if os.geteuid() == 0:
        os.chown(home.root, ANOTHER_USER, ANOTHER_USER)
    else:
        home.root.chmod(0)


def damaged(*names: str) -> Callable[[Home], None]:
    def damage(home: Home) -> None:
        home.prepare()
        for name in names:
            (home.root / name).write_text("not what should be here")

    return damage


def half_initialised(home: Home) -> None:
    home.prepare()
    (home.postgres / "data" / "base").mkdir(parents=True)


@dataclass(frozen=True, slots=True)
class Case:
    """Something wrong, and what is said about it."""

    says: tuple[str, ...]
    home: Callable[[Home], None] = nothing
    options: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    exit_code: int = CONFIGURATION


CASES = {
    "an unknown variable": Case(
        ("PARLEY_HOMES is not a setting: did you mean PARLEY_HOME?",),
        environment={"PARLEY_HOMES": "x"},
    ),
    "a setting that up chooses": Case(
        ("CHATD_LISTEN is set by `parley up` itself: unset it",),
        environment={"CHATD_LISTEN": "tcp:127.0.0.1:1"},
    ),
    "a home that is a file": Case(("{home} is not a directory: ",), home=a_file),
    "a home of somebody else": Case(("{home} ",), home=somebody_elses),
    "no port": Case(("--http 127.0.0.1:x is no address: ",), options=("--http", "127.0.0.1:x")),
    "no database": Case(
        ("--database is no PostgreSQL URL: ",), options=("--database", "mysql://x")
    ),
    "a database that does not answer": Case(
        ("PostgreSQL is not available ",),
        options=("--database", "postgresql://parley:x@127.0.0.1:1/parley"),
        exit_code=FAILED,
    ),
    "a damaged keyring": Case(
        ("key file {home}/keys/master.keyring: ",), home=damaged("keys/master.keyring")
    ),
    "damaged keys, all of them": Case(
        (
            "signing key {home}/keys/chatd.key: ",
            "key file {home}/keys/master.keyring: ",
            "{home}/api_key is damaged ",
        ),
        home=damaged("keys/chatd.key", "keys/master.keyring", "api_key"),
    ),
    "a half-initialised data directory": Case(
        ("{home}/postgres/data: it is not empty and not a complete data directory",),
        home=half_initialised,
    ),
    "several things at once": Case(
        ("PARLEY_DEBUGS is not a setting: ", "--http nowhere is no address: "),
        options=("--http", "nowhere"),
        environment={"PARLEY_DEBUGS": "1"},
    ),
}  # fmt: skip


@pytest.fixture
def stack(tmp_path: Path) -> LocalStack:
    return LocalStack.at(tmp_path / "home")


def assert_refused(stack: LocalStack, case: Case) -> None:
    """See that `up` refuses with exactly these lines, by their beginnings."""
    refused = stack.parley("up", "--http", stack.http, *case.options)
    lines = lines_of(refused.stderr)
    assert refused.returncode == case.exit_code, refused.stderr
    assert len(lines) == len(case.says), refused.stderr
    for line, beginning in zip(lines, case.says, strict=True):
        assert line.startswith(f"parley: {beginning.format(home=stack.home.root)}")


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_up_refuses_with_the_remedy(stack: LocalStack, name: str) -> None:
    case = CASES[name]
    case.home(stack.home)
    before = contents(stack.home.root)
    told = replace(stack, environment=case.environment)
    assert_refused(told, case)
    after = contents(stack.home.root)
    assert {path: after.get(path) for path in before} == before
    assert not stack.home.processes_file.exists()
    assert stack.strangers() == []


@pytest.mark.slow
def test_a_port_in_use_is_named(stack: LocalStack) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen(1)
        http = f"127.0.0.1:{taken.getsockname()[1]}"
        says = f"{http} cannot be listened on (Address already in use): choose another"
        assert_refused(replace(stack, http=http), Case((says,)))


@pytest.mark.slow
def test_unknown_settings_of_several_services_are_told_at_once(stack: LocalStack) -> None:
    told = replace(stack, environment={"CHATD_TOOLRUNER": "x", "TOOLRUNNER_CHATDD": "x"})
    refused = told.up()
    assert refused.returncode == CONFIGURATION, refused.stderr
    toolrunner, chatd = lines_of(refused.stderr)
    assert "TOOLRUNNER_CHATDD is not a setting" in toolrunner
    assert "CHATD_TOOLRUNER is not a setting" in chatd


@pytest.mark.slow
def test_an_unknown_setting_of_a_service_is_told_by_that_service(stack: LocalStack) -> None:
    told = replace(stack, environment={"CHATD_TOOLRUNER": "x"})
    refused = told.up()
    assert refused.returncode == CONFIGURATION, refused.stderr
    (line,) = lines_of(refused.stderr)
    assert "CHATD_TOOLRUNER is not a setting: did you mean CHATD_TOOLRUNNER?" in line
    assert stack.strangers() == []


def contents(root: Path) -> dict[str, bytes]:
    """Return every file below `root`, except the locks that a start leaves."""
    found = [root] if root.is_file() else sorted(root.rglob("*"))
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in found
        if path.is_file() and path.suffix != ".lock" and path.name != "lock"
    }
