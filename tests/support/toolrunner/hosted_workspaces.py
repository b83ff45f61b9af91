"""Workspaces of a node as whoever places them asks for them, and repositories to clone."""

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from parley.api.workspace.v1 import host_service_pb2 as api
from parley.api.workspace.v1 import template_pb2, workspace_pb2
from parley.api.workspace.v1.host_service_pb2_grpc import WorkspaceHostServiceStub
from support.toolrunner.node import Client

PREPARE_S = 60


@dataclass(frozen=True)
class Prepared:
    """What a preparation said, and how it ended."""

    lines: tuple[str, ...]
    end: api.PrepareWorkspaceResponse
    sequences: tuple[int, ...] = ()

    @property
    def kind(self) -> str:
        return self.end.WhichOneof("kind") or ""


@dataclass
class Placer:
    """A chatd that places workspaces on one node."""

    client: Client
    house_data: Path
    stub: WorkspaceHostServiceStub = field(init=False)

    def __post_init__(self) -> None:
        self.stub = WorkspaceHostServiceStub(self.client.channel)

    def new_id(self) -> str:
        return self.client.new_id()

    def root(self, workspace_id: str) -> Path:
        return self.house_data / "workspaces" / workspace_id / "files"

    def logs(self, workspace_id: str) -> Path:
        return self.root(workspace_id).parent / "logs"

    async def prepare(
        self,
        workspace_id: str,
        spec: api.WorkspaceSpec | None = None,
        *,
        epoch: int = 1,
        request_id: str = "",
        must_exist: bool = False,
        after: int = 0,
    ) -> Prepared:
        request = api.PrepareWorkspaceRequest(
            request_id=request_id or self.new_id(),
            workspace_id=workspace_id,
            epoch=epoch,
            owner_id="owner",
            spec=spec or scratch(),
            must_exist=must_exist,
            after_log_sequence=after,
        )
        messages = [
            message async for message in self.stub.PrepareWorkspace(request, timeout=PREPARE_S)
        ]
        *lines, end = messages
        return Prepared(
            tuple(each.log_line.text for each in lines),
            end,
            tuple(each.log_line.sequence for each in lines),
        )

    async def ready(self, spec: api.WorkspaceSpec | None = None) -> str:
        """Return a new workspace that can be used."""
        workspace_id = self.new_id()
        prepared = await self.prepare(workspace_id, spec)
        assert prepared.kind == "prepared", prepared
        return workspace_id

    async def stop(
        self, workspace_id: str, *, epoch: int = 1, request_id: str = "", grace_ms: int = 500
    ) -> api.WorkspaceHostServiceStopWorkspaceResponse:
        request = api.WorkspaceHostServiceStopWorkspaceRequest(
            request_id=request_id or self.new_id(),
            workspace_id=workspace_id,
            epoch=epoch,
            grace_ms=grace_ms,
        )
        return await self.stub.StopWorkspace(request, timeout=PREPARE_S)

    async def remove(
        self, workspace_id: str, *, epoch: int = 1, request_id: str = ""
    ) -> api.RemoveWorkspaceResponse:
        request = api.RemoveWorkspaceRequest(
            request_id=request_id or self.new_id(), workspace_id=workspace_id, epoch=epoch
        )
        return await self.stub.RemoveWorkspace(request, timeout=PREPARE_S)

    async def merge(
        self,
        fork_id: str,
        parent_id: str,
        strategy: "workspace_pb2.MergeStrategy.ValueType" = workspace_pb2.MERGE_STRATEGY_REPORT,
        *,
        paths: Sequence[str] = (),
        dry_run: bool = False,
        request_id: str = "",
        chat_id: str = "",
        turn_id: int = 0,
        owner_epoch: int = 0,
        timeout_s: float = PREPARE_S,
    ) -> workspace_pb2.MergeReport:
        request = api.MergeWorkspaceRequest(
            request_id=request_id or self.new_id(),
            fork_workspace_id=fork_id,
            fork_epoch=1,
            parent_workspace_id=parent_id,
            parent_epoch=1,
            strategy=strategy,
            paths=paths,
            dry_run=dry_run,
            chat_id=chat_id,
            turn_id=turn_id,
            owner_epoch=owner_epoch,
        )
        return (await self.stub.MergeWorkspace(request, timeout=timeout_s)).report

    async def states(self) -> dict[str, str]:
        """Return the state of every workspace."""
        answer = await self.stub.GetHost(api.GetHostRequest())
        name = workspace_pb2.WorkspaceState.Name
        return {
            each.workspace_id: name(each.state).removeprefix("WORKSPACE_STATE_").lower()
            for each in answer.workspaces
        }

    def enter(self, workspace_id: str, epoch: int = 1) -> None:
        """Work in a workspace from now on."""
        self.client.context.workspace_id = workspace_id
        self.client.context.epoch = epoch


def scratch(setup_script: str = "", **skeleton: str) -> api.WorkspaceSpec:
    """Return the spec of a scratch workspace; `__` in a name is a slash, `_` a point."""
    files = {name.replace("__", "/").replace("_", "."): text for name, text in skeleton.items()}
    return api.WorkspaceSpec(
        kind=template_pb2.WORKSPACE_KIND_SCRATCH,
        scratch=template_pb2.ScratchSource(skeleton=files),
        setup_script=setup_script,
        setup_timeout_ms=20_000,
    )


def git(url: str, **fields: object) -> api.WorkspaceSpec:
    """Return the spec of a git workspace."""
    source = template_pb2.GitSource(url=url, **fields)  # type: ignore[arg-type]
    return api.WorkspaceSpec(kind=template_pb2.WORKSPACE_KIND_GIT, git=source)


def local(directory: str, *, overlay: bool) -> api.WorkspaceSpec:
    """Return the spec of a local workspace."""
    source = template_pb2.LocalSource(directory=directory, overlay=overlay)
    return api.WorkspaceSpec(kind=template_pb2.WORKSPACE_KIND_LOCAL, local=source)


def fork(parent_id: str, **fields: object) -> api.WorkspaceSpec:
    """Return the spec of a fork."""
    source = api.ForkSource(parent_workspace_id=parent_id, parent_epoch=1, **fields)  # type: ignore[arg-type]
    return api.WorkspaceSpec(kind=template_pb2.WORKSPACE_KIND_FORK, fork=source)


@dataclass(frozen=True)
class Repository:
    """A repository on disk, to be fetched by its path."""

    directory: Path

    @classmethod
    def made(cls, directory: Path) -> "Repository":
        directory.mkdir(parents=True)
        repository = cls(directory)
        repository.git("init", "--quiet", "--initial-branch=trunk")
        return repository

    @property
    def url(self) -> str:
        return f"file://{self.directory}"

    def commit(self, **files: str) -> str:
        """Commit files; return the commit."""
        for name, text in files.items():
            (self.directory / name.replace("_", ".")).write_text(text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "a change")
        return self.git("rev-parse", "HEAD")

    def git(self, *words: str) -> str:
        author = ("-c", "user.name=t", "-c", "user.email=t@example.org")
        ended = subprocess.run(
            ("git", *author, *words),
            cwd=self.directory,
            check=True,
            capture_output=True,
            text=True,
        )
        return ended.stdout.strip()
