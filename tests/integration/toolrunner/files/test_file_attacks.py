"""Rows E14 to E17: every call about files against hostile paths, links, files and writers.

Each row prints how often it tried and how often that succeeded. The full size of E15 is asked for
with `--swaps 1000000`.
"""

import asyncio
import hashlib
import mmap
import os
import socket
import stat
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
import pytest

from parley.api.workspace.v1 import file_service_pb2 as api
from parley.api.workspace.v1 import sandbox_pb2
from support.host.memory_peak import memory_peak
from support.toolrunner.file_calls import FileCalls, Tried
from support.toolrunner.files import Files
from support.toolrunner.node import Client, House, running

SECRET = "hunter2-secret"
MIB = 1024 * 1024

Print = Callable[[str], None]


@pytest.fixture
def files(client: Client, house: House) -> Files:
    client.context.profile = sandbox_pb2.SANDBOX_PROFILE_WORKSPACE_WRITE
    return Files.of(client, house)


@pytest.fixture
def outside(files: Files) -> Path:
    """Make what nobody may reach: beside the files, and beside the whole workspace."""
    directory = files.root.parent / "outside"
    (directory / "d").mkdir(parents=True)
    for path in (directory / "f", directory / "d" / "f", files.root.parent / "secret"):
        path.write_text(SECRET)
    return directory


@pytest.fixture
def tell(capsys: pytest.CaptureFixture[str]) -> Print:
    def print_line(line: str) -> None:
        with capsys.disabled():
            print(f"\n{line}", end="")

    return print_line


def fingerprint(*paths: Path) -> str:
    """Return what changes with every name, content, mode and link below some directories."""
    digest = hashlib.sha256()
    for path in sorted(each for top in paths for each in (top, *top.rglob("*"))):
        mode = path.lstat().st_mode
        digest.update(f"{path} {mode}".encode())
        if stat.S_ISREG(mode):
            digest.update(path.read_bytes())
    return digest.hexdigest()


def test_every_call_of_the_service_is_tried() -> None:
    service = api.DESCRIPTOR.services_by_name["FileService"]
    declared = {method.name for method in service.methods}
    tried = {name.split()[0] for name in FileCalls(None).all()}  # type: ignore[arg-type]
    assert tried == declared


def corpus(root: Path, outside: Path) -> list[str]:
    """Return paths of all sorts that lead out, or look so."""
    ups = [f"{'../' * depth}{rest}" for depth in (1, 2, 8, 40) for rest in ("secret", "etc/passwd")]
    through = [
        *("real/../../secret", "real/../../outside/f", "./.././secret", "real//..//..//secret"),
        *("missing/../../secret", "real/f/../../secret", "..", "../", "real/../..", "/..", "/."),
        *("../files/../secret", f"../{root.name}/../secret", "../outside", "../outside/f"),
    ]
    absolute = [
        *("/etc/passwd", "/", "//etc/passwd", "/proc/self/environ", "/proc/self/root/etc/passwd"),
        *("/proc/self/cwd/../secret", "/dev/stdin", "/dev/fd/0", str(outside), f"{outside}/f"),
        *(str(root.parent), f"{root}/../secret", f"{root}-evil/f", f"{root}/./../outside/f"),
        *(f"{root.parent}/secret", f"{root}/../../", f"/{root}/../secret"),
    ]
    links = [
        *("link-up/secret", "link-out/f", "link-file", "link-absolute/f", "link-root/etc/passwd"),
        *("link-proc/etc/passwd", "link-fd", "link-chain/f", "link-loop", "link-loop/f"),
        *("link-missing", "link-missing/x", "link-dots/secret", "link-out", "link-up", "link-root"),
    ]
    odd = [
        *("..\\secret", "..%2fsecret", "%2e%2e/secret", "..;/secret", "....//secret", "~/secret"),
        *("~root/.profile", "$HOME/x", "${PWD}/../secret", "file:///etc/passwd", "C:\\x", "\0"),
        *("real\0/../../secret", "a\nb", "\u2025/secret", "\uff0e\uff0e/secret", "..\u200b/secret"),
        *(".. /secret", " ../secret", "-rf", "--help", "*", "'; id", "`id`", "$(id)", "|id"),
        *("x" * 256, "x/" * 2100, "../" * 1300 + "etc/passwd", "\ud800/secret", "real/f/", "COM1"),
    ]
    return [*ups, *through, *absolute, *links, *odd]


def lay_links(root: Path, outside: Path) -> None:
    (root / "real").mkdir(exist_ok=True)
    (root / "real" / "f").write_text("inside\n")
    targets = {
        "link-up": "..",
        "link-out": "../outside",
        "link-file": "../secret",
        "link-absolute": str(outside),
        "link-root": "/",
        "link-proc": "/proc/self/root",
        "link-fd": "/proc/self/fd/0",
        "link-chain": "link-out",
        "link-loop": "link-loop",
        "link-missing": "../missing",
        "link-dots": "real/../..",
    }
    for name, target in targets.items():
        if not (root / name).is_symlink():
            (root / name).symlink_to(target)


