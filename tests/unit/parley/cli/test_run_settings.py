from pathlib import Path

import pytest

from parley.cli.chats.run_settings import (
    FILE,
    RunSettings,
    nearest_settings,
    repository_of,
    settings_of,
)
from parley.cli.errors import ConfigurationProblem


def say(directory: Path, text: str) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / FILE).write_text(text)


def test_a_directory_says_how_to_work_in_it(tmp_path: Path) -> None:
    say(tmp_path, '[run]\ncheck = "make test"\nscript = "a/steps"\nmodel = "m"\n[other]\nx = 1\n')
    expected = RunSettings(tmp_path, "make test", tmp_path / "a/steps", "m")
    assert settings_of(tmp_path) == expected


def test_a_directory_that_says_nothing_is_not_worked_on(tmp_path: Path) -> None:
    assert settings_of(tmp_path) is None
    say(tmp_path, "[other]\nx = 1\n")
    assert settings_of(tmp_path) is None
    say(tmp_path, "[run]\n")
    assert settings_of(tmp_path) == RunSettings(tmp_path)


def test_a_file_in_place_of_a_directory_has_no_settings(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("")
    assert settings_of(tmp_path / "a.txt") is None


def test_what_is_said_above_holds_within_one_repository_only(tmp_path: Path) -> None:
    say(tmp_path, '[run]\ncheck = "outside"\n')
    inside = tmp_path / "repository"
    (inside / ".git").mkdir(parents=True)
    deep = inside / "a" / "b"
    deep.mkdir(parents=True)
    assert (repository_of(deep), nearest_settings(deep)) == (inside, None)
    say(inside, '[run]\ncheck = "inside"\n')
    assert nearest_settings(deep) == RunSettings(inside, "inside")
    no_repository = tmp_path / "plain" / "deep"
    no_repository.mkdir(parents=True)
    assert nearest_settings(no_repository) is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("run = 3", "run is no table"),
        ("[run]\nscripts = 'x'", "run.scripts is no setting"),
        ("[run]\ncheck = 3", "run.check is no text"),
        ("[run]\ncheck = ''", "run.check is no text"),
        ("[run]\nscript = '../steps'", "run.script leads out"),
        ("[run]\nscript = '/etc/passwd'", "run.script leads out"),
        ("[run", "cannot be read"),
    ],
)
def test_what_cannot_be_meant_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    say(tmp_path, text)
    with pytest.raises(ConfigurationProblem) as refused:
        settings_of(tmp_path)
    assert problem in str(refused.value)


def test_a_link_that_leads_out_is_no_script(tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("run: true")
    say(tmp_path / "in", "[run]\nscript = 'steps'")
    (tmp_path / "in" / "steps").symlink_to(tmp_path / "outside")
    with pytest.raises(ConfigurationProblem):
        settings_of(tmp_path / "in")
