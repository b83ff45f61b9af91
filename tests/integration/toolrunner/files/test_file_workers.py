"""What can be asked about files, of the library here and of the program: the same answers."""

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from support.toolrunner.file_workers import FileWorker, change, delete, here, move, program, write
from toolrunner.filesystem.errors import FileRefused, Reason
from toolrunner.fileworker import protocol
from toolrunner.fileworker.values import ChangeKind, FileEdit, ProblemKind, TextEdit


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    inside = tmp_path / "inside"
    inside.mkdir()
    return inside


@pytest.fixture(params=[here, program], ids=["here", "program"])
def worker(request: pytest.FixtureRequest, directory: Path) -> Iterator[FileWorker]:
    opened: Callable[[Path], AbstractContextManager[FileWorker]] = request.param
    with opened(directory) as worker:
        yield worker


def page(worker: FileWorker, path: str, **fields: int) -> protocol.Page:
    limits = {"offset_line": 1, "limit_lines": 2000, "max_bytes": 65536, "line_bytes": 4096}
    given: dict[str, Any] = {**limits, **fields}
    [answer] = worker.ask(protocol.ReadPage(path, **given))
    assert isinstance(answer, protocol.Page)
    return answer


def refusal(worker: FileWorker, request: protocol.Request) -> Reason:
    with pytest.raises(FileRefused) as refused:
        worker.ask(request)
    return refused.value.reason


def read_refusal(worker: FileWorker, path: str, offset_line: int = 1) -> FileRefused:
    with pytest.raises(FileRefused) as refused:
        page(worker, path, offset_line=offset_line)
    return refused.value


def edits(token: str, *files: tuple[str, str, str]) -> protocol.PlanEdits:
    return protocol.PlanEdits(
        token, tuple(FileEdit(path, (TextEdit(old, new),)) for path, old, new in files)
    )


def patch(*lines: str) -> protocol.PlanPatch:
    return protocol.PlanPatch("p", "\n".join(("*** Begin Patch", *lines, "*** End Patch")))


def test_a_page_ends_where_it_should_and_says_how_to_go_on(
    worker: FileWorker, directory: Path
) -> None:
    (directory / "f").write_text("".join(f"line {number}\n" for number in range(1, 101)))
    first = page(worker, "f", limit_lines=3)
    assert (first.text, first.start_line, first.end_line) == ("line 1\nline 2\nline 3\n", 1, 3)
    assert (first.total_lines, first.has_more, first.next_offset_line) == (100, True, 4)
    small = page(worker, "f", offset_line=99, max_bytes=10)
    assert (small.text, small.next_offset_line) == ("line 99\n", 100)
    last = page(worker, "f", offset_line=100)
    assert (last.text, last.has_more, last.next_offset_line) == ("line 100\n", False, 0)
    past = read_refusal(worker, "f", offset_line=101)
    assert (past.reason, past.metadata["lines"]) == (Reason.PAST_END, "100")


@pytest.mark.parametrize(
    ("content", "lines"), [(b"", 0), (b"a", 1), (b"a\n", 1), (b"a\n\n", 2), (b"a\r\nb", 2)]
)
def test_lines_are_counted_without_an_empty_one_at_the_end(
    worker: FileWorker, directory: Path, content: bytes, lines: int
) -> None:
    (directory / "f").write_bytes(content)
    assert page(worker, "f").total_lines == lines
    assert page(worker, "f", limit_lines=1).total_lines == lines


def test_long_lines_are_cut_between_characters(worker: FileWorker, directory: Path) -> None:
    (directory / "f").write_text("é" * 100 + "\nshort\n")
    cut = page(worker, "f", line_bytes=11)
    assert (cut.text, cut.clipped_lines) == ("é" * 5 + " [line cut]\nshort\n", 1)


def test_a_large_file_is_read_from_the_middle(worker: FileWorker, directory: Path) -> None:
    (directory / "f").write_text("".join(f"{number:09}\n" for number in range(1, 600_001)))
    found = page(worker, "f", offset_line=500_000, limit_lines=2)
    assert (found.text, found.total_lines) == ("000500000\n000500001\n", 600_000)


