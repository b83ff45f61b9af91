"""Listing a directory, some levels deep."""

from dataclasses import dataclass, field

from toolrunner.files import errors
from toolrunner.files.beneath import Root
from toolrunner.files.ignores import Ignores, ignores_at
from toolrunner.files.protocol import Entry, ListDirectory, Listing
from toolrunner.files.walking import Scanned, Wanted, directory_at, scan


@dataclass
class _Lister:
    root: Root
    request: ListDirectory
    entries: list[Entry] = field(default_factory=list)
    hidden: int = 0

    @property
    def is_full(self) -> bool:
        return len(self.entries) > self.request.start + self.request.limit

    def fill(self, directory: str, ignores: Ignores, depth: int) -> None:
        for entry in self._scan(directory, ignores):
            if self.is_full:
                return
            if not entry.is_shown:
                self.hidden += 1
                continue
            if not entry.is_directory:
                self.entries.append(Entry(entry.info, depth))
                continue
            below = ignores.below(self.root, entry.info.path)
            is_last = depth == self.request.depth
            omitted = self._count(entry.info.path, below) if is_last else 0
            self.entries.append(Entry(entry.info, depth, omitted))
            if not is_last:
                self._list_below(entry.info.path, below, depth + 1)

    def _list_below(self, directory: str, ignores: Ignores, depth: int) -> None:
        try:
            self.fill(directory, ignores, depth)
        except OSError:
            # It may be looked at, but not into.
            return

    def _scan(self, directory: str, ignores: Ignores) -> list[Scanned]:
        wanted = Wanted(self.request.include_hidden, self.request.include_ignored)
        return scan(self.root, directory, ignores, wanted)

    def _count(self, directory: str, ignores: Ignores) -> int:
        try:
            return sum(entry.is_shown for entry in self._scan(directory, ignores))
        except OSError:
            return 0


def list_directory(root: Root, request: ListDirectory) -> Listing:
    """Return a page of a directory.

    Raises:
        FileRefused: There is no such directory.
    """
    directory = directory_at(root, request.path)
    lister = _Lister(root, request)
    try:
        lister.fill(directory, ignores_at(root, directory), 1)
    except OSError as error:
        raise errors.refusal_of(error, request.path) from error
    page = lister.entries[request.start : request.start + request.limit]
    has_more = len(lister.entries) > request.start + request.limit
    return Listing(tuple(page), has_more, lister.hidden)
