"""Errors of git name paths relative to the workspace."""

from pathlib import Path

import pytest

from support.toolrunner.git_repositories import Bench
from toolrunner.filesystem.errors import FileRefused, Reason


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench.at(tmp_path)


def test_errors_of_git_name_paths_relative_to_the_workspace(bench: Bench, tmp_path: Path) -> None:
    bench.init("part")
    bench.put("part/a", "1\n")
    commit = bench.commit(at="part")
    bench.put("part/a", "2\n")
    bench.diff("part")
    damaged = f"part/.git/objects/{commit[:2]}/{commit[2:]}"
    (bench.root / damaged).unlink()
    bench.put(damaged, "damaged")
    with pytest.raises(FileRefused) as of_object:
        bench.diff("part")
    bench.put("part/.git/config", "[core\n")
    with pytest.raises(FileRefused) as of_config:
        bench.diff("part")
    assert of_config.value.reason is Reason.GIT_FAILED
    assert "part/.git/config" in str(of_config.value)
    (repository,) = bench.statuses()
    assert "part/.git/config" in repository.problem
    texts = [
        repository.problem,
        *(f"{each.value} {each.value.metadata}" for each in (of_object, of_config)),
    ]
    assert [text for text in texts if str(tmp_path) in text] == []
