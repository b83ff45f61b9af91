"""Parsing of requests about files, with the limits of the protos."""

import base64
import binascii
import hashlib
from collections.abc import Sequence
from typing import Final

from parley.api.workspace.v1 import file_pb2, workspace_pb2
from parley.api.workspace.v1 import file_service_pb2 as api
from toolrunner.fileworker import protocol, values
from toolrunner.journal.records import FileEffect
from toolrunner.primitives.domain import Scope
from toolrunner.primitives.errors import InvalidRequest, ReadOnly
from toolrunner.processes.rpc.inputs import (
    EffectRequest,
    body_hash_of,
    effect_key_of,
    profile_of,
)
from toolrunner.sandbox import Profile

SERVICE: Final = "/parley.api.workspace.v1.FileService"
MIB: Final = 1024 * 1024
PATH_BYTES_MAX: Final = 4096
TOKEN_CHARACTERS_MAX: Final = 8192
CONTENT_BYTES_MAX: Final = 3 * MIB
UPLOAD_BYTES_MAX: Final = 1024 * MIB
CHUNK_BYTES_MAX: Final = 256 * 1024
MODE_MAX: Final = 0o777

_CASE: Final = {
    api.CASE_MODE_UNSPECIFIED: "smart",
    api.CASE_MODE_SMART: "smart",
    api.CASE_MODE_SENSITIVE: "sensitive",
    api.CASE_MODE_INSENSITIVE: "insensitive",
}
_MODE: Final = {
    api.SEARCH_MODE_UNSPECIFIED: "matches",
    api.SEARCH_MODE_MATCHES: "matches",
    api.SEARCH_MODE_FILES: "files",
    api.SEARCH_MODE_COUNT: "count",
}


def file_effect_of(request: EffectRequest, scope: Scope, method: str) -> FileEffect:
    """Return a request that changes files, for the journal."""
    key = effect_key_of(request, scope)
    body_hash = body_hash_of(request)
    return FileEffect(request.request_id, key, f"{SERVICE}/{method}", body_hash, scope.workspace_id)


def upload_effect_of(head: api.UploadFileHead, scope: Scope, content_hash: bytes) -> FileEffect:
    """Return an upload, for the journal: its body is its head and its bytes."""
    key = effect_key_of(head, scope)
    body_hash = hashlib.sha256(body_hash_of(head) + content_hash).digest()
    return FileEffect(head.request_id, key, f"{SERVICE}/UploadFile", body_hash, scope.workspace_id)


def guards_git(context: workspace_pb2.WorkspaceContext, path: str) -> bool:
    """Return whether git's hooks and configuration are protected from a change.

    Raises:
        ReadOnly: The call may change nothing at all.
    """
    profile = profile_of(context)
    if profile is Profile.READ_ONLY:
        raise ReadOnly(path)
    return profile is not Profile.FULL


def bounded(value: int, field: str, maximum: int, default: int) -> int:
    """Return a number within its limits, 0 meaning the default.

    Raises:
        InvalidRequest: It is outside.
    """
    if not 0 <= value <= maximum:
        raise InvalidRequest(field, f"is not between 0 and {maximum}")
    return value or default


def path_of(path: str, field: str = "path", *, may_be_empty: bool = False) -> str:
    """Return a path within its limits.

    Raises:
        InvalidRequest: It is not valid.
    """
    if "\0" in path or len(path.encode()) > PATH_BYTES_MAX or not (path or may_be_empty):
        raise InvalidRequest(field, f"is no path of at most {PATH_BYTES_MAX} bytes")
    return path


def after_of(page_token: str) -> bytes:
    """Return the position of a page.

    Raises:
        InvalidRequest: The token is not valid.
    """
    if len(page_token) > TOKEN_CHARACTERS_MAX:
        raise InvalidRequest("page_token", "is not one of this list; begin again without one")
    try:
        return base64.b64decode(page_token.encode(), b"-_", validate=True)
    except binascii.Error as error:
        problem = "is not one of this list; begin again without one"
        raise InvalidRequest("page_token", problem) from error


def read_of(request: api.ReadFileRequest) -> protocol.ReadPage:
    """Return which lines to read."""
    if request.offset_line < 0:
        raise InvalidRequest("offset_line", "is negative")
    return protocol.ReadPage(
        path=path_of(request.path),
        offset_line=request.offset_line or 1,
        limit_lines=bounded(request.limit_lines, "limit_lines", 10_000, 2000),
        max_bytes=bounded(request.max_bytes, "max_bytes", MIB, 64 * 1024),
        line_bytes=bounded(request.line_bytes, "line_bytes", MIB, 4096),
        in_home=request.in_home,
    )


def bytes_of(request: api.ReadBytesRequest) -> protocol.ReadBytes:
    """Return which bytes to read."""
    if request.offset_bytes < 0 or request.length_bytes < 0:
        raise InvalidRequest("offset_bytes", "or length_bytes is negative")
    path = path_of(request.path)
    return protocol.ReadBytes(path, request.offset_bytes, request.length_bytes, request.if_etag)


