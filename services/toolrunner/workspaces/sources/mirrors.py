"""Mirrors of repositories on this node, from which workspaces are cloned without network.

Theory: a mirror is a bare repository that only the node writes. It is fetched before each use, with
the credentials of the requesting workspace, so that no user gets objects that they could not have
fetched themselves. Access to a mirror is serialised. Nothing is ever pruned from it, because
workspaces may read objects from it, and no workspace may write to it: its configuration decides
which programs the node's git runs. The responses of remote servers are read by a git that is
confined to the one mirror; the service itself writes nothing there. Mirrors that no workspace
borrows from are removed when they are too many, too old or too large.
"""

import asyncio
import hashlib
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final, Protocol

from parley.clock import Clock
from parley.files import write_atomically
from toolrunner.filesystem.beneath import Root
from toolrunner.filesystem.trash import Trash
from toolrunner.filesystem.tree import measure
from toolrunner.primitives.domain import WorkspaceId
from toolrunner.sandbox import Network
from toolrunner.spawner.client.node_programs import OnLine, ProgramFailed
from toolrunner.workspaces.sources.git_command import (
    GitWorkdir,
    NodeGit,
    named_user,
    owner_of,
    ssh_to,
)
from toolrunner.workspaces.sources.remotes import Remote, Remotes, is_led, pinned

FETCH_S: Final = 1800.0
ADDRESS: Final = ".address"
MEBIBYTE: Final = 1024 * 1024
ENTRIES_MAX: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class MirrorUse:
    """A mirror: its path, its size in bytes, and when it was last used, in seconds."""

    mirror: Path
    size: int
    used_s: float


@dataclass(frozen=True, slots=True)
class MirrorBounds:
    """Limits on all mirrors together.

    Attributes:
        count_max: Mirrors.
        size_max: Bytes.
        age_s: Seconds since one was last used.
    """

    count_max: int
    size_max: int
    age_s: float

    def surplus(self, kept: Sequence[MirrorUse], now_s: float) -> tuple[Path, ...]:
        """Return the mirrors to remove to meet the limits, least recently used first."""
        gone = []
        count, size = len(kept), sum(each.size for each in kept)
        for each in sorted(kept, key=lambda each: each.used_s):
            is_old = now_s - each.used_s > self.age_s
            if is_old or count > self.count_max or size > self.size_max:
                gone.append(each.mirror)
                count, size = count - 1, size - each.size
        return tuple(gone)


class Credentials(Protocol):
    """Lets git fetch a repository that is not public."""

    async def environment(self, workspace_id: WorkspaceId, url: str) -> Mapping[str, str]:
        """Return variables that make git use the proxy; none of them contains a secret."""
        ...


