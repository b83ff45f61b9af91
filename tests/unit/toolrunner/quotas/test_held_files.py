"""Files that have no name any more, and who holds them."""

import mmap
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.host.forked_user import USER, as_ordinary_user
from toolrunner.quotas.deleted_files import held_by

MIB = 1024**2
HOLDER = """
import mmap, os, socket, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
os.write(fd, os.urandom(1 << 20))
os.unlink(sys.argv[1])
{keep}
print("ready", flush=True)
sys.stdin.read()
"""
KEEPS = {
    "descriptor": "pass",
    "mapping": "kept = mmap.mmap(fd, 4096); os.close(fd)",
    "directory": "os.mkdir('d'); os.chdir('d'); os.rmdir('../d')",
}


@contextmanager
def holder(keep: str, path: Path) -> Iterator[int]:
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", HOLDER.format(keep=keep), str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=path.parent,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == b"ready\n"
        yield process.pid
    finally:
        process.stdin.close()
        process.wait()
        process.stdout.close()


@pytest.mark.parametrize("keep", KEEPS)
def test_what_has_no_name_counts_once_for_as_long_as_it_is_held(keep: str, tmp_path: Path) -> None:
    devices = {tmp_path.stat().st_dev}
    with holder(KEEPS[keep], tmp_path / "big") as pid:
        held = held_by([pid, pid], devices)
        elsewhere = held_by([pid], {0})
    assert MIB <= held.disk_bytes < 2 * MIB
    assert (held.unread, elsewhere.disk_bytes) == (0, 0)
    # It ended: it holds nothing, and nothing is hidden.
    assert (held_by([pid], devices).disk_bytes, held_by([pid], devices).unread) == (0, 0)


def test_a_mapping_counts_with_what_is_mapped_where_its_file_cannot_be_asked(
    tmp_path: Path,
) -> None:
    path = tmp_path / "big"
    path.write_bytes(os.urandom(MIB))
    if os.geteuid() == 0:
        os.chown(path, USER, USER)
    path.chmod(0o600)
    with path.open("r+b") as file:
        mapped = mmap.mmap(file.fileno(), MIB)
    path.unlink()
    device = tmp_path.stat().st_dev
    # A child has the mapping, and only root may ask for its file.
    held = as_ordinary_user(lambda: held_by([os.getpid()], {device}).disk_bytes)
    mapped.close()
    assert MIB <= held < 2 * MIB


def test_a_descriptor_that_was_sent_and_not_received_is_told(tmp_path: Path) -> None:
    one, other = socket.socketpair()
    with one, other, (tmp_path / "file").open("wb") as file:
        before = held_by([os.getpid()], set()).in_flight
        socket.send_fds(one, [b"x"], [file.fileno()])
        during = held_by([os.getpid()], set()).in_flight
        socket.recv_fds(other, 1, 1)
        after = held_by([os.getpid()], set()).in_flight
        assert (during - before, after - before) == ({os.fstat(other.fileno()).st_ino}, set())


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a process of somebody else")
def test_a_process_that_hides_what_it_holds_is_told(tmp_path: Path) -> None:
    devices = {tmp_path.stat().st_dev}
    with holder("pass", tmp_path / "big") as pid:
        held = as_ordinary_user(lambda: held_by([pid], devices).unread)
    assert held == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a process of somebody else")
def test_a_process_that_exits_holds_nothing_for_an_ordinary_user(tmp_path: Path) -> None:
    devices = {tmp_path.stat().st_dev}
    process = subprocess.Popen([sys.executable, "-I", "-S", "-c", ""])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    try:
        # It is a zombie: the kernel lets only root look at its descriptors.
        unread = as_ordinary_user(lambda: held_by([process.pid], devices).unread)
    finally:
        process.wait()
    assert unread == 0
