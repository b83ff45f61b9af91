"""The node's own git: where it goes, what it sees, and how much it leaves behind."""

import asyncio
import os
import pwd
import shutil
import socket
import tempfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from parley.clock import SystemClock
from support.toolrunner.hosted_workspaces import Repository
from support.toolrunner.jail import Jail
from support.toolrunner.no_credentials import NoCredentials
from support.toolrunner.sandboxes import all_offered, tell
from support.toolrunner.worker_users import WORKER_USERS
from toolrunner.filesystem.trash import Trash
from toolrunner.primitives.domain import UNLIMITED, Limits, WorkspaceId
from toolrunner.sandbox import Layer, Level, Network
from toolrunner.spawner.client.node_programs import NodePrograms, ProgramFailed
from toolrunner.workspaces.sources.git_command import GitWorkdir, NodeGit
from toolrunner.workspaces.sources.mirrors import MirrorBounds, Mirrors
from toolrunner.workspaces.sources.remotes import RemoteRefused, Remotes

HOST = "repositories.example"
WORKSPACE = WorkspaceId("w1")
MIB = 1024**2
WIDE = MirrorBounds(9, 100 * MIB, 86_400)
IS_ROOT = os.geteuid() == 0
SOMEBODY = 31_337


@dataclass
class KnownHosts:
    """Knows where hosts are."""

    hosts: dict[str, tuple[str, ...]]

    async def addresses(self, host: str, port: int) -> tuple[str, ...]:
        return self.hosts[host]


@dataclass
class Server:
    """Serves a directory, or sends everybody away; counts who asks."""

    directory: Path
    leads_to: str = ""
    asked: list[str] = field(default_factory=list)
    port: int = 0

    def __enter__(self) -> "Server":
        owner = self

        class Handler(SimpleHTTPRequestHandler):
            def do_GET(self) -> None:
                owner.asked.append(self.path)
                if owner.leads_to:
                    self.send_response(302)
                    self.send_header("Location", owner.leads_to + self.path)
                    self.end_headers()
                else:
                    super().do_GET()

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(
            ("127.0.0.1", 0), partial(Handler, directory=str(self.directory))
        )
        self.port = self._server.server_address[1]
        self._thread = Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def directory() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="parley-jail-"))
    path.chmod(0o711)
    yield path
    shutil.rmtree(path)


@pytest.fixture(params=all_offered(), ids=lambda level: level.word)
async def jail(request: pytest.FixtureRequest, directory: Path) -> AsyncIterator[Jail]:
    async with Jail.opened(directory, request.param) as opened:
        yield opened


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Server]:
    repository = Repository.made(tmp_path / "r")
    repository.commit(a_txt="one\n")
    repository.git("clone", "--quiet", "--bare", ".", str(tmp_path / "served" / "r.git"))
    repository.git("-C", str(tmp_path / "served" / "r.git"), "update-server-info")
    with Server(tmp_path / "served") as server:
        yield server


def runs_of(jail: Jail, limits: Limits = UNLIMITED) -> NodeGit:
    ids = (f"git{number}" for number in range(1_000))
    return NodeGit(NodePrograms(jail.spawner, lambda: next(ids)), jail.sandbox, limits)


def mirrors_of(
    jail: Jail,
    *,
    private: tuple[str, ...] = (HOST,),
    bounds: MirrorBounds = WIDE,
    limits: Limits = UNLIMITED,
    protocols: tuple[str, ...] = ("http", "file"),
) -> Mirrors:
    hosts = KnownHosts({HOST: ("127.0.0.1",), "127.0.0.1": ("127.0.0.1",)})
    return Mirrors(
        jail.directory / "mirrors",
        runs_of(jail, limits),
        Remotes(protocols, private, hosts),
        NoCredentials(),
        bounds,
        Trash(jail.directory / "trash"),
        SystemClock(),
    )


async def fetch(mirrors: Mirrors, url: str) -> GitWorkdir:
    async with asyncio.timeout(30), mirrors.fetched(WORKSPACE, url, "", lambda line: None) as bench:
        return bench


