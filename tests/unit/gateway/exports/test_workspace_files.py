"""Files of workspaces in an export: all, in parts, within bounds, and no link is followed."""

from collections.abc import Awaitable, Callable, Mapping, Set
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, TypeVar, cast

import grpc
import msgspec
import pytest

from gateway.exports.file import File
from gateway.exports.problems import ExportProblems
from gateway.exports.workspace_files import (
    PART_BYTES,
    Bounds,
    LeftOut,
    WorkspaceFiles,
    archived_path,
)
from gateway.http.problems.errors import UpstreamProblem
from gateway.streams.chatd_client import Stubs
from parley.api.workspace.v1 import file_pb2, workspace_pb2
from parley.api.workspace.v1 import workspace_access_service_pb2 as api
from parley.identity import Role, User, UserId
from parley.rpc import Problem

USER = User(UserId("00000000-0000-0000-0000-000000000001"), Role.MEMBER)
ID = "00000000-0000-0000-0000-0000000000b1"
ROOT = f"workspaces/{ID}"
CHUNK_BYTES = 256 * 1024

T = TypeVar("T")


@dataclass
class Download:
    """The pieces of a file, as a call that is read."""

    pieces: list[Any]

    async def read(self) -> Any:
        """Return the next piece."""
        piece = self.pieces.pop(0) if self.pieces else grpc.aio.EOF
        if isinstance(piece, str):
            raise UpstreamProblem(Problem.of(piece, "It cannot be read on."))
        return piece

    def cancel(self) -> None:
        """End it."""


@dataclass
class Tree:
    """A workspace in memory: files by their path, and links by theirs."""

    files: Mapping[str, bytes]
    links: Mapping[str, str] = field(default_factory=dict)
    ignored: Set[str] = frozenset()
    deleted: Set[str] = frozenset()
    grown: Mapping[str, bytes] = field(default_factory=dict)
    refused: Set[str] = frozenset()
    broken: Mapping[str, str] = field(default_factory=dict)
    read: list[str] = field(default_factory=list)
    listed: list[str] = field(default_factory=list)

    async def ask(
        self, user: User, chat_id: str, question: Callable[[Stubs], Awaitable[T]]
    ) -> tuple[T, Stubs]:
        """Answer as chatd would."""
        assert (user, chat_id) == (USER, ID)
        stubs = cast(Stubs, SimpleNamespace(workspaces=self))
        return await question(stubs), stubs

    async def ListWorkspaceDirectory(  # noqa: N802 (the name is the proto's)
        self, request: api.ListWorkspaceDirectoryRequest, **limits: float
    ) -> api.ListWorkspaceDirectoryResponse:
        """List what is below a directory, one entry in a page."""
        self.listed.append(request.path)
        if request.path in self.refused:
            raise UpstreamProblem(Problem.of("PATH_FORBIDDEN", "It cannot be read."))
        entries = self._below(request)
        place = int(request.page_token or 0)
        has_more = place + 1 < len(entries)
        return api.ListWorkspaceDirectoryResponse(
            entries=entries[place : place + 1], next_page_token=str(place + 1) if has_more else ""
        )

    def _below(self, request: api.ListWorkspaceDirectoryRequest) -> list[file_pb2.DirectoryEntry]:
        found: dict[str, file_pb2.PathInfo] = {}
        for path in sorted((*self.files, *self.links)):
            if path in self.ignored and not request.include_ignored:
                continue
            for directory in _parents(path):
                found[directory] = file_pb2.PathInfo(
                    path=directory, type=file_pb2.PATH_TYPE_DIRECTORY
                )
            target = self.links.get(path, "")
            found[path] = file_pb2.PathInfo(
                path=path,
                type=file_pb2.PATH_TYPE_SYMLINK if target else file_pb2.PATH_TYPE_FILE,
                size_bytes=0 if target else len(self.files[path]),
                link_target=target,
                mode=0o644,
            )
        prefix = f"{request.path}/" if request.path else ""
        depths = {
            path: path.removeprefix(prefix).count("/") + 1
            for path in found
            if path.startswith(prefix)
        }
        return [
            file_pb2.DirectoryEntry(info=found[path], depth=depth)
            for path, depth in depths.items()
            if depth <= request.depth
        ]

    def DownloadWorkspaceFile(  # noqa: N802 (the name is the proto's)
        self, request: api.DownloadWorkspaceFileRequest, **limits: float
    ) -> Download:
        """Return the pieces of a file."""
        self.read.append(request.path)
        if request.path in self.deleted:
            raise UpstreamProblem(Problem.of("FILE_NOT_FOUND", "There is no such file."))
        data, piece = self.files[request.path], api.DownloadWorkspaceFileResponse
        data = self.grown.get(request.path, data)[: request.length_bytes or None]
        chunks = [data[at : at + CHUNK_BYTES] for at in range(0, len(data), CHUNK_BYTES)]
        pieces: list[Any] = [piece(chunk=chunk) for chunk in chunks]
        if request.path in self.broken:
            pieces[-1] = self.broken[request.path]
        return Download(
            [
                piece(head=api.DownloadHead()),
                *pieces,
                piece(closed=workspace_pb2.StreamEnd()),
            ]
        )


