from pathlib import Path

import pytest

from toolrunner.fileworker.git.repositories import CHECKED_NAMES_MAX, DEPTH_MAX, holds_no_repository


def test_a_tree_without_a_repository_holds_none(tmp_path: Path) -> None:
    (tmp_path / "src" / "deep").mkdir(parents=True)
    (tmp_path / "src" / "deep" / "git").write_text("")
    assert holds_no_repository(str(tmp_path))
    assert holds_no_repository(str(tmp_path / "not there"))


@pytest.mark.parametrize("place", [".git", "a/.git", "a/b/c/d/.git"])
def test_what_may_be_a_repository_is_left_to_the_program(tmp_path: Path, place: str) -> None:
    (tmp_path / place).mkdir(parents=True)
    assert not holds_no_repository(str(tmp_path))


def test_a_checkout_whose_data_lie_elsewhere_may_be_one_too(tmp_path: Path) -> None:
    (tmp_path / ".git").write_text("gitdir: elsewhere\n")
    assert not holds_no_repository(str(tmp_path))


def test_deeper_than_repositories_are_found_nobody_looks(tmp_path: Path) -> None:
    (tmp_path.joinpath(*"abcdefgh"[: DEPTH_MAX + 1]) / ".git").mkdir(parents=True)
    assert holds_no_repository(str(tmp_path))


def test_a_large_tree_is_left_to_the_program(tmp_path: Path) -> None:
    for number in range(CHECKED_NAMES_MAX):
        (tmp_path / f"f{number}").touch()
    assert holds_no_repository(str(tmp_path))
    (tmp_path / "one more").touch()
    assert not holds_no_repository(str(tmp_path))


def test_no_link_is_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (outside / "repository" / ".git").mkdir(parents=True)
    root = tmp_path / "root"
    root.mkdir()
    (root / "link").symlink_to(outside)
    assert holds_no_repository(str(root))