async def test_a_repository_is_fetched_from_the_address_that_was_judged(
    jail: Jail, served: Server
) -> None:
    mirrors = mirrors_of(jail)
    # Nobody but the resolver of this test knows that host.
    bench = await fetch(mirrors, f"http://{HOST}:{served.port}/r.git")
    told = await mirrors.git.run(bench, "log", "--format=%s", "refs/heads/trunk")
    assert told == ("a change",)
    owner = WORKER_USERS.git if IS_ROOT else os.geteuid()
    assert bench.directory.stat().st_uid == owner


@pytest.mark.parametrize("protocol", ["http", "ssh"])
async def test_a_failure_tells_no_private_address_and_no_path_of_the_node(
    jail: Jail, protocol: str
) -> None:
    if protocol == "ssh" and shutil.which("ssh") is None:
        pytest.skip("this machine has no ssh")
    # Taken and not listened on, so that a connection is refused.
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"{protocol}://{HOST}:{taken.getsockname()[1]}/r.git"
        lines: list[str] = []
        mirrors = mirrors_of(jail, protocols=(protocol,))
        with pytest.raises(ProgramFailed) as failed:
            async with asyncio.timeout(30), mirrors.fetched(WORKSPACE, url, "", lines.append):
                pass
    told = "\n".join((str(failed.value), *lines))
    assert "exit code 128" in told
    assert "127.0.0.1" not in told
    assert str(jail.directory) not in told


async def test_nothing_inside_is_asked_for_a_repository(jail: Jail, served: Server) -> None:
    urls = [f"http://{name}:{served.port}/r.git" for name in (HOST, "127.0.0.1")]
    refused = 0
    for url in urls:
        with pytest.raises(RemoteRefused, match="not public"):
            await fetch(mirrors_of(jail, private=()), url)
        refused += 1
    tell("git to inside", jail.level, len(served.asked), refused)
    assert served.asked == []


async def test_git_does_not_follow_a_server_that_leads_inside(
    jail: Jail, served: Server, tmp_path: Path
) -> None:
    with Server(tmp_path, leads_to=f"http://127.0.0.1:{served.port}") as leading:
        with pytest.raises(ProgramFailed):
            await fetch(mirrors_of(jail), f"http://{HOST}:{leading.port}/r.git")
        assert leading.asked != []
    tell("git led inside", jail.level, len(served.asked), 1)
    assert served.asked == []


async def test_git_is_confined_to_its_mirror(jail: Jail) -> None:
    private = jail.directory / "private"
    private.write_text("hunter2")
    private.chmod(0o600)
    other = jail.put("secret", "hunter2")
    runs = runs_of(jail)
    bench = GitWorkdir("mirror-x", jail.directory / "mirrors" / "x")
    runs.own(bench)
    looked = (private, other, "/etc/shadow", "/root/.ssh/id_ed25519", Path.home() / ".netrc")
    paths = " ".join(map(str, looked))
    script = (
        f"!for path in {paths}; do cat $path 2>/dev/null && echo read; done; "
        f"for path in {jail.directory}/made {jail.directory}/workspaces/made /usr/made; do "
        "touch $path 2>/dev/null && echo written; done; id -u; touch own && echo own"
    )
    told = await runs.run(bench, "x", options=("-c", f"alias.x={script}"), network=Network.OPEN)
    successes = [line for line in told if line in ("read", "written")]
    tell("git out of its mirror", jail.level, len(successes), len(looked) + 3)
    assert successes == []
    assert told == (str(WORKER_USERS.git if IS_ROOT else os.geteuid()), "own")
    confinement = runs.confinement(bench, Network.OPEN)
    assert confinement is not None
    assert Layer.SECCOMP in confinement.layers
    assert confinement.level is jail.level


async def test_git_that_is_not_its_own_user_is_confined_where_something_else_does(
    jail: Jail,
) -> None:
    runs = runs_of(jail)
    bench = GitWorkdir("mirror-x", jail.directory / "mirrors" / "x", user=-1)
    runs.own(bench)
    confinement = runs.confinement(bench, Network.NONE)
    assert (confinement is None) == (jail.level is Level.UID)
    [*_, uid] = await runs.run(bench, "x", options=("-c", "alias.x=!id -u"))
    assert uid == str(os.geteuid())


