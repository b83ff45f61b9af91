import io
import os
import subprocess
import tarfile
from pathlib import Path

import pytest

from parley.cli.chats.directory_copy import Packed, apply_patch, packed
from parley.cli.errors import CliError, ConfigurationProblem

PATCH = """diff --git a/a.txt b/a.txt
--- a/a.txt
+++ b/a.txt
@@ -1 +1 @@
-one
+two
"""


def names_in(copied: Packed) -> list[str]:
    with tarfile.open(fileobj=io.BytesIO(copied.archive)) as unpacked:
        return unpacked.getnames()


def filled(directory: Path, **files: str) -> Path:
    for name, content in files.items():
        (directory / name.replace("_", ".")).write_text(content)
    return directory


def test_all_files_of_a_plain_directory_are_packed(tmp_path: Path) -> None:
    filled(tmp_path, a_txt="one", b_log="noise")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "c").write_text("")
    (tmp_path / "link").symlink_to("a.txt")
    os.mkfifo(tmp_path / "pipe")
    copied = packed(tmp_path)
    assert names_in(copied) == ["a.txt", "b.log", "deep/c", "link"]
    assert not copied.is_chosen


def test_of_a_repository_only_what_is_not_ignored_is_packed(tmp_path: Path) -> None:
    filled(tmp_path, a_txt="one", b_log="noise", gone_txt="")
    (tmp_path / ".gitignore").write_text("*.log\n")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    subprocess.run(["git", "add", "gone.txt"], cwd=tmp_path, check=True)
    (tmp_path / "gone.txt").unlink()
    copied = packed(tmp_path)
    assert names_in(copied) == [".gitignore", "a.txt"]
    assert copied.is_chosen


def test_what_is_no_directory_cannot_be_packed(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationProblem, match="is no directory: name one that exists"):
        packed(tmp_path / "missing")


def test_more_files_than_can_be_packed_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("parley.cli.chats.directory_copy.FILES_MAX", 1)
    filled(tmp_path, a_txt="", b_txt="")
    with pytest.raises(ConfigurationProblem, match="holds over 1 files: name a smaller"):
        packed(tmp_path)


def test_a_patch_changes_a_directory_or_nothing(tmp_path: Path) -> None:
    filled(tmp_path, a_txt="one\n")
    apply_patch(tmp_path, PATCH)
    assert (tmp_path / "a.txt").read_text() == "two\n"
    with pytest.raises(CliError, match=r"do not fit .* any more, nothing was applied"):
        apply_patch(tmp_path, PATCH)
    assert (tmp_path / "a.txt").read_text() == "two\n"


def git(directory: Path, *words: str) -> str:
    people = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    command = ["git", *people, *words]
    return subprocess.run(command, cwd=directory, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def inner(tmp_path: Path) -> Path:
    """Give a directory below the top of a repository, with everything committed."""
    inner = tmp_path / "deep er" / "inner"
    inner.mkdir(parents=True)
    filled(inner, a_txt="one\n", b_txt="b\n", c_txt="c\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "all")
    return inner


def test_a_patch_changes_a_directory_below_the_top_of_a_repository(inner: Path) -> None:
    apply_patch(inner, PATCH)
    assert (inner / "a.txt").read_text() == "two\n"
    assert git(inner, "status", "--porcelain") == ' M "deep er/inner/a.txt"\n'


def test_a_patch_leaves_work_that_is_in_no_commit_and_stages_nothing(inner: Path) -> None:
    filled(inner, a_txt="zero\n\n\n\none\n", b_txt="staged\n", new_txt="new\n")
    git(inner, "add", "b.txt", "a.txt")
    filled(inner, b_txt="staged and changed\n")
    (inner / "c.txt").unlink()
    staged = git(inner, "diff", "--cached")
    made = PATCH.replace("@@ -1 +1 @@\n", "@@ -2,4 +2,4 @@\n \n \n \n")

    apply_patch(inner, made)

    assert git(inner, "diff", "--cached") == staged
    left = {path.name: path.read_text() for path in inner.iterdir()}
    assert left == {
        "a.txt": "zero\n\n\n\ntwo\n",
        "b.txt": "staged and changed\n",
        "new.txt": "new\n",
    }


def test_where_one_file_was_changed_meanwhile_no_file_is_changed(inner: Path) -> None:
    filled(inner, b_txt="somebody was here\n")
    both = PATCH + PATCH.replace("a.txt", "b.txt").replace("one", "b")
    with pytest.raises(CliError, match=r"do not fit .* any more, nothing was applied"):
        apply_patch(inner, both)
    assert (inner / "a.txt").read_text() == "one\n"
    assert (inner / "b.txt").read_text() == "somebody was here\n"


def test_a_hook_of_one_repository_works_on_a_directory_of_another(
    inner: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path_factory.mktemp("other")
    git(other, "init", "-q")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other / ".git" / "index"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    assert names_in(packed(inner)) == ["a.txt", "b.txt", "c.txt"]
    apply_patch(inner, PATCH)
    assert (inner / "a.txt").read_text() == "two\n"
