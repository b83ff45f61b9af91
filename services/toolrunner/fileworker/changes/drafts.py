"""Drafts of files: the content after a change, in memory until all checks have passed."""

from dataclasses import dataclass, field
from typing import Final

from toolrunner.filesystem import errors
from toolrunner.filesystem.beneath import Root
from toolrunner.fileworker.changes.git_guard import GitGuard
from toolrunner.fileworker.content.detection import etag_of, text_of
from toolrunner.fileworker.content.snapshot import NO_ETAG, Snapshot, snapshot
from toolrunner.fileworker.edits.diff import Diff, unified
from toolrunner.fileworker.values import AppliedEdit, Change, ChangeKind, Image

#: All files of one change together: they are in memory, twice.
CHANGE_BYTES_MAX: Final = 64 * 1024 * 1024


@dataclass(eq=False)
class Draft:
    """One file, before and after.

    Attributes:
        shown: The path as it was requested, relative to the root.
        path: The real path, without links.
        before: The file; None if there is none.
        content: The new content; None if it will be deleted.
        mode: Permission bits of a new file; 0 for the default.
        applied: How replacements were made.
        moved_from: The previous path; empty if it is not moved.
        compared: The content under that path, for the diff.
        guards_git: Whether git's own files are protected from the change.
    """

    shown: str
    path: str
    before: Snapshot | None
    content: bytes | None
    mode: int = 0
    applied: tuple[AppliedEdit, ...] = ()
    moved_from: str = ""
    compared: bytes | None = None
    guards_git: bool = False

    @property
    def before_etag(self) -> str:
        """The current etag of the file."""
        return NO_ETAG if self.before is None else self.before.etag

    @property
    def after_etag(self) -> str:
        """The etag of the file after the change."""
        return NO_ETAG if self.content is None else etag_of(self.content)

    @property
    def is_changed(self) -> bool:
        """Whether the content changes."""
        return self.before_etag != self.after_etag

    def image(self) -> Image:
        """Return the image to restore the file."""
        before = self.before
        return Image(
            path=self.path,
            before=None if before is None else before.content,
            mode=None if before is None else before.mode,
            before_etag=self.before_etag,
            after_etag=self.after_etag,
            is_kept=before is None or before.content is not None,
        )


@dataclass
class Drafts:
    """All files of one change; the same file has one draft."""

    root: Root
    guards_git: bool
    by_path: dict[str, Draft] = field(default_factory=dict)
    shown_by_inode: dict[tuple[int, int], str] = field(default_factory=dict)
    size_bytes: int = 0

    def open(self, asked: str) -> Draft:
        """Return the draft of a file, created at the first call.

        Raises:
            FileRefused: It may not be changed, or is not a regular file.
            AliasedPath: The file has a draft under another path.
        """
        shown = self.root.relative(asked)
        guard = GitGuard(self.root, self.guards_git)
        try:
            with self.root.entry(shown) as entry:
                guard.check(entry, asked)
                path, before = self.root.real_path(entry), snapshot(entry, shown=asked)
        except errors.FileRefused as refused:
            if refused.reason is not errors.Reason.PATH_NOT_FOUND:
                raise
            # A parent directory is missing; it will be created.
            path, before = self.root.future(shown), None
            guard.check_path(path, asked)
        known = self.by_path.get(path)
        if known is not None:
            if known.shown != shown:
                raise AliasedPath(shown, known.shown)
            return known
        self._check_alias(shown, before)
        self._check_size(shown, before)
        content = None if before is None else before.content
        draft = Draft(shown, path, before, content, guards_git=self.guards_git)
        self.by_path[path] = draft
        return draft

    def _check_alias(self, shown: str, before: Snapshot | None) -> None:
        if before is None:
            return
        other = self.shown_by_inode.setdefault(before.identity[:2], shown)
        if other != shown:
            raise AliasedPath(shown, other)

    def _check_size(self, shown: str, before: Snapshot | None) -> None:
        if before is not None and before.content is not None:
            self.size_bytes += len(before.content)
        if self.size_bytes > CHANGE_BYTES_MAX:
            raise errors.too_large(shown, self.size_bytes, CHANGE_BYTES_MAX)

    def changed(self) -> tuple[Draft, ...]:
        """Return the drafts with a change."""
        return tuple(draft for draft in self.by_path.values() if draft.is_changed)


class AliasedPath(Exception):
    """Two paths of one change lead to the same file."""

    def __init__(self, path: str, other: str) -> None:
        super().__init__(f"{path!r} and {other!r} are the same file; use one of them")


def change_of(draft: Draft, *, with_diff: bool = True) -> Change:
    """Return the change of one file."""
    diff = _diff(draft) if with_diff else Diff()
    return Change(
        path=draft.shown,
        kind=_kind(draft),
        old_path=draft.moved_from,
        etag=draft.after_etag,
        before_etag=draft.before_etag,
        diff=diff.text,
        diff_truncated=diff.is_truncated,
        added_lines=diff.added_lines,
        deleted_lines=diff.deleted_lines,
        size_bytes=0 if draft.content is None else len(draft.content),
        edits=draft.applied,
    )


def _kind(draft: Draft) -> ChangeKind:
    if draft.moved_from:
        return ChangeKind.MOVED
    if not draft.is_changed:
        return ChangeKind.UNCHANGED
    if draft.before is None:
        return ChangeKind.CREATED
    return ChangeKind.DELETED if draft.content is None else ChangeKind.MODIFIED


def _diff(draft: Draft) -> Diff:
    before = draft.compared if draft.before is None else draft.before.content
    if draft.before is not None and before is None:
        return Diff()
    old = None if before is None else text_of(before)
    new = None if draft.content is None else text_of(draft.content)
    if (before is not None and old is None) or (draft.content is not None and new is None):
        return Diff()
    old_text = None if old is None else old.text
    return unified(draft.shown, old_text, None if new is None else new.text)
