"""Watches of repositories: inotify reports changes, and git runs once for each burst.

Theory: every directory that is not ignored is watched, and of each repository's own data only files
that a commit, a checkout or an index update changes. Events are collected until it is quiet or a
scan is due; then git runs only in the repositories of the changed files. When directories are
created or removed, all watches are rebuilt before git runs, so that no change is missed in between.
Where not all directories can be watched, git runs periodically.
"""

import os
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from typing import Final

from toolrunner.filesystem.beneath import Root
from toolrunner.fileworker.git.command import Git
from toolrunner.fileworker.git.inotify import IN_IGNORED, IN_Q_OVERFLOW, Inotify, Notice
from toolrunner.fileworker.git.protocol import (
    GitAnswer,
    Removed,
    Repositories,
    Repository,
    Unchanged,
    WatchGit,
)
from toolrunner.fileworker.git.repositories import (
    DIRECTORIES_PER_TURN,
    RepositoryPaths,
    directories_in,
    find_repositories,
)
from toolrunner.fileworker.git.status import status_of
from toolrunner.fileworker.jobs import PAUSE, Pause, Readable
from toolrunner.fileworker.search.gitignore import GIT_DIRECTORY, Ignores, ignores_at

DIRECTORIES_MAX: Final = 8192
#: Files of a repository's own data that indicate a change; the others are written all the time.
OWN_NAMES: Final = frozenset(
    {
        *("HEAD", "index", "packed-refs", "config", "MERGE_HEAD", "CHERRY_PICK_HEAD"),
        *("REVERT_HEAD", "rebase-merge", "rebase-apply", "BISECT_LOG", "exclude"),
    }
)
REFERENCES: Final = ("refs/heads", "refs/remotes")

Steps = Readable | Pause


@dataclass(frozen=True, slots=True)
class Watched:
    """A watched directory.

    Attributes:
        directory: Relative to the workspace.
        repository: The repository whose own data it belongs to; None if it has files.
        is_named: Whether only some names in it indicate a change.
        ignores: The ignore rules in it.
    """

    directory: str
    repository: str | None
    is_named: bool
    ignores: Ignores


@dataclass
class Watches:
    """All current watches, and the pending events.

    Attributes:
        is_partial: Whether there are more directories than can be watched.
        is_rebuilt_due: Whether directories were created or removed.
        changed: Repositories with events.
        written: Those of them with events of files.
    """

    root: Root
    places: dict[str, RepositoryPaths] = field(default_factory=dict)
    is_partial: bool = False
    is_rebuilt_due: bool = False
    changed: set[str] = field(default_factory=set)
    written: set[str] = field(default_factory=set)
    inotify: Inotify = field(default_factory=Inotify)
    _watched: dict[int, Watched] = field(default_factory=dict)

    def build(self) -> Iterator[Pause]:
        """Create the watches, with pauses in between."""
        for found in find_repositories(self.root):
            if isinstance(found, Pause):
                yield found
            else:
                self.places[found.directory] = found
                self._watch_own(found)
        todo = [("", ignores_at(self.root, ""))]
        visited = 0
        while todo:
            directory, ignores = todo.pop()
            path = f"{self._base()}/{directory}".rstrip("/")
            if not self._watch(path, Watched(directory, None, False, ignores)):
                return
            below = directories_in(self.root, directory, ignores)
            todo.extend((each, ignores.below(self.root, each)) for each in below)
            visited += 1
            if visited % DIRECTORIES_PER_TURN == 0:
                yield PAUSE

    def hear(self) -> bool:
        """Process the available events; return whether there were any."""
        notices = list(self.inotify.read())
        for notice in notices:
            if notice.mask & IN_Q_OVERFLOW:
                self.is_rebuilt_due = True
                self.changed.update(self.places)
            elif not notice.mask & IN_IGNORED and notice.watch in self._watched:
                self._note(notice, self._watched[notice.watch])
        return bool(notices)

    def close(self) -> None:
        """Close the queue."""
        self.inotify.close()

    def _note(self, notice: Notice, watched: Watched) -> None:
        if watched.repository is not None:
            if not watched.is_named or notice.name in OWN_NAMES:
                is_lock = notice.name.endswith(".lock")
                self.changed.update(set() if is_lock else {watched.repository})
                self.is_rebuilt_due |= notice.is_directory and not watched.is_named
            return
        path = "/".join(filter(None, (watched.directory, notice.name)))
        if notice.name == GIT_DIRECTORY:
            self.is_rebuilt_due = True
        elif watched.ignores.ignores(path, is_directory=notice.is_directory):
            return
        self.is_rebuilt_due |= notice.is_directory or notice.name == ".gitignore"
        owner = self.owner(path)
        if owner is not None:
            self.changed.add(owner)
            self.written.update(set() if notice.is_directory else {owner})

    def owner(self, path: str) -> str | None:
        """Return the innermost repository that contains a path, except the path itself."""
        while path:
            path = path.rpartition("/")[0]
            if path in self.places:
                return path
        return None

    def _watch_own(self, repository_paths: RepositoryPaths) -> None:
        for own in {repository_paths.git, repository_paths.common}:
            self._watch(str(own), Watched("", repository_paths.directory, True, Ignores()))
        for name in REFERENCES:
            for directory, _, _ in os.walk(repository_paths.common / name):
                self._watch(directory, Watched("", repository_paths.directory, False, Ignores()))

    def _watch(self, path: str, watched: Watched) -> bool:
        """Watch a directory; return whether there may be more."""
        if len(self._watched) >= DIRECTORIES_MAX:
            self.is_partial = True
            return False
        try:
            self._watched[self.inotify.watch(path)] = watched
        except (FileNotFoundError, NotADirectoryError):
            # It was removed meanwhile, which its parent directory reports.
            return True
        except OSError:
            self.is_partial = True
            return False
        return True

    def _base(self) -> str:
        return os.readlink(f"/proc/self/fd/{self.root.fd}")


