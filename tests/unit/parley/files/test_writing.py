import os
from pathlib import Path

import pytest

from parley.files import write_atomically


def test_a_file_is_replaced_with_its_content_and_mode(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    write_atomically(path, b"new", mode=0o640)
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"new", 0o640)
    write_atomically(path, b"secret")
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(TypeError):
        write_atomically(path, "no bytes")  # type: ignore[arg-type]
    assert os.listdir(tmp_path) == ["file"]
    assert path.read_text() == "old"
