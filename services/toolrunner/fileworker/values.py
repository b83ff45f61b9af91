"""What requests about files and the answers to them are made of."""

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
    """What became of a file; names are those of the proto."""

    UNCHANGED = "unchanged"
    CREATED = "created"
    MODIFIED = "modified"
    DELETED = "deleted"
    MOVED = "moved"


class EntryKind(StrEnum):
    """What an entry is that a change does something to."""

    FILE = "file"
    LINK = "link"
    DIRECTORY = "directory"
    MOVED = "moved"  # Whatever it is, it has another path.
    TREE = "tree"  # Too large, or too odd, to be kept.


class Value(msgspec.Struct, frozen=True, tag=True, tag_field="is"):
    """Something that travels."""


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
    """What is known of a path."""

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
    """What becomes of one file."""

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
    """A file, or another entry of a directory, before and after a change.

    Attributes:
        path: Where it really is, relative to the root.
        before: Its content, of a link its target; None if there was none, or if it is not kept.
        mode: Its permission bits; None if there was none.
        before_etag: Of its content; empty if there was none.
        after_etag: Of its new content; empty if it is gone. Of what was moved, its inode.
        is_kept: Whether it can be put back.
        kind: What it was.
        moved_from: The path that it had, if it was moved.
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
        """Tell whether it is what has a path, or had it, or is below that."""
        return path in (self.path, self.moved_from) or self.path.startswith(f"{path}/")