def write_of(request: api.WriteFileRequest, token: str) -> protocol.PlanWrite:
    """Return the write plan."""
    if len(request.content) > CONTENT_BYTES_MAX:
        problem = f"has over {CONTENT_BYTES_MAX} bytes; upload larger files"
        raise InvalidRequest("content", problem)
    return protocol.PlanWrite(
        token=token,
        path=path_of(request.path),
        content=request.content,
        if_etag=request.if_etag,
        create_only=request.create_only,
        mode=bounded(request.mode, "mode", MODE_MAX, 0),
        guards_git=guards_git(request.context, request.path),
    )


def upload_of(head: api.UploadFileHead, token: str) -> protocol.StartUpload:
    """Return the upload to start."""
    return protocol.StartUpload(
        token=token,
        path=path_of(head.path, "head.path"),
        size_bytes=bounded(head.size_bytes, "head.size_bytes", UPLOAD_BYTES_MAX, 0),
        if_etag=head.if_etag,
        create_only=head.create_only,
        mode=bounded(head.mode, "head.mode", MODE_MAX, 0),
        guards_git=guards_git(head.context, head.path),
    )


def edits_of(request: api.EditFilesRequest, token: str) -> protocol.PlanEdits:
    """Return the edit plan; empty edits are reported as problems in the response."""
    if not 1 <= len(request.files) <= 100:
        raise InvalidRequest("files", "needs 1 to 100 files")
    if request.ByteSize() > CONTENT_BYTES_MAX:
        raise InvalidRequest("files", f"has over {CONTENT_BYTES_MAX} bytes altogether")
    files = tuple(_file_edit(file, at) for at, file in enumerate(request.files))
    guards = guards_git(request.context, files[0].path)
    return protocol.PlanEdits(token, files, guards)


def _file_edit(file: file_pb2.FileEdit, at: int) -> values.FileEdit:
    if not 1 <= len(file.edits) <= 100:
        raise InvalidRequest(f"files[{at}].edits", "needs 1 to 100 edits")
    edits = tuple(
        values.TextEdit(edit.old_text, edit.new_text, edit.replace_all) for edit in file.edits
    )
    for index, edit in enumerate(edits):
        if max(len(edit.old_text.encode()), len(edit.new_text.encode())) > MIB:
            raise InvalidRequest(f"files[{at}].edits[{index}]", f"has a text of over {MIB} bytes")
    return values.FileEdit(path_of(file.path, f"files[{at}].path"), edits, file.if_etag)


def patch_of(request: api.ApplyPatchRequest, token: str) -> protocol.PlanPatch:
    """Return the patch plan."""
    if not 1 <= len(request.patch.encode()) <= CONTENT_BYTES_MAX:
        raise InvalidRequest("patch", f"needs 1 to {CONTENT_BYTES_MAX} bytes")
    return protocol.PlanPatch(token, request.patch, guards_git(request.context, ""))


def list_of(request: api.ListDirectoryRequest) -> protocol.ListDirectory:
    """Return the listing request."""
    return protocol.ListDirectory(
        path=path_of(request.path, may_be_empty=True),
        depth=bounded(request.depth, "depth", 8, 1),
        after=after_of(request.page_token),
        limit=bounded(request.page_size, "page_size", 1000, 200),
        include_hidden=request.include_hidden,
        include_ignored=request.include_ignored,
    )


def find_of(request: api.FindFilesRequest) -> protocol.FindFiles:
    """Return the find request."""
    if not 1 <= len(request.query) <= 500 or "\0" in request.query:
        raise InvalidRequest("query", "needs 1 to 500 characters, none of them NUL")
    return protocol.FindFiles(
        query=request.query,
        is_fuzzy=request.mode == api.FIND_MODE_FUZZY,
        path=path_of(request.path, may_be_empty=True),
        after=after_of(request.page_token),
        limit=bounded(request.page_size, "page_size", 1000, 100),
        include_ignored=request.include_ignored,
    )


def search_of(request: api.SearchFilesRequest) -> protocol.SearchFiles:
    """Return the search request."""
    if not 1 <= len(request.pattern) <= 1000 or "\0" in request.pattern:
        raise InvalidRequest("pattern", "needs 1 to 1000 characters, none of them NUL")
    if request.case_mode not in _CASE or request.mode not in _MODE:
        raise InvalidRequest("mode", "or case_mode is none that is known")
    _check_count(request.paths, "paths", 100)
    _check_count(request.globs, "globs", 50)
    _check_count(request.types, "types", 20)
    return protocol.SearchFiles(
        pattern=request.pattern,
        literal=request.literal,
        paths=tuple(path_of(path, "paths", may_be_empty=True) for path in request.paths),
        globs=tuple(request.globs),
        types=tuple(request.types),
        case=_CASE[request.case_mode],
        context_lines=bounded(request.context_lines, "context_lines", 20, 0),
        multiline=request.multiline,
        mode=_MODE[request.mode],
        limit=bounded(request.limit, "limit", 10_000, 100),
        include_ignored=request.include_ignored,
        timeout_s=bounded(request.timeout_ms, "timeout_ms", 120_000, 30_000) / 1000,
    )


def _check_count(values: Sequence[str], field: str, maximum: int) -> None:
    if len(values) > maximum or any("\0" in value for value in values):
        raise InvalidRequest(field, f"has over {maximum} entries, or a NUL")
