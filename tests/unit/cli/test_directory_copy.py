import io
import os
import subprocess
import tarfile
from pathlib import Path

import pytest

from parley.cli.directory_copy import apply_patch, packed
from parley.cli.errors import CliError, ConfigurationProblem

PATCH = """--- a/a.txt
+++ b/a.txt
@@ -1 +1 @@
-one
+two
"""


def names_in(archive: bytes) -> list[str]:
    with tarfile.open(fileobj=io.BytesIO(archive)) as unpacked:
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
    assert names_in(packed(tmp_path)) == ["a.txt", "b.log", "deep/c", "link"]


def test_of_a_repository_only_what_is_not_ignored_is_packed(tmp_path: Path) -> None:
    filled(tmp_path, a_txt="one", b_log="noise", gone_txt="")
    (tmp_path / ".gitignore").write_text("*.log\n")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    subprocess.run(["git", "add", "gone.txt"], cwd=tmp_path, check=True)
    (tmp_path / "gone.txt").unlink()
    assert names_in(packed(tmp_path)) == [".gitignore", "a.txt"]


def test_what_is_no_directory_cannot_be_packed(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationProblem, match="is no directory: name one that exists"):
        packed(tmp_path / "missing")


def test_more_files_than_can_be_packed_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("parley.cli.directory_copy.FILES_MAX", 1)
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
