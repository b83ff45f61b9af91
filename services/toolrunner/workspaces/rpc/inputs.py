"""Parsing of requests about hosted workspaces, with the limits of the protos."""

import hashlib
import re
from typing import Final
from urllib.parse import urlsplit

from google.protobuf.message import Message

from parley.api.workspace.v1 import host_service_pb2 as api
from parley.api.workspace.v1 import sandbox_pb2, secret_pb2, template_pb2, workspace_pb2
from toolrunner.primitives.domain import NO_CHAT, ChatId, WorkspaceId
from toolrunner.primitives.errors import InvalidRequest
from toolrunner.processes.rpc.inputs import canonical_uuid, request_id_of, variables_of
from toolrunner.workspaces.domain.spec import (
    Fork,
    ForkMode,
    Git,
    Limits,
    Local,
    Network,
    NetworkAccess,
    Policy,
    Profile,
    SandboxLevel,
    Scratch,
    SecretGrant,
    Source,
    WorkspaceSpec,
)
from toolrunner.workspaces.host import PlacementRequest
from toolrunner.workspaces.merge.comparison import Strategy
from toolrunner.workspaces.merge.service import MergeRequest
from toolrunner.workspaces.sources.builder import check_skeleton
from toolrunner.workspaces.store import Request

SCRIPT_BYTES_MAX: Final = 64 * 1024
SETUP_MS_MAX: Final = 1_800_000
SETUP_MS: Final = 600_000
SKELETON_FILES_MAX: Final = 64
SKELETON_BYTES_MAX: Final = 256 * 1024
URL_MAX: Final = 2000
REF_MAX: Final = 255
SECRETS_MAX: Final = 32
PATHS_MAX: Final = 1000
GRACE_MS: Final = 3000
GRACE_MS_MAX: Final = 60_000
_REF: Final = re.compile(r"(?!-)(?!.*(?:\.\.|@\{|//))[^\x00-\x20\x7f~^:?*\[\\]+(?<![./])")
STRATEGY: Final = {
    workspace_pb2.MERGE_STRATEGY_UNSPECIFIED: Strategy.REPORT,
    workspace_pb2.MERGE_STRATEGY_REPORT: Strategy.REPORT,
    workspace_pb2.MERGE_STRATEGY_KEEP_PARENT: Strategy.KEEP_PARENT,
    workspace_pb2.MERGE_STRATEGY_TAKE_FORK: Strategy.TAKE_FORK,
}


def request_of(request: Message, request_id: str, *ignored: str) -> Request:
    """Return a request that changes something; ignored fields are not compared.

    Args:
        request: The request.
        request_id: Its id.
        ignored: Fields, with dots for nested ones.
    """
    body = type(request)()
    body.CopyFrom(request)
    for field in ignored:
        *path, name = field.split(".")
        message: Message = body
        for step in path:
            message = getattr(message, step)
        message.ClearField(name)
    name = request.DESCRIPTOR.name
    body_hash = hashlib.sha256(body.SerializeToString(deterministic=True)).digest()
    return Request(request_id_of(request_id), name, body_hash)


def workspace_of(text: str, epoch: int, field: str = "workspace_id") -> tuple[WorkspaceId, int]:
    """Return a workspace and its placement epoch."""
    if epoch < 1:
        raise InvalidRequest("epoch", "is less than 1")
    return WorkspaceId(canonical_uuid(text, field)), epoch


def wanted_of(request: api.PrepareWorkspaceRequest) -> PlacementRequest:
    """Return the requested workspace."""
    workspace_id, epoch = workspace_of(request.workspace_id, request.epoch)
    if request.after_log_sequence < 0:
        raise InvalidRequest("after_log_sequence", "is negative")
    return PlacementRequest(
        workspace_id, epoch, request.owner_id, spec_of(request.spec), request.must_exist
    )


def spec_of(spec: api.WorkspaceSpec) -> WorkspaceSpec:
    """Return a workspace spec."""
    script = spec.setup_script
    if len(script.encode()) > SCRIPT_BYTES_MAX or "\0" in script:
        raise InvalidRequest("spec.setup_script", f"has over {SCRIPT_BYTES_MAX} bytes, or a NUL")
    if not 0 <= spec.setup_timeout_ms <= SETUP_MS_MAX:
        problem = f"is not between 0 and {SETUP_MS_MAX}"
        raise InvalidRequest("spec.setup_timeout_ms", problem)
    return WorkspaceSpec(
        source=_source(spec),
        setup_script=script,
        setup_timeout_s=(spec.setup_timeout_ms or SETUP_MS) / 1000,
        environment=variables_of(spec.environment, "spec.environment"),
        policy=policy_of(spec.network, spec.limits, tuple(spec.secrets)),
        profile=Profile[sandbox_pb2.SandboxProfile.Name(spec.profile)[len("SANDBOX_PROFILE_") :]],
        sandbox_minimum=SandboxLevel[
            sandbox_pb2.SandboxLevel.Name(spec.sandbox_minimum)[len("SANDBOX_LEVEL_") :]
        ],
    )


