"""GitService: each method parses the request, makes one call, and encodes the response."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import assert_never

import grpc

from parley.api.workspace.v1 import git_service_pb2 as api
from parley.api.workspace.v1 import workspace_pb2
from parley.api.workspace.v1.git_service_pb2_grpc import GitServiceServicer
from parley.clock import Clock
from toolrunner.files.rpc.convert import text_to_proto
from toolrunner.files.rpc.inputs import guards_git
from toolrunner.fileworker.git import protocol
from toolrunner.git.rpc import convert, inputs
from toolrunner.git.service import GitService
from toolrunner.git.watches import Ended, GitEvent, Gone, Looked, Quiet, Snapshot
from toolrunner.processes.rpc.inputs import scope_of


class GitServicer(GitServiceServicer):
    """Serves the repositories of this node's workspaces."""

    def __init__(self, git: GitService, clock: Clock) -> None:
        self._git = git
        self._clock = clock

    async def GetStatus(  # noqa: N802 (the name is the proto's)
        self, request: api.GetStatusRequest, context: grpc.aio.ServicerContext
    ) -> api.GetStatusResponse:
        """Return how repositories differ from their last commit."""
        found = await self._git.status(scope_of(request.context), inputs.status_of(request))
        now = self._clock.now()
        return api.GetStatusResponse(
            repositories=[convert.repository_to_proto(each, now) for each in found.repositories]
        )

    async def GetDiff(  # noqa: N802 (the name is the proto's)
        self, request: api.GetDiffRequest, context: grpc.aio.ServicerContext
    ) -> api.GetDiffResponse:
        """Return a diff as text."""
        diff = await self._git.diff(scope_of(request.context), inputs.diff_of(request))
        return api.GetDiffResponse(
            files=convert.files_to_proto(diff.files),
            patch=diff.patch,
            omitted_paths=[text_to_proto(path) for path in diff.omitted_paths],
            truncated=diff.is_truncated,
            base_commit=diff.base_commit,
            target_commit=diff.target_commit,
        )

    async def WatchGit(  # noqa: N802 (the name is the proto's)
        self, request: api.WatchGitRequest, context: grpc.aio.ServicerContext
    ) -> AsyncIterator[api.WatchGitResponse]:
        """Watch repositories: all of them first, then those that change."""
        async with aclosing(self._git.watch(scope_of(request.context))) as events:
            async for event in events:
                yield _event_to_proto(event)

    async def CreateCheckpoint(  # noqa: N802 (the name is the proto's)
        self, request: api.CreateCheckpointRequest, context: grpc.aio.ServicerContext
    ) -> api.CreateCheckpointResponse:
        """Create a checkpoint of all files."""
        scope = scope_of(request.context)
        guards_git(request.context, request.repository)
        effect = inputs.git_effect_of(request, scope, "CreateCheckpoint")
        asked = inputs.create_of(request, scope)
        response = await self._git.keep(effect, scope, asked, _encode_created)
        return api.CreateCheckpointResponse.FromString(response)

    async def ListCheckpoints(  # noqa: N802 (the name is the proto's)
        self, request: api.ListCheckpointsRequest, context: grpc.aio.ServicerContext
    ) -> api.ListCheckpointsResponse:
        """List checkpoints, newest first."""
        scope = scope_of(request.context)
        asked = inputs.list_of(request, scope)
        page = await self._git.checkpoints(scope, asked)
        return api.ListCheckpointsResponse(
            checkpoints=[convert.checkpoint_to_proto(each) for each in page.checkpoints],
            next_page_token=str(asked.start + asked.limit) if page.has_more else "",
        )

    async def RestoreCheckpoint(  # noqa: N802 (the name is the proto's)
        self, request: api.RestoreCheckpointRequest, context: grpc.aio.ServicerContext
    ) -> api.RestoreCheckpointResponse:
        """Restore files from a checkpoint."""
        scope = scope_of(request.context)
        guards_git(request.context, request.repository)
        effect = inputs.git_effect_of(request, scope, "RestoreCheckpoint")
        asked = inputs.restore_of(request, scope)
        response = await self._git.restore(effect, scope, asked, _encode_restored)
        return api.RestoreCheckpointResponse.FromString(response)


def _encode_created(created: protocol.Created) -> bytes:
    return api.CreateCheckpointResponse(
        checkpoint=convert.checkpoint_to_proto(created.checkpoint),
        files=convert.files_to_proto(created.files),
    ).SerializeToString()


def _encode_restored(restored: protocol.Restored) -> bytes:
    return api.RestoreCheckpointResponse(
        files=convert.files_to_proto(restored.files),
        previous=convert.checkpoint_to_proto(restored.previous),
    ).SerializeToString()


def _event_to_proto(event: GitEvent) -> api.WatchGitResponse:
    match event:
        case Snapshot(repositories):
            shown = [convert.looked_to_proto(each) for each in repositories]
            return api.WatchGitResponse(snapshot=api.GitSnapshot(repositories=shown))
        case Looked():
            return api.WatchGitResponse(changed=convert.looked_to_proto(event))
        case Gone(directory):
            removed = api.GitRepositoryRemoved(repository=text_to_proto(directory))
            return api.WatchGitResponse(removed=removed)
        case Quiet():
            return api.WatchGitResponse(unchanged=api.GitUnchanged())
        case Ended(is_workspace_gone):
            stopped = workspace_pb2.STREAM_END_REASON_WORKSPACE_STOPPED
            away = workspace_pb2.STREAM_END_REASON_GOING_AWAY
            end = workspace_pb2.StreamEnd(reason=stopped if is_workspace_gone else away)
            return api.WatchGitResponse(closed=end)
        case _:
            assert_never(event)
