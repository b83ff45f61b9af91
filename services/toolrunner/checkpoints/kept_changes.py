"""Changes that file tools are about to make, with the directories that they create."""

from collections.abc import Iterable
from dataclasses import dataclass

from toolrunner.checkpoints.domain import Entry, EntryKind
from toolrunner.checkpoints.scan import DIRECTORY_ETAG
from toolrunner.filesystem.beneath import DIRECTORY_MODE, Root
from toolrunner.filesystem.tree import look_if_allowed


@dataclass(frozen=True, slots=True)
class KeptChange:
    """A change that a file tool is about to make.

    Attributes:
        path: The path.
        before: The entry that is there.
        content: Its content.
        after: The entry that will be there.
    """

    path: str
    before: Entry | None
    content: bytes | None
    after: Entry | None


def new_directories(root: Root, changes: Iterable[KeptChange]) -> list[KeptChange]:
    """Return the directories that a change creates on its way."""
    made: dict[str, KeptChange] = {}
    for change in changes:
        above = change.path.rpartition("/")[0]
        while change.after is not None and above and above not in made:
            if look_if_allowed(root, above) is not None:
                break
            after = Entry(EntryKind.DIRECTORY, DIRECTORY_ETAG, DIRECTORY_MODE)
            made[above] = KeptChange(above, None, None, after)
            above = above.rpartition("/")[0]
    return [made[path] for path in sorted(made)]
