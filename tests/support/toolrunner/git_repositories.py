"""Real repositories, and the program's work on them done here and now."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from toolrunner.filesystem.beneath import Root
from toolrunner.fileworker.git.command import Git
from toolrunner.fileworker.git.handlers import GitHandlers
from toolrunner.fileworker.git.protocol import (
    Checkpoints,
    CreateCheckpoint,
    Created,
    Diff,
    GitAnswer,
    GitDiff,
    GitRequest,
    GitStatus,
    ListCheckpoints,
    Repositories,
    Repository,
    RestoreCheckpoint,
    Restored,
)
from toolrunner.fileworker.jobs import pieces

GIT = shutil.which("git") or "/usr/bin/git"
TIMEOUT_S = 30.0
A = TypeVar("A", bound=GitAnswer)

#: Of the person who works in the repository, and not of the program.
PERSON = {
    "PATH": os.defpath,
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.org",
}


@dataclass(frozen=True)
class Bench:
    """A workspace with repositories."""

    root: Path
    work: GitHandlers

    @classmethod
    def at(cls, directory: Path, program: str = GIT) -> "Bench":
        root, temporary = directory / "files", directory / "tmp"
        root.mkdir(parents=True)
        temporary.mkdir()
        opened = Root.open_directory(str(root))
        return cls(root, GitHandlers(opened, Git(program, {"PATH": os.defpath}, temporary)))

    def git(self, *arguments: str, at: str = "", fails: bool = False) -> str:
        """Do what a person does in a repository."""
        done = subprocess.run(
            [GIT, "-c", "protocol.file.allow=always", *arguments],
            cwd=self.root / at,
            env=PERSON,
            capture_output=True,
            check=False,
        )
        assert fails or done.returncode == 0, (arguments, done.stderr)
        return done.stdout.decode(errors="surrogateescape")

    def init(self, at: str = "") -> None:
        (self.root / at).mkdir(parents=True, exist_ok=True)
        self.git("init", "--quiet", "--initial-branch=main", at=at)

    def commit(self, message: str = "a commit", at: str = "") -> str:
        self.git("add", "--all", at=at)
        self.git("commit", "--quiet", "--allow-empty", f"--message={message}", at=at)
        return self.git("rev-parse", "HEAD", at=at).strip()

    def put(self, path: str, content: str | bytes) -> Path:
        full = self.root / path
        full.parent.mkdir(parents=True, exist_ok=True)
        full.write_bytes(content.encode() if isinstance(content, str) else content)
        return full

    def ask(self, request: GitRequest, kind: type[A]) -> A:
        """Return the last answer to a request."""
        *_, answer = pieces(self.work.work(request))
        assert isinstance(answer, kind)
        return answer

    def statuses(self, directory: str = "") -> tuple[Repository, ...]:
        return self.ask(GitStatus(directory, TIMEOUT_S), Repositories).repositories

    def status(self) -> Repository:
        (repository,) = self.statuses()
        return repository

    def diff(
        self,
        directory: str = "",
        *,
        base: str = "",
        target: str = "",
        paths: tuple[str, ...] = (),
        max_bytes: int = 1024 * 1024,
        is_files_only: bool = False,
    ) -> Diff:
        request = GitDiff(
            directory=directory,
            base=base,
            target=target,
            paths=paths,
            context_lines=3,
            max_bytes=max_bytes,
            is_files_only=is_files_only,
            timeout_s=TIMEOUT_S,
        )
        return self.ask(request, Diff)

    def keep(self, label: str, scope: str = "chat") -> Created:
        return self.ask(CreateCheckpoint("", scope, label, TIMEOUT_S), Created)

    def kept(self, scope: str = "", start: int = 0, limit: int = 50) -> Checkpoints:
        return self.ask(ListCheckpoints("", scope, start, limit, TIMEOUT_S), Checkpoints)

    def restore(
        self,
        ref: str,
        *,
        previous: str = "before",
        paths: tuple[str, ...] = (),
        since: str = "",
        removes_later: bool = True,
    ) -> Restored:
        request = RestoreCheckpoint(
            directory="",
            scope="chat",
            previous_label=previous,
            ref=ref,
            paths=paths,
            if_unchanged_since_ref=since,
            removes_later=removes_later,
            timeout_s=TIMEOUT_S,
        )
        return self.ask(request, Restored)

    def tree(self) -> dict[bytes, tuple[str, bytes]]:
        """Return every file with its kind and content, git's own data left out."""
        return dict(_tree(os.fsencode(self.root)))


def _tree(root: bytes) -> Iterator[tuple[bytes, tuple[str, bytes]]]:
    for directory, directories, names in os.walk(root):
        if b".git" in directories:
            directories.remove(b".git")
        links = [name for name in directories if os.path.islink(os.path.join(directory, name))]
        for name in [*names, *links]:
            path = os.path.join(directory, name)
            shown = os.path.relpath(path, root)
            if os.path.islink(path):
                yield shown, ("link", os.readlink(path))
            else:
                kind = "program" if os.stat(path).st_mode & 0o100 else "file"
                with open(path, "rb") as file:
                    yield shown, (kind, file.read())
