"""CheckpointService: shows and restores the files of turns."""

import re
import sqlite3
from collections import Counter
from collections.abc import Iterable
from typing import Final

import grpc

from parley.api.workspace.v1 import checkpoint_pb2, file_pb2
from parley.api.workspace.v1 import checkpoint_service_pb2 as api
from parley.api.workspace.v1.checkpoint_service_pb2_grpc import CheckpointServiceServicer
from toolrunner.checkpoints.domain import Outcome, Step, Turn
from toolrunner.checkpoints.service import RestoreNotFound
from toolrunner.checkpoints.turn_files import TurnFile, TurnFileNotKept
from toolrunner.files.restores import FileRestores
from toolrunner.files.rpc.convert import text_to_proto
from toolrunner.filesystem.errors import FileRefused, Reason
from toolrunner.primitives.domain import Scope
from toolrunner.primitives.errors import InvalidRequest, ReadOnly
from toolrunner.processes.rpc.inputs import canonical_uuid, scope_of
from toolrunner.processes.service import Processes

PATHS_MAX: Final = 1000
#: Of a content that is read.
CONTENT_BYTES_MAX: Final = 1024 * 1024
PROCESSES_MAX: Final = 64
AGENTS_MAX: Final = 1000
_RESTORE_ID: Final = re.compile(r"[A-Za-z0-9-]{1,64}")

_OUTCOMES: Final = {
    Outcome.RESTORED: checkpoint_pb2.RESTORE_OUTCOME_RESTORED,
    Outcome.UNCHANGED: checkpoint_pb2.RESTORE_OUTCOME_UNCHANGED,
    Outcome.CONFLICT: checkpoint_pb2.RESTORE_OUTCOME_CONFLICT,
    Outcome.NOT_KEPT: checkpoint_pb2.RESTORE_OUTCOME_NOT_KEPT,
    Outcome.FAILED: checkpoint_pb2.RESTORE_OUTCOME_FAILED,
}
#: Those that a person has to look at come first.
_ORDER: Final = (Outcome.CONFLICT, Outcome.FAILED, Outcome.NOT_KEPT, Outcome.RESTORED)


class CheckpointServicer(CheckpointServiceServicer):
    """Serves the checkpoints of this node's workspaces."""

    def __init__(self, restores: FileRestores, processes: Processes) -> None:
        self._restores = restores
        self._processes = processes

    async def PreviewRestore(  # noqa: N802 (the name is the proto's)
        self, request: api.PreviewRestoreRequest, context: grpc.aio.ServicerContext
    ) -> api.PreviewRestoreResponse:
        """Tell what a restore would do."""
        scope = _scope_of(request)
        turn = _turn_of(scope, request.turn_id)
        try:
            preview = await self._restores.preview(scope, turn, _agents_of(request))
        except (OSError, sqlite3.Error) as error:
            raise _unreadable(error) from error
        report = report_of(preview.steps, self._running(scope))
        report.incomplete = preview.is_incomplete
        return api.PreviewRestoreResponse(report=report)

    async def RestoreFiles(  # noqa: N802 (the name is the proto's)
        self, request: api.RestoreFilesRequest, context: grpc.aio.ServicerContext
    ) -> api.RestoreFilesResponse:
        """Restore files, or undo that."""
        scope = _scope_of(request)
        if not scope.may_write:
            raise ReadOnly(".")
        if request.owner_epoch < 1:
            raise InvalidRequest("owner_epoch", "is less than 1")
        restore_id = _restore_id_of(request.request_id, "request_id")
        undoes = ""
        if request.WhichOneof("what") == "undo_restore_id":
            undoes = _restore_id_of(request.undo_restore_id, "undo_restore_id")
            turn = Turn(scope.chat_id, 0)
        else:
            turn = _turn_of(scope, request.turn_id)
        try:
            done = await self._restores.restore(
                scope, request.owner_epoch, restore_id, turn, undoes, _agents_of(request)
            )
        except RestoreNotFound as error:
            text = f"there is no restore {undoes!r} that could be undone; it is too old"
            raise FileRefused(Reason.CHECKPOINT_NOT_FOUND, text, checkpoint=undoes) from error
        except (OSError, sqlite3.Error) as error:
            raise _unreadable(error) from error
        return api.RestoreFilesResponse(report=report_of(done.steps, self._running(scope)))

    async def ListTurnFiles(  # noqa: N802 (the name is the proto's)
        self, request: api.ListTurnFilesRequest, context: grpc.aio.ServicerContext
    ) -> api.ListTurnFilesResponse:
        """List the files that a turn changed."""
        scope = _scope_of(request)
        turn = _turn_of(scope, request.turn_id)
        try:
            found = await self._restores.turn_files(scope, turn, PATHS_MAX)
        except (OSError, sqlite3.Error) as error:
            raise _unreadable(error) from error
        return api.ListTurnFilesResponse(
            files=map(_turn_file, found.files),
            omitted=found.omitted,
            incomplete=found.is_incomplete,
        )

    async def ReadTurnFile(  # noqa: N802 (the name is the proto's)
        self, request: api.ReadTurnFileRequest, context: grpc.aio.ServicerContext
    ) -> api.ReadTurnFileResponse:
        """Read a file that a turn changed."""
        scope = _scope_of(request)
        turn = _turn_of(scope, request.turn_id)
        try:
            content = await self._restores.turn_content(
                scope, turn, request.path, is_before=request.before
            )
        except TurnFileNotKept as error:
            text = "the turn did not change that file, or its content is not kept any more"
            raise FileRefused(Reason.CHECKPOINT_NOT_FOUND, text, path=request.path) from error
        except (OSError, sqlite3.Error) as error:
            raise _unreadable(error) from error
        is_binary = b"\0" in content
        shown = b"" if is_binary else content[:CONTENT_BYTES_MAX]
        return api.ReadTurnFileResponse(
            content=shown.decode(errors="replace"),
            size_bytes=len(content),
            binary=is_binary,
            truncated=not is_binary and len(content) > CONTENT_BYTES_MAX,
        )

    def _running(self, scope: Scope) -> list[str]:
        return self._processes.running_of_chat(scope.workspace_id, scope.chat_id)