async def test_e14_no_path_leads_out_of_the_workspace_in_any_call(
    files: Files, client: Client, outside: Path, tell: Print
) -> None:
    calls = FileCalls(client)
    lay_links(files.root, outside)
    before = fingerprint(outside, files.root.parent / "secret")
    tried: list[Tried] = []
    for path in corpus(files.root, outside):
        for call in calls.all():
            tried.append(await calls.tried(call, path))
            if call in ("MovePath from", "DeletePath", "WriteFile"):
                lay_links(files.root, outside)
    after = fingerprint(outside, files.root.parent / "secret")
    escapes = [each for each in tried if SECRET.encode() in each.said or b"root:x:" in each.said]
    unclean = [(each.call, each.path[:60], each.status) for each in tried if not each.is_clean]
    tell(f"E14: {len(tried)} attempts, {len(escapes) + (before != after)} escapes")
    assert (escapes, before == after, unclean) == ([], True, [])
    # What certainly leads out is refused, and not only fruitless.
    for each in tried:
        if each.path in ("../secret", "/etc/passwd", f"{outside}/f", "link-out/f"):
            assert b"evil" not in each.said or each.status is not grpc.StatusCode.OK, each


SWAPPER = """
import mmap, os, struct, sys
inside, outside, counter = sys.argv[1:]
os.chdir(inside)
os.mkdir("real")
open("real/f", "w").write("inside secret")
os.symlink(outside, "out")
os.symlink("../outside/f", "fileout")
os.rename("real", "way")
open("file", "w").write("inside secret")
swaps = mmap.mmap(os.open(counter, os.O_RDWR), 8)
print("ready", flush=True)
count = 0
while True:
    try:
        os.rename("way", "real"); os.rename("out", "way")
        os.rename("file", "filein"); os.rename("fileout", "file")
        os.rename("file", "fileout"); os.rename("filein", "file")
        os.rename("way", "out"); os.rename("real", "way")
    except OSError:
        # Somebody moved or deleted one of them.
        for name in ("way", "real"):
            if not os.path.lexists("way") and not os.path.lexists("real"):
                os.mkdir("real")
        if os.path.isdir("real") and not os.path.lexists("way"):
            os.rename("real", "way")
        if not os.path.lexists("out"):
            os.symlink(outside, "out")
        if not os.path.lexists("fileout"):
            os.symlink("../outside/f", "fileout")
        for name in ("file", "way/f"):
            try:
                open(name, "x").write("inside secret")
            except OSError:
                pass
    count += 4
    swaps[:8] = struct.pack("q", count)
"""


@contextmanager
def swapping(inside: Path, outside: Path, counter: Path) -> Iterator[Callable[[], int]]:
    """Have links and real ones swapped all the time; tells how often they were."""
    counter.write_bytes(bytes(8))
    swapper = subprocess.Popen(
        [sys.executable, "-c", SWAPPER, str(inside), str(outside), str(counter)],
        stdout=subprocess.PIPE,
    )
    assert swapper.stdout is not None
    try:
        assert swapper.stdout.readline() == b"ready\n"
        with counter.open("rb") as file, mmap.mmap(file.fileno(), 8, prot=mmap.PROT_READ) as count:
            yield lambda: int(struct.unpack("q", count[:8])[0])
    finally:
        swapper.kill()
        swapper.wait()
        swapper.stdout.close()


async def test_e15_no_link_that_is_swapped_in_leads_out_in_any_call(
    files: Files, client: Client, outside: Path, tell: Print, pytestconfig: pytest.Config
) -> None:
    wanted: int = pytestconfig.getoption("--swaps", None) or 2000
    calls = FileCalls(client)
    before = fingerprint(outside)
    tried: list[Tried] = []
    counter = files.root.parent / "counter"
    with swapping(files.root, outside, counter) as swaps:
        while swaps() < wanted or len(tried) < 300:
            for call in calls.all():
                for path in ("way/f", "file", "way/d/f"):
                    tried.append(await calls.tried(call, path))
        count = swaps()
    escapes = [each for each in tried if SECRET.encode() in each.said]
    is_changed = before != fingerprint(outside)
    unclean = [(each.call, each.path, each.status) for each in tried if not each.is_clean]
    tell(f"E15: {count} swaps, {len(tried)} attempts, {len(escapes) + is_changed} escapes")
    assert (escapes, is_changed, unclean) == ([], False, [])
    # The race was real: both sides of it were met.
    reasons = {each.reason for each in tried}
    assert {"", "OUTSIDE_WORKSPACE"} <= reasons