def _parents(path: str) -> list[str]:
    names = path.split("/")[:-1]
    return ["/".join(names[:count]) for count in range(1, len(names) + 1)]


async def collected(
    tree: Tree, known: Set[str] = frozenset(), **bounds: int
) -> tuple[dict[str, bytes], list[File], list[LeftOut]]:
    """Return the files of a workspace, put together, their parts, and what was left out."""
    files, parts, left_out = dict[str, bytes](), list[File](), list[LeftOut]()
    async for each in WorkspaceFiles(USER, tree, known, Bounds(**bounds)).of(ID):
        if isinstance(each, LeftOut):
            left_out.append(each)
            continue
        parts.append(each)
        files[each.name] = files.get(each.name, b"") + each.data
    return files, parts, left_out


def index_of(files: Mapping[str, bytes]) -> Any:
    return msgspec.json.decode(files[f"{ROOT}/index.json"])


async def test_all_files_are_collected_and_links_are_listed_only() -> None:
    deep = "/".join("abcdefghijklmnopqrst") + "/deep.txt"
    tree = Tree(
        {"a.txt": b"one", "out/b.bin": b"", deep: b"far"}, links={"etc": "/etc", "up": "../.."}
    )
    files, _, left_out = await collected(tree)
    index = msgspec.json.decode(files.pop(f"{ROOT}/index.json"))

    assert files == {
        f"{ROOT}/files/a.txt": b"one",
        f"{ROOT}/files/out/b.bin": b"",
        f"{ROOT}/files/{deep}": b"far",
    }
    assert left_out == []
    links = {each["path"]: each for each in index if each["type"] == "symlink"}
    assert {path: (each["link_target"], each["name"]) for path, each in links.items()} == {
        "etc": ("/etc", None),
        "up": ("../..", None),
    }
    assert not {"etc", "up"} & {*tree.read, *tree.listed}


async def test_a_large_file_is_never_held_as_a_whole() -> None:
    data = bytes(range(256)) * 4096 * 3 + b"end"
    files, parts, _ = await collected(Tree({"large.bin": data}))
    large = [each for each in parts if each.name == f"{ROOT}/files/large.bin"]

    assert files[f"{ROOT}/files/large.bin"] == data
    assert [each.part for each in large] == list(range(len(large)))
    assert [each.is_last for each in large] == [False] * (len(large) - 1) + [True]
    assert max(len(each.data) for each in large) <= PART_BYTES + CHUNK_BYTES
    assert len(large) > 2


async def test_what_git_ignores_comes_last_and_bounds_leave_it_out_first() -> None:
    tree = Tree(
        {"a-cache/x": b"123456", "b.txt": b"123", "c.txt": b"1234567890"}, ignored={"a-cache/x"}
    )
    _, full, left_full = await collected(tree, export_bytes_max=8)
    _, _, left_large = await collected(tree, file_bytes_max=6)
    _, many, left_many = await collected(tree, workspace_files_max=2)

    assert [each.name for each in full] == [f"{ROOT}/files/b.txt", f"{ROOT}/index.json"]
    assert {(each.name, each.code) for each in left_full} == {
        (f"{ROOT}/files/c.txt", "EXPORT_FULL"),
        (f"{ROOT}/files/a-cache/x", "EXPORT_FULL"),
    }
    assert left_large == [LeftOut(f"{ROOT}/files/c.txt", "FILE_TOO_LARGE")]
    assert left_many == [LeftOut(ROOT, "TOO_MANY_FILES")]
    assert [each.name for each in many][-1] == f"{ROOT}/index.json"


async def test_names_of_a_workspace_are_held_up_to_a_bound() -> None:
    tree = Tree({f"{number}-{'x' * 200}": b"1" for number in range(10)}, links={"z": "y" * 500})
    _, some, left_some = await collected(tree, workspace_names_bytes_max=1500)
    _, most, left_most = await collected(tree, workspace_names_bytes_max=5000)
    _, _, left_none = await collected(tree)

    assert len(some) - 1 == 3
    assert len(most) - 1 == 10
    assert left_some == left_most == [LeftOut(ROOT, "TOO_MANY_FILES")]
    assert left_none == []


async def test_a_name_that_the_database_cannot_have_is_left_out() -> None:
    long = "/".join(["d" * 200] * 10)
    files, _, left_out = await collected(Tree({long: b"1", "a.txt": b"one"}))
    (index,) = [each for each in index_of(files) if each["path"] == long]

    assert f"{ROOT}/files/a.txt" in files
    assert index["name"] is None
    assert [(len(each.name), each.code) for each in left_out] == [(200, "NAME_TOO_LONG")]