@pytest.mark.parametrize(
    ("content", "kind", "encoding", "media_type"),
    [
        (b"plain\n", "text", "utf-8", "text/plain"),
        ("ümlaut\n".encode("utf-8-sig"), "text", "utf-8-sig", "text/plain"),
        ("ümlaut\n".encode("utf-16"), "text", "utf-16-le", "text/plain"),
        ("ümlaut\n".encode("latin-1"), "text", "iso-8859-1", "text/plain"),
        ("ümlaut ".encode() + b"\xff\n", "text", "utf-8 (with invalid bytes)", "text/plain"),
        (b"<svg xmlns='x'></svg>", "text", "utf-8", "image/svg+xml"),
        (b"\x89PNG\r\n\x1a\n\0\0", "image", "", "image/png"),
        (b"%PDF-1.7\n", "pdf", "", "application/pdf"),
        (b"\x7fELF\0\0", "binary", "", "application/x-elf"),
        (b"a\0b", "binary", "", "application/octet-stream"),
    ],
)
def test_what_a_file_is_shows_in_its_bytes(
    worker: FileWorker, directory: Path, content: bytes, kind: str, encoding: str, media_type: str
) -> None:
    (directory / "f.txt").write_bytes(content)
    found = page(worker, "f.txt")
    assert (found.kind, found.encoding, found.media_type) == (kind, encoding, media_type)
    assert found.image == (content if kind == "image" else b"")
    assert ("mlaut" in found.text) == (b"mlaut" in content.replace(b"\0", b""))


def test_a_path_that_is_nearly_right_is_suggested(worker: FileWorker, directory: Path) -> None:
    (directory / "src").mkdir()
    (directory / "src" / "Reader.py").touch()
    refused = read_refusal(worker, "src/raeder.py")
    assert (refused.reason, refused.metadata["suggestions"]) == (
        Reason.PATH_NOT_FOUND,
        "src/Reader.py",
    )
    assert read_refusal(worker, "scr/Reader.py").metadata["suggestions"] == "src"


def test_directories_and_pipes_are_not_read(worker: FileWorker, directory: Path) -> None:
    os.mkfifo(directory / "pipe")
    assert read_refusal(worker, "").metadata["kind"] == "directory"
    assert read_refusal(worker, "pipe").metadata["kind"] == "special"


def test_whatever_leads_out_is_refused(worker: FileWorker, directory: Path) -> None:
    secret = directory.parent / "secret"
    secret.write_text("hunter2")
    (directory / "absolute").symlink_to(secret)
    (directory / "relative").symlink_to("../secret")
    (directory / "above").symlink_to("..")
    for path in ("../secret", str(secret), "absolute", "relative", "above/secret", "/etc/passwd"):
        assert read_refusal(worker, path).reason is Reason.OUTSIDE_WORKSPACE, path
        planned = protocol.PlanWrite("t", path, b"broken")
        assert refusal(worker, planned) is Reason.OUTSIDE_WORKSPACE, path
    assert (
        refusal(worker, protocol.PlanDelete("t", "above/secret", False)) is Reason.OUTSIDE_WORKSPACE
    )
    moving = protocol.PlanMove("t", "above/secret", "mine", False)
    assert refusal(worker, moving) is Reason.OUTSIDE_WORKSPACE
    assert secret.read_text() == "hunter2"
    assert read_refusal(worker, "/proc/self/environ").reason is Reason.OUTSIDE_WORKSPACE


def test_links_that_stay_inside_are_followed_and_kept(worker: FileWorker, directory: Path) -> None:
    target = directory / "real" / "f"
    target.parent.mkdir()
    target.write_text("a\n")
    target.chmod(0o751)
    (directory / "link").symlink_to("real/../real/f")
    (directory / "real" / "again").symlink_to("../link")
    write(worker, "real/again", b"b\n")
    assert target.read_text() == "b\n"
    assert stat.S_IMODE(target.stat().st_mode) == 0o751
    assert (directory / "link").is_symlink()
    assert page(worker, str(directory / "link")).text == "b\n"


def test_a_file_that_is_replaced_keeps_its_extended_attributes(
    worker: FileWorker, directory: Path
) -> None:
    (directory / "f").write_text("a\n")
    try:
        os.setxattr(directory / "f", "user.origin", b"somewhere")
    except OSError as error:
        pytest.skip(f"no extended attributes here: {error.strerror}")
    write(worker, "f", b"b\n")
    assert (directory / "f").read_text() == "b\n"
    assert os.getxattr(directory / "f", "user.origin") == b"somewhere"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_file_that_is_replaced_keeps_its_owner(worker: FileWorker, directory: Path) -> None:
    (directory / "f").write_text("a\n")
    os.chown(directory / "f", 12345, 23456)
    (directory / "f").chmod(0o640)
    write(worker, "f", b"b\n")
    kept = (directory / "f").stat()
    assert (kept.st_uid, kept.st_gid, stat.S_IMODE(kept.st_mode)) == (12345, 23456, 0o640)


