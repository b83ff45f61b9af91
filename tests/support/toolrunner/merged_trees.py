"""A parent and its fork as plain directories, to be changed and merged."""

import os
from dataclasses import dataclass
from pathlib import Path

from toolrunner.filesystem.beneath import Root
from toolrunner.workspaces.merge.application import Merge
from toolrunner.workspaces.merge.comparison import STAGE, Comparison, Side, Strategy, compare
from toolrunner.workspaces.merge.fork_base import Base, copy_with_base
from toolrunner.workspaces.merge.plan import MergePlan
from toolrunner.workspaces.merge.staging import stage

Tree = dict[str, str]

BEGINNING: Tree = {"a": "1\n2\n3\n4\n5\n", "b": "b", "d/x": "x", "d/y": "y", "link": "->a"}


@dataclass(frozen=True)
class Pair:
    """A parent and a fork of it.

    Attributes:
        directory: Where they are.
        is_private: Whether merges are staged outside of the parent.
    """

    directory: Path
    is_private: bool = True

    @classmethod
    def made(cls, directory: Path, tree: Tree, *, is_private: bool = True) -> "Pair":
        """Make a parent with these files, and fork it."""
        pair = cls(directory, is_private)
        for path in (pair.parent, pair.fork, pair.merging.directory):
            path.mkdir(parents=True, exist_ok=True)
        write(pair.parent, tree)
        source, target = (Root.open_directory(str(each)) for each in (pair.parent, pair.fork))
        copy_with_base(source, target, directory / "base")
        source.close()
        target.close()
        return pair

    @property
    def parent(self) -> Path:
        return self.directory / "parent"

    @property
    def fork(self) -> Path:
        return self.directory / "fork"

    @property
    def merging(self) -> Merge:
        # A parent outside of the directory of its workspace is an existing one of the host.
        return Merge(self.directory if self.is_private else self.directory / "kept", self.parent)

    @property
    def stage(self) -> Path:
        return (self.directory if self.is_private else self.parent) / STAGE

    def plan(
        self, strategy: Strategy = Strategy.REPORT, paths: tuple[str, ...] = ()
    ) -> tuple[Comparison, MergePlan]:
        """Compare and stage."""
        base = Base.load(self.directory / "base")
        fork_root, parent_root = (
            Root.open_directory(str(each)) for each in (self.fork, self.parent)
        )
        try:
            fork = Side(fork_root, base, is_fork=True)
            parent = Side(parent_root, base, is_fork=False)
            found = compare(base, fork, parent, strategy=strategy, paths=paths)
            assert self.merging.is_private() is self.is_private
            with self.merging.places(is_private=self.is_private) as places:
                steps = stage(found.changes, fork, places)
        finally:
            fork_root.close()
            parent_root.close()
        return found, MergePlan(steps, "r", "m", b"", b"", is_private=self.is_private)

    def merge(
        self, strategy: Strategy = Strategy.REPORT, paths: tuple[str, ...] = ()
    ) -> Comparison:
        """Merge as a whole."""
        found, plan = self.plan(strategy, paths)
        self.merging.decide(plan)
        self.merging.carry_out(plan)
        self.merging.clear()
        return found


def write(directory: Path, tree: Tree) -> None:
    """Write files; a content that begins with `->` is a link, a name that ends with `/` is one."""
    for name, content in tree.items():
        path = directory / name
        if name.endswith("/"):
            path.mkdir(parents=True, exist_ok=True)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        if content.startswith("->"):
            path.symlink_to(content[2:])
        else:
            path.write_text(content)


def read(directory: Path) -> Tree:
    """Return everything below a directory, as it is written."""
    tree: Tree = {}
    for path, directories, files in os.walk(directory):
        for name in directories:
            entry = Path(path) / name
            relative = str(entry.relative_to(directory))
            tree.update(
                {relative: f"->{entry.readlink()}"} if entry.is_symlink() else {f"{relative}/": ""}
            )
        for name in files:
            entry = Path(path) / name
            relative = str(entry.relative_to(directory))
            is_link = entry.is_symlink()
            tree[relative] = f"->{entry.readlink()}" if is_link else entry.read_text()
    return tree


def read_of(tree: Tree) -> Tree:
    """Return files as reading them from disk returns them."""
    directories = {f"{name.rpartition('/')[0]}/": "" for name in tree if "/" in name}
    return {**tree, **directories}
