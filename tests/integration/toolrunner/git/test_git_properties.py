"""Whatever happens in a work tree: what is told of it is what git itself tells, and applies."""

import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.toolrunner.git_repositories import Bench
from toolrunner.fileworker.git.protocol import FileState, Repository

NAMES = ("a", "b c", "dir/d", "dir/e", 'quo"te', "new\nline", "ü", "-x", "a b/a b")
TEXTS = (*(f"{word}\n" * lines for word in ("x", "yy", "") for lines in (1, 3, 40)), "end")
change = st.tuples(
    st.sampled_from(NAMES),
    st.sampled_from([*TEXTS, "delete", "move", "program", "add", "commit", "reset"]),
)


def apply(bench: Bench, name: str, what: str) -> None:
    """Do something that may happen in a work tree; what cannot be is left."""
    path = bench.root / name
    try:
        match what:
            case "delete":
                path.unlink()
            case "move":
                path.rename(bench.root / f"{name}-moved")
            case "program":
                path.chmod(0o755)
            case "add":
                bench.git("add", "--", name, fails=True)
            case "commit":
                bench.git("commit", "--quiet", "--message=x", fails=True)
            case "reset":
                bench.git("reset", "--quiet")
            case _:
                bench.put(name, what)
    except OSError:
        pass


@settings(max_examples=15)
@given(changes=st.lists(change, max_size=12))
def test_what_is_told_is_what_git_tells_and_the_difference_applies(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[str, str]]
) -> None:
    bench = Bench.at(tmp_path_factory.mktemp("git") / "w")
    bench.init()
    bench.put("a", "x\n" * 40)
    bench.put("dir/d", "1\n")
    bench.commit()
    for name, what in changes:
        apply(bench, name, what)

    status, diff = bench.status(), bench.diff()

    assert {file.path for file in status.files} == _paths(bench)
    assert _lines(status) == _counted(bench)
    assert applied(bench, diff.patch) == bench.tree()


def _paths(bench: Bench) -> set[str]:
    """Return the paths that git itself tells, in its oldest format."""
    options = ("--porcelain=v1", "-z", "--untracked-files=all", "--find-renames")
    records = iter(bench.git("status", *options).split("\0"))
    found = set()
    for record in records:
        if record:
            found.add(record[3:])
        if record[:1] in ("R", "C") or record[1:2] in ("R", "C"):
            next(records)
    return found


def _lines(status: Repository) -> tuple[int, int]:
    new = sum(file.added_lines for file in status.files if file.state is FileState.UNTRACKED)
    return status.added_lines - new, status.deleted_lines


def _counted(bench: Bench) -> tuple[int, int]:
    """Return the lines of tracked files, as git itself counts them."""
    rows = bench.git("diff", "HEAD", "--numstat", "--find-renames").splitlines()
    counts = [row.split("\t")[:2] for row in rows]
    return sum(int(added) for added, _ in counts), sum(int(deleted) for _, deleted in counts)


def applied(bench: Bench, patch: str) -> dict[bytes, tuple[str, bytes]]:
    """Return what becomes of the last commit by a patch."""
    other = bench.root.parent / "other"
    bench.git("worktree", "add", "--quiet", "--detach", str(other), "HEAD")
    try:
        fresh = Bench(other, bench.work)
        Path(bench.root.parent / "patch").write_text(patch)
        if patch:
            fresh.git("apply", "--whitespace=nowarn", str(bench.root.parent / "patch"))
        (other / ".git").unlink()
        return fresh.tree()
    finally:
        shutil.rmtree(other)
