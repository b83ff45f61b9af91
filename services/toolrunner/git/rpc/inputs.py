"""Parsing of requests about repositories, with the limits of the protos."""

import re
from collections.abc import Sequence
from typing import Final

from parley.api.workspace.v1 import git_service_pb2 as api
from parley.rpc import remaining_s
from toolrunner.files.rpc.inputs import MIB, bounded, path_of
from toolrunner.fileworker.git import protocol
from toolrunner.git.service import CHECKPOINT_S, previous_label, scope_name
from toolrunner.journal.records import FileEffect
from toolrunner.primitives.domain import Scope
from toolrunner.primitives.errors import InvalidRequest
from toolrunner.processes.rpc.inputs import EffectRequest, body_hash_of, effect_key_of

SERVICE: Final = "/parley.api.workspace.v1.GitService"
NAME_MAX: Final = 255
REF_MAX: Final = 400
PATHS_MAX: Final = 1000
CONTEXT_LINES: Final = 3
CONTEXT_LINES_MAX: Final = 100
LOOK_S: Final = 25.0
#: Reserved for the response to arrive before the deadline.
ANSWER_S: Final = 2.0

_NUMBER: Final = re.compile(r"[0-9]{1,7}")
_LABEL: Final = re.compile(r"[A-Za-z0-9._-]{1,100}")
#: Characters that git does not accept in a name, or that would end the line that contains it.
_NO_NAME: Final = re.compile(r"[\x00-\x20\x7f]|^-")


def git_effect_of(request: EffectRequest, scope: Scope, method: str) -> FileEffect:
    """Return a request that changes a repository or its files, for the journal."""
    key = effect_key_of(request, scope)
    body_hash = body_hash_of(request)
    return FileEffect(request.request_id, key, f"{SERVICE}/{method}", body_hash, scope.workspace_id)


def status_of(request: api.GetStatusRequest) -> protocol.GitStatus:
    """Return which repositories to read."""
    return protocol.GitStatus(_repository_of(request.repository), _limit_s(LOOK_S))


def diff_of(request: api.GetDiffRequest) -> protocol.GitDiff:
    """Return which diff is requested.

    Raises:
        InvalidRequest: A field is outside its limits.
    """
    lines = request.context_lines if request.HasField("context_lines") else CONTEXT_LINES
    if not 0 <= lines <= CONTEXT_LINES_MAX:
        raise InvalidRequest("context_lines", f"is not between 0 and {CONTEXT_LINES_MAX}")
    return protocol.GitDiff(
        directory=_repository_of(request.repository),
        base=_name_of(request.base, "base"),
        target=_name_of(request.target, "target"),
        paths=_paths_of(request.paths),
        context_lines=lines,
        max_bytes=bounded(request.max_bytes, "max_bytes", 3 * MIB, MIB),
        is_files_only=request.files_only,
        timeout_s=_limit_s(LOOK_S),
    )


def create_of(request: api.CreateCheckpointRequest, scope: Scope) -> protocol.CreateCheckpoint:
    """Return which checkpoint to create.

    Raises:
        InvalidRequest: A field is outside its limits.
    """
    label = request.label
    # Git does not accept these in a reference.
    is_odd = label.startswith(".") or label.endswith((".", ".lock")) or ".." in label
    if not _LABEL.fullmatch(label) or is_odd:
        problem = "needs 1 to 100 characters of A-Za-z0-9._- that git takes for a name"
        raise InvalidRequest("label", problem)
    return protocol.CreateCheckpoint(
        _repository_of(request.repository), scope_name(scope), label, CHECKPOINT_S
    )


def list_of(request: api.ListCheckpointsRequest, scope: Scope) -> protocol.ListCheckpoints:
    """Return which checkpoints are requested."""
    return protocol.ListCheckpoints(
        directory=_repository_of(request.repository),
        scope=scope.chat_id,
        start=_start_of(request.page_token),
        limit=bounded(request.page_size, "page_size", 200, 50),
        timeout_s=_limit_s(LOOK_S),
    )


def restore_of(request: api.RestoreCheckpointRequest, scope: Scope) -> protocol.RestoreCheckpoint:
    """Return what to restore.

    Raises:
        InvalidRequest: A field is outside its limits.
    """
    for field, ref in (
        ("ref", request.ref),
        ("if_unchanged_since_ref", request.if_unchanged_since_ref),
    ):
        if len(ref) > REF_MAX:
            raise InvalidRequest(field, f"has over {REF_MAX} characters")
    return protocol.RestoreCheckpoint(
        directory=_repository_of(request.repository),
        scope=scope_name(scope),
        previous_label=previous_label(request.request_id),
        ref=request.ref,
        paths=_paths_of(request.paths),
        if_unchanged_since_ref=request.if_unchanged_since_ref,
        removes_later=request.remove_later_files,
        timeout_s=CHECKPOINT_S,
    )


def _repository_of(path: str) -> str:
    return path_of(path, "repository", may_be_empty=True)


def _name_of(name: str, field: str) -> str:
    if len(name) > NAME_MAX or _NO_NAME.search(name):
        raise InvalidRequest(field, "is no commit, branch, tag or checkpoint")
    return name


def _paths_of(paths: Sequence[str]) -> tuple[str, ...]:
    if len(paths) > PATHS_MAX:
        raise InvalidRequest("paths", f"are over {PATHS_MAX}")
    return tuple(path_of(path, "paths") for path in paths)


def _start_of(page_token: str) -> int:
    if page_token and not _NUMBER.fullmatch(page_token):
        raise InvalidRequest("page_token", "is not one of this list; begin again without one")
    return int(page_token or 0)


def _limit_s(most_s: float) -> float:
    """Return the timeout of git, so that the response arrives before the deadline."""
    left_s = remaining_s()
    return most_s if left_s is None else max(0.1, min(most_s, left_s - ANSWER_S))
