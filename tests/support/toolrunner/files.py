"""Files of a workspace as chatd works on them, for tests against a real toolrunner."""

import random  # noqa: TID251 (this composes a process)
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from parley.api.workspace.v1 import execution_pb2, file_pb2
from parley.api.workspace.v1 import file_service_pb2 as api
from parley.clock import Clock, SystemClock
from parley.process import TimeOrderedIds
from support.host.supervised import supervision
from support.toolrunner.node import Client, House
from support.toolrunner.sandboxes import UNCONFINED
from toolrunner.checkpoints.service import Checkpoints
from toolrunner.directories.workspaces import Workspaces
from toolrunner.files.service import FileService
from toolrunner.fileworker.protocol import PlanEdits
from toolrunner.fileworker.values import FileEdit, TextEdit
from toolrunner.journal.records import FileEffect
from toolrunner.journal.thread import open_journal
from toolrunner.primitives.domain import Scope, WorkspaceId
from toolrunner.spawner.client.startup import running_spawner


@dataclass(frozen=True)
class Files:
    """The files of one client's workspace, asked for and looked at directly."""

    client: Client
    root: Path

    @classmethod
    def of(cls, client: Client, house: House) -> "Files":
        root = house.data / "workspaces" / client.context.workspace_id / "files"
        root.mkdir(mode=0o700, parents=True)
        return cls(client, root)

    def put(self, path: str, content: str | bytes) -> Path:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode() if isinstance(content, str) else content)
        return target

    def bytes_of(self, path: str) -> bytes:
        return (self.root / path).read_bytes()

    def leavings(self) -> list[Path]:
        return list(self.root.rglob(".parley-*"))

    async def read(
        self,
        path: str,
        *,
        without_suggestions: bool = False,
        in_home: bool = False,
        **fields: int,
    ) -> api.ReadFileResponse:
        request = api.ReadFileRequest(
            context=self.client.context,
            path=path,
            without_suggestions=without_suggestions,
            in_home=in_home,
            **fields,
        )
        return await self.client.files.ReadFile(request, timeout=20)

    async def write(
        self,
        path: str,
        content: bytes,
        *,
        key: execution_pb2.ExecutionKey | None = None,
        request_id: str = "",
        **fields: object,
    ) -> file_pb2.FileChange:
        request = api.WriteFileRequest(
            context=self.client.context,
            request_id=key.execution_id if key is not None else request_id or self.client.new_id(),
            key=key,
            path=path,
            content=content,
            **fields,  # type: ignore[arg-type]
        )
        return (await self.client.files.WriteFile(request, timeout=20)).change

    async def edit(
        self,
        *files: tuple[str, str, str],
        key: execution_pb2.ExecutionKey | None = None,
        request_id: str = "",
        dry_run: bool = False,
        replace_all: bool = False,
    ) -> api.EditFilesResponse:
        request = api.EditFilesRequest(
            context=self.client.context,
            request_id=key.execution_id if key is not None else request_id or self.client.new_id(),
            key=key,
            files=[
                file_pb2.FileEdit(
                    path=path,
                    edits=[file_pb2.TextEdit(old_text=old, new_text=new, replace_all=replace_all)],
                )
                for path, old, new in files
            ],
            dry_run=dry_run,
        )
        return await self.client.files.EditFiles(request, timeout=30)

    async def patch(self, *lines: str, dry_run: bool = False) -> api.ApplyPatchResponse:
        request = api.ApplyPatchRequest(
            context=self.client.context,
            request_id=self.client.new_id(),
            patch="\n".join(("*** Begin Patch", *lines, "*** End Patch")),
            dry_run=dry_run,
        )
        return await self.client.files.ApplyPatch(request, timeout=20)

    async def undo(self, *, path: str = "", edit_request_id: str = "") -> api.UndoEditResponse:
        request = api.UndoEditRequest(
            context=self.client.context, request_id=self.client.new_id(), path=path
        )
        if edit_request_id:
            request.edit_request_id = edit_request_id
        return await self.client.files.UndoEdit(request, timeout=20)

    async def search(self, pattern: str, **fields: object) -> list[api.SearchFilesResponse]:
        request = api.SearchFilesRequest(
            context=self.client.context,
            pattern=pattern,
            **fields,  # type: ignore[arg-type]
        )
        return [piece async for piece in self.client.files.SearchFiles(request, timeout=30)]


@dataclass(frozen=True)
class FileNode:
    """The files of one workspace without a service around them: nothing is tried again."""

    room: FileService
    root: Path
    scope: Scope

    @classmethod
    @asynccontextmanager
    async def started(
        cls, directory: Path, clock: Clock | None = None
    ) -> AsyncIterator["FileNode"]:
        clock = clock or SystemClock()
        new_id = TimeOrderedIds(clock, random.SystemRandom())
        workspaces = Workspaces(directory / "workspaces")
        async with (
            running_spawner(directory, adoption_s=0) as spawner,
            open_journal(
                directory / "journal.sqlite", new_generation="g", boot_id="b", clock=clock
            ) as journal,
            Checkpoints(workspaces, clock, supervision(clock)) as checkpoints,
            FileService(
                journal=journal,
                spawner=spawner.process,
                workspaces=workspaces,
                sandbox=UNCONFINED,
                clock=clock,
                supervision=supervision(clock),
                new_id=new_id,
                checkpoints=checkpoints,
            ) as room,
        ):
            scope = Scope(WorkspaceId(new_id()))
            yield cls(room, workspaces.prepared(scope.workspace_id).root, scope)

    def put(self, path: str, content: str) -> Path:
        (self.root / path).write_text(content)
        return self.root / path

    async def change(self, request_id: str, edits: Sequence[tuple[str, str, str]]) -> bytes:
        effect = FileEffect(request_id, None, "/EditFiles", repr(edits).encode(), WorkspaceId("w"))
        plan = PlanEdits(
            self.room.new_token(),
            tuple(FileEdit(path, (TextEdit(old, new),)) for path, old, new in edits),
        )
        return await self.room.change(effect, self.scope, plan, lambda changed: b"changed")