def policy_of(
    network: sandbox_pb2.NetworkPolicy,
    limits: sandbox_pb2.ResourceLimits,
    secrets: tuple[secret_pb2.SecretGrant, ...],
) -> Policy:
    """Return the policy of a workspace."""
    if len(secrets) > SECRETS_MAX:
        raise InvalidRequest("secrets", f"has over {SECRETS_MAX}")
    access = sandbox_pb2.NetworkAccess.Name(network.access)[len("NETWORK_ACCESS_") :]
    return Policy(
        Network(
            NetworkAccess[access],
            tuple(network.presets),
            tuple(network.allowed_hosts),
            tuple(network.denied_hosts),
        ),
        Limits(
            limits.cpu_millicores,
            limits.memory_bytes,
            limits.pids,
            limits.disk_bytes,
            limits.inodes,
            limits.output_bytes,
        ),
        tuple(
            SecretGrant(
                grant.name,
                secret_pb2.SecretDelivery.Name(grant.delivery),
                tuple(grant.hosts),
                grant.header,
                grant.variable,
            )
            for grant in secrets
        ),
    )


def merge_of(request: api.MergeWorkspaceRequest) -> MergeRequest:
    """Return a merge request."""
    fork_id, fork_epoch = workspace_of(
        request.fork_workspace_id, request.fork_epoch, "fork_workspace_id"
    )
    parent_id, parent_epoch = workspace_of(
        request.parent_workspace_id, request.parent_epoch, "parent_workspace_id"
    )
    if len(request.paths) > PATHS_MAX:
        raise InvalidRequest("paths", f"has over {PATHS_MAX}")
    paths = tuple(
        "/".join(part for part in path.split("/") if part not in ("", "."))
        for path in request.paths
    )
    if any(".." in path.split("/") for path in paths):
        raise InvalidRequest("paths", "leads out of the workspace")
    return MergeRequest(
        fork_id,
        fork_epoch,
        parent_id,
        parent_epoch,
        STRATEGY[request.strategy],
        () if "" in paths else paths,
        request.dry_run,
        *_author_of(request),
    )


def _author_of(request: api.MergeWorkspaceRequest) -> tuple[ChatId, int, int]:
    """Return the chat whose turn merges, the turn, and the epoch of the chat's owner."""
    if not request.chat_id:
        if request.turn_id or request.owner_epoch:
            raise InvalidRequest("chat_id", "is missing: name the chat of the turn")
        return NO_CHAT, 0, 0
    if request.turn_id < 0:
        raise InvalidRequest("turn_id", "is negative")
    if request.owner_epoch < 1:
        raise InvalidRequest("owner_epoch", "is less than 1")
    chat_id = ChatId(canonical_uuid(request.chat_id, "chat_id"))
    return chat_id, request.turn_id, request.owner_epoch


def grace_of(request: api.WorkspaceHostServiceStopWorkspaceRequest) -> float:
    """Return the time that processes have to exit after SIGTERM, in seconds."""
    grace_ms = request.grace_ms if request.HasField("grace_ms") else GRACE_MS
    if not 0 <= grace_ms <= GRACE_MS_MAX:
        raise InvalidRequest("grace_ms", f"is not between 0 and {GRACE_MS_MAX}")
    return grace_ms / 1000


def _source(spec: api.WorkspaceSpec) -> Source:
    match spec.WhichOneof("source"):
        case "scratch":
            return _scratch(spec.scratch)
        case "git":
            return _git(spec.git)
        case "local":
            return Local(spec.local.directory, spec.local.overlay)
        case "fork":
            fork = spec.fork
            parent_id, epoch = workspace_of(fork.parent_workspace_id, fork.parent_epoch)
            mode = workspace_pb2.ForkMode.Name(fork.mode)[len("FORK_MODE_") :]
            return Fork(parent_id, epoch, ForkMode[mode])
        case _ if spec.kind == template_pb2.WORKSPACE_KIND_SCRATCH:
            return Scratch()
        case _:
            raise InvalidRequest("spec.source", "is missing; say what it begins with")


def _scratch(scratch: template_pb2.ScratchSource) -> Scratch:
    skeleton = dict(scratch.skeleton)
    size = sum(len(content.encode()) for content in skeleton.values())
    if len(skeleton) > SKELETON_FILES_MAX or size > SKELETON_BYTES_MAX:
        problem = f"has over {SKELETON_FILES_MAX} files or {SKELETON_BYTES_MAX} bytes"
        raise InvalidRequest("spec.scratch.skeleton", problem)
    check_skeleton(skeleton)
    return Scratch(skeleton)


def _git(git: template_pb2.GitSource) -> Git:
    if not 1 <= len(git.url) <= URL_MAX or git.url.startswith("-") or not git.url.isprintable():
        raise InvalidRequest("spec.git.url", f"is no address of at most {URL_MAX} characters")
    parts = urlsplit(git.url)
    is_token = parts.scheme in ("http", "https") and parts.username is not None
    if parts.password is not None or is_token:
        problem = "holds a credential; grant the workspace a secret instead"
        raise InvalidRequest("spec.git.url", problem)
    for field, name in (("ref", git.ref), ("branch", git.branch)):
        if name and (len(name) > REF_MAX or not _REF.fullmatch(name)):
            raise InvalidRequest(f"spec.git.{field}", "is no name that git takes")
    if git.depth < 0:
        raise InvalidRequest("spec.git.depth", "is negative")
    return Git(git.url, git.ref, git.branch, git.depth, git.worktree)