def lay_odd(root: Path) -> list[str]:
    """Make what is no file to be read, and return the names of it."""
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        here = os.open(root, os.O_RDONLY)
        listening.bind(f"/proc/self/fd/{here}/socket")
        os.close(here)
    (root / "sparse").touch()
    os.truncate(root / "sparse", 10**12)
    (root / "sparse-text").write_text("line\n" * 20_000)
    os.truncate(root / "sparse-text", 10**12)
    (root / "directory" / "below").mkdir(parents=True)
    (root / "locked").write_text("x")
    (root / "locked").chmod(0)
    (root / os.fsdecode(b"bytes\xff\xfe")).write_text("x\n")
    (root / "to-bytes").symlink_to(os.fsdecode(b"bytes\xff\xfe"))
    (root / "loop").symlink_to("loop")
    (root / "nowhere").symlink_to("missing")
    os.link(root / "locked", root / "hard")
    names = ["pipe", "socket", "sparse", "sparse-text", "directory", "locked", "to-bytes", "loop"]
    try:
        os.mknod(root / "zero", 0o600 | stat.S_IFCHR, os.makedev(1, 5))
    except PermissionError:
        return [*names, "nowhere", "hard", ""]
    return [*names, "nowhere", "hard", "zero", ""]


CHANGING = ("MovePath from", "MovePath to", "DeletePath", "WriteFile", "UploadFile", "EditFiles")


async def test_e16_whatever_is_no_plain_file_is_answered_cleanly_in_any_call(
    files: Files, client: Client, tell: Print
) -> None:
    calls = FileCalls(client)
    names = lay_odd(files.root)
    assert (await calls.tried("StatPath", "")).is_clean
    [pid] = running(str(files.root))
    tried: list[Tried] = []
    with memory_peak(pid) as peak:
        for call in [call for call in calls.all() if call not in CHANGING]:
            tried += [await calls.tried(call, name) for name in names]
        for call in CHANGING:
            for name in [name for name in names if name]:
                tried.append(await calls.tried(call, name))
    unclean = [(each.call, each.path, each.status) for each in tried if not each.is_clean]
    tell(f"E16: {len(tried)} attempts, {len(unclean)} failures, {peak.added_bytes // MIB} MiB more")
    assert (unclean, running(str(files.root))) == ([], [pid])
    assert peak.added_bytes < 64 * MIB


APPENDER = """
import os, sys
path, count = sys.argv[1], int(sys.argv[2])
print("ready", flush=True)
for number in range(count):
    fd = os.open(path, os.O_WRONLY | os.O_APPEND)
    os.write(fd, b"line %d\\n" % number)
    os.close(fd)
    for _ in range(40_000):
        pass
"""


async def test_e17_an_edit_of_a_file_that_changes_loses_nothing(
    files: Files, client: Client, tell: Print
) -> None:
    appended, wanted = 800, 25
    path = files.put("f", "count: 0\n")
    appender = subprocess.Popen(  # noqa: ASYNC220 (it runs beside the test)
        [sys.executable, "-c", APPENDER, str(path), str(appended)], stdout=subprocess.PIPE
    )
    assert appender.stdout is not None
    assert appender.stdout.readline() == b"ready\n"
    attempts = refused = made = 0
    async with asyncio.timeout(120):
        while made < wanted:
            attempts += 1
            try:
                answer = await files.edit(("f", f"count: {made}\n", f"count: {made + 1}\n"))
            except grpc.aio.AioRpcError as error:
                assert error.code() is grpc.StatusCode.ABORTED  # noqa: PT017
                refused += 1
                continue
            assert answer.applied
            made += 1
        await asyncio.to_thread(appender.wait)
        appender.stdout.close()
    lines = path.read_text().splitlines()
    lost = {f"line {number}" for number in range(appended)} - set(lines)
    lost_edits = lines[0] != f"count: {wanted}"
    tell(f"E17: {attempts} attempts, {refused} refused, {len(lost) + lost_edits} updates lost")
    assert (lost, lost_edits) == (set(), False)


async def test_e17_an_edit_of_a_version_that_is_gone_is_refused(
    files: Files, client: Client, tell: Print
) -> None:
    refused = 0
    for number in range(50):
        path = files.put("f", f"version {number}\n")
        etag = (await files.read("f")).etag
        path.write_text(f"version {number} of somebody else\n")
        request = api.WriteFileRequest(
            context=client.context,
            request_id=client.new_id(),
            path="f",
            content=b"mine\n",
            if_etag=etag,
        )
        with pytest.raises(grpc.aio.AioRpcError):
            await client.files.WriteFile(request, timeout=20)
        refused += path.read_text() == f"version {number} of somebody else\n"
    tell(f"E17: 50 stale writes, {50 - refused} updates lost")
    assert refused == 50