@pytest.mark.skipif(not IS_ROOT, reason="only root can be somebody else")
async def test_by_ssh_git_is_a_user_without_rights_who_has_a_name(jail: Jail) -> None:
    mirrors = mirrors_of(jail, protocols=("ssh",))
    bench = mirrors.git_workdir("git@host:r", mirrors.remotes.read("git@host:r"))
    mirrors.git.own(bench)
    script = "!id -un; id -G; touch own && echo own; ssh -V 2>/dev/null; echo $?"
    told = await mirrors.git.run(bench, "x", options=("-c", f"alias.x={script}"))
    nobody = pwd.getpwnam("nobody").pw_uid
    assert told == ("nobody", str(nobody), "own", "0")
    assert mirrors.git.confinement(bench, Network.OPEN) is not None


@pytest.mark.skipif(not IS_ROOT, reason="only root can be somebody else")
async def test_a_repository_of_somebody_on_this_machine_is_read_as_its_owner(
    jail: Jail, directory: Path
) -> None:
    # Not in pytest's directory, which is closed to others.
    repository = Repository.made(directory / "r")
    repository.commit(a_txt="one\n")
    for each in (directory / "r", *(directory / "r").rglob("*")):
        os.chown(each, SOMEBODY, SOMEBODY, follow_symlinks=False)
    mirrors = mirrors_of(jail)
    bench = await fetch(mirrors, repository.url)
    told = await mirrors.git.run(bench, "log", "--format=%s", "--all")
    assert (told, bench.user) == (("a change",), SOMEBODY)
    assert bench.directory.stat().st_uid == SOMEBODY


async def test_mirrors_that_are_too_many_go_save_those_that_are_borrowed_from(
    jail: Jail, tmp_path: Path
) -> None:
    repositories = [Repository.made(tmp_path / f"r{number}") for number in range(3)]
    for each in repositories:
        each.commit(a_txt="one\n")
    mirrors = mirrors_of(jail, bounds=MirrorBounds(1, 100 * MIB, 86_400))
    first, second, third = (each.url for each in repositories)
    await fetch(mirrors, first)
    await fetch(mirrors, second)
    assert (mirrors.addresses(), mirrors.at(first).exists()) == ((second,), False)
    borrowed = replace(mirrors, is_borrowed=lambda mirror: mirror == mirrors.at(second))
    await fetch(borrowed, third)
    assert borrowed.addresses() == tuple(sorted((second, third)))
    assert list((jail.directory / "trash").iterdir()) == []


async def test_a_repository_that_is_too_large_is_not_kept(jail: Jail, tmp_path: Path) -> None:
    repository = Repository.made(tmp_path / "r")
    (repository.directory / "large").write_bytes(os.urandom(2 * MIB))
    repository.commit(a_txt="one\n")
    by_size = mirrors_of(jail, bounds=MirrorBounds(9, MIB, 86_400))
    with pytest.raises(ProgramFailed, match="TOOLRUNNER_GIT_MIRRORS_BYTES"):
        await fetch(by_size, repository.url)
    assert (by_size.addresses(), by_size.at(repository.url).exists()) == ((), False)
    # While it is fetched no file may grow further.
    by_limit = mirrors_of(jail, limits=Limits(file_bytes=MIB))
    with pytest.raises(ProgramFailed):
        await fetch(by_limit, repository.url)
    assert by_limit.addresses() == ()


async def test_locks_of_a_git_that_was_killed_do_not_stop_the_next(
    jail: Jail, tmp_path: Path
) -> None:
    repository = Repository.made(tmp_path / "r")
    repository.commit(a_txt="one\n")
    await fetch(mirrors_of(jail), repository.url)
    mirror = mirrors_of(jail).at(repository.url)
    (mirror / "packed-refs.lock").touch()
    (mirror / "refs" / "heads" / "trunk.lock").touch()
    repository.commit(a_txt="two\n")
    await fetch(mirrors_of(jail), repository.url)
    assert list(mirror.rglob("*.lock")) == []
