"""Workspace specs, failures and grants of secrets (never their values) as protos."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from chatd.workspaces.domain.secrets import Delivery, Secret
from chatd.workspaces.domain.spec import (
    Kind,
    Limits,
    Network,
    NetworkPolicy,
    Profile,
    WorkspaceSpec,
)
from chatd.workspaces.domain.workspace import Failure, FailureKind, Workspace
from parley.api.workspace.v1 import (
    host_service_pb2,
    sandbox_pb2,
    secret_pb2,
    template_pb2,
    workspace_pb2,
)

DELIVERIES: Final = {
    Delivery.PROXY: secret_pb2.SECRET_DELIVERY_PROXY,
    Delivery.GIT: secret_pb2.SECRET_DELIVERY_GIT,
    Delivery.ENVIRONMENT: secret_pb2.SECRET_DELIVERY_ENVIRONMENT,
}

#: Returns the secrets that a workspace may use.
Granted = Callable[[Workspace], Awaitable[tuple[Secret, ...]]]

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


async def nothing_granted(workspace: Workspace) -> tuple[Secret, ...]:
    """Return no secrets."""
    return ()


def grant_to_proto(secret: Secret) -> secret_pb2.SecretGrant:
    """Convert a secret without its value to the grant that nodes and owners see."""
    return secret_pb2.SecretGrant(
        name=secret.name,
        delivery=DELIVERIES[secret.delivery],
        hosts=secret.hosts,
        header=secret.header,
        variable=secret.variable,
    )


def spec_to_proto(
    spec: WorkspaceSpec, granted: tuple[Secret, ...] = ()
) -> host_service_pb2.WorkspaceSpec:
    """Convert a workspace spec to its proto."""
    source = spec.source
    made = host_service_pb2.WorkspaceSpec(
        kind=KINDS[spec.kind],
        setup_script=spec.setup_script,
        setup_timeout_ms=spec.setup_timeout_ms,
        environment=dict(spec.environment),
        network=network_to_proto(spec.network),
        limits=limits_to_proto(spec.limits),
        profile=PROFILES[spec.profile],
        sandbox_minimum=level_to_proto(spec.sandbox_minimum),
        secrets=map(grant_to_proto, granted),
    )
    match spec.kind:
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
    """Convert a network policy to its proto."""
    return sandbox_pb2.NetworkPolicy(
        access=NETWORKS[policy.access],
        presets=policy.presets,
        allowed_hosts=policy.allowed_hosts,
        denied_hosts=policy.denied_hosts,
    )


def limits_to_proto(limits: Limits) -> sandbox_pb2.ResourceLimits:
    """Convert limits to their proto."""
    return sandbox_pb2.ResourceLimits(
        cpu_millicores=limits.cpu_millicores,
        memory_bytes=limits.memory_bytes,
        pids=limits.pids,
        disk_bytes=limits.disk_bytes,
        inodes=limits.inodes,
        output_bytes=limits.output_bytes,
    )


def level_to_proto(level: str) -> "sandbox_pb2.SandboxLevel.ValueType":
    """Convert a sandbox level to its proto."""
    return sandbox_pb2.SandboxLevel.Value(f"SANDBOX_LEVEL_{(level or 'unspecified').upper()}")


def level_of(level: "sandbox_pb2.SandboxLevel.ValueType") -> str:
    """Convert a sandbox level from its proto; empty for unspecified."""
    name = sandbox_pb2.SandboxLevel.Name(level).removeprefix("SANDBOX_LEVEL_").lower()
    return "" if name == "unspecified" else name


def failure_of(failure: workspace_pb2.WorkspaceFailure) -> Failure:
    """Convert the failure of a workspace from its proto."""
    kind = FAILURES.get(failure.kind, FailureKind.INTERNAL)
    return Failure(kind, failure.message, failure.recreatable)
