"""The protocol of the file worker: requests and answers as frames of MessagePack."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeVar, cast

import msgspec

from toolrunner.fileworker.git.protocol import GitAnswer, GitRequest
from toolrunner.fileworker.values import Change, FileEdit, Image, PathInfo, Problem, Value

T = TypeVar("T")

LENGTH: Final = struct.Struct(">I")
CHUNK_BYTES: Final = 256 * 1024
#: Parts of a stream that are sent before the first of them is confirmed.
PIECES_AHEAD: Final = 16


class ReadPage(Value, frozen=True):
    """Requests lines of a file; `in_home` of one in the home of the workspace's processes."""

    path: str
    offset_line: int
    limit_lines: int
    max_bytes: int
    line_bytes: int
    in_home: bool = False


class Page(Value, frozen=True):
    """Lines of a file, or an image, or its type."""

    info: PathInfo
    kind: str
    text: str = ""
    start_line: int = 0
    end_line: int = 0
    total_lines: int | None = None
    has_more: bool = False
    next_offset_line: int = 0
    clipped_lines: int = 0
    etag: str = ""
    encoding: str = ""
    media_type: str = ""
    image: bytes = b""


class ReadBytes(Value, frozen=True):
    """Requests a head and bytes, as a stream."""

    path: str
    offset_bytes: int
    length_bytes: int
    if_etag: str


class BytesHead(Value, frozen=True):
    """The metadata of a file before its bytes."""

    info: PathInfo
    media_type: str


class Chunk(Value, frozen=True):
    """Bytes of a file."""

    data: bytes


class StatPath(Value, frozen=True):
    """Requests the metadata of a path."""

    path: str
    no_follow: bool = False
    with_etag: bool = False


class Stat(Value, frozen=True):
    """The metadata of a path; no info if it does not exist."""

    info: PathInfo | None
    resolved_path: str = ""
    etag: str = ""
    suggestions: tuple[str, ...] = ()


class ListDirectory(Value, frozen=True):
    """Requests the entries of a directory."""

    path: str
    depth: int
    after: bytes  # The position of the page; empty for the first.
    limit: int
    include_hidden: bool
    include_ignored: bool


class Entry(Value, frozen=True):
    """An entry of a directory."""

    info: PathInfo
    depth: int
    omitted_entries: int = 0


class Listing(Value, frozen=True):
    """A page of a directory."""

    entries: tuple[Entry, ...]
    next: bytes  # The position of the next page; empty at the end.
    hidden_entries: int


class FindFiles(Value, frozen=True):
    """Requests files by name."""

    query: str
    is_fuzzy: bool
    path: str
    after: bytes  # The position of the page; empty for the first.
    limit: int
    include_ignored: bool


class FoundFile(Value, frozen=True):
    """A file that was found."""

    info: PathInfo
    score: float


class FoundFiles(Value, frozen=True):
    """A page of files."""

    files: tuple[FoundFile, ...]
    next: bytes  # The position of the next page; empty at the end.
    is_truncated: bool


class SearchFiles(Value, frozen=True):
    """Searches the content of files, as a stream that ends with a summary."""

    pattern: str
    literal: bool
    paths: tuple[str, ...]
    globs: tuple[str, ...]
    types: tuple[str, ...]
    case: str  # `smart`, `sensitive` or `insensitive`.
    context_lines: int
    multiline: bool
    mode: str  # `matches`, `files` or `count`.
    limit: int
    include_ignored: bool
    timeout_s: float


class SearchLine(Value, frozen=True):
    """A line of a search result."""

    line: int
    text: str
    is_match: bool
    column: int = 0
    clipped: bool = False


class FileMatches(Value, frozen=True):
    """The matches of a search in one file."""

    path: str
    lines: tuple[SearchLine, ...]
    count: int


class Matches(Value, frozen=True):
    """The matches of a search in some files."""

    files: tuple[FileMatches, ...]


class Summary(Value, frozen=True):
    """The summary of a search."""

    files: int
    matches: int
    searched_files: int
    truncated: bool
    timed_out: bool
    duration_s: float


class PlanWrite(Value, frozen=True):
    """Plans to write a whole file."""

    token: str
    path: str
    content: bytes
    if_etag: str = ""
    create_only: bool = False
    mode: int = 0
    guards_git: bool = False


class PlanEdits(Value, frozen=True):
    """Plans replacements."""

    token: str
    files: tuple[FileEdit, ...]
    guards_git: bool = False


class PlanPatch(Value, frozen=True):
    """Plans a patch."""

    token: str
    patch: str
    guards_git: bool = False


class PlanRestore(Value, frozen=True):
    """Plans to restore files; refused if one has changed since."""

    token: str
    images: tuple[Image, ...]
    guards_git: bool = False


class StartUpload(Value, frozen=True):
    """Starts an upload."""

    token: str
    path: str
    size_bytes: int
    if_etag: str = ""
    create_only: bool = False
    mode: int = 0
    guards_git: bool = False


class UploadChunk(Value, frozen=True):
    """The next bytes of an upload."""

    token: str
    data: bytes


class PlanUpload(Value, frozen=True):
    """Plans to move an upload to its path."""

    token: str


