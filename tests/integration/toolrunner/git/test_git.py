"""Real repositories in all their states, looked at by the program's own code."""

import os
from pathlib import Path

import pytest

from support.toolrunner.git_repositories import Bench
from toolrunner.filesystem.errors import FileRefused, Reason
from toolrunner.fileworker.git import command as running
from toolrunner.fileworker.git import diff as differences
from toolrunner.fileworker.git.command import Git
from toolrunner.fileworker.git.handlers import GitHandlers
from toolrunner.fileworker.git.protocol import (
    FILES_MAX,
    FileState,
    GitFile,
    GitStatus,
    Repositories,
    Repository,
)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench.at(tmp_path)


def test_a_clean_repository_costs_one_run(bench: Bench) -> None:
    bench.init()
    bench.put("a.txt", "1\n")
    commit = bench.commit()
    bench.status()
    runs = bench.work.git.runs

    assert bench.status() == Repository("", branch="main", commit=commit)
    assert bench.work.git.runs - runs == 1


def test_every_kind_of_change_is_told_with_its_lines_in_two_runs(bench: Bench) -> None:
    bench.init()
    for name in ("changed", "staged", "both", "gone", "turned", "mode"):
        bench.put(name, f"{name}\n2\n3\n")
    bench.put("old name", "".join(f"{line}\n" for line in range(50)))
    bench.put("picture", b"\0\1\2")
    commit = bench.commit()
    bench.put("changed", "changed\n2\n3\n4\n")
    bench.put("staged", "another\n2\n3\n")
    bench.git("mv", "old name", "new name")
    bench.put("added", "1\n")
    bench.git("add", "staged", "added")
    bench.put("both", "x\n2\n3\n")
    bench.git("add", "both")
    bench.put("both", "x\n2\ny\n")
    (bench.root / "gone").unlink()
    (bench.root / "turned").unlink()
    (bench.root / "turned").symlink_to("changed")
    bench.put("picture", b"\0\3")
    bench.put("new/file", "1\n2")
    bench.put("new/bytes", b"\0")
    (bench.root / "new/link").symlink_to("/etc/passwd")
    bench.status()
    runs = bench.work.git.runs

    assert bench.status() == Repository(
        "",
        branch="main",
        commit=commit,
        files=(
            GitFile("added", FileState.ADDED, "", 1, 0, is_staged=True),
            GitFile("both", FileState.MODIFIED, "", 2, 2),
            GitFile("changed", FileState.MODIFIED, "", 1, 0),
            GitFile("gone", FileState.DELETED, "", 0, 3),
            GitFile("new name", FileState.RENAMED, "old name", 0, 0, is_staged=True),
            GitFile("picture", FileState.MODIFIED, is_binary=True),
            GitFile("staged", FileState.MODIFIED, "", 1, 1, is_staged=True),
            GitFile("turned", FileState.TYPE_CHANGED, "", 1, 3),
            GitFile("new/bytes", FileState.UNTRACKED, is_binary=True),
            GitFile("new/file", FileState.UNTRACKED, "", 2),
            GitFile("new/link", FileState.UNTRACKED, "", 1),
        ),
        added_lines=9,
        deleted_lines=9,
    )
    assert bench.work.git.runs - runs == 2


def test_a_repository_before_its_first_commit_has_a_branch_and_files(bench: Bench) -> None:
    bench.init()
    bench.put("new", "1\n")
    bench.put("added", "1\n2\n")
    bench.git("add", "added")

    assert bench.status() == Repository(
        "",
        branch="main",
        files=(
            GitFile("added", FileState.ADDED, "", 2, is_staged=True),
            GitFile("new", FileState.UNTRACKED, "", 1),
        ),
        added_lines=3,
    )
    diff = bench.diff()
    assert [file.path for file in diff.files] == ["added", "new"]
    assert (diff.base_commit, diff.target_commit, diff.is_truncated) == ("", "", False)


def test_a_detached_head_has_no_branch(bench: Bench) -> None:
    bench.init()
    commit = bench.commit()
    bench.git("checkout", "--quiet", "--detach")

    assert bench.status() == Repository("", commit=commit)


def test_a_conflict_is_told_with_what_is_under_way(bench: Bench) -> None:
    bench.init()
    bench.put("f", "1\n")
    bench.commit()
    bench.git("checkout", "--quiet", "-b", "other")
    bench.put("f", "2\n")
    bench.commit()
    bench.git("checkout", "--quiet", "main")
    bench.put("f", "3\n")
    bench.commit()
    bench.git("merge", "other", fails=True)

    status = bench.status()

    assert status.files == (GitFile("f", FileState.CONFLICTED, "", 4),)
    assert status.problem == "a merge is under way, with conflicts in 1 files"
    assert "+<<<<<<< HEAD" in bench.diff().patch


