"""Files, lines and directories without end: the program that works on files stays small.

The sizes of real trouble are asked for with `--names 1000000 --line-mib 1024`.
"""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from support.host.memory_peak import memory_peak
from support.toolrunner.file_workers import FileWorkerProcess, delete, program, write
from support.toolrunner.git_repositories import Bench
from toolrunner.filesystem.errors import FileRefused, Reason
from toolrunner.fileworker import protocol
from toolrunner.fileworker.git.protocol import Repositories, Repository, Unchanged, WatchGit
from toolrunner.fileworker.jobs import pieces
from toolrunner.fileworker.values import FileEdit, ProblemKind, TextEdit

MIB = 1024 * 1024
TERABYTE = 10**12
SEARCH = protocol.SearchFiles(
    "needle", False, (), (), (), "smart", 0, False, "matches", 100, False, 60.0
)
LISTING = protocol.ListDirectory("", 1, b"", 1000, False, False)
PAGE = protocol.ReadPage("f", 1, 2000, 65536, 4096)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    inside = tmp_path / "inside"
    inside.mkdir()
    return inside


@pytest.fixture
def worker(directory: Path) -> Iterator[FileWorkerProcess]:
    with program(directory) as worker:
        worker.ask(protocol.StatPath(""))
        yield worker


@pytest.fixture
def names(directory: Path, pytestconfig: pytest.Config) -> int:
    return names_in(directory, pytestconfig)


def names_in(directory: Path, config: pytest.Config) -> int:
    count: int = config.getoption("--names", None) or 30_000
    fd = os.open(directory, os.O_RDONLY)
    for number in range(count):
        os.mknod(f"a-name-of-some-length-{number:07}", 0o600, dir_fd=fd)
    os.close(fd)
    return count


