"""Parser of the output of ripgrep: names, counts and lines of any length."""

import base64
import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import msgspec

from toolrunner.fileworker.protocol import FileMatches, SearchFiles, SearchLine

LINE_CHARACTERS_MAX: Final = 500
LEAD_CHARACTERS: Final = 100
FLUSH_CHARACTERS: Final = 64 * 1024
#: Of a longer event only the beginning is kept: a line may have any length.
EVENT_BYTES_MAX: Final = 1024 * 1024
HEAD_BYTES: Final = 16 * 1024
#: Follows the text of a line; quotation marks inside of a text are escaped.
NUMBER: Final = re.compile(rb'"\},"line_number":(\d+),')
NUMBER_BYTES_MAX: Final = 40
_TEXT: Final = b'"lines":{"text":"'
_BYTES: Final = b'"lines":{"bytes":"'
_ESCAPE_CHARACTERS: Final = len("\\ud83d\\ude00")


class _Data(msgspec.Struct, frozen=True, gc=False):
    """A text or a name: as UTF-8, or in base64 if it is not valid UTF-8."""

    text: str | None = None
    packed: str = msgspec.field(name="bytes", default="")

    def plain(self) -> str | None:
        """Return a single line that can be shown unchanged; None otherwise."""
        text = self.text
        if text is None or len(text) > LINE_CHARACTERS_MAX or text.find("\n", 0, -1) >= 0:
            return None
        return text.removesuffix("\n").rstrip("\r")

    def value(self) -> bytes:
        return base64.b64decode(self.packed) if self.text is None else self.text.encode()


class _Submatch(msgspec.Struct, frozen=True, gc=False):
    start: int


class _Stats(msgspec.Struct, frozen=True):
    searches: int = 0


class _Lines(msgspec.Struct, frozen=True, gc=False):
    """The matched lines, without the path of the file, which an earlier event contains."""

    lines: _Data = _Data("")
    line_number: int | None = None
    submatches: tuple[_Submatch, ...] = ()


class _LineEvent(msgspec.Struct, frozen=True, gc=False):
    """One line of `--json` with a match or its context: the most frequent kind."""

    type: str
    data: _Lines

    @property
    def is_match(self) -> bool:
        """Whether it is a match and not context."""
        return self.type == "match"


class _Details(msgspec.Struct, frozen=True):
    path: _Data = _Data("")
    stats: _Stats = _Stats()


class _Event(msgspec.Struct, frozen=True):
    """One line of `--json` about a file or the whole search; only the used fields."""

    type: str
    data: _Details


_LINE: Final = (b'{"type":"match"', b'{"type":"context"')
_decode_line: Final = msgspec.json.Decoder(_LineEvent).decode
_decode: Final = msgspec.json.Decoder(_Event).decode


@dataclass
class Outcome:
    """The outcome of a search of one path."""

    matches: int = 0
    searched_files: int = 0
    is_truncated: bool = False
    is_timed_out: bool = False


@dataclass
class Names:
    """Parses file names, or file names with counts."""

    request: SearchFiles
    accepts: Callable[[str], bool]
    outcome: Outcome = field(default_factory=Outcome)
    found: int = 0
    partial: bytes = b""

    def feed(self, data: bytes) -> list[FileMatches]:
        """Return the files that are complete with these bytes."""
        output, at = self.partial + data, 0
        files: list[FileMatches] = []
        while not self.outcome.is_truncated:
            # A name may contain newlines, but no NUL.
            zero = output.find(b"\0", at)
            end = zero if self.request.mode == "files" else output.find(b"\n", zero)
            if zero < 0 or end < 0:
                break
            path, count = _path(output[at:zero]), int(output[zero + 1 : end] or 0)
            at = end + 1
            if self.accepts(path):
                files += self._take(path, count)
        self.partial = output[at:]
        return files

    def rest(self) -> list[FileMatches]:
        """Return the pending results."""
        return []

    def _take(self, path: str, count: int) -> list[FileMatches]:
        if self.found >= self.request.limit:
            self.outcome.is_truncated = True
            return []
        self.found += 1
        self.outcome.matches += count
        return [FileMatches(path, (), count)]


