"""Git's own files, protected from a change however it leads there."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.toolrunner.file_workers import FileWorker, here
from toolrunner.filesystem.errors import FileRefused, Reason
from toolrunner.fileworker import protocol
from toolrunner.fileworker.values import FileEdit, Image, TextEdit

SAFE = "[core]\n"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    inside = tmp_path / "inside"
    inside.mkdir()
    return inside


@pytest.fixture
def worker(directory: Path) -> Iterator[FileWorker]:
    with here(directory) as worker:
        yield worker


def repository(path: Path) -> Path:
    for name in ("hooks", "refs", "objects", "info", "modules"):
        (path / name).mkdir(parents=True)
    (path / "HEAD").write_text("ref: refs/heads/main\n")
    (path / "config").write_text(SAFE)
    return path


def prepared(directory: Path, name: str) -> None:
    """Lay ready what would make git run something."""
    (directory / name / "m" / "hooks").mkdir(parents=True)
    (directory / name / "config").write_text("[core]\nfsmonitor = ./run\n")


def refused(worker: FileWorker, *requests: protocol.Request) -> bool:
    for request in requests:
        try:
            worker.ask(request)
        except FileRefused as error:
            return error.reason in (Reason.PATH_FORBIDDEN, Reason.OUTSIDE_WORKSPACE)
    return False


def move_refused(worker: FileWorker, old: str, new: str, *, overwrite: bool = False) -> bool:
    plan = protocol.PlanMove("m", old, new, overwrite, guards_git=True)
    return refused(worker, plan, protocol.Commit("m"))


def delete_refused(worker: FileWorker, path: str, *, recursive: bool = False) -> bool:
    plan = protocol.PlanDelete("m", path, recursive, guards_git=True)
    return refused(worker, plan, protocol.Commit("m"))


def problems(worker: FileWorker, request: protocol.PlanEdits | protocol.PlanPatch) -> bool:
    [planned] = worker.ask(request)
    assert isinstance(planned, protocol.Planned)
    return bool(planned.problems)


def patch(*lines: str) -> protocol.PlanPatch:
    text = "\n".join(("*** Begin Patch", *lines, "*** End Patch"))
    return protocol.PlanPatch("t", text, guards_git=True)


def ways_in(worker: FileWorker, directory: Path, path: str) -> dict[str, bool]:
    """Try to put something at a path in every way there is; tell which were refused."""
    (directory / "mine").write_text("evil")
    prepared(directory, "tree")
    image = Image(path, b"evil", 0o755, "x", "")
    edits = (FileEdit(path, (TextEdit("core", "evil"),)),)
    is_there = (directory / path).is_file()
    return {
        "write": refused(
            worker, protocol.PlanWrite("t", path, b"evil", guards_git=True), protocol.Commit("t")
        ),
        "upload": refused(worker, protocol.StartUpload("u", path, 4, guards_git=True)),
        "edit": not is_there or problems(worker, protocol.PlanEdits("t", edits, True)),
        "patch": is_there or problems(worker, patch(f"*** Add File: {path}", "+evil")),
        "restore": is_there
        or refused(worker, protocol.PlanRestore("t", (image,), True), protocol.Commit("t")),
        "move": move_refused(worker, "mine", path, overwrite=True),
        "move a tree": move_refused(worker, "tree", path) if not is_there else True,
        "make": is_there or refused(worker, protocol.MakeDirectory(path, True)),
        "delete": not is_there or delete_refused(worker, path),
        "move out": not is_there or move_refused(worker, path, "out"),
        "patch out": not is_there or problems(worker, patch(f"*** Delete File: {path}")),
    }


ALL = dict.fromkeys(
    (
        *("write", "upload", "edit", "patch", "restore", "move", "move a tree", "make", "delete"),
        *("move out", "patch out"),
    ),
    True,
)


@pytest.mark.parametrize(
    "name",
    ["config", "hooks/pre-commit", "commondir", "modules/m", "config.worktree", "info/attributes"],
)
@pytest.mark.parametrize("way", ["plain", "link", "linked", "pointed", "named otherwise"])
def test_nothing_gets_into_git_s_directory(
    worker: FileWorker, directory: Path, way: str, name: str
) -> None:
    base = ".git"
    match way:
        case "plain":
            repository(directory / ".git")
        case "link":
            repository(directory / ".git")
            (directory / "sly").symlink_to(".git")
            base = "sly"
        case "linked":
            repository(directory / "deep" / "store")
            (directory / ".git").symlink_to("deep/store")
            base = "deep/store"
        case "pointed":
            repository(directory / "deep" / "store")
            (directory / "work").mkdir()
            (directory / "work" / ".git").write_text("gitdir: ../deep/store\n")
            base = "work/../deep/store"
        case _:
            repository(directory / "bare.repository")
            base = "bare.repository"
    assert ways_in(worker, directory, f"{base}/{name}") == ALL


def test_nothing_gets_into_a_directory_that_git_is_led_to(
    worker: FileWorker, directory: Path
) -> None:
    (directory / "deep" / "worktree").mkdir(parents=True)
    (directory / "shared").mkdir()
    (directory / ".git").write_text(f"gitdir: {directory}/deep/worktree\n")
    (directory / "deep" / "worktree" / "commondir").write_text("../../shared\n")
    for path in ("deep/worktree/config", "shared/config", "shared/hooks/x", ".git", ".GIT/config"):
        assert ways_in(worker, directory, path) == ALL, path
        shutil.rmtree(directory / "tree")


def test_nothing_is_put_where_git_is_led_to_in_vain(worker: FileWorker, directory: Path) -> None:
    (directory / ".git").symlink_to("a/store")
    for path in ("a/store", "a/store/config", "a"):
        results = ways_in(worker, directory, path)
        shutil.rmtree(directory / "tree", ignore_errors=True)
        assert results == ALL, path
    assert not (directory / "a").exists()


def test_what_git_is_led_to_is_not_exchanged_from_above(
    worker: FileWorker, directory: Path
) -> None:
    repository(directory / "a" / "store")
    (directory / ".git").symlink_to("a/store")
    assert move_refused(worker, "a", "b")
    assert move_refused(worker, "a/store", "b")
    assert delete_refused(worker, "a/store", recursive=True)


@pytest.mark.parametrize("last", ["HEAD", "refs", "objects", "commondir"])
def test_no_directory_becomes_git_s(worker: FileWorker, directory: Path, last: str) -> None:
    for name in ("HEAD", "refs", "objects"):
        (directory / "d" / name).mkdir(parents=True)
    if last == "commondir":
        (directory / "d" / "refs").rmdir()
    else:
        (directory / "d" / last).rmdir()
    assert ways_in(worker, directory, f"d/{last}") == ALL


def test_a_plan_is_not_led_into_git_s_directory_before_it_is_made(
    worker: FileWorker, directory: Path
) -> None:
    config = repository(directory / ".git") / "config"
    for swap in ("link", "rename"):
        (directory / "d").mkdir()
        plan = protocol.PlanWrite("t", "d/config.new", b"evil", guards_git=True)
        upload = protocol.StartUpload("u", "d/hook", 4, guards_git=True)
        worker.ask(plan)
        (directory / "d").rmdir()
        if swap == "link":
            (directory / "d").symlink_to(".git")
        else:
            (directory / ".git").rename(directory / "d")
        assert refused(worker, protocol.Commit("t"))
        assert refused(worker, upload)
        if swap == "link":
            (directory / "d").unlink()
        else:
            (directory / "d").rename(directory / ".git")
    assert (config.read_text(), sorted(os.listdir(directory))) == (SAFE, [".git"])
    assert not (directory / ".git" / "config.new").exists()


def test_an_upload_is_not_led_into_git_s_directory_while_it_arrives(
    worker: FileWorker, directory: Path
) -> None:
    (directory / "d").mkdir()
    worker.ask(protocol.StartUpload("u", "d/config", 4, guards_git=True))
    worker.ask(protocol.UploadChunk("u", b"evil"))
    repository(directory / ".git")
    (directory / "d").rename(directory / ".git" / "modules" / "d")
    (directory / "d").mkdir()
    worker.ask(protocol.PlanUpload("u"))
    assert refused(worker, protocol.Commit("u"))
    assert os.listdir(directory / ".git" / "modules" / "d") == []


def test_what_only_looks_like_git_s_is_nobody_s(worker: FileWorker, directory: Path) -> None:
    repository(directory / "clone" / ".git")
    (directory / "src").mkdir()
    for path in (".gitignore", ".github/workflows/x.yml", "src/HEAD", "clone/config", "hooks/x"):
        worker.ask(protocol.PlanWrite("t", path, b"x", guards_git=True))
        worker.ask(protocol.Commit("t"))
    worker.ask(protocol.PlanMove("m", "clone", "moved", False, True))
    worker.ask(protocol.Commit("m"))
    worker.ask(protocol.MakeDirectory("src/refs", True))
    worker.ask(protocol.PlanDelete("m", "moved", True, True))
    worker.ask(protocol.Commit("m"))
    repository(directory / ".git")
    worker.ask(protocol.PlanWrite("t", ".git/config", b"x"))
    worker.ask(protocol.Commit("t"))
    assert (directory / ".git" / "config").read_bytes() == b"x"
