"""Clones of git workspaces from the node's mirror, and reading of HEAD."""

import asyncio
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from toolrunner.filesystem.beneath import Root
from toolrunner.primitives.domain import WorkspaceId
from toolrunner.spawner.client.node_programs import OnLine, ProgramFailed
from toolrunner.workspaces.domain.spec import Git
from toolrunner.workspaces.sources.git_command import GitWorkdir, NodeGit
from toolrunner.workspaces.sources.mirrors import Mirrors, is_commit

CLONE_S: Final = 1800.0
HEAD_BYTES_MAX: Final = 4096
PACKED_BYTES_MAX: Final = 16 * 1024 * 1024
_HEX: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


@dataclass(frozen=True, slots=True)
class Cloner:
    """Clones from mirrors."""

    mirrors: Mirrors
    git: NodeGit

    async def clone(
        self, workspace_id: WorkspaceId, source: Git, target: Path, on_line: OnLine
    ) -> None:
        """Make a clone in a new directory.

        Raises:
            ProgramFailed: There is no such repository, or no such ref in it.
            RemoteRefused: It may not be fetched from there.
        """
        async with self.mirrors.fetched(workspace_id, source.url, source.ref, on_line) as mirror:
            readable = (str(mirror.directory),)
            git_workdir = GitWorkdir(f"clone-{workspace_id}", target, readable, mirror.user)
            await asyncio.to_thread(self.git.own, git_workdir)
            work = _Work(self.git, git_workdir, on_line)
            await work.git("clone", *_options(source), "--", _origin(mirror.directory, source), ".")
            start = await self._start(work, mirror.directory, source)
            await work.git("remote", "set-url", "origin", source.url)
            branch = ("-B", source.branch, "--no-track") if source.branch else ()
            await work.git("checkout", "--quiet", *branch, start, "--")

    async def _start(self, work: "_Work", mirror: Path, source: Git) -> str:
        """Return what to check out, fetched if a shallow clone lacks it."""
        if not source.ref:
            return "refs/remotes/origin/HEAD" if source.branch else await work.default_branch()
        if is_commit(source.ref):
            if source.depth:
                depth = str(source.depth)
                origin = f"file://{mirror}"
                await work.git("fetch", "--quiet", "--depth", depth, origin, source.ref)
            return source.ref
        for name in (f"refs/remotes/origin/{source.ref}", f"refs/tags/{source.ref}"):
            if await work.has(name):
                is_branch = name.startswith("refs/remotes")
                return source.ref if is_branch and not source.branch else name
        if not source.depth and await work.has(f"{source.ref}^{{commit}}"):
            return source.ref
        raise ProgramFailed("git", f"finds no branch, tag or commit {source.ref!r}")


@dataclass(frozen=True, slots=True)
class _Work:
    runs: NodeGit
    git_workdir: GitWorkdir
    on_line: OnLine

    async def git(self, *words: str) -> tuple[str, ...]:
        return await self.runs.run(
            self.git_workdir,
            *words,
            # Only the node's own mirror is read here.
            environment={"GIT_ALLOW_PROTOCOL": "file"},
            limit_s=CLONE_S,
            on_line=self.on_line,
        )

    async def has(self, name: str) -> bool:
        """Return whether there is a commit of that name."""
        try:
            await self._quietly("rev-parse", "--quiet", "--verify", "--end-of-options", name)
        except ProgramFailed:
            return False
        return True

    async def default_branch(self) -> str:
        """Return the default branch of the repository.

        Raises:
            ProgramFailed: Git would parse its name as an option.
        """
        [*_, name] = await self._quietly("symbolic-ref", "refs/remotes/origin/HEAD")
        branch = name.removeprefix("refs/remotes/origin/")
        if branch.startswith("-"):
            # The remote repository chose the name, and git runs with the permissions of the node
            # here.
            raise ProgramFailed("git", f"takes the default branch {branch!r} for an option")
        return branch

    async def _quietly(self, *words: str) -> tuple[str, ...]:
        return await _Work(self.runs, self.git_workdir, lambda line: None).git(*words)


def _options(source: Git) -> tuple[str, ...]:
    """Return clone options; no file is shared with the mirror, which a workspace must not write."""
    common = ("--quiet", "--no-checkout", "--template=", "--origin", "origin")
    if source.depth:
        return (*common, "--no-local", "--no-single-branch", "--depth", str(source.depth))
    return (*common, "--shared" if source.is_worktree else "--no-hardlinks")


def _origin(mirror: Path, source: Git) -> str:
    return f"file://{mirror}" if source.depth else str(mirror)


def head_of(root: Root) -> tuple[str, str]:
    """Return branch and commit of a repository without running git, whose config is untrusted.

    Either is empty if there is none.
    """
    head = _read(root, ".git/HEAD", HEAD_BYTES_MAX).strip()
    if not head.startswith("ref: "):
        return "", head if _HEX.fullmatch(head) else ""
    name = head.removeprefix("ref: ")
    branch = name.removeprefix("refs/heads/") if name.startswith("refs/heads/") else ""
    commit = _read(root, f".git/{name}", HEAD_BYTES_MAX).strip()
    if not _HEX.fullmatch(commit):
        packed = _read(root, ".git/packed-refs", PACKED_BYTES_MAX).splitlines()
        lines = (line.split(" ", 1) for line in packed if line.endswith(f" {name}"))
        commit = next((line[0] for line in lines if line[1] == name), "")
    return branch, commit if _HEX.fullmatch(commit) else ""


def _read(root: Root, path: str, limit: int) -> str:
    try:
        with root.opened(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK) as fd:
            return os.read(fd, limit).decode(errors="replace")
    except (OSError, ValueError):
        return ""
