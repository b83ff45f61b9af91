"""What a turn changed, file by file: the entries at its start and its end, and the difference."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from difflib import unified_diff
from typing import Final

from toolrunner.checkpoints.domain import Change, Entry, EntryKind

#: Comparing long texts takes long; such a file is listed without a patch.
LINES_MAX: Final = 5000
PATCH_BYTES_MAX: Final = 64 * 1024
PATCHES_BYTES_MAX: Final = 1024 * 1024
NO_FILE: Final = "/dev/null"


@dataclass(frozen=True, slots=True)
class TurnFile:
    """A file or a link that a turn changed.

    Attributes:
        path: The path.
        before: The entry at the start of the turn; None if there was nothing.
        after: The entry at its end.
        is_shared: Whether another chat or a person may have changed it as well.
        patch: The difference; empty if it is not text, too long or not kept.
        added_lines: Lines that the patch adds.
        deleted_lines: Lines that the patch deletes.
        is_readable: Whether the content at the end of the turn is known.
    """

    path: str
    before: Entry | None
    after: Entry | None
    is_shared: bool
    patch: str = ""
    added_lines: int = 0
    deleted_lines: int = 0
    is_readable: bool = False


@dataclass(frozen=True, slots=True)
class TurnFiles:
    """The files of a turn.

    Attributes:
        files: The files by path.
        omitted: How many there are beyond them.
        is_incomplete: Whether changes are not known, or not any more.
    """

    files: tuple[TurnFile, ...]
    omitted: int
    is_incomplete: bool


class TurnFileNotKept(Exception):
    """A turn did not change that file, or its content is not kept."""


def files_of(changes: Iterable[Change]) -> list[TurnFile]:
    """Return the files that changes of one turn amount to, by path; directories have no content."""
    found: dict[str, TurnFile] = {}
    for change in changes:
        known = found.get(change.path)
        if known is None:
            found[change.path] = TurnFile(
                change.path, change.before, change.after, change.is_shared
            )
        else:
            is_shared = known.is_shared or change.is_shared
            found[change.path] = replace(known, after=change.after, is_shared=is_shared)
    return [found[path] for path in sorted(found) if _is_listed(found[path])]


def with_patch(file: TurnFile, before: bytes | None, after: bytes | None) -> TurnFile:
    """Return a file with its difference; None stands for a content that is not known."""
    known = replace(file, is_readable=has_content(file.after) and after is not None)
    if before is None or after is None or b"\0" in before or b"\0" in after:
        return known
    old, new = (text.decode(errors="replace").splitlines() for text in (before, after))
    if max(len(old), len(new)) > LINES_MAX:
        return known
    old_name = NO_FILE if file.before is None else f"a/{file.path}"
    new_name = NO_FILE if file.after is None else f"b/{file.path}"
    lines = [*unified_diff(old, new, old_name, new_name, lineterm="")]
    patch = "".join(f"{line}\n" for line in lines)
    if len(patch.encode(errors="replace")) > PATCH_BYTES_MAX:
        return known
    return replace(
        known,
        patch=patch,
        added_lines=sum(line.startswith("+") for line in lines[2:]),
        deleted_lines=sum(line.startswith("-") for line in lines[2:]),
    )


def has_content(entry: Entry | None) -> bool:
    """Return whether an entry is one with a content: a file, or a link with its target."""
    return entry is not None and entry.kind in (EntryKind.FILE, EntryKind.LINK)


def _is_listed(file: TurnFile) -> bool:
    before, after = file.before, file.after
    if not has_content(before) and not has_content(after):
        return False
    return before is None or not before.equals(after) or before.mode != _mode_of(after)


def _mode_of(entry: Entry | None) -> int:
    return -1 if entry is None else entry.mode
