"""What can be asked about files, of the library here and of the program: the same answers."""

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from support.toolrunner.file_rooms import Room, change, delete, here, move, program, write
from toolrunner.filesystem.errors import FileRefused, Reason
from toolrunner.fileworker import protocol
from toolrunner.fileworker.values import ChangeKind, FileEdit, ProblemKind, TextEdit


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    inside = tmp_path / "inside"
    inside.mkdir()
    return inside


@pytest.fixture(params=[here, program], ids=["here", "program"])
def room(request: pytest.FixtureRequest, directory: Path) -> Iterator[Room]:
    opened: Callable[[Path], AbstractContextManager[Room]] = request.param
    with opened(directory) as room:
        yield room


def page(room: Room, path: str, **fields: int) -> protocol.Page:
    limits = {"offset_line": 1, "limit_lines": 2000, "max_bytes": 65536, "line_bytes": 4096}
    given: dict[str, Any] = {**limits, **fields}
    [answer] = room.ask(protocol.ReadPage(path, **given))
    assert isinstance(answer, protocol.Page)
    return answer


def refusal(room: Room, request: protocol.Request) -> Reason:
    with pytest.raises(FileRefused) as refused:
        room.ask(request)
    return refused.value.reason


def read_refusal(room: Room, path: str, offset_line: int = 1) -> FileRefused:
    with pytest.raises(FileRefused) as refused:
        page(room, path, offset_line=offset_line)
    return refused.value


def edits(token: str, *files: tuple[str, str, str]) -> protocol.PlanEdits:
    return protocol.PlanEdits(
        token, tuple(FileEdit(path, (TextEdit(old, new),)) for path, old, new in files)
    )


def patch(*lines: str) -> protocol.PlanPatch:
    return protocol.PlanPatch("p", "\n".join(("*** Begin Patch", *lines, "*** End Patch")))


def test_a_page_ends_where_it_should_and_says_how_to_go_on(room: Room, directory: Path) -> None:
    (directory / "f").write_text("".join(f"line {number}\n" for number in range(1, 101)))
    first = page(room, "f", limit_lines=3)
    assert (first.text, first.start_line, first.end_line) == ("line 1\nline 2\nline 3\n", 1, 3)
    assert (first.total_lines, first.has_more, first.next_offset_line) == (100, True, 4)
    small = page(room, "f", offset_line=99, max_bytes=10)
    assert (small.text, small.next_offset_line) == ("line 99\n", 100)
    last = page(room, "f", offset_line=100)
    assert (last.text, last.has_more, last.next_offset_line) == ("line 100\n", False, 0)
    past = read_refusal(room, "f", offset_line=101)
    assert (past.reason, past.metadata["lines"]) == (Reason.PAST_END, "100")


@pytest.mark.parametrize(
    ("content", "lines"), [(b"", 0), (b"a", 1), (b"a\n", 1), (b"a\n\n", 2), (b"a\r\nb", 2)]
)
def test_lines_are_counted_without_an_empty_one_at_the_end(
    room: Room, directory: Path, content: bytes, lines: int
) -> None:
    (directory / "f").write_bytes(content)
    assert page(room, "f").total_lines == lines
    assert page(room, "f", limit_lines=1).total_lines == lines


def test_long_lines_are_cut_between_characters(room: Room, directory: Path) -> None:
    (directory / "f").write_text("é" * 100 + "\nshort\n")
    cut = page(room, "f", line_bytes=11)
    assert (cut.text, cut.clipped_lines) == ("é" * 5 + " [line cut]\nshort\n", 1)


def test_a_large_file_is_read_from_the_middle(room: Room, directory: Path) -> None:
    (directory / "f").write_text("".join(f"{number:09}\n" for number in range(1, 600_001)))
    found = page(room, "f", offset_line=500_000, limit_lines=2)
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
    room: Room, directory: Path, content: bytes, kind: str, encoding: str, media_type: str
) -> None:
    (directory / "f.txt").write_bytes(content)
    found = page(room, "f.txt")
    assert (found.kind, found.encoding, found.media_type) == (kind, encoding, media_type)
    assert found.image == (content if kind == "image" else b"")
    assert ("mlaut" in found.text) == (b"mlaut" in content.replace(b"\0", b""))


def test_a_path_that_is_nearly_right_is_suggested(room: Room, directory: Path) -> None:
    (directory / "src").mkdir()
    (directory / "src" / "Reader.py").touch()
    refused = read_refusal(room, "src/raeder.py")
    assert (refused.reason, refused.metadata["suggestions"]) == (
        Reason.PATH_NOT_FOUND,
        "src/Reader.py",
    )
    assert read_refusal(room, "scr/Reader.py").metadata["suggestions"] == "src"