def test_what_a_branch_follows_is_told_without_the_password(bench: Bench) -> None:
    bench.init("far")
    bench.commit("one", at="far")
    bench.git("clone", "--quiet", "far", "near")
    bench.commit("two", at="far")
    bench.git("fetch", "--quiet", at="near")
    bench.commit("three", at="near")
    bench.commit("four", at="near")
    bench.git("remote", "set-url", "origin", "https://me:secret@example.org/x.git", at="near")

    (near,) = bench.statuses("near")

    assert (near.upstream, near.ahead, near.behind) == ("origin/main", 2, 1)
    assert near.origin_url == "https://example.org/x.git"


def test_all_repositories_of_a_workspace_are_found_each_with_its_own_files(bench: Bench) -> None:
    bench.init()
    bench.put(".gitignore", "ignored/\n")
    bench.commit()
    bench.init("services/api")
    bench.put("services/api/new", "1\n")
    bench.init("ignored/one")
    bench.git("worktree", "add", "--quiet", "beside", "-b", "side")
    bench.put("beside/x", "1\n")

    found = {each.directory: each for each in bench.statuses()}

    assert set(found) == {"", "beside", "services/api"}
    assert found[""].files == ()
    assert found["beside"].branch == "side"
    assert [file.path for file in found["beside"].files] == ["x"]
    assert [file.path for file in found["services/api"].files] == ["new"]
    assert bench.statuses("services/api")[0].directory == "services/api"


def test_a_submodule_is_a_repository_of_its_own(bench: Bench, tmp_path: Path) -> None:
    other = Bench.at(tmp_path / "other")
    other.init()
    other.put("inside", "1\n")
    other.commit()
    bench.init()
    bench.git("submodule", "--quiet", "add", str(other.root), "module")
    bench.commit()
    bench.put("module/inside", "2\n")

    found = {each.directory: each.files for each in bench.statuses()}

    assert found == {"": (), "module": (GitFile("inside", FileState.MODIFIED, "", 1, 1),)}
    bench.commit(at="module")
    found = {each.directory: each.files for each in bench.statuses()}
    assert found == {"": (GitFile("module", FileState.MODIFIED, "", 1, 1),), "module": ()}
    assert "Subproject commit" in bench.diff().patch


def test_a_directory_in_no_repository_is_refused(bench: Bench) -> None:
    bench.put("plain/file", "1\n")

    assert bench.statuses() == ()
    for directory, reason in (("plain", "NOT_A_REPOSITORY"), ("none", "PATH_NOT_FOUND")):
        with pytest.raises(FileRefused) as refused:
            bench.statuses(directory)
        assert refused.value.reason == reason


def test_a_git_directory_outside_of_the_workspace_is_none(bench: Bench, tmp_path: Path) -> None:
    other = Bench.at(tmp_path / "other")
    other.init()
    other.commit()
    bench.put(".git", f"gitdir: {other.root}/.git\n")
    (bench.root / "sub").mkdir()
    (bench.root / "sub/.git").symlink_to(other.root / ".git")

    assert bench.statuses() == ()


def test_a_broken_index_is_a_problem_and_no_failure(bench: Bench) -> None:
    bench.init()
    bench.put("a", "1\n")
    bench.commit()
    (bench.root / ".git/index").write_bytes(b"nonsense")

    status = bench.status()

    assert (status.files, "index file" in status.problem) == ((), True)


def test_names_with_newlines_and_bytes_of_no_encoding_are_kept_apart(bench: Bench) -> None:
    bench.init()
    names = [b"new\nline", b"\xff\xfe", b'quo"te', b" lead", b"tab\t", "ü".encode(), b"-rf"]
    for name in names:
        (bench.root / os.fsdecode(name)).write_bytes(b"1\n")

    found = [os.fsencode(file.path) for file in bench.status().files]

    assert sorted(found) == sorted(names)
    diff = bench.diff()
    assert sorted(os.fsencode(file.path) for file in diff.files) == sorted(names)
    assert {file.added_lines for file in diff.files} == {1}
    small = bench.diff(max_bytes=1)
    assert sorted(map(os.fsencode, small.omitted_paths)) == sorted(names)
    bench.commit()
    bench.git("mv", "--", os.fsdecode(b"new\nline"), os.fsdecode(b"other\nline\xff"))
    (file,) = bench.diff().files
    assert (file.state, file.old_path) == (FileState.RENAMED, "new\nline")
    assert bench.diff(max_bytes=1).omitted_paths == (os.fsdecode(b"other\nline\xff"),)


