"""The settings of a directory for tasks on it: the table `run` of its `parley.toml`.

    [run]
    check = "python3 -m unittest"   # tells by its exit code whether the work is done
    script = "repair.script"        # the steps of the demo model, which does the work then
    model = "ID"                    # another model than the default

With this file `parley run` works on a copy of the directory without further options: its author
wants that. It cannot cause changes in the directory itself; that takes `--apply`.
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from parley.cli.errors import ConfigurationProblem

FILE: Final = "parley.toml"
TABLE: Final = "run"
KEYS: Final = ("check", "script", "model")


@dataclass(frozen=True, slots=True)
class RunSettings:
    """The settings for tasks on a directory.

    Attributes:
        directory: The directory to copy.
        check: A command whose exit code says whether the work is done, None for none.
        script: The steps of the demo model, None for none.
        model_id: The model, None for the default, or for the demo model if there is a script.
    """

    directory: Path
    check: str | None = None
    script: Path | None = None
    model_id: str | None = None


def settings_of(directory: Path) -> RunSettings | None:
    """Return the settings of a directory, None if it has none.

    Raises:
        ConfigurationProblem: The file has unknown or invalid settings.
    """
    place = directory / FILE
    try:
        document = tomllib.loads(place.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigurationProblem(f"{place} cannot be read ({error}): correct it") from error
    table = document.get(TABLE)
    if table is None:
        return None
    problems = _problems(place, table)
    if problems:
        raise ConfigurationProblem(*problems)
    script = table.get("script")
    return RunSettings(
        directory,
        check=table.get("check"),
        script=None if script is None else directory / script,
        model_id=table.get("model"),
    )


def nearest_settings(start: Path) -> RunSettings | None:
    """Return the settings of `start` or of the nearest parent in the same repository.

    Raises:
        ConfigurationProblem: The file has unknown or invalid settings.
    """
    for directory in _places(start):
        if (settings := settings_of(directory)) is not None:
            return settings
    return None


def repository_of(start: Path) -> Path | None:
    """Return the git repository that contains `start`, None outside of a repository."""
    above = (start, *start.parents)
    return next((directory for directory in above if (directory / ".git").exists()), None)


def _places(start: Path) -> tuple[Path, ...]:
    top = repository_of(start)
    if top is None:
        return (start,)
    return tuple(each for each in (start, *start.parents) if each.is_relative_to(top))


def _problems(place: Path, table: Any) -> list[str]:
    if not isinstance(table, dict):
        return [f"{place}: {TABLE} is no table; write [{TABLE}] and its settings below"]
    unknown = [name for name in table if name not in KEYS]
    problems = [
        f"{place}: {TABLE}.{name} is no setting; there are {', '.join(KEYS)}" for name in unknown
    ]
    problems += [
        f"{place}: {TABLE}.{name} is no text; put it between quotation marks"
        for name in KEYS
        if name in table and not (isinstance(table[name], str) and table[name])
    ]
    if not problems and "script" in table:
        root = place.parent.resolve()
        if not (root / table["script"]).resolve().is_relative_to(root):
            problems.append(f"{place}: {TABLE}.script leads out of the directory; name one in it")
    return problems
