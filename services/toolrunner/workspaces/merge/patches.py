"""The changes of a merge as unified diffs, for people and models that decide about it."""

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import unified_diff
from typing import Final

from toolrunner.filesystem.tree import Kind
from toolrunner.workspaces.merge.comparison import Change, Side

PATCH_BYTES_MAX: Final = 64 * 1024
PATCHES_BYTES_MAX: Final = 1024 * 1024
#: Comparing long texts takes long; such a file is listed without a patch.
LINES_MAX: Final = 5000
NO_FILE: Final = "/dev/null"


@dataclass(frozen=True, slots=True)
class Patch:
    """The change of one text."""

    path: str
    text: str


def patches_of(changes: Iterable[Change], fork: Side, parent: Side) -> tuple[Patch, ...]:
    """Return the patches of texts; files that are not text, or too long, have none."""
    found: list[Patch] = []
    size = 0
    for change in changes:
        text = _patch(change, fork, parent)
        size += len(text.encode())
        if size > PATCHES_BYTES_MAX:
            break
        if text:
            found.append(Patch(change.path, text))
    return tuple(found)


def _patch(change: Change, fork: Side, parent: Side) -> str:
    is_file = change.before is not None and change.before.kind is Kind.FILE
    old = parent.text(change.path) if is_file else b""
    new: bytes | None = b""
    if change.kind is Kind.FILE:
        new = change.content
        if new is None:
            new = (parent if change.is_parents else fork).text(change.path)
    if old is None or new is None or old == new:
        return ""
    before, after = (text.decode(errors="replace").splitlines() for text in (old, new))
    if max(len(before), len(after)) > LINES_MAX:
        return ""
    old_name = f"a/{change.path}" if is_file else NO_FILE
    new_name = f"b/{change.path}" if change.kind is Kind.FILE else NO_FILE
    lines = unified_diff(before, after, old_name, new_name, lineterm="")
    text = "".join(f"{line}\n" for line in lines)
    return text.encode(errors="replace")[:PATCH_BYTES_MAX].decode(errors="ignore")
