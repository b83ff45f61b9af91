"""Which paths of errors callers see."""

import errno

import pytest

from toolrunner.filesystem.errors import relative_path_of


@pytest.mark.parametrize(
    ("filename", "shown"),
    [("src/a", "src/a"), ("/var/lib/node/plan", ""), (None, ""), (b"src/a", ""), (7, "")],
)
def test_an_absolute_path_of_an_error_is_not_shown(filename: object, shown: str) -> None:
    assert relative_path_of(OSError(errno.EIO, "broken", filename)) == shown
