"""A quick check for repositories in a tree, without a file worker.

Starting a file worker takes a hundred times longer than reading a small tree, and most trees that
are checked have no repository. No link is followed, and only names are read.
"""

import os
from itertools import islice
from typing import Final

from toolrunner.filesystem.beneath import Root
from toolrunner.fileworker.git.repositories import DEPTH_MAX
from toolrunner.fileworker.search.gitignore import GIT_DIRECTORY

#: A larger tree is left to the file worker, which does not block other requests.
NAMES_MAX: Final = 500


def holds_no_repository(directory: str) -> bool:
    """Return whether a tree has no repository; False if it may have one, or if it is large."""
    try:
        root = Root.open_directory(directory)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    try:
        return _is_without(root)
    except OSError:
        return False
    finally:
        root.close()


def _is_without(root: Root) -> bool:
    left = NAMES_MAX
    todo = [("", 0)]
    while todo:
        path, depth = todo.pop()
        names, directories = _entries(root, path, left + 1)
        left -= len(names)
        if left < 0 or GIT_DIRECTORY in names:
            return False
        if depth < DEPTH_MAX:
            todo += [(f"{path}/{name}" if path else name, depth + 1) for name in directories]
    return True


def _entries(root: Root, path: str, most: int) -> tuple[set[str], list[str]]:
    """Return names in a directory, and those of them that are directories."""
    fd = root.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, through_links=False)
    try:
        with os.scandir(fd) as entries:
            found = list(islice(entries, most))
            directories = [each.name for each in found if each.is_dir(follow_symlinks=False)]
    finally:
        os.close(fd)
    return {each.name for each in found}, directories
