"""The used part of a repository's configuration: only settings that say how files are stored.

A repository may name programs in many places of its configuration: filters, diff drivers, hooks,
file system monitors, remote helpers. An allow list stays safe with a new version of git; a deny
list does not.
"""

from collections.abc import Mapping, Sequence
from typing import Final

_KEPT: Final = frozenset(
    {
        "core.autocrlf",
        "core.checkstat",
        "core.eol",
        "core.filemode",
        "core.ignorecase",
        "core.precomposeunicode",
        "core.repositoryformatversion",
        "core.sparsecheckout",
        "core.sparsecheckoutcone",
        "core.symlinks",
        "core.trustctime",
        "extensions.objectformat",
        "extensions.refstorage",
    }
)
_KEPT_OF_MANY: Final = frozenset({("branch", "merge"), ("branch", "remote"), ("remote", "fetch")})

Settings = Sequence[tuple[str, str]]


def parse_list(output: bytes) -> list[tuple[str, str]]:
    """Return names and values of `git config --list -z`; a name without a value means true."""
    found = []
    for record in output.split(b"\0"):
        if record:
            name, has_value, value = record.partition(b"\n")
            text = value.decode(errors="surrogateescape") if has_value else "true"
            found.append((name.decode(errors="surrogateescape"), text))
    return found


def kept(settings: Settings) -> list[tuple[str, str]]:
    """Return the allowed settings."""
    return [(name, value) for name, value in settings if _is_kept(name)]


def whole(settings: Settings) -> list[tuple[str, str]]:
    """Return settings without those of sparse checkouts."""
    return [each for each in settings if not each[0].startswith("core.sparsecheckout")]


def last_value(settings: Settings, name: str) -> str:
    """Return the effective value; empty for none."""
    return next((value for each, value in reversed(settings) if each == name), "")


def written(settings: Settings) -> bytes:
    """Return settings as a configuration file."""
    lines = []
    for name, value in settings:
        section, _, rest = name.partition(".")
        subsection, _, last = rest.rpartition(".")
        title = f'{section} "{_escaped(subsection)}"' if subsection else section
        lines.append(f'[{title}]\n\t{last} = "{_escaped(value)}"\n')
    return "".join(lines).encode(errors="surrogateescape")


def is_true(value: str) -> bool:
    """Return whether a value is a true boolean."""
    return value.lower() in ("true", "yes", "on", "1")


def _is_kept(name: str) -> bool:
    section, _, rest = name.partition(".")
    subsection, _, last = rest.rpartition(".")
    if not subsection:
        return name in _KEPT
    return "\n" not in subsection and (section, last) in _KEPT_OF_MANY


def _escaped(text: str) -> str:
    marks: Mapping[str, str] = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\b": "\\b"}
    return "".join(marks.get(each, each) for each in text)
