"""Files over the real service: read, written, edited, patched, found and undone."""

import asyncio
import os
import stat
from collections.abc import AsyncIterator
from functools import partial

import grpc
import psutil
import pytest

from parley.api.workspace.v1 import file_pb2, sandbox_pb2
from parley.api.workspace.v1 import file_service_pb2 as api
from parley.rpc import problem_of
from support.toolrunner.files import Files
from support.toolrunner.node import Client, House


@pytest.fixture
def files(client: Client, house: House) -> Files:
    return Files.of(client, house)


async def reason_of(call: object) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await call  # type: ignore[misc]
    problem = problem_of(refused.value)
    return problem.status, problem.reason


async def test_a_file_is_written_with_a_diff_and_read_back(files: Files) -> None:
    created = await files.write("src/new/a.py", b"x = 1\n")
    assert created.kind == file_pb2.FILE_CHANGE_KIND_CREATED
    assert created.diff == "--- /dev/null\n+++ b/src/new/a.py\n@@ -0,0 +1 @@\n+x = 1\n"
    page = await files.read("src/new/a.py")
    assert (page.text, page.total_lines, page.etag) == ("x = 1\n", 1, created.etag)
    changed = await files.write("src/new/a.py", b"x = 2\n", if_etag=created.etag)
    assert (changed.kind, changed.added_lines, changed.deleted_lines) == (
        file_pb2.FILE_CHANGE_KIND_MODIFIED,
        1,
        1,
    )
    assert files.bytes_of("src/new/a.py") == b"x = 2\n"
    assert files.leavings() == []


async def test_a_file_is_not_written_over_what_the_writer_has_not_seen(files: Files) -> None:
    files.put("a", "one\n")
    seen = await files.read("a")
    files.put("a", "two\n")
    assert await reason_of(files.write("a", b"three\n", if_etag=seen.etag)) == (
        grpc.StatusCode.ABORTED,
        "FILE_CHANGED",
    )
    assert await reason_of(files.write("a", b"three\n", create_only=True)) == (
        grpc.StatusCode.ALREADY_EXISTS,
        "PATH_EXISTS",
    )
    assert files.bytes_of("a") == b"two\n"


async def test_a_change_tells_that_the_file_had_changed_since_it_was_read(files: Files) -> None:
    files.put("a", "one\n")
    await files.read("a")
    assert not (await files.edit(("a", "one", "two"))).changes[0].stale_read
    files.put("a", "two\nthree\n")
    assert (await files.edit(("a", "two", "four"))).changes[0].stale_read
    assert not (await files.edit(("a", "four", "five"))).changes[0].stale_read