def test_directories_and_pipes_are_not_read(room: Room, directory: Path) -> None:
    os.mkfifo(directory / "pipe")
    assert read_refusal(room, "").metadata["kind"] == "directory"
    assert read_refusal(room, "pipe").metadata["kind"] == "special"


def test_whatever_leads_out_is_refused(room: Room, directory: Path) -> None:
    secret = directory.parent / "secret"
    secret.write_text("hunter2")
    (directory / "absolute").symlink_to(secret)
    (directory / "relative").symlink_to("../secret")
    (directory / "above").symlink_to("..")
    for path in ("../secret", str(secret), "absolute", "relative", "above/secret", "/etc/passwd"):
        assert read_refusal(room, path).reason is Reason.OUTSIDE_WORKSPACE, path
        planned = protocol.PlanWrite("t", path, b"broken")
        assert refusal(room, planned) is Reason.OUTSIDE_WORKSPACE, path
    assert (
        refusal(room, protocol.PlanDelete("t", "above/secret", False)) is Reason.OUTSIDE_WORKSPACE
    )
    moving = protocol.PlanMove("t", "above/secret", "mine", False)
    assert refusal(room, moving) is Reason.OUTSIDE_WORKSPACE
    assert secret.read_text() == "hunter2"
    assert read_refusal(room, "/proc/self/environ").reason is Reason.OUTSIDE_WORKSPACE


def test_links_that_stay_inside_are_followed_and_kept(room: Room, directory: Path) -> None:
    target = directory / "real" / "f"
    target.parent.mkdir()
    target.write_text("a\n")
    target.chmod(0o751)
    (directory / "link").symlink_to("real/../real/f")
    (directory / "real" / "again").symlink_to("../link")
    write(room, "real/again", b"b\n")
    assert target.read_text() == "b\n"
    assert stat.S_IMODE(target.stat().st_mode) == 0o751
    assert (directory / "link").is_symlink()
    assert page(room, str(directory / "link")).text == "b\n"


def test_a_file_that_is_replaced_keeps_its_extended_attributes(room: Room, directory: Path) -> None:
    (directory / "f").write_text("a\n")
    try:
        os.setxattr(directory / "f", "user.origin", b"somewhere")
    except OSError as error:
        pytest.skip(f"no extended attributes here: {error.strerror}")
    write(room, "f", b"b\n")
    assert (directory / "f").read_text() == "b\n"
    assert os.getxattr(directory / "f", "user.origin") == b"somewhere"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_file_that_is_replaced_keeps_its_owner(room: Room, directory: Path) -> None:
    (directory / "f").write_text("a\n")
    os.chown(directory / "f", 12345, 23456)
    (directory / "f").chmod(0o640)
    write(room, "f", b"b\n")
    kept = (directory / "f").stat()
    assert (kept.st_uid, kept.st_gid, stat.S_IMODE(kept.st_mode)) == (12345, 23456, 0o640)


def test_a_file_is_made_only_if_it_is_new_or_as_expected(room: Room, directory: Path) -> None:
    [created] = write(room, "f", b"1", create_only=True).changes
    assert created.kind is ChangeKind.CREATED
    assert refusal(room, protocol.PlanWrite("t", "f", b"2", create_only=True)) is Reason.PATH_EXISTS
    stale = protocol.PlanWrite("t", "f", b"2", if_etag="0" * 64)
    assert refusal(room, stale) is Reason.FILE_CHANGED
    [same] = write(room, "f", b"1", if_etag=created.etag).changes
    assert same.kind is ChangeKind.UNCHANGED
    write(room, "run.sh", b"#!/bin/sh\n", mode=0o755)
    assert stat.S_IMODE((directory / "run.sh").stat().st_mode) == 0o755


def test_a_file_that_changed_between_plan_and_commit_is_left_alone(
    room: Room, directory: Path
) -> None:
    (directory / "f").write_text("a\n")
    room.ask(edits("t", ("f", "a", "b")))
    (directory / "f").write_text("somebody else\n")
    assert refusal(room, protocol.Commit("t")) is Reason.FILE_CHANGED
    assert (directory / "f").read_text() == "somebody else\n"
    assert os.listdir(directory) == ["f"]


