"""What tests of a directory share is stopped once, when a run leaves that directory."""

from pathlib import Path

import pytest

from support.session.shared_programs import stop_left, stop_when_left


def test_what_is_shared_is_stopped_when_the_next_test_is_elsewhere() -> None:
    stash, here = pytest.Stash(), Path("/tests/e2e")
    stopped: list[str] = []
    stop_when_left(stash, here, lambda: stopped.append("stack"))
    stop_when_left(stash, here / "page", lambda: stopped.append("browser"))
    told = []
    for path in (here / "page/test_a.py", here / "test_b.py", None, Path("/tests/unit/test_c.py")):
        stop_left(stash, path)
        stop_left(stash, path)
        told.append(tuple(stopped))

    assert told == [(), ("browser",), ("browser",), ("browser", "stack")]