@dataclass
class _Giant:
    """An event that is too long to be kept: its beginning, and its line number."""

    head: bytes
    line: int = 0
    carry: bytes = b""

    def feed(self, data: bytes) -> None:
        """Search the line number in the next bytes."""
        if not self.line:
            seen = self.carry + data
            if (found := NUMBER.search(seen)) is not None:
                self.line = int(found[1])
            self.carry = seen[-NUMBER_BYTES_MAX:]

    def event(self) -> _LineEvent | None:
        """Return it as an event of a short line, or None if it has no line."""
        kind = "match" if self.head.startswith(b'{"type":"match"') else "context"
        for mark, name in ((_TEXT, "text"), (_BYTES, "bytes")):
            _, is_there, text = self.head.partition(mark)
            if is_there:
                is_text = name == "text"
                base64_text = text[: len(text) // 4 * 4].decode()
                lines = _Data(_prefix(text)) if is_text else _Data(None, base64_text)
                return _LineEvent(kind, _Lines(lines=lines, line_number=self.line or 1))
        return None


@dataclass
class Events:
    """Parses the events of `--json`."""

    request: SearchFiles
    accepts: Callable[[str], bool]
    outcome: Outcome = field(default_factory=Outcome)
    partial: bytes = b""
    giant: _Giant | None = None
    path: str = ""
    is_wanted: bool = True
    lines: list[SearchLine] = field(default_factory=list)
    size: int = 0
    count: int = 0

    def feed(self, data: bytes) -> list[FileMatches]:
        """Return the files, or parts of them, that are complete with these bytes."""
        files: list[FileMatches] = []
        *whole, last = data.split(b"\n")
        for piece in whole:
            if self.partial or self.giant is not None:
                files += self._end(piece)
            else:
                files += self._take(piece)
            if self.outcome.is_truncated:
                return files
        self._extend(last)
        return files

    def rest(self) -> list[FileMatches]:
        """Return the pending results."""
        return self._flush()

    def _extend(self, piece: bytes) -> None:
        if self.giant is not None:
            self.giant.feed(piece)
            return
        self.partial += piece
        if len(self.partial) > EVENT_BYTES_MAX:
            self.giant, rest = _Giant(self.partial[:HEAD_BYTES]), self.partial
            self.partial = b""
            self.giant.feed(rest)

    def _end(self, piece: bytes) -> list[FileMatches]:
        """Parse the last bytes of an event."""
        self._extend(piece)
        if (giant := self.giant) is not None:
            self.giant = None
            event = giant.event()
            return [] if event is None else self._take_line(event, is_cut=True)
        whole, self.partial = self.partial, b""
        return self._take(whole)

    def _take(self, piece: bytes) -> list[FileMatches]:
        if piece.startswith(_LINE):
            return self._take_line(_decode_line(piece)) if self.is_wanted else []
        event = _decode(piece)
        match event.type:
            case "begin":
                self.path = _path(event.data.path.value())
                self.is_wanted = self.accepts(self.path)
            case "end":
                return self._flush()
            case "summary":
                self.outcome.searched_files = event.data.stats.searches
        return []

    def _take_line(self, event: _LineEvent, *, is_cut: bool = False) -> list[FileMatches]:
        if not self.is_wanted:
            return []
        if event.is_match and self.outcome.matches >= self.request.limit:
            self.outcome.is_truncated = True
            return []
        self._add(event.data, is_match=event.is_match, is_cut=is_cut)
        return self._flush() if self.size > FLUSH_CHARACTERS else []

    def _add(self, data: _Lines, *, is_match: bool, is_cut: bool) -> None:
        column = data.submatches[0].start if data.submatches else 0
        if (text := data.lines.plain()) is not None and not is_cut:
            number = data.line_number or 1
            self.lines.append(SearchLine(number, text, is_match, column))
            self.size += len(text)
            self.count += is_match
            self.outcome.matches += is_match
            return
        lines = data.lines.value().removesuffix(b"\n").split(b"\n")
        for offset, line in enumerate(lines):
            shown, is_clipped = shown_line(line, column if offset == 0 else 0)
            self.lines.append(
                SearchLine(
                    line=(data.line_number or 1) + offset,
                    text=shown,
                    is_match=is_match,
                    column=column if offset == 0 else 0,
                    clipped=is_cut or is_clipped,
                )
            )
            self.size += len(shown)
        self.count += is_match
        self.outcome.matches += is_match

    def _flush(self) -> list[FileMatches]:
        if not self.lines:
            return []
        file = FileMatches(self.path, tuple(self.lines), self.count)
        self.lines, self.size, self.count = [], 0, 0
        return [file]


def shown_line(line: bytes, column: int) -> tuple[str, bool]:
    """Return a line without its end, cut around the match, and whether it was cut."""
    text = line.rstrip(b"\r").decode(errors="replace")
    if len(text) <= LINE_CHARACTERS_MAX:
        return text, False
    place = len(line[:column].decode(errors="replace"))
    start = max(0, min(place - LEAD_CHARACTERS, len(text) - LINE_CHARACTERS_MAX))
    return text[start : start + LINE_CHARACTERS_MAX], True


def _prefix(escaped: bytes) -> str:
    """Return the beginning of a text that is cut off, maybe inside of an escape."""
    text = escaped.decode(errors="ignore")
    for cut in range(_ESCAPE_CHARACTERS):
        try:
            whole: str = json.loads(f'"{text[: len(text) - cut]}"')
        except ValueError:
            continue
        return whole.encode(errors="ignore").decode()
    return ""


def _path(path: bytes) -> str:
    return os.fsdecode(path.removeprefix(b"./"))
