import os
import pwd
import subprocess
import sys
from pathlib import Path

import pytest

from parley.postgres import launch

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
READ_SEARCH = 1 << launch.CAP_DAC_READ_SEARCH


def run(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-I", "-S", launch.__file__, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=10,
        check=False,
    )


def status_after(log: Path, *arguments: str | Path) -> dict[str, str]:
    done = run("--parent", str(os.getpid()), "--log", log, *arguments, "--", "/bin/cat", STATUS)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return dict(line.split(":\t", 1) for line in log.read_text().splitlines() if ":\t" in line)


STATUS = "/proc/self/status"


def test_the_launcher_becomes_the_command_and_its_words_go_to_the_log(tmp_path: Path) -> None:
    status = status_after(tmp_path / "log")
    assert (status["Name"], status["Umask"]) == ("cat", "0077")
    assert (tmp_path / "log").stat().st_mode & 0o777 == 0o600


def test_an_orphan_is_not_launched(tmp_path: Path) -> None:
    done = run("--parent", "1", "--log", tmp_path / "log", "--", "/bin/true")
    assert done.returncode == launch.REFUSED
    assert done.stderr == (
        "cannot start PostgreSQL: the process that asked for this server has gone\n"
    )


def test_a_missing_program_is_reported(tmp_path: Path) -> None:
    log = tmp_path / "log"
    done = run("--parent", str(os.getpid()), "--log", log, "--", tmp_path / "nothing")
    assert done.returncode == launch.REFUSED
    assert "No such file" in log.read_text()


def test_the_log_is_not_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "log").symlink_to(tmp_path / "elsewhere")
    done = run("--parent", str(os.getpid()), "--log", tmp_path / "log", "--", "/bin/true")
    assert done.returncode == launch.REFUSED
    assert not (tmp_path / "elsewhere").exists()


@as_root
def test_root_becomes_an_ordinary_user_without_any_capability(private_to_nobody: Path) -> None:
    nobody = pwd.getpwnam("nobody")
    status = status_after(private_to_nobody / "log", *identity(nobody), "--reach", "/")
    assert status["Uid"].split() == [str(nobody.pw_uid)] * 4
    assert status["Gid"].split() == [str(nobody.pw_gid)] * 4
    assert status["Groups"].strip() == ""
    assert capabilities(status) == {0}


@as_root
def test_what_cannot_be_reached_costs_exactly_one_capability(
    private_to_nobody: Path, tmp_path: Path
) -> None:
    tmp_path.chmod(0o700)
    nobody = pwd.getpwnam("nobody")
    status = status_after(private_to_nobody / "log", *identity(nobody), "--reach", tmp_path)
    assert status["Uid"].split() == [str(nobody.pw_uid)] * 4
    assert capabilities(status) == {READ_SEARCH}


@as_root
def test_what_cannot_be_reached_is_found_by_programs_that_look_before_they_run(
    private_to_nobody: Path, tmp_path: Path
) -> None:
    program = tmp_path / "program"
    program.touch(0o755)
    tmp_path.chmod(0o700)
    look = f"import os, sys; sys.exit(0 if os.access({str(program)!r}, os.R_OK | os.X_OK) else 1)"
    done = run(
        *("--parent", str(os.getpid()), "--log", private_to_nobody / "log"),
        *identity(pwd.getpwnam("nobody")),
        *("--reach", tmp_path, "--", sys.executable, "-I", "-S", "-c", look),
    )
    assert done.returncode == 0


def identity(user: pwd.struct_passwd) -> tuple[str, ...]:
    return ("--uid", str(user.pw_uid), "--gid", str(user.pw_gid))


def capabilities(status: dict[str, str]) -> set[int]:
    return {int(status[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")}
