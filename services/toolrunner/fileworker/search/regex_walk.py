"""Content search without ripgrep: the same results from Python, slower."""

import re
import stat
import time
from collections.abc import Callable, Generator, Iterator
from typing import Final

from toolrunner.filesystem import errors
from toolrunner.filesystem.beneath import Root
from toolrunner.fileworker.content.detection import file_type_of
from toolrunner.fileworker.content.snapshot import info_of, opened_file, read_all
from toolrunner.fileworker.jobs import PAUSE, Pause
from toolrunner.fileworker.protocol import FileMatches, SearchFiles, SearchLine
from toolrunner.fileworker.search.globs import name_pattern
from toolrunner.fileworker.search.ripgrep_output import Outcome, shown_line
from toolrunner.fileworker.search.walk import Walk, Wanted
from toolrunner.fileworker.values import PathInfo

TYPES: Final = {
    "c": (".c", ".h"),
    "cpp": (".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp"),
    "css": (".css", ".scss"),
    "go": (".go",),
    "html": (".html", ".htm"),
    "java": (".java",),
    "js": (".js", ".jsx", ".mjs", ".cjs"),
    "json": (".json",),
    "md": (".md", ".markdown"),
    "py": (".py", ".pyi"),
    "rust": (".rs",),
    "sh": (".sh", ".bash"),
    "sql": (".sql",),
    "toml": (".toml",),
    "ts": (".ts", ".tsx"),
    "yaml": (".yaml", ".yml"),
}
FILES_PER_TURN: Final = 20
#: Larger files are skipped: all lines of a file are in memory.
FILE_BYTES_MAX: Final = 4 * 1024 * 1024


def search(
    root: Root, path: str, request: SearchFiles, until_s: float
) -> Generator[Pause | FileMatches, None, Outcome]:
    """Search one file or directory; paths are relative to the root.

    Raises:
        FileRefused: The pattern cannot be parsed.
    """
    pattern, is_wanted = _pattern(request), _filter(request)
    outcome, left = Outcome(), request.limit
    for info in _files(root, path, request):
        if isinstance(info, Pause):
            yield info
            continue
        if not is_wanted(info.path[len(path) + 1 :] if path else info.path):
            continue
        if time.monotonic() >= until_s:
            outcome.is_timed_out = True
            break
        outcome.searched_files += 1
        matches = _search_file(root, info.path, pattern, request)
        if matches is not None and left == 0:
            outcome.is_truncated = True
            break
        if matches is not None:
            shown = _shown(matches, request.mode, left)
            outcome.matches += shown.count
            outcome.is_truncated = request.mode == "matches" and shown.count < matches.count
            left -= shown.count if request.mode == "matches" else 1
            yield shown
            if outcome.is_truncated:
                break
        if outcome.searched_files % FILES_PER_TURN == 0:
            yield PAUSE
    return outcome


def _files(root: Root, path: str, request: SearchFiles) -> Iterator[PathInfo | Pause]:
    result = root.stat(path)
    if not stat.S_ISDIR(result.st_mode):
        yield info_of(path, result)
        return
    shows = request.include_ignored
    yield from Walk(root, Wanted(hidden=shows, ignored=shows)).files(path)


def _pattern(request: SearchFiles) -> re.Pattern[str]:
    is_folding = request.case == "insensitive" or (
        request.case == "smart" and request.pattern == request.pattern.lower()
    )
    flags = re.MULTILINE | (re.IGNORECASE if is_folding else re.NOFLAG)
    source = re.escape(request.pattern) if request.literal else request.pattern
    try:
        return re.compile(source, flags)
    except re.error as error:
        raise _invalid(request.pattern, str(error)) from error


def _filter(request: SearchFiles) -> Callable[[str], bool]:
    """Return a predicate for the paths to search."""
    unknown = [name for name in request.types if name not in TYPES]
    if unknown:
        raise _invalid(request.pattern, f"there is no type of files {unknown[0]!r}")
    suffixes = tuple(suffix for name in request.types for suffix in TYPES[name])
    try:
        wanted = [name_pattern(glob) for glob in request.globs if not glob.startswith("!")]
        unwanted = [name_pattern(glob[1:]) for glob in request.globs if glob.startswith("!")]
    except re.error as error:
        raise _invalid(request.pattern, str(error)) from error

    def is_wanted(path: str) -> bool:
        if suffixes and not path.endswith(suffixes):
            return False
        if any(pattern.fullmatch(path) for pattern in unwanted):
            return False
        return not wanted or any(pattern.fullmatch(path) for pattern in wanted)

    return is_wanted


def _invalid(pattern: str, problem: str) -> errors.FileRefused:
    text = f"the search is not understood: {problem}"
    invalid = errors.Reason.INVALID_PATTERN
    return errors.FileRefused(invalid, text, pattern=pattern, problem=problem)


def _search_file(
    root: Root, path: str, pattern: re.Pattern[str], request: SearchFiles
) -> FileMatches | None:
    try:
        with opened_file(root, path, shown=path) as (fd, _):
            content = read_all(fd, FILE_BYTES_MAX)
    except (OSError, errors.FileRefused):
        return None
    if content is None or file_type_of(content).kind != "text":
        return None
    text = content.decode(errors="replace")
    lines = text.split("\n")
    hits = _hits(text, lines, pattern, is_multiline=request.multiline)
    if not hits:
        return None
    around = request.context_lines
    shown = {
        at
        for hit in hits
        for at in range(max(0, hit - around), min(len(lines), hit + around + 1))
        if at in hits or lines[at] or at + 1 < len(lines)
    }
    found = tuple(_line(lines[at], at, hits.get(at)) for at in sorted(shown))
    return FileMatches(path, found, len(hits))


def _hits(
    text: str, lines: list[str], pattern: re.Pattern[str], *, is_multiline: bool
) -> dict[int, int]:
    """Return the lines that match, each with its first matching column."""
    hits: dict[int, int] = {}
    if not is_multiline:
        for at, line in enumerate(lines):
            match = pattern.search(line.removesuffix("\r"))
            if match is not None and (line or at + 1 < len(lines)):
                hits[at] = len(line[: match.start()].encode())
        return hits
    for match in pattern.finditer(text):
        first = text.count("\n", 0, match.start())
        last = first + match.group().removesuffix("\n").count("\n")
        start = text.rfind("\n", 0, match.start()) + 1
        hits.setdefault(first, len(text[start : match.start()].encode()))
        hits.update({at: 0 for at in range(first + 1, last + 1) if at not in hits})
    return hits


def _line(line: str, at: int, column: int | None) -> SearchLine:
    shown, is_clipped = shown_line(line.encode(), column or 0)
    return SearchLine(at + 1, shown, column is not None, column or 0, is_clipped)


def _shown(matches: FileMatches, mode: str, left: int) -> FileMatches:
    """Return the matches in the requested mode, at most `left` of them."""
    if mode == "files":
        return FileMatches(matches.path, (), 0)
    if mode == "count":
        return FileMatches(matches.path, (), matches.count)
    kept, count = [], 0
    for line in matches.lines:
        if line.is_match and count == left:
            break
        count += line.is_match
        kept.append(line)
    return FileMatches(matches.path, tuple(kept), count)
