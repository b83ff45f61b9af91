"""Searching with ripgrep, which looks beneath one directory and follows no link."""

import base64
import json
import os
import subprocess
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any, Final

from toolrunner.files import errors
from toolrunner.files.jobs import Readable
from toolrunner.files.protocol import FileMatches, SearchFiles, SearchLine

READ_BYTES: Final = 64 * 1024
LINE_CHARACTERS_MAX: Final = 500
LEAD_CHARACTERS: Final = 100
FLUSH_CHARACTERS: Final = 64 * 1024
ERROR_BYTES_MAX: Final = 4096
FAILED: Final = 2

_CASE: Final = {"smart": "-S", "sensitive": "-s", "insensitive": "-i"}


@dataclass
class Outcome:
    """How a search of one place ended."""

    matches: int = 0
    searched_files: int = 0
    is_truncated: bool = False
    is_timed_out: bool = False


def arguments(request: SearchFiles) -> list[str]:
    """Return the options for a request."""
    words = [
        *("--no-config", "--no-messages", "--no-ignore-parent", "--no-ignore-global"),
        *("--no-require-git", "--glob=!.git", _CASE[request.case]),
        *[f"--glob={glob}" for glob in request.globs],
        *[f"--type={name}" for name in request.types],
    ]
    match request.mode:
        case "matches":
            words += ["--json", f"--context={request.context_lines}"]
        case "files":
            words += ["--files-with-matches", "--null"]
        case _:
            words += ["--count", "--with-filename", "--null"]
    words += ["--fixed-strings"] * request.literal + ["--multiline"] * request.multiline
    words += ["--hidden", "--no-ignore"] * request.include_ignored
    return [*words, f"--regexp={request.pattern}", "--"]


@dataclass(frozen=True, slots=True)
class Where:
    """What to search.

    Attributes:
        directory_fd: An open directory; paths are relative to it.
        name: A file in it; empty for all.
        accepts: Tells whether a file is wanted; a pattern for names makes ripgrep forget what
            is hidden or ignored.
    """

    directory_fd: int
    name: str
    accepts: Callable[[str], bool]


def search(
    program: str, where: Where, request: SearchFiles, until_s: float
) -> Generator[Readable | FileMatches, None, Outcome]:
    """Search one file or directory.

    Raises:
        FileRefused: The pattern cannot be read.
    """
    child = subprocess.Popen(
        [program, *arguments(request), f"./{where.name}"],
        cwd=f"/proc/self/fd/{where.directory_fd}",
        pass_fds=(where.directory_fd,),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with child:
        assert child.stdout is not None
        assert child.stderr is not None
        kind = _Json if request.mode == "matches" else _Names
        reader: _Json | _Names = kind(request, where.accepts)
        is_through = False
        try:
            fd = child.stdout.fileno()
            while not reader.outcome.is_truncated:
                yield Readable(fd, until_s)
                if time.monotonic() >= until_s:
                    reader.outcome.is_timed_out = True
                    break
                data = os.read(fd, READ_BYTES)
                yield from reader.feed(data)
                if not data:
                    is_through = True
                    break
            yield from reader.rest()
        finally:
            if not is_through:
                child.kill()
            said = os.read(child.stderr.fileno(), ERROR_BYTES_MAX)
            code = child.wait()
        if said and code == FAILED:
            raise _unreadable(request, said)
        return reader.outcome


def _unreadable(request: SearchFiles, said: bytes) -> errors.FileRefused:
    problem = said.decode(errors="replace").strip().removeprefix("rg: ")
    text = f"the search is not understood: {problem}"
    invalid = errors.Reason.INVALID_PATTERN
    return errors.FileRefused(invalid, text, pattern=request.pattern, problem=problem)


@dataclass
class _Names:
    """Reads file names, or file names with counts."""

    request: SearchFiles
    accepts: Callable[[str], bool]
    outcome: Outcome = field(default_factory=Outcome)
    found: int = 0
    partial: bytes = b""

    def feed(self, data: bytes) -> list[FileMatches]:
        end = b"\0" if self.request.mode == "files" else b"\n"
        *whole, self.partial = (self.partial + data).split(end)
        files = []
        for record in whole:
            path, _, count = record.partition(b"\0")
            if not self.accepts(_path(path)):
                continue
            if self.found >= self.request.limit:
                self.outcome.is_truncated = True
                break
            files.append(FileMatches(_path(path), (), int(count or 0)))
            self.found += 1
            self.outcome.matches += int(count or 0)
        return files

    def rest(self) -> list[FileMatches]:
        return []


@dataclass
class _Json:
    """Reads the events of `--json`."""

    request: SearchFiles
    accepts: Callable[[str], bool]
    outcome: Outcome = field(default_factory=Outcome)
    partial: bytes = b""
    path: str = ""
    is_wanted: bool = True
    lines: list[SearchLine] = field(default_factory=list)
    size: int = 0
    count: int = 0

    def feed(self, data: bytes) -> list[FileMatches]:
        *whole, self.partial = (self.partial + data).split(b"\n")
        files: list[FileMatches] = []
        for record in whole:
            event = json.loads(record)
            files += self._take(event["type"], event["data"])
            if self.outcome.is_truncated:
                break
        return files

    def rest(self) -> list[FileMatches]:
        return self._flush()

    def _take(self, kind: str, data: dict[str, Any]) -> list[FileMatches]:
        match kind:
            case "begin":
                self.path = _path(_bytes(data["path"]))
                self.is_wanted = self.accepts(self.path)
            case "match" | "context" if not self.is_wanted:
                pass
            case "match" if self.outcome.matches >= self.request.limit:
                self.outcome.is_truncated = True
            case "match" | "context":
                self._add(data, is_match=kind == "match")
                if self.size > FLUSH_CHARACTERS:
                    return self._flush()
            case "end":
                return self._flush()
            case "summary":
                self.outcome.searched_files = data["stats"]["searches"]
        return []

    def _add(self, data: dict[str, Any], *, is_match: bool) -> None:
        text = _bytes(data["lines"])
        column = data["submatches"][0]["start"] if data["submatches"] else 0
        for offset, line in enumerate(text.removesuffix(b"\n").split(b"\n")):
            shown = shown_line(line, column if offset == 0 else 0)
            self.lines.append(
                SearchLine(
                    line=data["line_number"] + offset,
                    text=shown,
                    is_match=is_match,
                    column=column if offset == 0 else 0,
                    clipped=len(shown) < len(line.rstrip(b"\r").decode(errors="replace")),
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


def shown_line(line: bytes, column: int) -> str:
    """Return a line without its end, cut to what is around the match."""
    text = line.rstrip(b"\r").decode(errors="replace")
    if len(text) <= LINE_CHARACTERS_MAX:
        return text
    place = len(line[:column].decode(errors="replace"))
    start = max(0, min(place - LEAD_CHARACTERS, len(text) - LINE_CHARACTERS_MAX))
    return text[start : start + LINE_CHARACTERS_MAX]


def _bytes(value: dict[str, str]) -> bytes:
    if "text" in value:
        return value["text"].encode()
    return base64.b64decode(value["bytes"])


def _path(path: bytes) -> str:
    return os.fsdecode(path.removeprefix(b"./"))
