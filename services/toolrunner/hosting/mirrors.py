"""Repositories that the node keeps a copy of, so that a workspace of one is made without network.

Theory: a mirror is a bare repository that only the node writes. It is fetched before each use, with
the credentials of the workspace that asks, so that nobody gets what they could not have fetched
themselves. One at a time works on a mirror. Nothing is ever pruned from it, because workspaces may
read objects from it, and no workspace may write to it: whoever could change its configuration
would decide what the node's git runs.
"""

import asyncio
import hashlib
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Final, Protocol

from parley.files import write_atomically
from toolrunner.domain import WorkspaceId
from toolrunner.hosting.programs import OnLine, ProgramFailed, Programs
from toolrunner.hosting.removal import PRIVATE, Trash

FETCH_S: Final = 1800.0
QUICK_S: Final = 60.0
MIRRORS: Final = WorkspaceId("mirrors")
ADDRESS: Final = "parley-address"

#: Nothing of the machine's or of anybody's git settings, and nobody to ask.
GIT_ENVIRONMENT: Final[Mapping[str, str]] = {
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "true",
    "GIT_ADVICE": "0",
    "LC_ALL": "C.UTF-8",
}
GIT: Final = (
    "git",
    *("-c", "gc.auto=0", "-c", "maintenance.auto=false", "-c", "core.hooksPath=/dev/null"),
    *("-c", "advice.detachedHead=false", "-c", "init.defaultBranch=main"),
)


class Credentials(Protocol):
    """What lets git fetch a repository that is not public."""

    async def environment(self, workspace_id: WorkspaceId, url: str) -> Mapping[str, str]:
        """Return variables that make git ask a helper; none of them holds a secret."""
        ...


class NoCredentials:
    """Only what is public can be fetched."""

    async def environment(self, workspace_id: WorkspaceId, url: str) -> Mapping[str, str]:
        """Return nothing."""
        return {}


@dataclass
class Mirrors:
    """The mirrors below one directory.

    Attributes:
        directory: Where they are.
        programs: What runs git.
        credentials: What lets it fetch what is not public.
        protocols: Transports that may be used.
        trash: Where a broken mirror goes.
    """

    directory: Path
    programs: Programs
    credentials: Credentials
    protocols: tuple[str, ...]
    trash: Trash
    _locks: "defaultdict[Path, asyncio.Lock]" = field(
        default_factory=lambda: defaultdict(asyncio.Lock)
    )

    def addresses(self) -> tuple[str, ...]:
        """Return the repositories of which there is a mirror."""
        try:
            found = [each / ADDRESS for each in self.directory.iterdir()]
        except FileNotFoundError:
            return ()
        return tuple(sorted(path.read_text() for path in found if path.exists()))

    def at(self, url: str) -> Path:
        """Return where the mirror of a repository is, whether there is one or not."""
        return self.directory / hashlib.sha256(url.encode()).hexdigest()[:32]

    @asynccontextmanager
    async def fetched(
        self, workspace_id: WorkspaceId, url: str, ref: str, on_line: OnLine
    ) -> AsyncIterator[Path]:
        """Have the mirror of a repository as that is now; nobody else works on it meanwhile.

        Raises:
            ProgramFailed: It cannot be fetched.
        """
        mirror = self.at(url)
        async with self._locks[mirror]:
            is_old = (mirror / ADDRESS).exists()
            try:
                await self._fetch(mirror, workspace_id, url, ref, on_line)
            except ProgramFailed:
                if not is_old or not await self._is_broken(mirror):
                    raise
                on_line("the node's mirror is broken and is made anew")
                await asyncio.to_thread(self.trash.throw, mirror)
                await self._fetch(mirror, workspace_id, url, ref, on_line)
            yield mirror

    async def _fetch(
        self, mirror: Path, workspace_id: WorkspaceId, url: str, ref: str, on_line: OnLine
    ) -> None:
        if not await asyncio.to_thread(_made_usable, mirror):
            await self._git(mirror, "init", "--quiet", "--bare", "--template=", ".")
        variables = {
            "GIT_ALLOW_PROTOCOL": ":".join(self.protocols),
            **await self.credentials.environment(workspace_id, url),
        }
        on_line(f"fetching {url}")
        await self._git(
            mirror,
            *("fetch", "--quiet", "--prune", "--force", "--", url),
            *("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"),
            on_line=on_line,
            limit_s=FETCH_S,
            variables=variables,
        )
        if is_commit(ref) and not await self._has(mirror, ref):
            words = ("fetch", "--quiet", "--", url, ref)
            await self._git(mirror, *words, on_line=on_line, variables=variables)
        if not ref:
            await self._follow_head(mirror, url, variables)
        write_atomically(mirror / ADDRESS, url.encode())

    async def _follow_head(self, mirror: Path, url: str, variables: Mapping[str, str]) -> None:
        """Have the default branch of the repository for the mirror's too."""
        words = ("ls-remote", "--symref", "--", url, "HEAD")
        told = await self._git(mirror, *words, variables=variables)
        for line in told:
            if line.startswith("ref: refs/heads/"):
                branch = line.removeprefix("ref: ").split("\t")[0]
                if (mirror / "HEAD").read_text() != f"ref: {branch}\n":
                    await self._git(mirror, "symbolic-ref", "HEAD", branch)
                return

    async def _has(self, mirror: Path, commit: str) -> bool:
        try:
            await self._git(mirror, "cat-file", "-e", f"{commit}^{{commit}}")
        except ProgramFailed:
            return False
        return True

    async def _is_broken(self, mirror: Path) -> bool:
        try:
            await self._git(mirror, "fsck", "--connectivity-only", limit_s=FETCH_S)
        except ProgramFailed:
            return True
        return False

    async def _git(
        self,
        mirror: Path,
        *words: str,
        on_line: OnLine = lambda line: None,
        limit_s: float = QUICK_S,
        variables: Mapping[str, str] = MappingProxyType({}),
    ) -> tuple[str, ...]:
        return await self.programs.run(
            (*GIT, *words),
            workspace_id=MIRRORS,
            directory=mirror,
            environment={**GIT_ENVIRONMENT, **variables},
            limit_s=limit_s,
            on_line=on_line,
        )


def _made_usable(mirror: Path) -> bool:
    """Have the directory, without locks of a git that was killed: only this process works here.

    Returns whether it is a repository already.
    """
    mirror.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
    for lock in (*mirror.glob("*.lock"), *(mirror / "refs").rglob("*.lock")):
        lock.unlink(missing_ok=True)
    # Written after the first fetch, so that everything else is there.
    return (mirror / ADDRESS).exists()


def is_commit(ref: str) -> bool:
    """Tell whether a ref can only be a commit."""
    return len(ref) in (40, 64) and all(digit in "0123456789abcdef" for digit in ref)
