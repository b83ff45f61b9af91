"""Values in requests about files and their answers."""

from enum import StrEnum

import msgspec

from toolrunner.fileworker.edits.match import Match


class ProblemKind(StrEnum):
    """Why an edit cannot be made; names are those of the proto."""

    NO_MATCH = "no_match"
    AMBIGUOUS = "ambiguous"
    ALIAS = "alias"
    NOT_FOUND = "not_found"
    NOT_A_FILE = "not_a_file"
    CHANGED = "changed"
    FORBIDDEN = "forbidden"
    MALFORMED = "malformed"
    EXISTS = "exists"
    BINARY = "binary"


class ChangeKind(StrEnum):
    """The kind of a change; names are those of the proto."""

    UNCHANGED = "unchanged"
    CREATED = "created"
    MODIFIED = "modified"
    DELETED = "deleted"
    MOVED = "moved"


class EntryKind(StrEnum):
    """The kind of a changed entry."""

    FILE = "file"
    LINK = "link"
    DIRECTORY = "directory"
    MOVED = "moved"  # An entry of any kind that was moved.
    TREE = "tree"  # Too large, or of an unsupported type, to be stored.


class Value(msgspec.Struct, frozen=True, tag=True, tag_field="is"):
    """The base of encoded values."""


class TextEdit(Value, frozen=True):
    """One replacement."""

    old_text: str
    new_text: str
    replace_all: bool = False


class FileEdit(Value, frozen=True):
    """Replacements in one file."""

    path: str
    edits: tuple[TextEdit, ...]
    if_etag: str = ""


class AppliedEdit(Value, frozen=True):
    """How one replacement was made."""

    index: int
    match: Match
    count: int
    line: int


class PathInfo(Value, frozen=True):
    """The metadata of a path."""

    path: str
    type: str
    size_bytes: int
    mode: int
    modified_ns: int
    link_target: str = ""


class Problem(Value, frozen=True):
    """One reason why nothing was changed."""

    file_index: int
    edit_index: int
    path: str
    kind: ProblemKind
    message: str
    count: int = 0
    hints: tuple[str, ...] = ()
    patch_line: int = 0


class Change(Value, frozen=True):
    """The change of one file."""

    path: str
    kind: ChangeKind
    old_path: str = ""
    etag: str = ""
    before_etag: str = ""
    diff: str = ""
    diff_truncated: bool = False
    added_lines: int = 0
    deleted_lines: int = 0
    size_bytes: int = 0
    edits: tuple[AppliedEdit, ...] = ()


class Image(Value, frozen=True):
    """A file, or another directory entry, before and after a change.

    Attributes:
        path: Its real path, relative to the root.
        before: Its content, or the target of a link; None if there was none, or if it is not
            stored.
        mode: Its permission bits; None if there was none.
        before_etag: Of its content; empty if there was none.
        after_etag: Of its new content; empty if it is deleted. Of a moved entry, its inode.
        is_kept: Whether it can be restored.
        kind: Its kind.
        moved_from: The previous path, if it was moved.
    """

    path: str
    before: bytes | None
    mode: int | None
    before_etag: str
    after_etag: str
    is_kept: bool = True
    kind: EntryKind = EntryKind.FILE
    moved_from: str = ""

    def belongs_to(self, path: str) -> bool:
        """Return whether its current or previous path is a path, or it is below it."""
        return path in (self.path, self.moved_from) or self.path.startswith(f"{path}/")