class DropUpload(Value, frozen=True):
    """Drops an upload, and removes the staged file that an earlier worker left."""

    token: str
    path: str


class Planned(Value, frozen=True):
    """The changes of a plan; nothing is written yet."""

    changes: tuple[Change, ...]
    problems: tuple[Problem, ...] = ()
    images: tuple[Image, ...] = ()


class Commit(Value, frozen=True):
    """Commits the last plan with the token, all or nothing."""

    token: str


class RollBack(Value, frozen=True):
    """Rolls back an interrupted commit, and removes its staged files."""

    token: str
    images: tuple[Image, ...]


class Done(Value, frozen=True):
    """The request was executed."""

    is_whole: bool = True  # Whether everything could be restored.
    count: int = 0  # Entries that were moved or deleted.
    info: PathInfo | None = None  # The moved entry.


class MakeDirectory(Value, frozen=True):
    """Makes a directory."""

    path: str
    guards_git: bool = False


class PlanMove(Value, frozen=True):
    """Plans to move an entry."""

    token: str
    path: str
    new_path: str
    overwrite: bool
    guards_git: bool = False


class PlanDelete(Value, frozen=True):
    """Plans to delete an entry."""

    token: str
    path: str
    recursive: bool
    guards_git: bool = False


class Count(Value, frozen=True):
    """A number of entries."""

    count: int


class EntryToRestore(Value, frozen=True):
    """A path, the entry that must be there, and the one that shall be.

    Attributes:
        path: The path, as bytes: file names need not be UTF-8.
        found_kind: The type of the entry that is there; empty for none.
        found_etag: The etag of its content.
        kind: The type of the entry to restore; empty to remove it.
        etag: The etag of its content.
        mode: Its permission bits; -1 for unknown ones.
        content: Its content, or the target of a link.
    """

    path: bytes
    found_kind: str
    found_etag: str
    kind: str
    etag: str = ""
    mode: int = -1
    content: bytes = b""


class RestoreEntries(Value, frozen=True):
    """Restores entries, each for itself; repeated, it goes on.

    Attributes:
        token: Names staged files.
        entries: The entries: those to remove deepest first, then those to write outermost first.
        is_removing: Whether entries are removed that shall have another type, or be gone.
    """

    token: str
    entries: tuple[EntryToRestore, ...]
    is_removing: bool


class EntriesRestored(Value, frozen=True):
    """What became of each entry: `restored`, `conflict` or `failed`."""

    outcomes: tuple[str, ...]


class Refused(Value, frozen=True):
    """A refusal."""

    reason: str
    text: str
    metadata: dict[str, str]


class PlanUnknownAnswer(Value, frozen=True):
    """The plan or upload is unknown to this worker."""


class WorkerError(Value, frozen=True):
    """An unexpected error of the worker."""

    trace: str


Request = (
    ReadPage
    | ReadBytes
    | StatPath
    | ListDirectory
    | FindFiles
    | SearchFiles
    | PlanWrite
    | PlanEdits
    | PlanPatch
    | PlanRestore
    | PlanMove
    | PlanDelete
    | StartUpload
    | UploadChunk
    | PlanUpload
    | DropUpload
    | Commit
    | RollBack
    | RestoreEntries
    | MakeDirectory
    | GitRequest
)
Answer = (
    Page
    | BytesHead
    | Chunk
    | Stat
    | Listing
    | FoundFiles
    | Matches
    | Summary
    | Planned
    | Done
    | Count
    | EntriesRestored
    | Refused
    | PlanUnknownAnswer
    | WorkerError
    | GitAnswer
)


class RequestFrame(msgspec.Struct, frozen=True, array_like=True):
    """A request with a number; without a request it confirms a part of that stream."""

    number: int
    request: Request | None
    is_closing: bool = False  # The consumer has left.


class AnswerFrame(msgspec.Struct, frozen=True, array_like=True):
    """An answer to the request of that number."""

    number: int
    answer: Answer
    is_last: bool


def frame(message: RequestFrame | AnswerFrame) -> bytes:
    """Return a message as an encoded frame."""
    body = msgspec.msgpack.encode(message)
    return LENGTH.pack(len(body)) + body


def shown(value: T) -> T:
    """Return a value with valid UTF-8, as file names may contain invalid bytes."""
    clean: Any = value
    match value:
        case str():
            clean = value.encode(errors="surrogateescape").decode(errors="replace")
        case tuple():
            clean = tuple(map(shown, value))
        case dict():
            clean = {shown(key): shown(each) for key, each in value.items()}
        case msgspec.Struct():
            fields = {name: shown(getattr(value, name)) for name in value.__struct_fields__}
            clean = msgspec.structs.replace(value, **fields)
    return cast(T, clean)


@dataclass
class Frames:
    """Splits a byte stream into the bodies of messages."""

    rest: bytearray

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield every body that is complete now."""
        self.rest += data
        while len(self.rest) >= LENGTH.size:
            end = LENGTH.size + LENGTH.unpack_from(self.rest)[0]
            if len(self.rest) < end:
                return
            body = bytes(self.rest[LENGTH.size : end])
            del self.rest[:end]
            yield body
