"""WorkspaceHostService: each method parses the request, makes one call, encodes the response."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from datetime import datetime
from typing import Any, Final

import grpc

from parley.api.workspace.v1 import host_service_pb2 as api
from parley.api.workspace.v1.host_service_pb2_grpc import WorkspaceHostServiceServicer
from toolrunner.primitives.errors import InvalidRequest
from toolrunner.processes.rpc.convert import time_to_proto
from toolrunner.workspaces.host import Host
from toolrunner.workspaces.merge.service import MergeReport, Merges
from toolrunner.workspaces.node.reporter import Reporter
from toolrunner.workspaces.rpc import convert, inputs
from toolrunner.workspaces.termination import Stopped

PAGE_DEFAULT: Final = 200
PAGE_MAX: Final = 1000
#: A client whose time is over cancels its call a little before it ends here.
LATE_S: Final = 1.0


class WorkspaceHostServicer(WorkspaceHostServiceServicer):
    """Serves the workspaces of this node to chatd."""

    def __init__(self, host: Host, merges: Merges, reporter: Reporter, probed_at: datetime) -> None:
        self._host = host
        self._merges = merges
        self._reporter = reporter
        self._probed_at = probed_at

    async def PrepareWorkspace(  # noqa: N802 (the name is the proto's)
        self, request: api.PrepareWorkspaceRequest, context: grpc.aio.ServicerContext
    ) -> AsyncIterator[api.PrepareWorkspaceResponse]:
        """Prepare a workspace: stream its log, then its outcome."""
        requested = inputs.wanted_of(request)
        # Grants may change during the preparation; a repeated request still means the same
        # placement.
        ignored = ("after_log_sequence", "must_exist", "spec.secrets")
        asked = inputs.request_of(request, request.request_id, *ignored)
        events = self._host.prepare(asked, requested, after=request.after_log_sequence)
        sandbox = self._reporter.sandbox.report
        async with aclosing(events):
            async for event in events:
                root_path = self._reporter.workspaces.at(requested.workspace_id).root
                yield convert.event_to_proto(event, root_path=str(root_path), sandbox=sandbox)

    async def StopWorkspace(  # noqa: N802 (the name is the proto's)
        self,
        request: api.WorkspaceHostServiceStopWorkspaceRequest,
        context: grpc.aio.ServicerContext,
    ) -> api.WorkspaceHostServiceStopWorkspaceResponse:
        """End all processes of a workspace."""
        workspace_id, epoch = inputs.workspace_of(request.workspace_id, request.epoch)
        response = await self._host.stop(
            inputs.request_of(request, request.request_id),
            workspace_id,
            epoch,
            grace_s=inputs.grace_of(request),
            encode=_encode_stopped,
        )
        return api.WorkspaceHostServiceStopWorkspaceResponse.FromString(response)

    async def RemoveWorkspace(  # noqa: N802 (the name is the proto's)
        self, request: api.RemoveWorkspaceRequest, context: grpc.aio.ServicerContext
    ) -> api.RemoveWorkspaceResponse:
        """Remove a workspace with its files."""
        workspace_id, epoch = inputs.workspace_of(request.workspace_id, request.epoch)
        response = await self._host.remove(
            inputs.request_of(request, request.request_id),
            workspace_id,
            epoch,
            encode=_encode_removed,
        )
        return api.RemoveWorkspaceResponse.FromString(response)

    async def MergeWorkspace(  # noqa: N802 (the name is the proto's)
        self, request: api.MergeWorkspaceRequest, context: grpc.aio.ServicerContext
    ) -> api.MergeWorkspaceResponse:
        """Merge a fork into its parent."""
        # The next owner of a chat repeats the request with its own epoch.
        asked = inputs.request_of(request, request.request_id, "owner_epoch")
        response = await self._merges.merge(
            asked,
            inputs.merge_of(request),
            _encode_merged,
            has_time=lambda: _has_time(context),
        )
        return api.MergeWorkspaceResponse.FromString(response)

    async def UpdateWorkspacePolicy(  # noqa: N802 (the name is the proto's)
        self, request: api.UpdateWorkspacePolicyRequest, context: grpc.aio.ServicerContext
    ) -> api.UpdateWorkspacePolicyResponse:
        """Replace the policy of a workspace, from its next process on."""
        workspace_id, epoch = inputs.workspace_of(request.workspace_id, request.epoch)
        policy = inputs.policy_of(request.network, request.limits, tuple(request.secrets))
        answer = api.UpdateWorkspacePolicyResponse(applied_to_running=False).SerializeToString()
        asked = inputs.request_of(request, request.request_id)
        response = await self._host.update(asked, workspace_id, epoch, policy, answer)
        return api.UpdateWorkspacePolicyResponse.FromString(response)

    async def GetHost(  # noqa: N802 (the name is the proto's)
        self, request: api.GetHostRequest, context: grpc.aio.ServicerContext
    ) -> api.GetHostResponse:
        """Return the node and its workspaces."""
        if not 0 <= request.page_size <= PAGE_MAX:
            raise InvalidRequest("page_size", f"is not between 0 and {PAGE_MAX}")
        size = request.page_size or PAGE_DEFAULT
        later = [each for each in self._reporter.hosted() if each.workspace_id > request.page_token]
        page = later[:size]
        return api.GetHostResponse(
            node=convert.node_to_proto(self._reporter),
            workspaces=[convert.hosted_to_proto(each) for each in page],
            next_page_token=page[-1].workspace_id if len(later) > size else "",
            probed_at=time_to_proto(self._probed_at),
        )


def _encode_stopped(stopped: Stopped) -> bytes:
    return api.WorkspaceHostServiceStopWorkspaceResponse(
        ended_processes=stopped.ended_processes,
        killed_processes=stopped.killed_processes,
        duration_ms=stopped.duration_ms,
    ).SerializeToString()


def _encode_removed(freed_bytes: int) -> bytes:
    return api.RemoveWorkspaceResponse(freed_bytes=freed_bytes).SerializeToString()


def _has_time(context: Any) -> bool:
    """Return whether a call that is cancelled now was given up before its deadline."""
    remaining_s = context.time_remaining()
    return remaining_s is None or remaining_s > LATE_S


def _encode_merged(report: MergeReport) -> bytes:
    return api.MergeWorkspaceResponse(report=convert.report_to_proto(report)).SerializeToString()
