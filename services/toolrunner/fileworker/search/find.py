"""Search of files by name: by a glob pattern, fuzzy, or similar to a missing path."""

import difflib
import os
import re
import time
from collections.abc import Generator
from itertools import islice
from typing import Final

from toolrunner.filesystem import errors
from toolrunner.filesystem.beneath import Root
from toolrunner.fileworker.jobs import Pause
from toolrunner.fileworker.protocol import FindFiles, FoundFile, FoundFiles
from toolrunner.fileworker.search.globs import name_pattern
from toolrunner.fileworker.search.walk import TopN, Walk, WalkOptions, directory_at
from toolrunner.fileworker.values import PathInfo

#: After this time the results found so far are returned.
FIND_S_MAX: Final = 30.0
_SEPARATORS: Final = "/_-. "
_LETTER: Final = 1.0
_NEIGHBOUR: Final = 2.0
_WORD_START: Final = 3.0
_IN_NAME: Final = 1.5

#: The order: best score first, then newest, then by path.
Rank = tuple[float, int, str]
SUGGESTIONS_MAX: Final = 3
LIKENESS_MIN: Final = 0.6
NAMES_MAX: Final = 2000


def find_files(root: Root, request: FindFiles) -> Generator[Pause, None, FoundFiles]:
    """Find files; pauses in between.

    Raises:
        FileRefused: There is no such directory, or the pattern cannot be parsed.
    """
    directory = directory_at(root, request.path)
    pattern = None if request.is_fuzzy else _pattern(request.query)
    after = _rank_of(request.after)

    def score_of(path: str) -> float | None:
        return _fit(pattern, request.query, path, directory)

    walk = Walk(
        root,
        WalkOptions(hidden=request.include_ignored, ignored=request.include_ignored),
        # Only matching files are stat'ed, which takes longer than comparing names.
        fits=lambda path: score_of(path) is not None,
        until_s=time.monotonic() + FIND_S_MAX,
    )
    found: TopN[tuple[Rank, PathInfo]] = TopN(request.limit + 1)
    for info in walk.files(directory):
        if isinstance(info, Pause):
            yield info
            continue
        rank = (-(score_of(info.path) or 0.0), -info.modified_ns, info.path)
        if after is None or rank > after:
            found.add(((rank, info),))
    page = found.all()[: request.limit]
    has_more = len(found.all()) > request.limit
    files = tuple(FoundFile(info, -rank[0]) for rank, info in page)
    return FoundFiles(files, _bytes_of(page[-1][0]) if has_more else b"", walk.is_truncated)


def _bytes_of(rank: Rank) -> bytes:
    return os.fsencode(f"{rank[0]!r} {rank[1]} {rank[2]}")


def _rank_of(data: bytes) -> Rank | None:
    if not data:
        return None
    try:
        score, modified_ns, path = os.fsdecode(data).split(" ", 2)
        return float(score), int(modified_ns), path
    except ValueError as error:
        text = "the page_token is not one of this list; begin again without one"
        invalid = errors.Reason.INVALID_REQUEST
        raise errors.FileRefused(invalid, text, field="page_token") from error


def _fit(
    pattern: re.Pattern[str] | None, query: str, full_path: str, directory: str
) -> float | None:
    path = full_path[len(directory) + 1 :] if directory else full_path
    if pattern is None:
        return likeness(query, path)
    return 0.0 if pattern.fullmatch(path) else None


def _pattern(query: str) -> re.Pattern[str]:
    try:
        return name_pattern(query)
    except re.error as error:
        text = f"{query!r} is no pattern: {error}; write it as in `src/**/*.py`"
        invalid = errors.Reason.INVALID_PATTERN
        raise errors.FileRefused(invalid, text, pattern=query, problem=str(error)) from error


def likeness(query: str, path: str) -> float | None:
    """Return a score if a path contains the letters of a query in order, else None."""
    wanted = [letter for letter in query.lower() if not letter.isspace()]
    lower = path.lower()
    name_start = lower.rfind("/") + 1
    starts = (name_start, 0) if name_start else (0,)
    scores = [_score(wanted, path, lower, start, name_start) for start in starts]
    fitting = [score for score in scores if score is not None]
    return max(fitting) if fitting else None


def _score(wanted: list[str], path: str, lower: str, start: int, name_start: int) -> float | None:
    score, last, at = 0.0, -2, start
    for letter in wanted:
        place = lower.find(letter, at)
        if place < 0:
            return None
        is_word_start = place == 0 or path[place - 1] in _SEPARATORS
        is_hump = path[place].isupper() and not path[place - 1].isupper()
        score += _LETTER + _NEIGHBOUR * (place == last + 1)
        score += _WORD_START * (is_word_start or is_hump) + _IN_NAME * (place >= name_start)
        last, at = place, place + 1
    return score - len(path) / 1000


def suggestions_for(root: Root, path: str) -> tuple[str, ...]:
    """Return existing paths that are similar, the most similar first."""
    parts = path.split("/")
    # The deepest directory that exists contains the misspelled name.
    for depth in range(len(parts) - 1, -1, -1):
        above = "/".join(parts[:depth])
        names = _names(root, above)
        if names:
            return tuple(
                f"{above}/{name}" if above else name for name in _near(parts[depth], names)
            )
    return ()


def _names(root: Root, directory: str) -> list[str]:
    try:
        with root.opened(directory, os.O_RDONLY | os.O_DIRECTORY) as fd, os.scandir(fd) as entries:
            return [entry.name for entry in islice(entries, NAMES_MAX)]
    except OSError:
        return []


def _near(name: str, names: list[str]) -> list[str]:
    by_lower = {each.lower(): each for each in sorted(names)}
    found = difflib.get_close_matches(name.lower(), by_lower, SUGGESTIONS_MAX, LIKENESS_MIN)
    stem = name.lower().rsplit(".", 1)[0]
    others = [lower for lower in by_lower if lower.rsplit(".", 1)[0] == stem]
    # Keeps the order, drops duplicates.
    return [by_lower[lower] for lower in dict.fromkeys([*found, *others])][:SUGGESTIONS_MAX]
