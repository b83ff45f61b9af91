"""Files, repositories and diffs of a workspace over HTTP, and what chatd is asked for them."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import grpc
import pytest

from gateway.routes.files import FILE_BYTES_MAX
from parley.api.workspace.v1 import (
    checkpoint_pb2,
    file_pb2,
    file_service_pb2,
    git_pb2,
    workspace_pb2,
)
from parley.api.workspace.v1 import workspace_access_service_pb2 as api
from parley.rpc import Problem
from support.gateway.chats import NO_CHAT, last_request
from support.gateway.stack import GatewayStack
from support.net.http_client import Reply

CHAT = f"/api/v1/chats/{NO_CHAT}"
DATA = b"0123456789"
FILE = file_pb2.PathInfo(
    path="out/re port é.txt", type=file_pb2.PATH_TYPE_FILE, size_bytes=len(DATA), mode=0o644
)
FILE.modified_at.FromSeconds(1767225600)
GIT_FILE = git_pb2.GitFile(
    path="a.py", state=git_pb2.GIT_FILE_STATE_MODIFIED, added_lines=2, staged=True
)
GIT_FILE_JSON: dict[str, Any] = {
    "path": "a.py",
    "old_path": None,
    "state": "modified",
    "added_lines": 2,
    "deleted_lines": 0,
    "binary": False,
    "staged": True,
}


def script(
    stack: GatewayStack, *chunks: bytes, media_type: str = "text/plain", is_whole: bool = True
) -> None:
    head = api.DownloadHead(info=FILE, media_type=media_type)
    closed = workspace_pb2.StreamEnd(reason=workspace_pb2.STREAM_END_REASON_COMPLETE)
    piece = api.DownloadWorkspaceFileResponse
    stack.chatd.answers["DownloadWorkspaceFile"] = [
        piece(head=head),
        *(piece(chunk=chunk) for chunk in chunks),
        *((piece(closed=closed),) if is_whole else ()),
    ]


async def download(stack: GatewayStack, **headers: str) -> Reply:
    return await stack.owner.request("GET", f"{CHAT}/files/content?path=out/x", headers=headers)


async def test_a_directory_is_listed(stack: GatewayStack) -> None:
    stack.chatd.answers["ListWorkspaceDirectory"] = api.ListWorkspaceDirectoryResponse(
        entries=[file_pb2.DirectoryEntry(info=FILE, depth=1)], next_page_token="more"
    )
    query = "?path=out&depth=2&limit=5&cursor=here&include_ignored=true"
    reply = await stack.owner.request("GET", f"{CHAT}/files{query}")
    entry = {
        "path": "out/re port é.txt",
        "type": "file",
        "size_bytes": 10,
        "mode": "0644",
        "modified_at": "2026-01-01T00:00:00Z",
        "link_target": None,
        "depth": 1,
        "omitted_entries": 0,
    }
    assert (reply.status, reply.json()) == (200, {"items": [entry], "next_cursor": "more"})
    assert last_request(stack) == api.ListWorkspaceDirectoryRequest(
        workspace_id=NO_CHAT,
        path="out",
        depth=2,
        page_size=5,
        page_token="here",
        include_ignored=True,
    )


async def test_what_a_download_would_be_is_told_without_a_byte_of_it(stack: GatewayStack) -> None:
    script(stack, DATA)
    asked = f"{CHAT}/files/content?path=out/x"
    reply = await stack.owner.request("HEAD", asked)
    assert (reply.status, reply.body, reply.headers["content-length"]) == (200, b"", "10")
    assert {name: reply.headers.get(name) for name in EXPECTED} == EXPECTED | {
        "content-type": "text/plain"
    }


async def test_a_file_is_downloaded_and_never_shown(stack: GatewayStack) -> None:
    script(stack, DATA[:4], DATA[4:], media_type="text/html")
    reply = await download(stack)
    assert (reply.status, reply.body) == (200, DATA)
    shown = {name: reply.headers.get(name) for name in EXPECTED}
    assert shown == EXPECTED
    assert last_request(stack) == api.DownloadWorkspaceFileRequest(
        workspace_id=NO_CHAT, path="out/x"
    )


EXPECTED = {
    "content-type": "text/html",
    "content-length": "10",
    "content-disposition": (
        "attachment; filename=\"re port _.txt\"; filename*=UTF-8''re%20port%20%C3%A9.txt"
    ),
    "accept-ranges": "bytes",
    "last-modified": "Thu, 01 Jan 2026 00:00:00 GMT",
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
}


@pytest.mark.parametrize(
    ("header", "first", "body", "told"),
    [
        ("bytes=2-4", 2, b"234", "bytes 2-4/10"),
        ("bytes=7-", 7, b"789", "bytes 7-9/10"),
        ("bytes=7-99", 7, b"789", "bytes 7-9/10"),
        ("bytes=-3", 7, b"789", "bytes 7-9/10"),
        ("bytes=-99", 0, DATA, "bytes 0-9/10"),
    ],
)
async def test_a_range_of_a_file_is_asked_for_alone(
    stack: GatewayStack, header: str, first: int, body: bytes, told: str
) -> None:
    script(stack, body)
    reply = await download(stack, Range=header)
    assert (reply.status, reply.body, reply.headers["content-range"]) == (206, body, told)
    asked = last_request(stack)
    assert (asked.offset_bytes, asked.length_bytes) == (first, len(body))


@dataclass
class Successive:
    """Streams that are answered one after the other."""

    streams: list[list[api.DownloadWorkspaceFileResponse]]

    def __iter__(self) -> Iterator[api.DownloadWorkspaceFileResponse]:
        return iter(self.streams.pop(0))


def script_sizes(stack: GatewayStack, first: int, second: int, chunk: bytes) -> None:
    """Have a file of one size when it is asked for, and of another when it is read."""
    piece = api.DownloadWorkspaceFileResponse
    infos = [file_pb2.PathInfo(path="out/x", size_bytes=size) for size in (first, second)]
    heads = [piece(head=api.DownloadHead(info=info, media_type="text/plain")) for info in infos]
    streams = [[heads[0]], [heads[1], piece(chunk=chunk)]]
    stack.chatd.answers["DownloadWorkspaceFile"] = Successive(streams)


@pytest.mark.parametrize(
    ("header", "size_then", "body", "told"),
    [
        ("bytes=-3", 14, b"789", "bytes 7-9/14"),
        ("bytes=7-", 14, b"789", "bytes 7-9/14"),
        ("bytes=7-12", 14, b"789", "bytes 7-9/14"),
        ("bytes=7-", 8, b"7", "bytes 7-7/8"),
    ],
)
async def test_a_range_is_told_as_it_was_read_though_the_file_has_another_size_by_then(
    stack: GatewayStack, header: str, size_then: int, body: bytes, told: str
) -> None:
    script_sizes(stack, len(DATA), size_then, body)
    reply = await download(stack, Range=header)
    assert (reply.status, reply.body, reply.headers["content-range"]) == (206, body, told)


async def test_a_range_that_is_gone_when_it_is_read_is_told_the_new_size(
    stack: GatewayStack,
) -> None:
    script_sizes(stack, len(DATA), 5, b"")
    reply = await download(stack, Range="bytes=7-")
    assert (reply.status, reply.headers["content-range"]) == (416, "bytes */5")


@pytest.mark.parametrize("header", ["bytes=10-", "bytes=-0"])
async def test_a_range_past_the_end_is_told_the_size(stack: GatewayStack, header: str) -> None:
    script(stack, DATA)
    reply = await download(stack, Range=header)
    document = reply.json()
    assert (reply.status, document["code"], document["size_bytes"]) == (
        416,
        "RANGE_NOT_SATISFIABLE",
        10,
    )
    assert reply.headers["content-range"] == "bytes */10"


@pytest.mark.parametrize(
    "headers",
    [
        {"Range": "bytes=1-2,4-5"},
        {"Range": "lines=1-2"},
        {"Range": "bytes=4-1"},
        {"Range": "bytes=1-2", "If-Range": '"etag"'},
    ],
)
async def test_a_range_that_cannot_be_served_is_answered_with_everything(
    stack: GatewayStack, headers: dict[str, str]
) -> None:
    script(stack, DATA)
    reply = await download(stack, **headers)
    assert (reply.status, reply.body) == (200, DATA)


async def test_a_file_that_grows_meanwhile_is_sent_as_it_was_promised(stack: GatewayStack) -> None:
    script(stack, DATA + b"more")
    assert (await download(stack)).body == DATA


async def test_a_file_that_shrinks_meanwhile_is_not_taken_for_whole(stack: GatewayStack) -> None:
    script(stack, DATA[:4])
    with pytest.raises(asyncio.IncompleteReadError):
        await download(stack)


async def test_a_media_type_that_is_none_is_not_passed_on(stack: GatewayStack) -> None:
    script(stack, DATA, media_type="text/html\r\nset-cookie: a=b")
    reply = await download(stack)
    assert (reply.headers["content-type"], "set-cookie" in reply.headers) == (
        "application/octet-stream",
        False,
    )


async def test_a_download_names_a_file(stack: GatewayStack) -> None:
    reply = await stack.owner.request("GET", f"{CHAT}/files/content")
    assert (reply.status, reply.json()["errors"][0]["parameter"]) == (422, "path")


async def test_a_file_that_is_not_there_is_a_problem_with_what_is_near(stack: GatewayStack) -> None:
    stack.chatd.refusal = Problem(
        grpc.StatusCode.NOT_FOUND,
        "PATH_NOT_FOUND",
        "there is no such file",
        {"path": "out/x", "suggestions": "out/y"},
    )
    reply = await download(stack)
    document = reply.json()
    assert (reply.status, document["code"], document["suggestions"]) == (
        404,
        "PATH_NOT_FOUND",
        ["out/y"],
    )


@pytest.mark.parametrize("path", ["/files", "/files/content?path=x", "/git", "/diff"])
async def test_what_no_node_serves_yet_is_a_problem_of_its_own(
    stack: GatewayStack, path: str
) -> None:
    stack.chatd.refusal = Problem(grpc.StatusCode.UNIMPLEMENTED, "UNIMPLEMENTED", "not yet")
    reply = await stack.owner.request("GET", CHAT + path)
    assert (reply.status, reply.json()["code"]) == (501, "UNIMPLEMENTED")


async def test_repositories_are_told_with_what_differs(stack: GatewayStack) -> None:
    repository = git_pb2.GitRepository(branch="main", commit="c" * 40, ahead=1, files=[GIT_FILE])
    stack.chatd.answers["GetWorkspaceGitStatus"] = api.GetWorkspaceGitStatusResponse(
        repositories=[repository]
    )
    reply = await stack.owner.request("GET", f"{CHAT}/git")
    assert reply.json() == {
        "repositories": [
            {
                "repository": "",
                "branch": "main",
                "commit": "c" * 40,
                "upstream": None,
                "ahead": 1,
                "behind": 0,
                "origin_url": None,
                "files": [GIT_FILE_JSON],
                "omitted_files": 0,
                "added_lines": 0,
                "deleted_lines": 0,
                "scanned_at": None,
                "problem": None,
            }
        ]
    }
    assert last_request(stack) == api.GetWorkspaceGitStatusRequest(workspace_id=NO_CHAT)


async def test_repositories_are_followed_as_events(stack: GatewayStack) -> None:
    piece = api.WatchWorkspaceGitResponse
    first = git_pb2.GitRepository(branch="main")
    stack.chatd.answers["WatchWorkspaceGit"] = [
        piece(snapshot=api.WorkspaceRepositories(repositories=[first])),
        piece(changed=git_pb2.GitRepository(branch="main", files=[GIT_FILE])),
        piece(removed="deep"),
        piece(closed=workspace_pb2.StreamEnd(reason=workspace_pb2.STREAM_END_REASON_GOING_AWAY)),
    ]
    async with asyncio.timeout(10), stack.owner.stream(f"{CHAT}/git/events") as stream:
        told = [await stream.event() for _ in range(5)]
    assert stream.reply.status == 200
    assert told[-1] is None
    events = [each for each in told if each is not None]
    kinds = ["git_snapshot", "git_changed", "git_removed", "bye"]
    assert [each.event for each in events] == kinds
    assert [each.id for each in events] == [None] * 4
    snapshot, changed, removed, _ = (each.data for each in events)
    assert [each["branch"] for each in snapshot["git_snapshot"]["repositories"]] == ["main"]
    assert changed["git_changed"]["files"] == [GIT_FILE_JSON]
    assert removed == {
        "type": "git_removed",
        "chat_id": NO_CHAT,
        "git_removed": {"repository": "deep"},
    }
    assert last_request(stack) == api.WatchWorkspaceGitRequest(workspace_id=NO_CHAT)


async def test_whoever_may_not_follow_repositories_gets_a_problem_and_no_stream(
    stack: GatewayStack,
) -> None:
    stack.chatd.refusal = Problem(
        grpc.StatusCode.NOT_FOUND,
        "WORKSPACE_NOT_FOUND",
        "There is none.",
        {"workspace_id": NO_CHAT},
    )
    reply = await stack.owner.request("GET", f"{CHAT}/git/events")
    assert (reply.status, reply.json()["code"]) == (404, "CHAT_NOT_FOUND")


async def test_a_difference_is_read_as_text(stack: GatewayStack) -> None:
    stack.chatd.answers["GetWorkspaceDiff"] = api.GetWorkspaceDiffResponse(
        files=[GIT_FILE], patch="+x", truncated=True
    )
    query = "?repository=r&base=main&target=next&paths=a&paths=b&max_bytes=100"
    reply = await stack.owner.request("GET", f"{CHAT}/diff{query}")
    assert reply.json() == {"files": [GIT_FILE_JSON], "patch": "+x", "truncated": True}
    assert last_request(stack) == api.GetWorkspaceDiffRequest(
        workspace_id=NO_CHAT,
        repository="r",
        base="main",
        target="next",
        paths=["a", "b"],
        max_bytes=100,
    )


async def test_files_of_a_turn_are_listed_and_read(stack: GatewayStack) -> None:
    file = checkpoint_pb2.TurnFile(
        path="a", change=file_pb2.FILE_CHANGE_KIND_MODIFIED, patch="+x", added_lines=1
    )
    stack.chatd.answers["ListWorkspaceTurnFiles"] = api.ListWorkspaceTurnFilesResponse(files=[file])
    stack.chatd.answers["ReadWorkspaceTurnFile"] = api.ReadWorkspaceTurnFileResponse(content="x")
    listed = await stack.owner.request("GET", f"{CHAT}/turns/7/files")
    read = await stack.owner.request("GET", f"{CHAT}/turns/7/files/content?path=d/a&before=true")
    without = await stack.owner.request("GET", f"{CHAT}/turns/7/files/content")

    assert listed.json() == {
        "files": [
            {
                "path": "a",
                "change": "modified",
                "patch": "+x",
                "added_lines": 1,
                "deleted_lines": 0,
                "readable": False,
                "shared": False,
            }
        ],
        "omitted": 0,
        "incomplete": False,
    }
    assert read.json() == {"content": "x", "size_bytes": 0, "binary": False, "truncated": False}
    assert last_request(stack) == api.ReadWorkspaceTurnFileRequest(
        workspace_id=NO_CHAT, turn_id=7, path="d/a", before=True
    )
    assert without.status == 422


async def test_files_are_found_searched_and_described(stack: GatewayStack) -> None:
    stack.chatd.answers["FindWorkspaceFiles"] = api.FindWorkspaceFilesResponse(
        files=[file_pb2.FoundFile(info=FILE, score=2)], truncated=True
    )
    found = await stack.owner.request("GET", f"{CHAT}/files/find?q=rep&mode=glob&path=out&limit=5")
    assert last_request(stack) == api.FindWorkspaceFilesRequest(
        workspace_id=NO_CHAT,
        query="rep",
        mode=file_service_pb2.FIND_MODE_GLOB,
        path="out",
        page_size=5,
    )
    assert found.json()["items"][0]["path"] == FILE.path
    assert (found.json()["next_cursor"], found.json()["truncated"]) == (None, True)

    line = file_pb2.SearchLine(line=3, text="a whale", is_match=True, column=2)
    stack.chatd.answers["SearchWorkspaceFiles"] = api.SearchWorkspaceFilesResponse(
        files=[file_pb2.FileMatches(path="a", lines=[line], count=1)]
    )
    searched = await stack.owner.request("GET", f"{CHAT}/files/search?q=wh.le&regex=true")
    assert last_request(stack) == api.SearchWorkspaceFilesRequest(
        workspace_id=NO_CHAT, pattern="wh.le", regex=True
    )
    shown = {"line": 3, "text": "a whale", "is_match": True, "column": 2, "clipped": False}
    assert searched.json() == {
        "items": [{"path": "a", "lines": [shown], "count": 1}],
        "truncated": False,
        "timed_out": False,
    }

    stack.chatd.answers["GetWorkspacePath"] = api.GetWorkspacePathResponse(
        exists=True, info=FILE, etag="ab12"
    )
    known = await stack.owner.request("GET", f"{CHAT}/files/info?path=out/x")
    assert (known.headers["etag"], known.json()["etag"]) == ('"ab12"', "ab12")


async def test_a_file_is_written_if_it_has_the_hash_that_was_read(stack: GatewayStack) -> None:
    change = file_pb2.FileChange(
        path="out/x", kind=file_pb2.FILE_CHANGE_KIND_MODIFIED, etag="cd34", size_bytes=3
    )
    stack.chatd.answers["UploadWorkspaceFile"] = api.UploadWorkspaceFileResponse(change=change)
    headers = {
        "Idempotency-Key": "k",
        "If-Match": '"ab12"',
        "Content-Type": "application/octet-stream",
    }
    path = f"{CHAT}/files/content?path=out/x"
    reply = await stack.owner.request("PUT", path, b"new", headers)
    assert (reply.status, reply.headers["etag"]) == (200, '"cd34"')
    assert reply.json() == {
        "path": "out/x",
        "kind": "modified",
        "etag": "cd34",
        "added_lines": 0,
        "deleted_lines": 0,
        "size_bytes": 3,
    }
    assert last_request(stack).head == api.UploadWorkspaceFileHead(
        request_id="k", chat_id=NO_CHAT, path="out/x", if_etag="ab12", size_bytes=3
    )
    assert stack.chatd.uploaded == b"new"

    stack.chatd.refusal = Problem(
        grpc.StatusCode.ABORTED, "FILE_CHANGED", "It was changed.", {"path": "out/x"}
    )
    assert (await stack.owner.request("PUT", path, b"new", headers)).status == 412
    del headers["If-Match"]
    assert (await stack.owner.request("PUT", path, b"new", headers)).status == 409


async def test_a_file_that_cannot_be_written_is_refused(stack: GatewayStack) -> None:
    octets = {"Content-Type": "application/octet-stream"}
    for query in ("", "?path=", "?path=a&create_only=maybe", "?path=a&other=1"):
        reply = await stack.owner.request("PUT", f"{CHAT}/files/content{query}", b"x", octets)
        assert reply.status == 422, query
    large = b"x" * (FILE_BYTES_MAX + 1)
    reply = await stack.owner.request("PUT", f"{CHAT}/files/content?path=a", large, octets)
    assert reply.status == 413