async def test_errors_name_their_reason(files: Files, house: House) -> None:
    files.put("directory/file", "x\n")
    (files.root / "out").symlink_to("/etc")
    expected = {
        "nowhere": (grpc.StatusCode.NOT_FOUND, "PATH_NOT_FOUND"),
        "directory": (grpc.StatusCode.FAILED_PRECONDITION, "WRONG_PATH_KIND"),
        "out/passwd": (grpc.StatusCode.PERMISSION_DENIED, "OUTSIDE_WORKSPACE"),
        "../../../../../../etc/passwd": (grpc.StatusCode.PERMISSION_DENIED, "OUTSIDE_WORKSPACE"),
        "": (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_REQUEST"),
    }
    assert {path: await reason_of(files.read(path)) for path in expected} == expected
    past = (grpc.StatusCode.OUT_OF_RANGE, "PAST_END")
    assert await reason_of(files.read("directory/file", offset_line=5)) == past


async def test_edits_of_several_files_are_made_together_or_not_at_all(files: Files) -> None:
    files.put("a", "one\r\ntwo\r\n")
    files.put("b", "x\nx\n")
    refused = await files.edit(("a", "one", "1"), ("b", "x", "y"), ("c", "z", ""))
    assert not refused.applied
    assert [(each.path, each.kind, each.count) for each in refused.problems] == [
        ("b", file_pb2.EDIT_PROBLEM_KIND_AMBIGUOUS, 2),
        ("c", file_pb2.EDIT_PROBLEM_KIND_NOT_FOUND, 0),
    ]
    assert (files.bytes_of("a"), files.bytes_of("b")) == (b"one\r\ntwo\r\n", b"x\nx\n")
    tried = await files.edit(("a", "one\ntwo", "1\n2"), dry_run=True)
    assert (tried.applied, tried.changes[0].added_lines) == (False, 2)
    made = await files.edit(("a", "one\ntwo", "1\n2"), ("b", "x\nx", "y"))
    assert made.applied
    assert (files.bytes_of("a"), files.bytes_of("b")) == (b"1\r\n2\r\n", b"y\n")


async def test_a_patch_adds_changes_moves_and_deletes(files: Files) -> None:
    files.put("a", "1\n2\n")
    files.put("b", "b\n")
    made = await files.patch(
        "*** Update File: a", "*** Move to: c", "@@", "-2", "+two", "*** Delete File: b",
        "*** Add File: d", "+new",
    )  # fmt: skip
    assert (made.applied, [change.kind for change in made.changes]) == (
        True,
        [
            file_pb2.FILE_CHANGE_KIND_MOVED,
            file_pb2.FILE_CHANGE_KIND_DELETED,
            file_pb2.FILE_CHANGE_KIND_CREATED,
        ],
    )
    assert sorted(os.listdir(files.root)) == ["c", "d"]
    malformed = await files.patch("*** Update File: c", "@@", "oops")
    assert [(each.kind, each.patch_line) for each in malformed.problems] == [
        (file_pb2.EDIT_PROBLEM_KIND_MALFORMED, 4)
    ]


async def test_a_change_is_undone_by_request_or_by_path(files: Files) -> None:
    path = files.put("a", "before\n")
    path.chmod(0o750)
    await files.edit(("a", "before", "first"), request_id="r1")
    await files.write("new/b", b"b\n", request_id="r2")
    await files.edit(("a", "first", "second"), request_id="r3")
    assert await reason_of(files.undo(edit_request_id="r1")) == (
        grpc.StatusCode.ABORTED,
        "FILE_CHANGED",
    )
    undone = await files.undo(path="a")
    assert undone.changes[0].diff.endswith("-second\n+first\n")
    await files.undo(path="a")
    assert (files.bytes_of("a"), stat.S_IMODE(path.stat().st_mode)) == (b"before\n", 0o750)
    nothing = (grpc.StatusCode.FAILED_PRECONDITION, "NOTHING_TO_UNDO")
    assert await reason_of(files.undo(path="a")) == nothing
    assert await reason_of(files.undo(edit_request_id="r1")) == nothing
    await files.undo(edit_request_id="r2")
    assert not (files.root / "new/b").exists()


async def test_a_chat_undoes_nothing_of_another(files: Files, client: Client) -> None:
    await files.write("a", b"1\n", request_id="r1")
    client.context.chat_id = client.new_id()
    nothing = (grpc.StatusCode.FAILED_PRECONDITION, "NOTHING_TO_UNDO")
    assert await reason_of(files.undo(path="a")) == nothing
    assert await reason_of(files.undo(edit_request_id="r1")) == nothing


async def test_a_call_that_may_only_read_changes_nothing(files: Files, client: Client) -> None:
    files.put("a", "x\n")
    client.context.profile = sandbox_pb2.SANDBOX_PROFILE_READ_ONLY
    denied = (grpc.StatusCode.PERMISSION_DENIED, "READ_ONLY")
    assert await reason_of(files.write("a", b"y\n")) == denied
    assert await reason_of(files.edit(("a", "x", "y"))) == denied
    assert (await files.read("a")).text == "x\n"


async def test_bytes_are_uploaded_and_read_in_pieces(files: Files, client: Client) -> None:
    content = os.urandom(700_000)

    async def pieces(announced: int) -> AsyncIterator[api.UploadFileRequest]:
        yield api.UploadFileRequest(
            head=api.UploadFileHead(
                context=client.context, request_id="up", path="d/big", size_bytes=announced
            )
        )
        for at in range(0, len(content), 200_000):
            yield api.UploadFileRequest(chunk=content[at : at + 200_000])

    short = client.files.UploadFile(pieces(len(content) - 1), timeout=20)
    assert await reason_of(short) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_REQUEST")
    assert os.listdir(files.root) == []
    for _ in range(2):
        uploaded = await client.files.UploadFile(pieces(len(content)), timeout=20)
        assert uploaded.change.kind == file_pb2.FILE_CHANGE_KIND_CREATED
        assert (files.bytes_of("d/big"), files.leavings()) == (content, [])
    request = api.ReadBytesRequest(context=client.context, path="d/big", offset_bytes=1)
    head, *chunks, end = [piece async for piece in client.files.ReadBytes(request, timeout=20)]
    assert (head.head.info.size_bytes, end.WhichOneof("piece")) == (len(content), "closed")
    assert b"".join(piece.chunk for piece in chunks) == content[1:]


async def test_a_refused_upload_says_why_however_much_is_still_sent(
    files: Files, client: Client
) -> None:
    head = api.UploadFileHead(
        context=client.context, request_id="up", path="../big", size_bytes=8_000_000
    )

    async def pieces() -> AsyncIterator[api.UploadFileRequest]:
        yield api.UploadFileRequest(head=head)
        for _ in range(40):
            yield api.UploadFileRequest(chunk=bytes(200_000))

    refusals = {await reason_of(client.files.UploadFile(pieces(), timeout=20)) for _ in range(10)}
    assert refusals == {(grpc.StatusCode.PERMISSION_DENIED, "OUTSIDE_WORKSPACE")}


async def test_files_are_listed_found_and_searched(files: Files, client: Client) -> None:
    files.put("src/app.py", "def needle():\n    pass\n")
    files.put(".gitignore", "*.log\n")
    files.put("x.log", "needle\n")
    listing = await client.files.ListDirectory(
        api.ListDirectoryRequest(context=client.context, depth=2), timeout=20
    )
    assert [entry.info.path for entry in listing.entries] == ["src", "src/app.py"]
    assert listing.hidden_entries == 2
    found = await client.files.FindFiles(
        api.FindFilesRequest(context=client.context, query="*.py"), timeout=20
    )
    assert [file.info.path for file in found.files] == ["src/app.py"]
    *matches, last = await files.search("needle")
    assert [(piece.file.path, piece.file.lines[0].text) for piece in matches] == [
        ("src/app.py", "def needle():")
    ]
    assert (last.summary.matches, last.summary.engine) == (1, "ripgrep")

    async def search_badly() -> None:
        await files.search("(")

    assert await reason_of(search_badly()) == (
        grpc.StatusCode.INVALID_ARGUMENT,
        "INVALID_PATTERN",
    )


async def test_paths_are_made_moved_looked_at_and_deleted_once(
    files: Files, client: Client
) -> None:
    context = client.context
    for _ in range(2):
        made = await client.files.MakeDirectory(
            api.MakeDirectoryRequest(context=context, request_id="m", path="a/b"), timeout=20
        )
        moved = await client.files.MovePath(
            api.MovePathRequest(context=context, request_id="v", path="a/b", new_path="c"),
            timeout=20,
        )
        assert (made.created, moved.info.path) == (True, "c")
    known = await client.files.StatPath(api.StatPathRequest(context=context, path="c"), timeout=20)
    assert (known.exists, known.info.type) == (True, file_pb2.PATH_TYPE_DIRECTORY)
    for _ in range(2):
        gone = await client.files.DeletePath(
            api.DeletePathRequest(context=context, request_id="d", path="c"), timeout=20
        )
        assert gone.deleted_entries == 1
    assert os.listdir(files.root) == ["a"]


async def move(files: Files, path: str, new_path: str, *, overwrite: bool = False) -> str:
    request = api.MovePathRequest(
        context=files.client.context,
        request_id=files.client.new_id(),
        path=path,
        new_path=new_path,
        overwrite=overwrite,
    )
    await files.client.files.MovePath(request, timeout=20)
    return request.request_id


async def delete(files: Files, path: str) -> str:
    request = api.DeletePathRequest(
        context=files.client.context,
        request_id=files.client.new_id(),
        path=path,
        recursive=True,
    )
    await files.client.files.DeletePath(request, timeout=20)
    return request.request_id


async def test_what_was_deleted_or_moved_comes_back(files: Files) -> None:
    files.put("d/sub/f", "kept\n").chmod(0o640)
    files.put("d/g", "other\n")
    (files.root / "d" / "link").symlink_to("g")
    files.put("taken", "replaced\n")
    deleted = await delete(files, "d")
    assert sorted(os.listdir(files.root)) == ["taken"]
    undone = await files.undo(edit_request_id=deleted)
    assert {(change.path, change.kind) for change in undone.changes} == {
        (path, file_pb2.FILE_CHANGE_KIND_CREATED)
        for path in ("d", "d/sub", "d/sub/f", "d/g", "d/link")
    }
    assert (files.bytes_of("d/sub/f"), os.readlink(files.root / "d/link")) == (b"kept\n", "g")
    assert stat.S_IMODE((files.root / "d/sub/f").stat().st_mode) == 0o640
    await move(files, "d/sub", "deep/er/sub")
    await move(files, "deep/er/sub/f", "taken", overwrite=True)
    undone = await files.undo(path="taken")
    assert [change.path for change in undone.changes] == ["deep/er/sub/f", "taken"]
    await files.undo(path="deep/er/sub")
    assert (files.bytes_of("taken"), files.bytes_of("d/sub/f")) == (b"replaced\n", b"kept\n")
    await delete(files, "d/g")
    await files.undo(path="d/g")
    assert files.bytes_of("d/g") == b"other\n"


async def test_what_came_after_a_deletion_or_a_move_is_not_overwritten(files: Files) -> None:
    changed = (grpc.StatusCode.ABORTED, "FILE_CHANGED")
    files.put("d/f", "first\n")
    deleted = await delete(files, "d")
    files.put("d/f", "second\n")
    assert await reason_of(files.undo(edit_request_id=deleted)) == changed
    moved = await move(files, "d/f", "g")
    files.put("d/f", "third\n")
    assert await reason_of(files.undo(edit_request_id=moved)) == changed
    assert (files.bytes_of("g"), files.bytes_of("d/f")) == (b"second\n", b"third\n")


async def test_what_is_too_much_to_be_kept_is_gone_and_that_is_told(files: Files) -> None:
    files.put("large", b"x" * (17 * 1024 * 1024))
    for number in range(2100):
        files.put(f"many/{number}", "")
    os.mkfifo(files.root / "pipe")
    for path in ("large", "many", "pipe"):
        await delete(files, path)
        assert await reason_of(files.undo(path=path)) == (
            grpc.StatusCode.FAILED_PRECONDITION,
            "NOTHING_TO_UNDO",
        )
    assert os.listdir(files.root) == []


async def test_parallel_edits_of_one_file_lose_none(files: Files) -> None:
    files.put("a", "".join(f"line {number}.\n" for number in range(50)))
    async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
        for number in range(50):
            tasks.create_task(files.edit(("a", f"line {number}.", f"done {number}.")))
    assert files.bytes_of("a").decode() == "".join(f"done {number}.\n" for number in range(50))


def workers_of(house: House) -> list[str]:
    """Return the command lines of the file workers of a node."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        command = " ".join(process.info["cmdline"] or [])
        if "toolrunner.fileworker" in command and str(house.directory) in command:
            found.append(command)
    return found


async def test_an_absent_file_that_may_be_absent_starts_no_file_worker(
    files: Files, house: House
) -> None:
    absent = (grpc.StatusCode.NOT_FOUND, "PATH_NOT_FOUND")
    assert await reason_of(files.read("AGENTS.md", without_suggestions=True)) == absent
    find = api.FindFilesRequest(
        context=files.client.context, query="*", path="skills", without_suggestions=True
    )
    assert await reason_of(files.client.files.FindFiles(find, timeout=20)) == absent
    assert workers_of(house) == []
    files.put("AGENTS.md", "be brief\n")
    assert (await files.read("AGENTS.md", without_suggestions=True)).text == "be brief\n"
    assert len(workers_of(house)) == 1


async def test_a_file_of_the_home_is_read_apart_from_the_files(files: Files) -> None:
    home = files.root.parent / "home"
    absent = (grpc.StatusCode.NOT_FOUND, "PATH_NOT_FOUND")
    files.put("AGENTS.md", "of the files\n")
    read = partial(files.read, "AGENTS.md", without_suggestions=True, in_home=True)
    assert await reason_of(read()) == absent
    assert (await files.read("AGENTS.md")).text == "of the files\n"
    (home / "AGENTS.md").write_text("of the home\n")
    assert (await read()).text == "of the home\n"
    assert (await files.read("AGENTS.md")).text == "of the files\n"
    (home / "AGENTS.md").unlink()
    (home / "AGENTS.md").symlink_to(files.root / "AGENTS.md")
    assert await reason_of(read()) == (grpc.StatusCode.PERMISSION_DENIED, "OUTSIDE_WORKSPACE")


async def test_a_path_that_leads_out_is_not_called_absent(files: Files) -> None:
    (files.root / "out").symlink_to("/etc")
    assert await reason_of(files.read("out/nothing", without_suggestions=True)) == (
        grpc.StatusCode.PERMISSION_DENIED,
        "OUTSIDE_WORKSPACE",
    )
