"""Parser of the output of `git diff --raw --numstat --patch -z`: files first, then texts."""

import os
import re
from dataclasses import dataclass, field
from typing import Final

from toolrunner.fileworker.git.protocol import FileState, GitFile

RECORDS_MAX: Final = 200_000
HEAD_BYTES_MAX: Final = 64 * 1024

_STATES: Final = {
    "A": FileState.ADDED,
    "C": FileState.COPIED,
    "D": FileState.DELETED,
    "M": FileState.MODIFIED,
    "R": FileState.RENAMED,
    "T": FileState.TYPE_CHANGED,
    "U": FileState.CONFLICTED,
}
_TWO_PATHS: Final = frozenset("RC")
_FIELDS: Final = 5
_COUNTS: Final = re.compile(rb"(\d+|-)\t(\d+|-)\t", re.ASCII)
_START: Final = b"diff --"
_ESCAPE: Final = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
_LETTERS: Final = {b"a": 7, b"b": 8, b"t": 9, b"n": 10, b"v": 11, b"f": 12, b"r": 13}


@dataclass(frozen=True, slots=True)
class RawFile:
    """A changed file, as `--raw` prints it."""

    path: str
    old_path: str
    letter: str
    old_mode: str
    new_mode: str


@dataclass
class DiffReader:
    """Parses output incrementally, and keeps texts of whole files up to a limit.

    Attributes:
        max_bytes: How much text to keep.
        counts: Lines by path; None for binary files.
        omitted: Paths whose text did not fit.
        read_paths: Paths whose text was read, whether it fit or not.
    """

    max_bytes: int
    raw: list[RawFile] = field(default_factory=list)
    counts: dict[str, tuple[int, int] | None] = field(default_factory=dict)
    omitted: list[str] = field(default_factory=list)
    read_paths: set[str] = field(default_factory=set)
    _kept: list[bytes] = field(default_factory=list)
    _kept_bytes: int = 0
    _buffer: bytearray = field(default_factory=bytearray)
    _tokens: list[bytes] = field(default_factory=list)
    _is_text: bool = False
    _piece: bytearray = field(default_factory=bytearray)
    _at_start: bool = True
    _is_dropping: bool = False

    def feed(self, data: bytes) -> None:
        """Parse the next bytes."""
        self._buffer += data
        if not self._is_text:
            self._take_records()
        if self._is_text:
            self._take_lines()

    def finish(self) -> None:
        """Parse the rest at the end."""
        if self._is_text:
            self._take_part(bytes(self._buffer))
            self._end_piece()
        self._buffer.clear()

    @property
    def patch(self) -> str:
        """The texts that fit; invalid UTF-8 is replaced."""
        return b"".join(self._kept).decode(errors="replace")

    def files(self) -> list[GitFile]:
        """Return the files with their line counts."""
        return [self._file(raw) for raw in self.raw]

    def _file(self, raw: RawFile) -> GitFile:
        counts = self.counts.get(raw.path, (0, 0))
        added, deleted = counts or (0, 0)
        return GitFile(
            path=raw.path,
            state=_STATES.get(raw.letter, FileState.MODIFIED),
            old_path=raw.old_path,
            added_lines=added,
            deleted_lines=deleted,
            is_binary=counts is None,
        )

    def _take_records(self) -> None:
        *records, rest = bytes(self._buffer).split(b"\0")
        for repository_paths, record in enumerate(records):
            if not record and not self._tokens:
                self._is_text = True
                self._buffer = bytearray(b"\0".join([*records[repository_paths + 1 :], rest]))
                return
            self._tokens.append(record)
            self._take_tokens()
        self._buffer = bytearray(rest)

    def _take_tokens(self) -> None:
        head, *paths = self._tokens
        if head.startswith(b":"):
            words = head[1:].decode(errors="replace").split(" ")
            letter = words[-1][:1]
            if len(paths) == (2 if letter in _TWO_PATHS else 1):
                self._keep_raw(words, letter, [os.fsdecode(path) for path in paths])
                self._tokens.clear()
        elif (counts := _COUNTS.match(head)) is not None:
            if path := head[counts.end() :]:
                self._keep_counts(counts, path)
            elif len(paths) == 2:
                self._keep_counts(counts, paths[1])
        else:
            self._tokens.clear()

    def _keep_raw(self, words: list[str], letter: str, paths: list[str]) -> None:
        if len(words) == _FIELDS and len(self.raw) < RECORDS_MAX:
            old_path = paths[0] if len(paths) > 1 else ""
            self.raw.append(RawFile(paths[-1], old_path, letter, words[0], words[1]))

    def _keep_counts(self, counts: re.Match[bytes], path: bytes) -> None:
        added, deleted = counts.groups()
        is_text = added != b"-"
        if len(self.counts) < RECORDS_MAX:
            self.counts[os.fsdecode(path)] = (int(added), int(deleted)) if is_text else None
        self._tokens.clear()

    def _take_lines(self) -> None:
        data, repository_paths = bytes(self._buffer), 0
        self._buffer.clear()
        while repository_paths < len(data):
            end = data.find(b"\n", repository_paths) + 1 or len(data)
            part = data[repository_paths:end]
            if self._at_start and end == len(data) and _START.startswith(part):
                # More bytes are needed to decide whether the next file begins here.
                self._buffer += part
                return
            self._take_part(part)
            repository_paths = end

    def _take_part(self, part: bytes) -> None:
        if self._at_start and part.startswith(_START):
            self._end_piece()
        self._at_start = part.endswith(b"\n")
        if self._is_dropping:
            # The file name is at the beginning.
            self._piece += part[: max(0, HEAD_BYTES_MAX - len(self._piece))]
            return
        self._piece += part
        if self._kept_bytes + len(self._piece) > self.max_bytes:
            self._is_dropping = True
            del self._piece[HEAD_BYTES_MAX:]

    def _end_piece(self) -> None:
        piece = bytes(self._piece)
        path = path_of_piece(piece) if piece else ""
        if self._is_dropping and path not in self.omitted[-1:]:
            self.omitted.append(path)
        elif piece and not self._is_dropping:
            self._kept.append(piece)
            self._kept_bytes += len(piece)
        self.read_paths.add(path)
        self._piece.clear()
        self._is_dropping = False


def path_of_piece(piece: bytes) -> str:
    """Return the path of the file of a part of a patch."""
    head, *lines = piece.split(b"\n")
    for line in lines:
        if line.startswith(b"@@"):
            break
        for mark in (b"rename to ", b"copy to "):
            if line.startswith(mark):
                return os.fsdecode(unquoted(line.removeprefix(mark)))
    for kind in (b"diff --cc ", b"diff --combined "):
        if head.startswith(kind):
            return os.fsdecode(unquoted(head.removeprefix(kind)))
    names = head.removeprefix(b"diff --git ")
    # Both sides have the same name here, except for `a/` and `b/`.
    second = names[len(names) // 2 + 1 :]
    return os.fsdecode(unquoted(second).removeprefix(b"b/"))


def unquoted(name: bytes) -> bytes:
    """Return a name without the quoting of git."""
    if len(name) < 2 or not (name.startswith(b'"') and name.endswith(b'"')):
        return name

    def plain(found: re.Match[bytes]) -> bytes:
        what = found[1]
        if len(what) == 3:
            return bytes([int(what, 8) & 0xFF])
        return bytes([_LETTERS[what]]) if what in _LETTERS else what

    return _ESCAPE.sub(plain, name[1:-1])
