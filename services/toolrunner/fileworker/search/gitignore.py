"""Ignore rules of git, from the .gitignore files from the root down to a directory."""

import os
import re
from dataclasses import dataclass
from typing import Final

from toolrunner.filesystem import errors
from toolrunner.filesystem.beneath import Root
from toolrunner.fileworker.content.snapshot import opened_file
from toolrunner.fileworker.search.globs import compiled

RULES_BYTES_MAX: Final = 256 * 1024
RULES_MAX: Final = 1000
GIT_DIRECTORY: Final = ".git"


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of a .gitignore."""

    base: str  # Its directory, with a trailing slash; empty for the root.
    pattern: re.Pattern[str]
    is_negated: bool
    is_directory_only: bool


@dataclass(frozen=True, slots=True)
class Ignores:
    """All rules for a directory; the last that matches decides."""

    rules: tuple[Rule, ...] = ()

    def ignores(self, path: str, *, is_directory: bool) -> bool:
        """Return whether git ignores a path whose parent directories are not ignored."""
        if path.rpartition("/")[2] == GIT_DIRECTORY:
            return True
        for rule in reversed(self.rules):
            is_meant = is_directory or not rule.is_directory_only
            if is_meant and rule.pattern.fullmatch(path[len(rule.base) :]):
                return not rule.is_negated
        return False

    def below(self, root: Root, directory: str) -> "Ignores":
        """Return the rules for a subdirectory, including its own file."""
        base = f"{directory}/" if directory else ""
        text = _read(root, f"{base}.gitignore")
        return Ignores((*self.rules, *_rules(base, text))) if text else self


def ignores_at(root: Root, directory: str) -> Ignores:
    """Return the rules from the root down to a directory."""
    ignores = Ignores(tuple(_rules("", _read(root, ".git/info/exclude")))).below(root, "")
    parts = [part for part in directory.split("/") if part]
    for depth in range(1, len(parts) + 1):
        ignores = ignores.below(root, "/".join(parts[:depth]))
    return ignores


def _read(root: Root, path: str) -> str:
    try:
        with opened_file(root, path, shown=path) as (fd, _):
            return os.read(fd, RULES_BYTES_MAX).decode(errors="replace")
    except (OSError, errors.FileRefused):
        return ""


def _rules(base: str, text: str) -> list[Rule]:
    rules: list[Rule] = []
    for line in text.splitlines():
        if len(rules) >= RULES_MAX:
            break
        pattern = line.rstrip() if not line.rstrip().endswith("\\") else line.rstrip() + " "
        if not pattern or pattern.startswith("#"):
            continue
        is_negated = pattern.startswith("!")
        pattern = pattern[1:] if is_negated else pattern
        is_directory_only = pattern.endswith("/")
        pattern = pattern.rstrip("/")
        anchored = pattern if "/" in pattern else f"**/{pattern}"
        try:
            found = compiled(anchored.lstrip("/"), has_braces=False)
        except re.error:
            continue
        rules.append(Rule(base, found, is_negated, is_directory_only))
    return rules
