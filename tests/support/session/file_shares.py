"""Which test files each worker of a run of unit tests reads and runs, and no other worker does.

Reading all unit tests, with all that they import, takes longer than running them. In a run of
everything each worker nevertheless reads all, because tests that wait are given out one file after
the other. Unit tests do not wait, so their files are divided beforehand: neighbours stay together,
because they import the same.
"""

from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path

import pytest
from xdist.scheduler import EachScheduling
from xdist.workermanage import parse_tx_spec_config

#: What is divided, if a run names nothing else.
DIVIDED = (Path("tests/unit"),)
#: With fewer for each worker they would rarely end at the same time.
FILES_MIN = 10
#: What a file takes beside its tests, as if it were so much longer.
FILE_BYTES = 2_000


class OwnShares(EachScheduling):  # type: ignore[misc]  # xdist comes without types.
    """Has each worker run all that it read."""

    def schedule(self) -> None:
        """Start the workers, and count the tests of all of them for the progress."""
        session = self.config.pluginmanager.get_plugin("session")
        session.testscollected = sum(map(len, self.node2collection.values()))
        super().schedule()


def is_divided(config: pytest.Config) -> bool:
    """Return whether the workers of this run read different files."""
    workers = workers_of(config)
    return workers > 1 and len(named_files(config)) >= FILES_MIN * workers


def workers_of(config: pytest.Config) -> int:
    """Return how many workers a run has, in any of its processes."""
    if hasattr(config, "workerinput"):
        return int(config.workerinput["workercount"])
    return len(parse_tx_spec_config(config)) if config.getoption("tx", None) else 0


def share_of_worker(config: pytest.Config) -> frozenset[Path] | None:
    """Return the test files of this worker; None if it reads all that the run names."""
    if not hasattr(config, "workerinput") or not is_divided(config):
        return None
    number = int(config.workerinput["workerid"].removeprefix("gw"))
    workers = workers_of(config)
    return frozenset(shares(named_files(config), workers)[number % workers])


def named_files(config: pytest.Config) -> list[tuple[Path, int]]:
    """Return the test files that a run names, with their sizes; none if it names other tests."""
    named = [config.invocation_params.dir / each for each in config.args]
    below = [config.rootpath / each for each in DIVIDED]
    if not all(any(path.is_relative_to(each) for each in below) for path in named):
        return []
    files = {file for path in named for file in _files(path)}
    return [(file, file.stat().st_size + FILE_BYTES) for file in sorted(files)]


def shares(files: Sequence[tuple[Path, int]], count: int) -> list[list[Path]]:
    """Divide files into shares of about the same size, in their order."""
    divided: list[list[Path]] = [[] for _ in range(count)]
    total = sum(size for _, size in files)
    ends = accumulate(size for _, size in files)
    for (path, size), end in zip(files, ends, strict=True):
        middle = end - size / 2
        divided[min(int(middle * count / total), count - 1)].append(path)
    return divided


def _files(path: Path) -> Iterator[Path]:
    if path.is_dir():
        yield from path.rglob("test_*.py")
    elif path.is_file():
        yield path