def test_a_difference_between_commits_is_of_those_commits(bench: Bench) -> None:
    bench.init()
    bench.put("a", "1\n")
    first = bench.commit()
    bench.put("a", "2\n")
    second = bench.commit()
    bench.git("tag", "v1", first)
    bench.put("a", "3\n")

    diff = bench.diff(base="v1", target="main")

    assert (diff.base_commit, diff.target_commit) == (first, second)
    assert "-1\n+2\n" in diff.patch
    for names in ({"base": "nothing"}, {"target": "nothing"}, {"base": "main:a"}):
        with pytest.raises(FileRefused) as refused:
            bench.diff(**names)  # type: ignore[arg-type]
        assert refused.value.reason is Reason.INVALID_REQUEST


def test_a_difference_is_of_the_paths_that_are_asked_for(bench: Bench) -> None:
    bench.init()
    bench.commit()
    for name in ("in/a", "in/b", "out", "*"):
        bench.put(name, "1\n")

    assert [file.path for file in bench.diff(paths=("in", "*")).files] == ["*", "in/a", "in/b"]


def test_a_huge_difference_has_whole_files_and_names_the_others(bench: Bench) -> None:
    bench.init()
    bench.commit()
    bench.put("a", "1\n")
    bench.put("huge", "x" * 3_000_000)
    bench.put("long", "line\n" * 200_000)
    bench.put("z", "1\n")

    diff = bench.diff(max_bytes=10_000)

    assert diff.omitted_paths == ("huge", "long")
    assert diff.is_truncated
    assert diff.patch.count("diff --git") == 2
    assert diff.patch.endswith("@@ -0,0 +1 @@\n+1\n")
    assert [file.added_lines for file in diff.files] == [1, 1, 200_000, 1]
    assert bench.diff(is_files_only=True).patch == ""


def test_what_is_beyond_all_bounds_is_not_even_read(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(differences, "SKIPPED_BYTES_MAX", 300_000)
    bench.init()
    bench.commit()
    for name in ("a", "b", "c"):
        bench.put(name, "line\n" * 100_000)

    diff = bench.diff(max_bytes=1000)

    assert (diff.omitted_paths, diff.patch) == (("a", "b", "c"), "")


def test_more_files_than_fit_are_counted(bench: Bench) -> None:
    bench.init()
    for number in range(FILES_MAX + 5):
        bench.put(f"d/{number:05}", "1\n")

    status = bench.status()

    assert (len(status.files), status.omitted_files) == (FILES_MAX, 5)
    assert status.added_lines == FILES_MAX + 5
    assert bench.diff(max_bytes=100).is_truncated


def test_a_change_in_the_moment_of_a_commit_is_seen(bench: Bench) -> None:
    bench.init()
    for number in range(3):
        bench.put("a", f"{number}1\n")
        bench.commit()
        bench.put("a", f"{number}2\n")

        assert f"-{number}1\n+{number}2\n" in bench.diff().patch
        assert [file.path for file in bench.keep("one").files] == ["a"]


def test_the_index_of_a_repository_is_left_as_it_is(bench: Bench) -> None:
    bench.init()
    bench.put("a", "1\n")
    bench.commit()
    bench.put("a", "2\n")
    bench.put("b", "1\n")
    bench.git("add", "a")
    index = (bench.root / ".git/index").read_bytes()

    bench.status()
    bench.diff()
    bench.keep("one")

    assert (bench.root / ".git/index").read_bytes() == index
    assert bench.git("for-each-ref", "refs/heads").count("\n") == 1


def test_more_than_can_be_told_is_a_problem_and_not_held_in_memory(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "OUTPUT_BYTES_MAX", 1000)
    bench.init()
    for number in range(200):
        bench.put(f"{number:020}", "1\n")

    assert bench.status().problem == "there is too much to tell"


def test_git_that_takes_too_long_is_ended(bench: Bench, tmp_path: Path) -> None:
    slow = tmp_path / "slow-git"
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    bench.init()
    hasty = Bench(bench.root, GitHandlers(bench.work.root, Git(str(slow), {}, tmp_path)))

    (repository,) = hasty.ask(GitStatus("", 0.1), Repositories).repositories

    assert repository.problem == "it takes too long"


def test_a_work_tree_with_some_files_left_out_is_kept_as_it_is(bench: Bench) -> None:
    bench.init()
    for name in ("in/a", "out/b"):
        bench.put(name, "1\n")
    bench.commit()
    bench.git("sparse-checkout", "set", "in")
    assert not (bench.root / "out").exists()
    assert bench.status().files == ()
    bench.put("out/new", "1\n")
    kept = bench.keep("one").checkpoint
    before = bench.tree()
    (bench.root / "out/new").unlink()

    bench.restore(kept.ref)

    assert bench.tree() == before


def test_a_repository_with_long_names_of_objects_works(bench: Bench) -> None:
    bench.git("init", "--quiet", "--initial-branch=main", "--object-format=sha256")
    bench.put("a", "1\n")
    assert len(bench.keep("one").checkpoint.commit) == 64
    bench.git("add", "a")
    assert bench.status().files == (GitFile("a", FileState.ADDED, "", 1, is_staged=True),)