def test_a_file_is_made_only_if_it_is_new_or_as_expected(
    worker: FileWorker, directory: Path
) -> None:
    [created] = write(worker, "f", b"1", create_only=True).changes
    assert created.kind is ChangeKind.CREATED
    assert (
        refusal(worker, protocol.PlanWrite("t", "f", b"2", create_only=True)) is Reason.PATH_EXISTS
    )
    stale = protocol.PlanWrite("t", "f", b"2", if_etag="0" * 64)
    assert refusal(worker, stale) is Reason.FILE_CHANGED
    [same] = write(worker, "f", b"1", if_etag=created.etag).changes
    assert same.kind is ChangeKind.UNCHANGED
    write(worker, "run.sh", b"#!/bin/sh\n", mode=0o755)
    assert stat.S_IMODE((directory / "run.sh").stat().st_mode) == 0o755


def test_a_file_that_changed_between_plan_and_commit_is_left_alone(
    worker: FileWorker, directory: Path
) -> None:
    (directory / "f").write_text("a\n")
    worker.ask(edits("t", ("f", "a", "b")))
    (directory / "f").write_text("somebody else\n")
    assert refusal(worker, protocol.Commit("t")) is Reason.FILE_CHANGED
    assert (directory / "f").read_text() == "somebody else\n"
    assert os.listdir(directory) == ["f"]


def test_one_bad_edit_leaves_all_files_alone_and_all_problems_are_told(
    worker: FileWorker, directory: Path
) -> None:
    for name in ("a", "b", "c"):
        (directory / name).write_text("same\nsame\n")
    (directory / "bin").write_bytes(b"\0")
    (directory / "alias").symlink_to("a")
    planned = change(
        worker,
        edits(
            "t",
            ("a", "same\nsame", "x"),
            ("b", "same", "x"),
            ("c", "gone", "x"),
            ("bin", "x", "y"),
            ("alias", "same\nsame", "y"),
            ("nowhere", "x", "y"),
            ("../out", "x", "y"),
        ),
    )
    assert [(each.file_index, each.kind, each.count) for each in planned.problems] == [
        (1, ProblemKind.AMBIGUOUS, 2),
        (2, ProblemKind.NO_MATCH, 0),
        (3, ProblemKind.BINARY, 0),
        (4, ProblemKind.ALIAS, 0),
        (5, ProblemKind.NOT_FOUND, 0),
        (6, ProblemKind.FORBIDDEN, 0),
    ]
    assert {(directory / name).read_text() for name in ("a", "b", "c")} == {"same\nsame\n"}


def test_the_same_path_twice_is_one_file(worker: FileWorker, directory: Path) -> None:
    (directory / "f").write_text("a\n")
    [changed] = change(worker, edits("t", ("f", "a", "b"), ("./f", "b", "c"))).changes
    assert ((directory / "f").read_text(), changed.added_lines) == ("c\n", 1)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "latin-1"])
def test_an_edit_keeps_mark_encoding_and_endings(
    worker: FileWorker, directory: Path, encoding: str
) -> None:
    (directory / "f").write_bytes("é one\r\ntwo\r\n".encode(encoding))
    change(worker, edits("t", ("f", "two", "ü\nthree")))
    assert (directory / "f").read_bytes() == "é one\r\nü\r\nthree\r\n".encode(encoding)


def test_a_patch_is_made_as_a_whole_or_not_at_all(worker: FileWorker, directory: Path) -> None:
    (directory / "a").write_text("1\n2\n")
    (directory / "b").write_text("b\n")
    bad = change(
        worker,
        patch(
            "*** Delete File: b",
            "*** Update File: a",
            "@@",
            "-3",
            "+4",
            "*** Add File: b/c",
            "+x",
            "*** Delete File: none",
        ),
    )
    assert [(each.patch_line, each.kind) for each in bad.problems] == [
        (4, ProblemKind.NO_MATCH),
        (7, ProblemKind.NOT_A_FILE),
        (9, ProblemKind.NOT_FOUND),
    ]
    assert (directory / "b").read_text() == "b\n"
    good = change(
        worker,
        patch(
            "*** Update File: a",
            "*** Move to: deep/er/a2",
            "@@",
            "-2",
            "+two",
            "*** Delete File: b",
            "*** Add File: c",
            "+c",
        ),
    )
    assert good.problems == ()
    assert [(each.path, each.kind, each.old_path) for each in good.changes] == [
        ("deep/er/a2", ChangeKind.MOVED, "a"),
        ("b", ChangeKind.DELETED, ""),
        ("c", ChangeKind.CREATED, ""),
    ]
    assert good.changes[0].diff.endswith("@@ -1,2 +1,2 @@\n 1\n-2\n+two\n")
    assert (directory / "deep/er/a2").read_text() == "1\ntwo\n"
    assert sorted(os.listdir(directory)) == ["c", "deep"]


