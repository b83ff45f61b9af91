"""Suggestions of similar names for a missing path."""

import difflib
import os
from itertools import islice
from typing import Final

from toolrunner.filesystem.beneath import Root

SUGGESTIONS_MAX: Final = 3
LIKENESS_MIN: Final = 0.6
NAMES_MAX: Final = 2000


def suggestions_for(root: Root, path: str) -> tuple[str, ...]:
    """Return existing paths that are similar, the most similar first."""
    parts = path.split("/")
    # The deepest directory that exists contains the misspelled name.
    for depth in range(len(parts) - 1, -1, -1):
        above = "/".join(parts[:depth])
        names = _names(root, above)
        if names:
            return tuple(
                f"{above}/{name}" if above else name for name in _near(parts[depth], names)
            )
    return ()


def _names(root: Root, directory: str) -> list[str]:
    try:
        with root.opened(directory, os.O_RDONLY | os.O_DIRECTORY) as fd, os.scandir(fd) as entries:
            return [entry.name for entry in islice(entries, NAMES_MAX)]
    except OSError:
        return []


def _near(name: str, names: list[str]) -> list[str]:
    by_lower = {each.lower(): each for each in sorted(names)}
    found = difflib.get_close_matches(name.lower(), by_lower, SUGGESTIONS_MAX, LIKENESS_MIN)
    stem = name.lower().rsplit(".", 1)[0]
    others = [lower for lower in by_lower if lower.rsplit(".", 1)[0] == stem]
    # Keeps the order, drops duplicates.
    return [by_lower[lower] for lower in dict.fromkeys([*found, *others])][:SUGGESTIONS_MAX]