def report_of(steps: Iterable[Step], running: list[str]) -> checkpoint_pb2.RestoreReport:
    """Return steps as a report."""
    changed = [step for step in steps if step.outcome is not Outcome.UNCHANGED]
    changed.sort(key=lambda step: (_ORDER.index(step.outcome), step.path))
    counts = Counter(step.outcome for step in changed)
    return checkpoint_pb2.RestoreReport(
        paths=[
            checkpoint_pb2.RestoredPath(
                path=text_to_proto(step.path),
                action=_action_of(step),
                outcome=_OUTCOMES[step.outcome],
            )
            for step in changed[:PATHS_MAX]
        ],
        omitted=max(0, len(changed) - PATHS_MAX),
        restored=counts[Outcome.RESTORED],
        conflicts=counts[Outcome.CONFLICT],
        lost=counts[Outcome.NOT_KEPT] + counts[Outcome.FAILED],
        running_process_ids=running[:PROCESSES_MAX],
    )


def _action_of(step: Step) -> "checkpoint_pb2.RestoreAction.ValueType":
    if step.target is None:
        return checkpoint_pb2.RESTORE_ACTION_DELETE
    if step.found is None:
        return checkpoint_pb2.RESTORE_ACTION_CREATE
    return checkpoint_pb2.RESTORE_ACTION_CHANGE


def _turn_file(file: TurnFile) -> checkpoint_pb2.TurnFile:
    change = file_pb2.FILE_CHANGE_KIND_MODIFIED
    if file.before is None or file.after is None:
        is_new = file.before is None
        change = file_pb2.FILE_CHANGE_KIND_CREATED if is_new else file_pb2.FILE_CHANGE_KIND_DELETED
    return checkpoint_pb2.TurnFile(
        path=text_to_proto(file.path),
        change=change,
        patch=text_to_proto(file.patch),
        added_lines=file.added_lines,
        deleted_lines=file.deleted_lines,
        readable=file.is_readable,
        shared=file.is_shared,
    )


def _scope_of(
    request: api.PreviewRestoreRequest
    | api.RestoreFilesRequest
    | api.ListTurnFilesRequest
    | api.ReadTurnFileRequest,
) -> Scope:
    scope = scope_of(request.context)
    if not scope.chat_id:
        raise InvalidRequest("context.chat_id", "is empty; only chats have turns")
    return scope


def _turn_of(scope: Scope, turn_id: int) -> Turn:
    if turn_id < 1:
        raise InvalidRequest("turn_id", "is less than 1")
    return Turn(scope.chat_id, turn_id)


def _agents_of(
    request: api.PreviewRestoreRequest | api.RestoreFilesRequest,
) -> frozenset[str]:
    if len(request.agent_chat_ids) > AGENTS_MAX:
        raise InvalidRequest("agent_chat_ids", f"has over {AGENTS_MAX}")
    return frozenset(canonical_uuid(each, "agent_chat_ids") for each in request.agent_chat_ids)


def _restore_id_of(text: str, field: str) -> str:
    if not _RESTORE_ID.fullmatch(text):
        raise InvalidRequest(field, "needs 1 to 64 characters of A-Za-z0-9-")
    return text


def _unreadable(error: Exception) -> FileRefused:
    # The text of an OSError has the path on the node.
    cause = error.strerror if isinstance(error, OSError) else error
    text = f"the checkpoints of the workspace cannot be used now: {cause}"
    return FileRefused(Reason.NODE_FULL, text, resource="disk")