@contextmanager
def growing(path: Path, line: bytes) -> Iterator[None]:
    """Have a file grow as fast as can be."""
    is_over = threading.Event()

    def grow() -> None:
        with path.open("ab", 0) as file:
            while not is_over.is_set() and file.tell() < 512 * MIB:
                file.write(line * (MIB // len(line)))

    thread = threading.Thread(target=grow)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def refusal(worker: FileWorkerProcess, request: protocol.Request) -> Reason:
    with pytest.raises(FileRefused) as refused:
        worker.ask(request)
    return refused.value.reason


def test_a_directory_of_very_many_names_is_listed_page_by_page(
    worker: FileWorkerProcess, names: int
) -> None:
    with memory_peak(worker.pid) as peak:
        [first] = worker.ask(LISTING)
        assert isinstance(first, protocol.Listing)
        [second] = worker.ask(msgspec.structs.replace(LISTING, after=first.next))
        assert isinstance(second, protocol.Listing)
        [last] = worker.ask(
            msgspec.structs.replace(LISTING, after=f"a-name-of-some-length-{names - 3:07}".encode())
        )
        assert isinstance(last, protocol.Listing)
    shown = [entry.info.path for page in (first, second, last) for entry in page.entries]
    wanted = [*range(2000), names - 2, names - 1]
    assert shown == [f"a-name-of-some-length-{number:07}" for number in wanted]
    assert last.next == b""
    assert peak.added_bytes < 8 * MIB


def test_files_are_found_among_very_many_page_by_page(
    worker: FileWorkerProcess, names: int
) -> None:
    request = protocol.FindFiles("*-name-*", False, "", b"", 1000, False)
    with memory_peak(worker.pid) as peak:
        [first] = worker.ask(request)
        assert isinstance(first, protocol.FoundFiles)
        [second] = worker.ask(msgspec.structs.replace(request, after=first.next))
        assert isinstance(second, protocol.FoundFiles)
        # A name that nobody has is compared with some of them.
        worker.ask(protocol.StatPath("a-name-of-some-length"))
    paths = {file.info.path for page in (first, second) for file in page.files}
    assert len(paths) == 2000
    # Of a million not all may be seen in the time that there is.
    assert not second.is_truncated or names > 100_000
    assert peak.added_bytes < 10 * MIB


def test_very_many_files_are_searched(
    worker: FileWorkerProcess, directory: Path, names: int
) -> None:
    (directory / "a-name-of-some-length-0000007").write_text("a needle\n")
    with memory_peak(worker.pid) as peak:
        [found, summary] = worker.ask(SEARCH)
        [names_only, _] = worker.ask(msgspec.structs.replace(SEARCH, pattern="", mode="files"))
    assert isinstance(found, protocol.Matches)
    assert isinstance(summary, protocol.Summary)
    assert [file.path for file in found.files] == ["a-name-of-some-length-0000007"]
    assert (summary.searched_files, summary.truncated) == (names, False)
    assert isinstance(names_only, protocol.Matches)
    assert peak.added_bytes < 8 * MIB


def test_a_repository_with_very_many_new_files_is_followed(
    tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    bench = Bench.at(tmp_path / "r")
    bench.init()
    count = names_in(bench.root, pytestconfig)
    job = bench.work.work(WatchGit(0.3, 0.1, 30, 60, 30))
    events = pieces(job)
    with memory_peak() as peak:
        first = next(events)
        bench.put("one-more", "x\n")
        second = next(events)
    job.close()
    assert isinstance(first, Repositories)
    [repository] = first.repositories
    told = len(repository.files) + repository.omitted_files
    if repository.problem:
        # There is too much to tell, or it takes too long, and after one more file as well.
        assert second == Unchanged()
    else:
        assert isinstance(second, Repository)
        assert (told, len(second.files) + second.omitted_files) == (count, count + 1)
    assert peak.added_bytes < 128 * MIB


def test_a_directory_of_very_many_names_is_deleted(
    worker: FileWorkerProcess, directory: Path
) -> None:
    (directory / "d").mkdir()
    for number in range(3000):
        (directory / "d" / str(number)).touch()
    assert delete(worker, "d") == 3001


def test_a_line_of_very_many_bytes_is_found_and_cut(
    worker: FileWorkerProcess, directory: Path, pytestconfig: pytest.Config
) -> None:
    size_mib: int = pytestconfig.getoption("--line-mib", None) or 24
    with (directory / "f").open("wb") as file:
        file.write(b"first\n\xc3\xa9 needle ")
        # Of 1024 one is left out: so much of a file is read and no more.
        for _ in range(min(size_mib, 1023)):
            file.write((b" needle" + b"x" * 1017) * 1024)
        file.write(b"\nlast\n")
    with memory_peak(worker.pid) as peak:
        # A file over 32 MiB is searched only if it is named.
        *found, summary = worker.ask(msgspec.structs.replace(SEARCH, paths=("f",)))
        [page] = worker.ask(PAGE)
    assert isinstance(summary, protocol.Summary)
    assert isinstance(page, protocol.Page)
    if size_mib <= 32:
        [matches] = found
        assert isinstance(matches, protocol.Matches)
        [line] = matches.files[0].lines
        assert (line.line, line.clipped, line.text[:8]) == (2, True, "é needle")
        assert len(line.text) == 500
    else:
        assert summary.truncated == (not found)
    assert (page.clipped_lines, page.text.splitlines()[2]) == (1, "last")
    assert peak.added_bytes < 16 * MIB


@pytest.mark.parametrize(
    "ask",
    [
        lambda worker: worker.ask(PAGE)[0],
        lambda worker: worker.ask(protocol.StatPath("f", with_etag=True))[0],
        lambda worker: refusal(worker, protocol.ReadBytes("f", 0, 10, "0" * 64)),
        lambda worker: worker.ask(protocol.SearchFiles(*msgspec.structs.astuple(SEARCH))),
        lambda worker: worker.ask(protocol.PlanWrite("t", "f", b"small")),
        lambda worker: refusal(worker, protocol.PlanWrite("t", "f", b"x", if_etag="0" * 64)),
        lambda worker: worker.ask(protocol.RollBack("t", ())),
    ],
    ids=["page", "stat", "bytes", "search", "write", "write-if", "roll-back"],
)
def test_a_sparse_file_of_a_terabyte_costs_nothing(
    worker: FileWorkerProcess, directory: Path, ask: Callable[[FileWorkerProcess], object]
) -> None:
    (directory / "f").write_text("a line without end")
    os.truncate(directory / "f", TERABYTE)
    with memory_peak(worker.pid) as peak:
        ask(worker)
    assert peak.added_bytes < 8 * MIB
    assert isinstance(worker.ask(protocol.StatPath("f"))[0], protocol.Stat)


def test_a_line_whose_matches_are_too_many_is_left_out_and_that_is_told(
    worker: FileWorkerProcess, directory: Path
) -> None:
    (directory / "f").write_bytes(b"needle" * (4 * MIB))
    (directory / "named").write_text("no\nneedle\n")
    with memory_peak(worker.pid) as peak:
        *_, summary = worker.ask(SEARCH)
        *found, _ = worker.ask(msgspec.structs.replace(SEARCH, paths=("named",)))
    assert isinstance(summary, protocol.Summary)
    assert (summary.truncated, len(found)) == (True, 1)
    assert peak.added_bytes < 16 * MIB


def test_a_sparse_file_is_replaced_and_what_it_was_is_not_kept(
    worker: FileWorkerProcess, directory: Path
) -> None:
    (directory / "f").touch()
    os.truncate(directory / "f", TERABYTE)
    [image] = write(worker, "f", b"small\n").images
    assert (image.is_kept, (directory / "f").read_bytes()) == (False, b"small\n")
    undoing = protocol.PlanRestore("u", (image,))
    assert refusal(worker, undoing) is Reason.NOTHING_TO_UNDO


def test_a_file_of_very_many_lines_is_edited_and_nothing_is_cut_into_lines(
    worker: FileWorkerProcess, directory: Path
) -> None:
    (directory / "f").write_bytes(b"ab\n" * 3_000_000 + b"needle\n" + b"cd\n" * 1_000_000)
    edits = (TextEdit("needle", "thread"),)
    loose = (TextEdit("  needle \n", "thread\n"),)
    patch = "*** Begin Patch\n*** Update File: f\n@@\n-needle\n+thread\n*** End Patch"
    with memory_peak(worker.pid) as peak:
        [exact] = worker.ask(protocol.PlanEdits("t", (FileEdit("f", edits),)))
        [missed] = worker.ask(protocol.PlanEdits("t", (FileEdit("f", loose),)))
        [patched] = worker.ask(protocol.PlanPatch("t", patch))
        worker.ask(protocol.PlanWrite("t", "f", b"ef\n" * 1_000_000))
    assert isinstance(exact, protocol.Planned)
    assert isinstance(missed, protocol.Planned)
    assert isinstance(patched, protocol.Planned)
    [changed] = exact.changes
    assert changed.diff == (
        "--- a/f\n+++ b/f\n@@ -2999998,7 +2999998,7 @@\n ab\n ab\n ab\n-needle\n+thread\n"
        " cd\n cd\n cd\n"
    )
    assert (changed.added_lines, changed.deleted_lines) == (1, 1)
    assert [each.kind for each in missed.problems] == [ProblemKind.NO_MATCH]
    assert [each.kind for each in patched.problems] == [ProblemKind.MALFORMED]
    assert peak.added_bytes < 160 * MIB


def test_a_file_that_grows_while_it_is_read_ends(
    worker: FileWorkerProcess, directory: Path
) -> None:
    path = directory / "f"
    path.write_bytes(b"line\n" * 10)
    with memory_peak(worker.pid) as peak, growing(path, b"more of it\n"):
        worker.ask(msgspec.structs.replace(PAGE, limit_lines=5))
        worker.ask(protocol.StatPath("f", with_etag=True))
        head, *chunks, _ = worker.ask(protocol.ReadBytes("f", 0, 0, ""))
        worker.ask(protocol.PlanEdits("t", ()))
    assert isinstance(head, protocol.BytesHead)
    told = sum(len(chunk.data) for chunk in chunks if isinstance(chunk, protocol.Chunk))
    assert told == head.info.size_bytes
    assert peak.added_bytes < 24 * MIB