def test_one_bad_edit_leaves_all_files_alone_and_all_problems_are_told(
    room: Room, directory: Path
) -> None:
    for name in ("a", "b", "c"):
        (directory / name).write_text("same\nsame\n")
    (directory / "bin").write_bytes(b"\0")
    (directory / "alias").symlink_to("a")
    planned = change(
        room,
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


def test_the_same_path_twice_is_one_file(room: Room, directory: Path) -> None:
    (directory / "f").write_text("a\n")
    [changed] = change(room, edits("t", ("f", "a", "b"), ("./f", "b", "c"))).changes
    assert ((directory / "f").read_text(), changed.added_lines) == ("c\n", 1)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "latin-1"])
def test_an_edit_keeps_mark_encoding_and_endings(
    room: Room, directory: Path, encoding: str
) -> None:
    (directory / "f").write_bytes("é one\r\ntwo\r\n".encode(encoding))
    change(room, edits("t", ("f", "two", "ü\nthree")))
    assert (directory / "f").read_bytes() == "é one\r\nü\r\nthree\r\n".encode(encoding)


def test_a_patch_is_made_as_a_whole_or_not_at_all(room: Room, directory: Path) -> None:
    (directory / "a").write_text("1\n2\n")
    (directory / "b").write_text("b\n")
    bad = change(
        room,
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
        room,
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


def test_a_commit_that_fails_halfway_is_taken_back(room: Room, directory: Path) -> None:
    (directory / "a").write_text("a\n")
    (directory / "z").write_text("z\n")
    room.ask(patch("*** Update File: a", "@@", "-a", "+b", "*** Add File: new/f", "+x",
                   "*** Delete File: z"))  # fmt: skip
    (directory / "z").write_text("somebody else\n")
    assert refusal(room, protocol.Commit("p")) is Reason.FILE_CHANGED
    assert (directory / "a").read_text() == "a\n"
    assert sorted(os.listdir(directory)) == ["a", "z"]


def test_git_s_hooks_are_protected_where_that_is_asked_for(room: Room, directory: Path) -> None:
    (directory / ".git" / "hooks").mkdir(parents=True)
    (directory / "sly").symlink_to(".git/hooks")
    (directory / ".git" / "modules" / "m").mkdir(parents=True)
    protected = (".git/hooks/pre-commit", ".git/config", "sly/post-merge", ".git/modules/m/config")
    for path in protected:
        planned = protocol.PlanWrite("t", path, b"#!/bin/sh\n", guards_git=True)
        assert refusal(room, planned) is Reason.PATH_FORBIDDEN, path
    assert refusal(room, protocol.PlanMove("t", ".git", "x", False, True)) is Reason.PATH_FORBIDDEN
    write(room, ".git/hooks/pre-commit", b"#!/bin/sh\n")


def test_files_are_put_back_unless_they_changed_since(room: Room, directory: Path) -> None:
    (directory / "f").write_text("before\n")
    images = write(room, "f", b"after\n").images
    (directory / "f").write_text("later\n")
    assert refusal(room, protocol.PlanRestore("u", images)) is Reason.FILE_CHANGED
    (directory / "f").write_text("after\n")
    change(room, protocol.PlanRestore("u", images))
    assert (directory / "f").read_text() == "before\n"


def test_directories_are_made_moved_and_deleted(room: Room, directory: Path) -> None:
    assert room.ask(protocol.MakeDirectory("a/b/c")) == [protocol.Count(3)]
    assert room.ask(protocol.MakeDirectory("a/b/c")) == [protocol.Count(0)]
    write(room, "a/b/f", b"1")
    write(room, "g", b"2")
    assert refusal(room, protocol.MakeDirectory("g")) is Reason.PATH_EXISTS
    assert refusal(room, protocol.PlanMove("t", "g", "a/b/f", False)) is Reason.PATH_EXISTS
    assert refusal(room, protocol.PlanMove("t", "none", "x", False)) is Reason.PATH_NOT_FOUND
    move(room, "a/b", "x/y")
    move(room, "g", "x/y/f", overwrite=True)
    assert (directory / "x/y/f").read_text() == "2"
    assert refusal(room, protocol.PlanDelete("t", "x", False)) is Reason.WRONG_PATH_KIND
    outside = directory.parent / "keep"
    outside.mkdir()
    (outside / "f").touch()
    (directory / "x" / "link").symlink_to(outside)
    assert delete(room, "x") == 5
    assert delete(room, "x") == 0
    assert (os.listdir(directory), os.listdir(outside)) == (["a"], ["f"])
    assert refusal(room, protocol.PlanDelete("t", "", True)) is Reason.PATH_FORBIDDEN


def test_a_path_is_known_with_and_without_its_link(room: Room, directory: Path) -> None:
    (directory / "real").write_text("x")
    (directory / "link").symlink_to("real")
    [followed] = room.ask(protocol.StatPath("link", with_etag=True))
    [itself] = room.ask(protocol.StatPath("link", no_follow=True))
    [absent] = room.ask(protocol.StatPath("rael"))
    assert isinstance(followed, protocol.Stat)
    assert isinstance(itself, protocol.Stat)
    assert isinstance(absent, protocol.Stat)
    assert followed.info is not None
    assert (followed.info.type, followed.resolved_path, len(followed.etag)) == ("file", "real", 64)
    assert itself.info is not None
    assert (itself.info.type, itself.info.link_target) == ("symlink", "real")
    assert (absent.info, absent.suggestions) == (None, ("real",))


def test_an_upload_is_nowhere_until_it_is_whole(room: Room, directory: Path) -> None:
    room.ask(protocol.StartUpload("u", "deep/f", 6, mode=0o600))
    room.ask(protocol.UploadChunk("u", b"abc"))
    assert refusal(room, protocol.PlanUpload("u")) is Reason.INVALID_REQUEST
    assert not (directory / "deep" / "f").exists()
    room.ask(protocol.UploadChunk("u", b"def"))
    assert refusal(room, protocol.UploadChunk("u", b"g")) is Reason.INVALID_REQUEST
    room.ask(protocol.DropUpload("u", "f"))
    assert os.listdir(directory) == []
    room.ask(protocol.StartUpload("v", "deep/f", 3, mode=0o600))
    room.ask(protocol.UploadChunk("v", b"abc"))
    room.ask(protocol.PlanUpload("v"))
    room.ask(protocol.Commit("v"))
    assert (directory / "deep" / "f").read_bytes() == b"abc"
    assert os.listdir(directory / "deep") == ["f"]


def test_bytes_come_in_chunks_from_anywhere(room: Room, directory: Path) -> None:
    content = os.urandom(600_000)
    (directory / "f").write_bytes(content)
    head, *chunks, _ = room.ask(protocol.ReadBytes("f", 100, 0, ""))
    assert isinstance(head, protocol.BytesHead)
    assert b"".join(chunk.data for chunk in chunks) == content[100:]  # type: ignore[union-attr]
    _, chunk, _ = room.ask(protocol.ReadBytes("f", 5, 10, ""))
    assert chunk == protocol.Chunk(content[5:15])
    assert refusal(room, protocol.ReadBytes("f", 0, 0, "0" * 64)) is Reason.FILE_CHANGED


def staged(directory: Path, token: str) -> Path:
    path = directory / f".parley-{token}.tmp"
    path.touch()
    return path


def test_what_is_left_of_an_upload_is_cleared_without_a_look_at_what_is_there(
    room: Room, directory: Path
) -> None:
    os.mkfifo(directory / "pipe")
    (directory / "large").touch()
    os.truncate(directory / "large", 10**12)
    for name in ("pipe", "large", "none"):
        left = staged(directory, "t")
        assert room.ask(protocol.DropUpload("t", name)) == [protocol.Done()]
        assert not left.exists()


def test_nothing_but_a_file_is_opened_to_take_a_change_back(room: Room, directory: Path) -> None:
    [image] = write(room, "f", b"after\n").images
    (directory / "f").unlink()
    os.mkfifo(directory / "f")
    # Whoever writes into a pipe would see that somebody has opened it.
    with pytest.raises(OSError, match="No such device"):
        os.open(directory / "f", os.O_WRONLY | os.O_NONBLOCK)
    assert room.ask(protocol.RollBack("t", (image,))) == [protocol.Done(is_whole=False)]
    (directory / "f").unlink()
    (directory / "f").mkdir()
    assert room.ask(protocol.RollBack("t", (image,))) == [protocol.Done(is_whole=False)]
    (directory / "f").rmdir()
    (directory / "f").touch()
    os.truncate(directory / "f", 10**12)
    assert room.ask(protocol.RollBack("t", (image,))) == [protocol.Done(is_whole=False)]


def test_a_pipe_that_takes_the_place_of_a_file_holds_nobody_up(room: Room, directory: Path) -> None:
    (directory / "f").write_text("a\n")
    room.ask(edits("t", ("f", "a", "b")))
    (directory / "f").unlink()
    os.mkfifo(directory / "f")
    assert refusal(room, protocol.Commit("t")) is Reason.FILE_CHANGED
    assert os.listdir(directory) == ["f"]