def test_a_commit_that_fails_halfway_is_taken_back(worker: FileWorker, directory: Path) -> None:
    (directory / "a").write_text("a\n")
    (directory / "z").write_text("z\n")
    worker.ask(patch("*** Update File: a", "@@", "-a", "+b", "*** Add File: new/f", "+x",
                   "*** Delete File: z"))  # fmt: skip
    (directory / "z").write_text("somebody else\n")
    assert refusal(worker, protocol.Commit("p")) is Reason.FILE_CHANGED
    assert (directory / "a").read_text() == "a\n"
    assert sorted(os.listdir(directory)) == ["a", "z"]


def test_git_s_hooks_are_protected_where_that_is_asked_for(
    worker: FileWorker, directory: Path
) -> None:
    (directory / ".git" / "hooks").mkdir(parents=True)
    (directory / "sly").symlink_to(".git/hooks")
    (directory / ".git" / "modules" / "m").mkdir(parents=True)
    protected = (".git/hooks/pre-commit", ".git/config", "sly/post-merge", ".git/modules/m/config")
    for path in protected:
        planned = protocol.PlanWrite("t", path, b"#!/bin/sh\n", guards_git=True)
        assert refusal(worker, planned) is Reason.PATH_FORBIDDEN, path
    assert (
        refusal(worker, protocol.PlanMove("t", ".git", "x", False, True)) is Reason.PATH_FORBIDDEN
    )
    write(worker, ".git/hooks/pre-commit", b"#!/bin/sh\n")


def test_files_are_put_back_unless_they_changed_since(worker: FileWorker, directory: Path) -> None:
    (directory / "f").write_text("before\n")
    images = write(worker, "f", b"after\n").images
    (directory / "f").write_text("later\n")
    assert refusal(worker, protocol.PlanRestore("u", images)) is Reason.FILE_CHANGED
    (directory / "f").write_text("after\n")
    change(worker, protocol.PlanRestore("u", images))
    assert (directory / "f").read_text() == "before\n"


def test_directories_are_made_moved_and_deleted(worker: FileWorker, directory: Path) -> None:
    assert worker.ask(protocol.MakeDirectory("a/b/c")) == [protocol.Count(3)]
    assert worker.ask(protocol.MakeDirectory("a/b/c")) == [protocol.Count(0)]
    write(worker, "a/b/f", b"1")
    write(worker, "g", b"2")
    assert refusal(worker, protocol.MakeDirectory("g")) is Reason.PATH_EXISTS
    assert refusal(worker, protocol.PlanMove("t", "g", "a/b/f", False)) is Reason.PATH_EXISTS
    assert refusal(worker, protocol.PlanMove("t", "none", "x", False)) is Reason.PATH_NOT_FOUND
    move(worker, "a/b", "x/y")
    move(worker, "g", "x/y/f", overwrite=True)
    assert (directory / "x/y/f").read_text() == "2"
    assert refusal(worker, protocol.PlanDelete("t", "x", False)) is Reason.WRONG_PATH_KIND
    outside = directory.parent / "keep"
    outside.mkdir()
    (outside / "f").touch()
    (directory / "x" / "link").symlink_to(outside)
    assert delete(worker, "x") == 5
    assert delete(worker, "x") == 0
    assert (os.listdir(directory), os.listdir(outside)) == (["a"], ["f"])
    assert refusal(worker, protocol.PlanDelete("t", "", True)) is Reason.PATH_FORBIDDEN


