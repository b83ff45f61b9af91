"""Nodes as hosts of workspaces: the adapter that asks them, and the fake that behaves like one."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import UTC, datetime
from typing import Final

import grpc

from chatd.clients.failures import AMBIGUOUS
from chatd.clients.grants import Granted, grant_to_proto, nothing_granted
from chatd.clients.nodes import answered
from chatd.domain.workspaces.nodes import Node
from chatd.domain.workspaces.ports import (
    HostAway,
    HostRefused,
    LogLine,
    NotPrepared,
    Prepared,
    Progress,
)
from chatd.domain.workspaces.recipe import Kind, Limits, Network, NetworkPolicy, Profile, Recipe
from chatd.domain.workspaces.secrets import Secret
from chatd.domain.workspaces.workspace import Failure, FailureKind, Workspace
from parley.api.workspace.v1 import (
    host_service_pb2,
    sandbox_pb2,
    template_pb2,
    workspace_pb2,
)
from parley.api.workspace.v1.host_service_pb2_grpc import WorkspaceHostServiceStub
from parley.rpc import problem_of

PREPARE_S: Final = 3600.0
STOP_S: Final = 120.0

KINDS: Final = {
    Kind.SCRATCH: template_pb2.WORKSPACE_KIND_SCRATCH,
    Kind.GIT: template_pb2.WORKSPACE_KIND_GIT,
    Kind.LOCAL: template_pb2.WORKSPACE_KIND_LOCAL,
    Kind.FORK: template_pb2.WORKSPACE_KIND_FORK,
}
NETWORKS: Final = {
    Network.NONE: sandbox_pb2.NETWORK_ACCESS_NONE,
    Network.PROXY: sandbox_pb2.NETWORK_ACCESS_PROXY,
    Network.OPEN: sandbox_pb2.NETWORK_ACCESS_OPEN,
}
PROFILES: Final = {
    Profile.READ_ONLY: sandbox_pb2.SANDBOX_PROFILE_READ_ONLY,
    Profile.WORKSPACE_WRITE: sandbox_pb2.SANDBOX_PROFILE_WORKSPACE_WRITE,
    Profile.FULL: sandbox_pb2.SANDBOX_PROFILE_FULL,
}
FAILURES: Final[Mapping[int, FailureKind]] = {
    workspace_pb2.WorkspaceFailureKind.Value(f"WORKSPACE_FAILURE_KIND_{kind.name}"): kind
    for kind in FailureKind
}
#: Asked of a node that hosts nothing: directories for scratch work it makes by itself.
UNSERVED: Final = Failure(
    FailureKind.NO_NODE,
    "The node makes scratch workspaces only; start a toolrunner that hosts others.",
)


class GrpcHost:
    """Asks nodes over channels.

    Args:
        channel_at: Gives the channel to the address of a node.
        granted: Tells which secrets a workspace may use.
    """

    def __init__(
        self,
        channel_at: Callable[[str], grpc.aio.Channel],
        granted: Granted = nothing_granted,
    ) -> None:
        self._channel_at = channel_at
        self._granted = granted

    async def prepare(
        self, node: Node, workspace: Workspace, after_line: int = 0
    ) -> AsyncIterator[Progress]:
        """Have a workspace made or started; the same placement attaches."""
        request = host_service_pb2.PrepareWorkspaceRequest(
            request_id=f"prepare-{workspace.id}-{workspace.epoch}",
            workspace_id=workspace.id,
            epoch=workspace.epoch,
            owner_id=workspace.owner_id,
            recipe=recipe_to_proto(workspace.recipe, await self._granted(workspace)),
            must_exist=workspace.has_files,
            after_log_sequence=after_line,
        )
        call = self._stub(node).PrepareWorkspace(request, timeout=PREPARE_S)
        try:
            async for response in call:
                match response.WhichOneof("kind"):
                    case "log_line":
                        yield _line(response.log_line)
                    case "prepared":
                        yield _prepared(response.prepared)
                        return
                    case "failed":
                        yield NotPrepared(failure_of(response.failed))
                        return
                    case _:
                        return
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.UNIMPLEMENTED:
                raise _trouble(error) from error
            is_made_at_use = workspace.kind is Kind.SCRATCH
            yield Prepared() if is_made_at_use else NotPrepared(UNSERVED)
        finally:
            call.cancel()

    async def stop(self, node: Node, workspace: Workspace) -> None:
        """Have everything in a workspace ended."""
        request = host_service_pb2.WorkspaceHostServiceStopWorkspaceRequest(
            request_id=f"stop-{workspace.id}-{workspace.epoch}",
            workspace_id=workspace.id,
            epoch=workspace.epoch,
        )
        try:
            await self._stub(node).StopWorkspace(request, timeout=STOP_S)
        except grpc.aio.AioRpcError as error:
            raise _trouble(error) from error

    async def remove(self, node: Node, workspace: Workspace) -> None:
        """Have a workspace removed with its files."""
        request = host_service_pb2.RemoveWorkspaceRequest(
            request_id=f"remove-{workspace.id}-{workspace.epoch}",
            workspace_id=workspace.id,
            epoch=workspace.epoch,
        )
        try:
            await self._stub(node).RemoveWorkspace(request, timeout=STOP_S)
        except grpc.aio.AioRpcError as error:
            raise _trouble(error) from error

    async def update_policy(self, node: Node, workspace: Workspace) -> None:
        """Have a running workspace go by its network, bounds and grants as they are now.

        Raises:
            HostAway: The node does not answer.
            HostRefused: The node has another placement, or lacks this.
        """
        recipe = recipe_to_proto(workspace.recipe, await self._granted(workspace))
        request = host_service_pb2.UpdateWorkspacePolicyRequest(
            request_id=f"policy-{workspace.id}-{workspace.epoch}-{workspace.version}",
            workspace_id=workspace.id,
            epoch=workspace.epoch,
            network=recipe.network,
            limits=recipe.limits,
            secrets=recipe.secrets,
        )
        try:
            await self._stub(node).UpdateWorkspacePolicy(request, timeout=STOP_S)
        except grpc.aio.AioRpcError as error:
            raise _trouble(error) from error

    async def merge(
        self,
        node: Node,
        fork: Workspace,
        parent: Workspace,
        *,
        request_id: str,
        strategy: "workspace_pb2.MergeStrategy.ValueType",
        paths: tuple[str, ...],
        is_dry: bool,
    ) -> workspace_pb2.MergeReport:
        """Have the changes of a fork brought into its parent.

        Raises:
            Refusal: The node refuses, lacks this, or is away.
        """
        request = host_service_pb2.MergeWorkspaceRequest(
            request_id=request_id,
            fork_workspace_id=fork.id,
            fork_epoch=fork.epoch,
            parent_workspace_id=parent.id,
            parent_epoch=parent.epoch,
            strategy=strategy,
            paths=paths,
            dry_run=is_dry,
        )
        answer = await answered(self._stub(node).MergeWorkspace(request, timeout=STOP_S))
        return answer.report

    def _stub(self, node: Node) -> WorkspaceHostServiceStub:
        return WorkspaceHostServiceStub(self._channel_at(node.address))


class InMemoryHost:
    """Hosts workspaces in a dictionary; the fake behind `Host`.

    It keeps what a node keeps: one outcome for each request id, the highest epoch of each
    workspace, and files that last through a stop. Tests make it slow, deaf or failing.

    Attributes:
        epochs: The highest placement of each workspace.
        running: Workspaces that are prepared.
        files: Workspaces that have files.
        made: How often each placement was really prepared.
        away: How many of the next requests get no answer, by method.
        lost: How many of the next requests are done without anybody hearing of it, by method.
        failures: What preparing a workspace comes to.
        refusals: What the next request of a method is refused with.
        parent_epochs: The placement of its parent that each fork was made of.
        policies: The numbers of the policies that each workspace was told to go by.
        gate: Preparations wait for it.
    """

    def __init__(self) -> None:
        self.epochs: dict[str, int] = {}
        self.running: set[str] = set()
        self.files: set[str] = set()
        self.made: Counter[tuple[str, int]] = Counter()
        self.away: Counter[str] = Counter()
        self.lost: Counter[str] = Counter()
        self.failures: dict[str, Failure] = {}
        self.refusals: dict[str, HostRefused] = {}
        self.parent_epochs: dict[str, int] = {}
        self.policies: defaultdict[str, list[int]] = defaultdict(list)
        self.gate = asyncio.Event()
        self.gate.set()
        self.asked = asyncio.Event()

    async def prepare(
        self, node: Node, workspace: Workspace, after_line: int = 0
    ) -> AsyncIterator[Progress]:
        """Make a workspace once for each placement."""
        self._arrive("prepare", workspace)
        self._check_parent(workspace)
        self.asked.set()
        if after_line < 1:
            yield LogLine(1, datetime(2026, 1, 1, tzinfo=UTC), "copy", "making it")
        await self.gate.wait()
        if workspace.id in self.failures:
            yield NotPrepared(self.failures[workspace.id])
            return
        if workspace.has_files and workspace.id not in self.files:
            yield NotPrepared(Failure(FailureKind.SOURCE, "its files are gone"))
            return
        placement = (workspace.id, workspace.epoch)
        if not self.made[placement]:
            self.made[placement] += 1
            self.running.add(workspace.id)
            self.files.add(workspace.id)
        self._leave("prepare")
        yield Prepared("/workspace", workspace.recipe.source.branch, "landlock")

    async def stop(self, node: Node, workspace: Workspace) -> None:
        """End what runs."""
        self._arrive("stop", workspace)
        self.running.discard(workspace.id)
        self._leave("stop")

    async def remove(self, node: Node, workspace: Workspace) -> None:
        """Forget everything but the epoch."""
        self._arrive("remove", workspace)
        self.running.discard(workspace.id)
        self.files.discard(workspace.id)
        self._leave("remove")

    async def update_policy(self, node: Node, workspace: Workspace) -> None:
        """Have a workspace go by its policy."""
        self._arrive("update_policy", workspace)
        self.policies[workspace.id].append(workspace.policy)
        self._leave("update_policy")

    def _arrive(self, method: str, workspace: Workspace) -> None:
        if self.away[method]:
            self.away[method] -= 1
            raise HostAway(f"{method} is away")
        if method in self.refusals:
            raise self.refusals.pop(method)
        highest = self.epochs.get(workspace.id, 0)
        if workspace.epoch < highest:
            raise HostRefused("STALE_PLACEMENT", f"epoch {highest} is newer")
        self.epochs[workspace.id] = workspace.epoch

    def _check_parent(self, workspace: Workspace) -> None:
        """Refuse a fork of another placement of its parent than the one that is here."""
        source = workspace.recipe.source
        if workspace.id in self.files or source.parent_id not in self.epochs:
            return
        here = self.epochs[source.parent_id]
        if source.parent_epoch < here:
            raise HostRefused("STALE_PLACEMENT", f"epoch {here} of its parent is newer")
        self.parent_epochs[workspace.id] = source.parent_epoch

    def _leave(self, method: str) -> None:
        if self.lost[method]:
            self.lost[method] -= 1
            raise HostAway(f"the answer to {method} got lost")


def recipe_to_proto(
    recipe: Recipe, granted: tuple[Secret, ...] = ()
) -> host_service_pb2.WorkspaceRecipe:
    """Return a recipe as a node reads it."""
    source = recipe.source
    made = host_service_pb2.WorkspaceRecipe(
        kind=KINDS[recipe.kind],
        setup_script=recipe.setup_script,
        setup_timeout_ms=recipe.setup_timeout_ms,
        environment=dict(recipe.environment),
        network=network_to_proto(recipe.network),
        limits=limits_to_proto(recipe.limits),
        profile=PROFILES[recipe.profile],
        sandbox_minimum=level_to_proto(recipe.sandbox_minimum),
        secrets=map(grant_to_proto, granted),
    )
    match recipe.kind:
        case Kind.SCRATCH:
            made.scratch.CopyFrom(template_pb2.ScratchSource(skeleton=dict(source.skeleton)))
        case Kind.GIT:
            made.git.url, made.git.ref, made.git.branch = source.url, source.ref, source.branch
            made.git.depth, made.git.worktree = source.depth, source.is_worktree
        case Kind.LOCAL:
            made.local.directory, made.local.overlay = source.directory, source.is_overlay
        case Kind.FORK:
            made.fork.parent_workspace_id = source.parent_id
            made.fork.parent_epoch = source.parent_epoch
            made.fork.mode = workspace_pb2.ForkMode.Value(
                f"FORK_MODE_{(source.fork_mode or 'unspecified').upper()}"
            )
    return made


def network_to_proto(policy: NetworkPolicy) -> sandbox_pb2.NetworkPolicy:
    """Return a network policy as protos say it."""
    return sandbox_pb2.NetworkPolicy(
        access=NETWORKS[policy.access],
        presets=policy.presets,
        allowed_hosts=policy.allowed_hosts,
        denied_hosts=policy.denied_hosts,
    )


def limits_to_proto(limits: Limits) -> sandbox_pb2.ResourceLimits:
    """Return bounds as protos say them."""
    return sandbox_pb2.ResourceLimits(
        cpu_millicores=limits.cpu_millicores,
        memory_bytes=limits.memory_bytes,
        pids=limits.pids,
        disk_bytes=limits.disk_bytes,
        inodes=limits.inodes,
        output_bytes=limits.output_bytes,
    )


def level_to_proto(level: str) -> "sandbox_pb2.SandboxLevel.ValueType":
    """Return a level of sandboxes as protos say it."""
    return sandbox_pb2.SandboxLevel.Value(f"SANDBOX_LEVEL_{(level or 'unspecified').upper()}")


def level_of(level: "sandbox_pb2.SandboxLevel.ValueType") -> str:
    """Return the word for a level; empty for none."""
    name = sandbox_pb2.SandboxLevel.Name(level).removeprefix("SANDBOX_LEVEL_").lower()
    return "" if name == "unspecified" else name


def _prepared(prepared: host_service_pb2.WorkspacePrepared) -> Prepared:
    return Prepared(prepared.root_path, prepared.git_branch, level_of(prepared.sandbox.level))


def failure_of(failure: workspace_pb2.WorkspaceFailure) -> Failure:
    """Return why a node cannot make or keep a workspace."""
    kind = FAILURES.get(failure.kind, FailureKind.INTERNAL)
    return Failure(kind, failure.message, failure.recreatable)


def _line(line: workspace_pb2.SetupLogLine) -> LogLine:
    return LogLine(line.sequence, line.logged_at.ToDatetime(tzinfo=UTC), line.stage, line.text)


def _trouble(error: grpc.aio.AioRpcError) -> Exception:
    problem = problem_of(error)
    if error.code() in AMBIGUOUS or error.code() is grpc.StatusCode.UNAUTHENTICATED:
        return HostAway(f"{problem.reason}: {problem.message}")
    return HostRefused(problem.reason, problem.message)
