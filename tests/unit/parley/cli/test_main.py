import json
import subprocess
import sys
from pathlib import Path

import pytest

from parley.cli.invocation import Invocation, program_called
from parley.cli.main import COMMANDS, cli, run
from parley.cli.supervision.database import url_for
from parley.cli.text import text_table

HEAVY = ("asyncio", "grpc", "psutil", "cryptography", "asyncpg", "sqlalchemy", "msgspec", "http")


def invocation(home: Path, **environment: str) -> Invocation:
    return Invocation({"HOME": str(home), **environment}, "parley")


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "from parley.cli.invocation import Invocation\n"
        "from parley.cli.main import run\n"
        "run(['--help'], Invocation({}, 'parley'))\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30
    )
    assert ended.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_of_the_table_exists_and_takes_a_home(name: str) -> None:
    context = cli.make_context("parley", [name, "--help"], resilient_parsing=True)
    command = cli.get_command(context, name)
    assert command is not None
    assert "--home" in [option for parameter in command.params for option in parameter.opts]


def test_a_home_can_be_named_before_or_after_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for arguments in (["--home", "h", "down"], ["down", "--home", "h"]):
        assert run(arguments, invocation(tmp_path)) == 0
        assert str(Path.cwd() / "h") in capsys.readouterr().out


def test_the_home_after_the_command_wins_over_the_one_before_and_the_environment() -> None:
    given = Invocation({"PARLEY_HOME": "/a"}, "parley")
    assert given.home.root == Path("/a")
    assert Invocation({"HOME": "/u"}, "parley").home.root == Path("/u/.parley")
    assert Invocation({"PARLEY_HOME": "/a"}, "parley", "/b").home.root == Path("/b")


def test_an_error_is_one_line_with_the_remedy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["status"], invocation(tmp_path)) == 1
    expected = f"parley: Parley does not run in {tmp_path}/.parley: start it with `parley up`\n"
    assert capsys.readouterr().err == expected


def test_a_stack_that_does_not_run_has_no_processes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["status", "--json"], invocation(tmp_path)) == 1
    assert json.loads(capsys.readouterr().out) == {
        "http": None,
        "public_url": None,
        "models": None,
        "processes": [],
    }


def test_the_help_of_answer_has_a_line_for_each_kind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["answer", "--help"], invocation(tmp_path)) == 0
    shown = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert "a question        --option or --text, once for each question" in shown
    assert "a login           --accept once it is done, or --refuse" in shown
    assert not [line for line in shown if "\\b" in line]


def test_an_unknown_option_is_a_configuration_error(tmp_path: Path) -> None:
    assert run(["up", "--nonsense"], invocation(tmp_path)) == 2
    assert run(["nonsense"], invocation(tmp_path)) == 2
    assert run(["up", "--chatd", "0"], invocation(tmp_path)) == 2


def test_an_unusable_home_is_a_configuration_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for command in ("up", "down", "status", "logs"):
        assert run([command, "--home", str(tmp_path / "file")], invocation(tmp_path)) == 2


def test_the_traceback_is_for_those_who_ask_for_it(tmp_path: Path) -> None:
    from parley.cli.errors import CliError

    with pytest.raises(CliError):
        run(["status"], invocation(tmp_path, PARLEY_DEBUG="1"))


def test_the_program_is_named_as_it_was_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / "parley"
    program.parent.mkdir()
    program.touch(mode=0o755)
    monkeypatch.chdir(tmp_path)
    assert program_called(".venv/bin/parley", "/nowhere") == ".venv/bin/parley"
    assert program_called(str(program), str(program.parent)) == "parley"
    assert program_called(str(program), "/nowhere") == "bin/parley"
    assert program_called("/x/cli/__main__.py", None) == "python -m parley.cli"


def test_a_hint_can_be_typed_as_it_is() -> None:
    assert Invocation({}, "parley", "/a b").hint("down") == "parley down --home '/a b'"
    assert program_called("/x y/parley", None) == "'/x y/parley'"


@pytest.mark.parametrize("command", ["status", "down", "logs"])
def test_a_command_for_this_machine_does_not_mistake_it_for_the_one_at_the_url(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = invocation(tmp_path, PARLEY_URL="http://elsewhere")
    assert run([command], given) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("parley: PARLEY_URL is set")
    assert run([command, "--home", str(tmp_path)], given) == (0 if command == "down" else 1)


def test_a_service_gets_the_given_database_with_its_own_login() -> None:
    assert (
        url_for("postgresql://admin:secret@db:5/x?sslmode=require&password=p", "r", "p/w")
        == "postgresql://r:p%2Fw@db:5/x?sslmode=require"
    )
    assert (
        url_for("postgresql://a:b@/x?host=%2Fs&port=5432", "r", "p")
        == "postgresql://r:p@/x?host=%2Fs&port=5432"
    )


def test_a_table_is_as_wide_as_it_needs_to_be() -> None:
    assert text_table(("a", "b"), [("long", "x"), ("s", "")]) == "a     b\nlong  x\ns\n"
    times = [("2026-11-19T08:09:40.204408Z",), ("at 08:09:40.2Z",)]
    assert text_table(("at",), times) == "at\n2026-11-19T08:09:40Z\nat 08:09:40.2Z\n"


def test_cells_of_a_table_cannot_control_the_terminal() -> None:
    hostile = "x\x1b[2J\u202ey\nroot  owner\x85z"
    assert text_table(("name",), [(hostile,)]) == "name\nx[2Jy root  owner z\n"