@dataclass
class Follower:
    """Watches the repositories of one workspace for one subscriber."""

    git: Git
    root: Root
    request: WatchGit
    _known: dict[str, Repository] = field(default_factory=dict)

    def follow(self) -> Generator[Steps | GitAnswer, None, GitAnswer]:
        """Yield all repositories, then those that change; ends only when it is closed."""
        watches = Watches(self.root)
        try:
            yield from watches.build()
            for repository_paths in watches.places.values():
                self._known[repository_paths.directory] = yield from self._look(repository_paths)
            yield Repositories(tuple(self._known.values()))
            looked_s = told_s = time.monotonic()
            while True:
                until_s = min(told_s + self.request.unchanged_s, self._rescan_s(watches, looked_s))
                yield Readable(watches.inotify.fd, until_s)
                watches.hear()
                if watches.changed or watches.is_rebuilt_due:
                    yield from self._settle(watches, looked_s + self.request.cooldown_s)
                elif time.monotonic() >= self._rescan_s(watches, looked_s):
                    watches.changed.update(watches.places)
                if watches.changed or watches.is_rebuilt_due:
                    if watches.is_rebuilt_due:
                        watches = yield from self._rebuilt(watches)
                    changes = yield from self._changes(watches)
                    looked_s = time.monotonic()
                    for change in changes:
                        told_s = looked_s
                        yield change
                if time.monotonic() >= told_s + self.request.unchanged_s:
                    told_s = time.monotonic()
                    yield Unchanged()
        finally:
            watches.close()

    def _rescan_s(self, watches: Watches, looked_s: float) -> float:
        return looked_s + self.request.rescan_s if watches.is_partial else float("inf")

    def _settle(self, watches: Watches, due_s: float) -> Iterator[Steps]:
        """Wait until it is quiet and a scan is due, but at most one cooldown more."""
        now_s = time.monotonic()
        latest_s = max(due_s, now_s) + self.request.cooldown_s
        until_s = max(due_s, now_s + self.request.quiet_s)
        while now_s < min(until_s, latest_s):
            yield Readable(watches.inotify.fd, min(until_s, latest_s))
            now_s = time.monotonic()
            if watches.hear():
                until_s = max(due_s, now_s + self.request.quiet_s)

    def _rebuilt(self, old: Watches) -> Generator[Steps, None, Watches]:
        watches = Watches(self.root)
        try:
            yield from watches.build()
        except BaseException:
            watches.close()
            raise
        old.hear()
        both = old.places.keys() | watches.places.keys()
        others = {each for each in both if old.places.get(each) != watches.places.get(each)}
        # A nested repository changes the status of the one that contains it.
        around = {owner for each in others if (owner := watches.owner(each)) is not None}
        watches.changed = (old.changed | others | around) & watches.places.keys()
        watches.written = old.written
        old.close()
        return watches

    def _changes(self, watches: Watches) -> Generator[Steps, None, list[GitAnswer]]:
        changes: list[GitAnswer] = []
        for directory in [*self._known]:
            if directory not in watches.places:
                del self._known[directory]
                changes.append(Removed(directory))
        wanted, watches.changed = watches.changed, set()
        written, watches.written = watches.written, set()
        for directory in sorted(wanted & watches.places.keys()):
            looked = yield from self._look(watches.places[directory])
            # A changed file may have been written again with the same line counts.
            if self._known.get(directory) != looked or (directory in written and looked.files):
                self._known[directory] = looked
                changes.append(looked)
        return changes

    def _look(self, repository_paths: RepositoryPaths) -> Generator[Steps, None, Repository]:
        until_s = time.monotonic() + self.request.timeout_s
        return (yield from status_of(self.git, self.root, repository_paths, until_s))