@dataclass
class Mirrors:
    """The mirrors below one directory.

    Attributes:
        directory: The directory; beside each mirror is a file with its URL, whose mtime is its last
            use.
        git: Runs git.
        remotes: Decides where it may fetch from.
        credentials: Lets it fetch repositories that are not public.
        bounds: The limits on mirrors.
        trash: Broken mirrors are moved there.
        clock: The clock.
        is_borrowed: Returns whether a workspace reads objects from a mirror.
    """

    directory: Path
    git: NodeGit
    remotes: Remotes
    credentials: Credentials
    bounds: MirrorBounds
    trash: Trash
    clock: Clock
    is_borrowed: Callable[[Path], bool] = lambda mirror: False
    _locks: "defaultdict[Path, asyncio.Lock]" = field(
        default_factory=lambda: defaultdict(asyncio.Lock)
    )
    _unlocked: set[Path] = field(default_factory=set)

    def addresses(self) -> tuple[str, ...]:
        """Return the URLs of the mirrored repositories."""
        return tuple(sorted(path.read_text() for path in self.directory.glob(f"*{ADDRESS}")))

    def at(self, url: str) -> Path:
        """Return the path of the mirror of a repository, whether it exists or not."""
        return self.directory / hashlib.sha256(url.encode()).hexdigest()[:32]

    def git_workdir(self, url: str, remote: Remote) -> GitWorkdir:
        """Return the working directory of git for the mirror of a repository.

        For a repository on this machine git must run as its owner; and ssh runs only as a user with
        a name.
        """
        mirror = self.at(url)
        name = f"mirror-{mirror.name}"
        match remote.protocol:
            case "file":
                return GitWorkdir(name, mirror, (remote.path,), owner_of(remote.path))
            case "ssh":
                return GitWorkdir(name, mirror, user=named_user())
            case _:
                return GitWorkdir(name, mirror)

    @asynccontextmanager
    async def fetched(
        self, workspace_id: WorkspaceId, url: str, ref: str, on_line: OnLine
    ) -> AsyncIterator[GitWorkdir]:
        """Fetch the mirror of a repository, and lock it in a context.

        Raises:
            ProgramFailed: It cannot be fetched.
            RemoteRefused: It may not be.
        """
        remote = self.remotes.read(url)
        git_workdir = self.git_workdir(url, remote)
        mirror = git_workdir.directory
        async with self._locks[mirror]:
            is_old = self._address(mirror).exists()
            fetch = _Fetch(workspace_id, url, remote, ref, on_line)
            try:
                await self._fetch(git_workdir, fetch)
            except ProgramFailed:
                if not is_old or not await self._is_broken(git_workdir):
                    raise
                on_line("the node's mirror is broken and is made anew")
                await asyncio.to_thread(self._throw, mirror)
                await self._fetch(git_workdir, fetch)
            await self._bound(mirror, on_line)
            yield git_workdir

    async def _fetch(self, git_workdir: GitWorkdir, fetch: "_Fetch") -> None:
        mirror, url, ref = git_workdir.directory, fetch.url, fetch.ref
        await asyncio.to_thread(self.git.own, git_workdir)
        if mirror not in self._unlocked:
            await self._unlock(git_workdir)
        if not self._address(mirror).exists():
            await self.git.run(git_workdir, "init", "--quiet", "--bare", "--template=", ".")
        led = await self.credentials.environment(fetch.workspace_id, url)
        # If git uses the proxy, that checks the addresses.
        addresses = () if is_led(url, led) else await self.remotes.judged(fetch.remote)
        variables = {
            "GIT_ALLOW_PROTOCOL": ":".join((*self.remotes.protocols, *(("http",) if led else ()))),
            **(ssh_to(fetch.remote.host, addresses) if fetch.remote.protocol == "ssh" else {}),
            **led,
        }
        going = partial(
            self.git.run,
            git_workdir,
            network=Network.NONE if fetch.remote.path else Network.OPEN,
            options=pinned(fetch.remote, addresses),
            environment=variables,
            on_line=fetch.on_line,
            asked_host=fetch.remote.host,
        )
        fetch.on_line(f"fetching {url}")
        await going(
            *("fetch", "--quiet", "--prune", "--force", "--", url),
            *("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"),
            limit_s=FETCH_S,
        )
        if is_commit(ref) and not await self._has(git_workdir, ref):
            await going("fetch", "--quiet", "--", url, ref)
        if not ref:
            output = await going("ls-remote", "--symref", "--", url, "HEAD", on_line=_ignored)
            await self._follow_head(git_workdir, output)
        await asyncio.to_thread(write_atomically, self._address(mirror), url.encode())

    async def _follow_head(self, git_workdir: GitWorkdir, output: tuple[str, ...]) -> None:
        """Set the default branch of the mirror to that of the repository."""
        for line in output:
            if line.startswith("ref: refs/heads/"):
                branch = line.removeprefix("ref: ").split("\t")[0]
                await self.git.run(git_workdir, "symbolic-ref", "HEAD", branch)
                return

    async def _has(self, git_workdir: GitWorkdir, commit: str) -> bool:
        try:
            await self.git.run(git_workdir, "cat-file", "-e", f"{commit}^{{commit}}")
        except ProgramFailed:
            return False
        return True

    async def _is_broken(self, git_workdir: GitWorkdir) -> bool:
        try:
            await self.git.run(git_workdir, "fsck", "--connectivity-only", limit_s=FETCH_S)
        except ProgramFailed:
            return True
        return False

    async def _unlock(self, git_workdir: GitWorkdir) -> None:
        """Remove locks of a killed git: only this process works here."""
        await self.git.clear_locks(git_workdir)
        self._unlocked.add(git_workdir.directory)

    def _address(self, mirror: Path) -> Path:
        return mirror.with_name(f"{mirror.name}{ADDRESS}")

    def _throw(self, mirror: Path) -> None:
        """Remove the URL file of a mirror, so that it does not count, then move it to the trash."""
        self._address(mirror).unlink(missing_ok=True)
        self.trash.throw(mirror)

    async def _bound(self, used: Path, on_line: OnLine) -> None:
        """Remove mirrors that are too many, too old or too large, least recently used first.

        Raises:
            ProgramFailed: The current one is too large by itself.
        """
        kept = await asyncio.to_thread(self._kept)
        if any(each.mirror == used and each.size > self.bounds.size_max for each in kept):
            if not self.is_borrowed(used):
                await asyncio.to_thread(self._throw, used)
                await asyncio.to_thread(self.trash.empty)
            size_mib = self.bounds.size_max // MEBIBYTE
            cause = f"fetched more than the {size_mib} MiB that mirrors may take on this node"
            raise ProgramFailed("git", f"{cause}; see TOOLRUNNER_GIT_MIRRORS_BYTES")
        for mirror in self.bounds.surplus(kept, self.clock.now().timestamp()):
            if mirror != used and not self._locks[mirror].locked() and not self.is_borrowed(mirror):
                on_line("letting go of a mirror that was not used for long")
                await asyncio.to_thread(self._throw, mirror)
        await asyncio.to_thread(self.trash.empty)

    def _kept(self) -> list[MirrorUse]:
        found = []
        for address in self.directory.glob(f"*{ADDRESS}"):
            mirror = address.with_suffix("")
            root = Root.open_directory(str(mirror))
            try:
                size, _ = measure(root, entries_max=ENTRIES_MAX)
            finally:
                root.close()
            found.append(MirrorUse(mirror, size, address.stat().st_mtime))
        return found


@dataclass(frozen=True, slots=True)
class _Fetch:
    workspace_id: WorkspaceId
    url: str
    remote: Remote
    ref: str
    on_line: OnLine


def _ignored(line: str) -> None:
    """Ignore a line."""


def is_commit(ref: str) -> bool:
    """Return whether a ref can only be a commit."""
    return len(ref) in (40, 64) and all(digit in "0123456789abcdef" for digit in ref)