def test_a_path_is_known_with_and_without_its_link(worker: FileWorker, directory: Path) -> None:
    (directory / "real").write_text("x")
    (directory / "link").symlink_to("real")
    [followed] = worker.ask(protocol.StatPath("link", with_etag=True))
    [itself] = worker.ask(protocol.StatPath("link", no_follow=True))
    [absent] = worker.ask(protocol.StatPath("rael"))
    assert isinstance(followed, protocol.Stat)
    assert isinstance(itself, protocol.Stat)
    assert isinstance(absent, protocol.Stat)
    assert followed.info is not None
    assert (followed.info.type, followed.resolved_path, len(followed.etag)) == ("file", "real", 64)
    assert itself.info is not None
    assert (itself.info.type, itself.info.link_target) == ("symlink", "real")
    assert (absent.info, absent.suggestions) == (None, ("real",))


def test_an_upload_is_nowhere_until_it_is_whole(worker: FileWorker, directory: Path) -> None:
    worker.ask(protocol.StartUpload("u", "deep/f", 6, mode=0o600))
    worker.ask(protocol.UploadChunk("u", b"abc"))
    assert refusal(worker, protocol.PlanUpload("u")) is Reason.INVALID_REQUEST
    assert not (directory / "deep" / "f").exists()
    worker.ask(protocol.UploadChunk("u", b"def"))
    assert refusal(worker, protocol.UploadChunk("u", b"g")) is Reason.INVALID_REQUEST
    worker.ask(protocol.DropUpload("u", "f"))
    assert os.listdir(directory) == []
    worker.ask(protocol.StartUpload("v", "deep/f", 3, mode=0o600))
    worker.ask(protocol.UploadChunk("v", b"abc"))
    worker.ask(protocol.PlanUpload("v"))
    worker.ask(protocol.Commit("v"))
    assert (directory / "deep" / "f").read_bytes() == b"abc"
    assert os.listdir(directory / "deep") == ["f"]


def test_bytes_come_in_chunks_from_anywhere(worker: FileWorker, directory: Path) -> None:
    content = os.urandom(600_000)
    (directory / "f").write_bytes(content)
    head, *chunks, _ = worker.ask(protocol.ReadBytes("f", 100, 0, ""))
    assert isinstance(head, protocol.BytesHead)
    assert b"".join(chunk.data for chunk in chunks) == content[100:]  # type: ignore[union-attr]
    _, chunk, _ = worker.ask(protocol.ReadBytes("f", 5, 10, ""))
    assert chunk == protocol.Chunk(content[5:15])
    assert refusal(worker, protocol.ReadBytes("f", 0, 0, "0" * 64)) is Reason.FILE_CHANGED


def staged(directory: Path, token: str) -> Path:
    path = directory / f".parley-{token}.tmp"
    path.touch()
    return path


def test_what_is_left_of_an_upload_is_cleared_without_a_look_at_what_is_there(
    worker: FileWorker, directory: Path
) -> None:
    os.mkfifo(directory / "pipe")
    (directory / "large").touch()
    os.truncate(directory / "large", 10**12)
    for name in ("pipe", "large", "none"):
        left = staged(directory, "t")
        assert worker.ask(protocol.DropUpload("t", name)) == [protocol.Done()]
        assert not left.exists()


def test_nothing_but_a_file_is_opened_to_take_a_change_back(
    worker: FileWorker, directory: Path
) -> None:
    [image] = write(worker, "f", b"after\n").images
    (directory / "f").unlink()
    os.mkfifo(directory / "f")
    # Whoever writes into a pipe would see that somebody has opened it.
    with pytest.raises(OSError, match="No such device"):
        os.open(directory / "f", os.O_WRONLY | os.O_NONBLOCK)
    assert worker.ask(protocol.RollBack("t", (image,))) == [protocol.Done(is_whole=False)]
    (directory / "f").unlink()
    (directory / "f").mkdir()
    assert worker.ask(protocol.RollBack("t", (image,))) == [protocol.Done(is_whole=False)]
    (directory / "f").rmdir()
    (directory / "f").touch()
    os.truncate(directory / "f", 10**12)
    assert worker.ask(protocol.RollBack("t", (image,))) == [protocol.Done(is_whole=False)]


def test_a_pipe_that_takes_the_place_of_a_file_holds_nobody_up(
    worker: FileWorker, directory: Path
) -> None:
    (directory / "f").write_text("a\n")
    worker.ask(edits("t", ("f", "a", "b")))
    (directory / "f").unlink()
    os.mkfifo(directory / "f")
    assert refusal(worker, protocol.Commit("t")) is Reason.FILE_CHANGED
    assert os.listdir(directory) == ["f"]