def test_problems_beyond_a_bound_are_counted() -> None:
    problems = ExportProblems(listed_max=2)
    for number in range(5):
        problems.add(str(number), "FILE_TOO_LARGE")

    assert problems.document() == [
        {"name": "0", "code": "FILE_TOO_LARGE"},
        {"name": "1", "code": "FILE_TOO_LARGE"},
        {"name": "", "code": "MORE_PROBLEMS", "count": 3},
    ]


async def test_a_file_that_grew_meanwhile_counts_with_what_was_read_of_it() -> None:
    files = dict.fromkeys(("a", "b", "c"), b"1") | {"d": b""}
    tree = Tree(files, grown={"a": b"12345", "b": b"1234567890", "d": b"123"})
    read, _, left_out = await collected(tree, export_bytes_max=12)

    assert {name: data for name, data in read.items() if name.startswith(f"{ROOT}/files")} == {
        f"{ROOT}/files/a": b"12345",
        f"{ROOT}/files/b": b"1234567",
    }
    assert left_out == [
        LeftOut(f"{ROOT}/files/b", "EXPORT_FULL"),
        LeftOut(f"{ROOT}/files/c", "EXPORT_FULL"),
        LeftOut(f"{ROOT}/files/d", "EXPORT_FULL"),
    ]


async def test_a_directory_that_is_refused_does_not_end_a_workspace() -> None:
    deep, deeper = ("/".join([name] * 8) for name in ("a", "b"))
    tree = Tree(
        {f"{deep}/x/1.txt": b"one", f"{deeper}/x/2.txt": b"two", "z.txt": b"end"}, refused={deeper}
    )
    files, _, left_out = await collected(tree)

    assert {f"{ROOT}/files/{deep}/x/1.txt", f"{ROOT}/files/z.txt"} <= files.keys()
    assert left_out == [LeftOut(f"{ROOT}/files/{deeper}", "PATH_FORBIDDEN")]
    with pytest.raises(UpstreamProblem):
        await collected(Tree({"z.txt": b"end"}, refused={""}))


async def test_a_file_that_breaks_off_does_not_end_a_workspace_unless_its_node_is_away() -> None:
    large = b"1" * (3 * PART_BYTES)
    contents = {"a.bin": large, "z.txt": b"end"}
    files, _, left_out = await collected(Tree(contents, broken={"a.bin": "FILE_CHANGED"}))

    assert files[f"{ROOT}/files/z.txt"] == b"end"
    assert left_out == [LeftOut(f"{ROOT}/files/a.bin", "FILE_CHANGED")]
    with pytest.raises(UpstreamProblem):
        await collected(Tree(contents, broken={"a.bin": "UPSTREAM_UNAVAILABLE"}))


async def test_a_name_that_is_no_utf8_is_left_out() -> None:
    deep = "/".join(["d"] * 7) + "/\ufffd"
    tree = Tree({"\ufffd.txt": b"one", f"{deep}/2.txt": b"two", "z": b"end"}, refused={deep})
    files, _, left_out = await collected(tree)

    assert tree.read == ["z"]
    assert index_of(files)[-1]["path"] == "\ufffd.txt"
    assert {(each.name, each.code) for each in left_out} == {
        (f"{ROOT}/files/\ufffd.txt", "NAME_NOT_UTF8"),
        (f"{ROOT}/files/{deep}", "NAME_NOT_UTF8"),
    }


async def test_files_that_are_known_are_not_read_again() -> None:
    tree = Tree({"a.txt": b"one", "b.txt": b"two"})
    files, _, _ = await collected(tree, {f"{ROOT}/files/a.txt"})
    whole, _, _ = await collected(tree, {f"{ROOT}/index.json"})

    assert (tree.read, whole) == (["b.txt"], {})
    assert f"{ROOT}/files/a.txt" not in files


async def test_a_file_that_was_deleted_meanwhile_is_noted() -> None:
    tree = Tree({"a.txt": b"one", "gone.txt": b"two"}, deleted={"gone.txt"})
    files, _, left_out = await collected(tree)

    assert f"{ROOT}/files/a.txt" in files
    assert left_out == [LeftOut(f"{ROOT}/files/gone.txt", "FILE_NOT_FOUND")]


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("src/main.py", "src/main.py"),
        (".gitignore", ".gitignore"),
        ("a\\..\\b", "a%5C..%5Cb"),
        ("C:x", "C%3Ax"),
        ("100%", "100%25"),
        ("new\nline", "new%0Aline"),
        ("é/ü", "é/ü"),
        ("a/../b", "a/%2E%2E/b"),
    ],
)
def test_no_name_leaves_the_directory_of_the_archive(path: str, name: str) -> None:
    assert archived_path(path) == name
