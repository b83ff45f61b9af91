"""`parley run` repairs directories: really edited, really tested, shown as a diff."""

import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from support.host.conditions import until
from support.stack.local_stack import LocalStack

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "repair"
PROMPT = "run the tests in this repository and fix what fails"
CHECK = "python3 -m unittest"
WITHIN_S = 60.0
EDITING = ("call: edit_files ", "call: write_file ")


def repaired(
    stack: LocalStack, directory: Path, *options: str
) -> "subprocess.CompletedProcess[str]":
    script = str(directory / "repair.script")
    where = ("-C", str(directory), "--check", CHECK, "--script", script)
    return stack.parley("run", *where, *options, PROMPT)


def passes(directory: Path) -> bool:
    """Return whether the tests pass in a directory of this machine."""
    tested = subprocess.run(CHECK.split(), cwd=directory, capture_output=True, check=False)
    return tested.returncode == 0


def leave_out_the_edit(directory: Path) -> None:
    """Take out of the script the one step that repairs something."""
    script = directory / "repair.script"
    steps = script.read_text().splitlines(keepends=True)
    left = [step for step in steps if not step.startswith(EDITING)]
    assert len(left) == len(steps) - 1
    script.write_text("".join(left))


@pytest.fixture
def repository(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    name = str(request.param)
    copied = tmp_path / name
    shutil.copytree(EXAMPLES / name, copied, ignore=shutil.ignore_patterns("__pycache__"))
    return copied


@pytest.mark.parametrize(
    ("repository", "repaired_line"),
    [
        ("shop", "+    return sum(prices) * (100 - discount_percent) // 100\n"),
        ("words", '+    return max(text.split(), key=len, default="")\n'),
    ],
    indirect=["repository"],
)
def test_a_directory_is_repaired_and_the_diff_shown_and_applied(
    stack: LocalStack, repository: Path, repaired_line: str
) -> None:
    assert not passes(repository)
    shown = repaired(stack, repository)
    assert shown.returncode == 0, shown.stderr
    assert repaired_line in shown.stdout
    assert "FAILED (" in shown.stdout  # What the first run of the tests told the model.
    assert "OK" in shown.stderr
    assert not passes(repository)  # It was a copy.

    applied = repaired(stack, repository, "--apply")
    assert applied.returncode == 0, applied.stderr
    assert passes(repository)


@pytest.mark.parametrize(
    ("repository", "repaired_line"),
    [("shop", "* (100 - discount_percent) // 100\n"), ("words", 'key=len, default="")\n')],
    indirect=["repository"],
)
def test_in_a_directory_that_says_how_the_prompt_alone_is_enough(
    stack: LocalStack, repository: Path, repaired_line: str
) -> None:
    shown = stack.parley("run", PROMPT, cwd=repository)
    assert shown.returncode == 0, shown.stderr
    assert repaired_line in shown.stdout
    assert "FAILED (" in shown.stdout
    assert not passes(repository)

    applied = stack.parley("run", "--apply", PROMPT, cwd=repository)
    assert applied.returncode == 0, applied.stderr
    assert passes(repository)


@pytest.mark.parametrize("repository", ["shop", "words"], indirect=True)
def test_the_prompt_alone_fails_without_the_edit(stack: LocalStack, repository: Path) -> None:
    leave_out_the_edit(repository)
    run = stack.parley("run", PROMPT, cwd=repository)
    assert run.returncode == 1
    assert run.stderr.splitlines()[-1].startswith("parley: the check failed (exit code 1)")

    plain = stack.parley("run", "--no-directory", "repeat after me: no files", cwd=repository)
    assert (plain.returncode, plain.stdout, plain.stderr) == (0, "no files\n", "")


@pytest.mark.parametrize("repository", ["shop", "words"], indirect=True)
def test_without_the_edit_the_check_fails_and_nothing_is_applied(
    stack: LocalStack, repository: Path
) -> None:
    leave_out_the_edit(repository)
    program = repository / f"{repository.name}.py"
    before = program.read_text()
    run = repaired(stack, repository, "--apply")
    assert run.returncode == 1
    told = run.stderr.splitlines()
    assert "Nothing was changed." in told
    assert told[-1].startswith(f"parley: the check failed (exit code 1): {CHECK} (chat ")
    assert program.read_text() == before


@pytest.mark.parametrize("repository", ["shop"], indirect=True)
def test_a_directory_in_a_repository_with_uncommitted_work_is_repaired_and_keeps_it(
    stack: LocalStack, repository: Path, tmp_path: Path
) -> None:
    def git(*words: str) -> str:
        people = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        ran = subprocess.run(
            ["git", *people, *words], cwd=tmp_path, check=True, capture_output=True, text=True
        )
        return ran.stdout

    git("init", "-q")
    git("add", "shop")
    git("commit", "-q", "-m", "as it was")
    shop, tests = repository / "shop.py", repository / "test_shop.py"
    shop.write_text("# Staged work.\n" + shop.read_text())
    git("add", "shop")
    staged = git("diff", "--cached")
    tests.write_text(tests.read_text() + "# Work that is in no commit.\n")
    (repository / "notes.txt").write_text("A new file.\n")
    mine = git("diff", "--", "shop/test_shop.py")

    applied = stack.parley("run", "--apply", PROMPT, cwd=repository)

    assert applied.returncode == 0, applied.stderr
    assert passes(repository)
    assert shop.read_text().startswith("# Staged work.\n")
    assert git("diff", "--cached") == staged
    assert git("diff", "--", "shop/test_shop.py") == mine
    assert git("status", "--porcelain", "--", "shop/*.py", "shop/*.txt") == (
        "MM shop/shop.py\n M shop/test_shop.py\n?? shop/notes.txt\n"
    )


@pytest.mark.parametrize("repository", ["shop"], indirect=True)
def test_a_tracked_file_counts_though_it_is_ignored(stack: LocalStack, repository: Path) -> None:
    (repository / ".gitignore").write_text("shop.py\n")
    for words in (("init", "-q"), ("add", "-f", "shop.py"), ("add", ".")):
        subprocess.run(["git", *words], cwd=repository, check=True)
    applied = stack.parley("run", "--apply", PROMPT, cwd=repository)
    assert applied.returncode == 0, applied.stderr
    assert passes(repository)


@pytest.mark.parametrize("repository", ["shop"], indirect=True)
def test_a_large_picture_that_a_model_reads_holds_nobody_up_who_follows(
    stack: LocalStack, repository: Path
) -> None:
    making = r"printf '\211PNG\r\n\032\n' > p.png; head -c 3000000 /dev/urandom >> p.png"
    steps = (f"run: {making}", 'call: read_file {"path": "p.png"}', "run: echo afterwards")
    (repository / "repair.script").write_text("".join(f"{step}\n" for step in steps))
    run = stack.parley("run", "--check", "true", PROMPT, cwd=repository)
    assert run.returncode == 0, run.stderr
    assert '"omitted_bytes": 3000' in run.stdout
    assert "```\nafterwards\n```" in run.stdout


@pytest.mark.parametrize("repository", ["shop"], indirect=True)
def test_ctrl_c_stops_the_turn_and_what_it_runs(stack: LocalStack, repository: Path) -> None:
    (repository / "repair.script").write_text("run: sleep 7521\n")
    with subprocess.Popen(
        stack.command("run", PROMPT),
        cwd=repository,
        env=stack.variables(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            until(lambda: stack.is_running("7521"), "the command", within_s=WITHIN_S)
            process.send_signal(signal.SIGINT)
            _, told = process.communicate(timeout=WITHIN_S)
        finally:
            process.kill()
    assert (process.returncode, "\nStopped." in told) == (130, True), told
    until(lambda: not stack.is_running("7521"), "the end of the command", within_s=WITHIN_S)


@pytest.mark.parametrize("repository", ["shop"], indirect=True)
def test_what_tests_leave_behind_is_no_change(stack: LocalStack, repository: Path) -> None:
    (repository / ".gitignore").unlink(missing_ok=True)
    (repository / "parley.toml").unlink()
    applied = repaired(stack, repository, "--apply")
    assert applied.returncode == 0, applied.stderr
    assert "Binary files" not in applied.stdout
    assert passes(repository)
