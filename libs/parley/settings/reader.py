"""Reads a settings dataclass from an environment."""

import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from parley.settings.errors import SettingsError
from parley.settings.fields import FILE_SUFFIX, Field, fields_of
from parley.settings.parsing import parse
from parley.settings.secret import Secret

T = TypeVar("T")


def read(settings_type: type[T], environment: Mapping[str, str], *, prefix: str) -> T:
    """Return the settings in `environment` under `prefix`.

    An empty variable counts as not set. A `ValueError` raised by the dataclass's own
    `__post_init__` is reported like any other problem.

    Raises:
        SettingsError: Settings are missing or invalid; the error lists every problem.
    """
    fields = fields_of(settings_type, prefix=prefix)
    given = {name: text.strip() for name, text in environment.items() if text.strip()}
    problems = _unknown_names(fields, environment, prefix=prefix)
    values: dict[str, object] = {}
    for field in fields:
        try:
            values[field.attribute] = _value(field, given)
        except ValueError as problem:
            problems.append(str(problem))
    if problems:
        raise SettingsError(tuple(problems))
    try:
        return settings_type(**values)
    except ValueError as problem:
        raise SettingsError((str(problem),)) from None


def _unknown_names(
    fields: Sequence[Field], environment: Mapping[str, str], *, prefix: str
) -> list[str]:
    known = [name for field in fields for name in field.names]
    problems = []
    for name in sorted(environment):
        if not name.startswith(f"{prefix}_") or name in known:
            continue
        problems.append(f"{name} is not a setting: {_remedy(name, known)}")
    return problems


def _remedy(name: str, known: Sequence[str]) -> str:
    without_suffix = name.removesuffix(FILE_SUFFIX)
    if without_suffix in known:
        return f"only secrets are read from files, so set {without_suffix}"
    nearest = difflib.get_close_matches(name, known, n=1, cutoff=0.0)
    return f"did you mean {nearest[0]}?" if nearest else "unset it"


def _value(field: Field, given: Mapping[str, str]) -> object:
    if field.type is Secret and field.name + FILE_SUFFIX in given:
        return _secret_from_file(field, given)
    if field.name in given:
        try:
            return parse(field, given[field.name])
        except ValueError as problem:
            raise ValueError(f"{field.name} {problem}") from None
    if field.is_required:
        also = f" or {field.names[1]}" if len(field.names) > 1 else ""
        doc = f" ({field.doc.rstrip('.')})" if field.doc else ""
        raise ValueError(f"{field.name} is not set: set it{also} to a {field.kind}{doc}")
    return field.default


def _secret_from_file(field: Field, given: Mapping[str, str]) -> Secret:
    name = field.name + FILE_SUFFIX
    if field.name in given:
        raise ValueError(f"{field.name} and {name} are both set: unset one of them")
    path = Path(given[name]).expanduser()
    try:
        text = path.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise ValueError(
            f"{name} names {path}, which cannot be read: {error.strerror or error}"
        ) from None
    except UnicodeDecodeError:
        raise ValueError(f"{name} names {path}, which is not UTF-8 text") from None
    if not text:
        raise ValueError(f"{name} names {path}, which is empty: write the secret into it")
    return Secret(text)
