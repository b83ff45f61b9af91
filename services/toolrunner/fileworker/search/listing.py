"""Listing of a directory, some levels deep, in pages."""

import os
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Final

from toolrunner.filesystem import errors
from toolrunner.filesystem.beneath import Root
from toolrunner.fileworker.jobs import PAUSE, Pause
from toolrunner.fileworker.protocol import Entry, ListDirectory, Listing
from toolrunner.fileworker.search.gitignore import Ignores, ignores_at
from toolrunner.fileworker.search.walk import Name, Scan, TopN, WalkOptions, directory_at, joined

#: Entries of a directory that is not expanded are counted up to this.
COUNTED_MAX: Final = 10_000

#: The position of a page: after the last of these names, each in the directory before it.
After = tuple[Name, ...]


@dataclass
class _Lister:
    root: Root
    request: ListDirectory
    entries: list[tuple[Entry, After]] = field(default_factory=list)
    hidden: int = 0

    @property
    def left(self) -> int:
        """How many entries are still needed: the page, and one to detect that there are more."""
        return self.request.limit + 1 - len(self.entries)

    def fill(
        self, directory: str, ignores: Ignores, above: After, after: After
    ) -> Generator[Pause, None, None]:
        """Add the entries of a directory, each followed by those below it."""
        fd = self.root.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            scan = Scan(fd, directory, ignores, self._wanted())
            names = yield from self._first(scan, after)
            for name in names:
                if self.left <= 0:
                    return
                is_begun = bool(after) and name == after[0]
                yield from self._take(scan, name, above, after[1:] if is_begun else (), is_begun)
        finally:
            os.close(fd)

    def _first(self, scan: Scan, after: After) -> Generator[Pause, None, list[Name]]:
        least: TopN[Name] = TopN(self.left + len(after))
        for names, hidden in scan.chunks():
            self.hidden += hidden
            # The last entry of the previous page may have more entries below it.
            least.add(name for name in names if not after or name >= after[0])
            yield PAUSE
        return least.all()

    def _take(
        self, scan: Scan, name: Name, above: After, after: After, is_begun: bool
    ) -> Generator[Pause, None, None]:
        path, place = joined(scan.path, name.name), (*above, name)
        is_last = len(place) == self.request.depth
        below = scan.ignores if name.is_leaf else scan.ignores.below(self.root, path)
        if not is_begun:
            info = scan.info(name)
            if info is None:
                return
            is_counted = is_last and not name.is_leaf
            omitted = (yield from self._count(path, below)) if is_counted else 0
            self.entries.append((Entry(info, len(place), omitted), place))
        if not name.is_leaf and not is_last:
            try:
                yield from self.fill(path, below, place, after)
            except OSError:
                # It may be listed, but not opened.
                return

    def _count(self, directory: str, ignores: Ignores) -> Generator[Pause, None, int]:
        count = 0
        try:
            with self.root.opened(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW) as fd:
                for names, _ in Scan(fd, directory, ignores, self._wanted()).chunks():
                    count += len(names)
                    if count >= COUNTED_MAX:
                        return COUNTED_MAX
                    yield PAUSE
        except OSError:
            return 0
        return count

    def _wanted(self) -> WalkOptions:
        return WalkOptions(self.request.include_hidden, self.request.include_ignored)


def list_directory(root: Root, request: ListDirectory) -> Generator[Pause, None, Listing]:
    """Return a page of a directory; pauses in between.

    Raises:
        FileRefused: There is no such directory.
    """
    directory = directory_at(root, request.path)
    lister = _Lister(root, request)
    try:
        ignores = ignores_at(root, directory)
        yield from lister.fill(directory, ignores, (), _after_of(request.after))
    except OSError as error:
        raise errors.refusal_of(error, request.path) from error
    page = lister.entries[: request.limit]
    has_more = len(lister.entries) > request.limit
    after = _bytes_of(page[-1][1]) if has_more else b""
    return Listing(tuple(entry for entry, _ in page), after, lister.hidden)


def _bytes_of(after: After) -> bytes:
    path = "/".join(name.name for name in after)
    return os.fsencode(path if after[-1].is_leaf else f"{path}/")


def _after_of(data: bytes) -> After:
    if not data:
        return ()
    *above, name = os.fsdecode(data.rstrip(b"/")).split("/")
    return (*(Name(False, each) for each in above), Name(not data.endswith(b"/"), name))
