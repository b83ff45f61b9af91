"""What tests of one directory share is stopped when a run goes on with tests of others.

A stack that runs takes a share of the processors also while it is not used, and a run goes on for
long after the last test of its directory.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

_SHARED = pytest.StashKey[list[tuple[Path, Callable[[], object]]]]()


def stop_when_left(stash: pytest.Stash, directory: Path, stop: Callable[[], object]) -> None:
    """Have something stopped, once, after the last test below a directory."""
    stash.setdefault(_SHARED, []).append((directory, stop))


def stop_left(stash: pytest.Stash, next_path: Path | None) -> None:
    """Stop what the next test does not share; without a next one fixtures end everything."""
    if next_path is None:
        return
    shared = stash.get(_SHARED, [])
    left = [each for each in shared if each[0] not in next_path.parents]
    shared[:] = [each for each in shared if each not in left]
    for _, stop in left:
        stop()
