"""Turns that change files of a workspace, and their restore, for tests against a real node."""

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from parley.api.workspace.v1 import checkpoint_pb2, process_service_pb2, workspace_pb2
from parley.api.workspace.v1 import checkpoint_service_pb2 as api
from support.toolrunner.files import Files
from support.toolrunner.node import Client

RESTORE_S = 60
_SHOWN = {value: name for name, value in checkpoint_pb2.RestoreOutcome.items()}
_ACTIONS = {value: name for name, value in checkpoint_pb2.RestoreAction.items()}


def tree_of(root: Path) -> dict[str, tuple[int, bytes]]:
    """Return everything below a root: the mode, and the content or the target."""
    found: dict[str, tuple[int, bytes]] = {}
    for directory, names, files in os.walk(root):
        for name in (*names, *files):
            path = Path(directory) / name
            mode = path.lstat().st_mode
            content = b""
            if stat.S_ISLNK(mode):
                content = os.fsencode(os.readlink(path))
            elif stat.S_ISREG(mode):
                content = path.read_bytes()
            found[str(path.relative_to(root))] = (mode, content)
    return found


@dataclass
class ChatTurns:
    """One chat that works in a workspace, turn by turn."""

    client: Client
    files: Files

    def at(self, turn_id: int) -> None:
        """Do what follows in a turn; 0 for what a person does."""
        context = workspace_pb2.WorkspaceContext()
        context.CopyFrom(self.client.context)
        context.turn_id = turn_id
        context.chat_id = self.client.chat_id if turn_id else ""
        self.client.context = context

    async def put(self, path: str, content: bytes) -> None:
        """Write a file as a person."""
        self.at(0)
        await self.files.write(path, content)

    async def run(self, command: str) -> process_service_pb2.WaitOutputResponse:
        ended = await self.client.run(command)
        assert ended.process.exit.exit_code == 0, ended
        return ended

    @property
    def _context(self) -> workspace_pb2.WorkspaceContext:
        context = workspace_pb2.WorkspaceContext()
        context.CopyFrom(self.client.context)
        context.chat_id = self.client.chat_id
        return context

    async def preview(self, turn_id: int) -> checkpoint_pb2.RestoreReport:
        request = api.PreviewRestoreRequest(context=self._context, turn_id=turn_id)
        answer = await self.client.checkpoints.PreviewRestore(request, timeout=RESTORE_S)
        return answer.report

    async def changed(self, turn_id: int) -> api.ListTurnFilesResponse:
        request = api.ListTurnFilesRequest(context=self._context, turn_id=turn_id)
        answer: api.ListTurnFilesResponse = await self.client.checkpoints.ListTurnFiles(
            request, timeout=RESTORE_S
        )
        return answer

    async def read(
        self, turn_id: int, path: str, *, before: bool = False
    ) -> api.ReadTurnFileResponse:
        request = api.ReadTurnFileRequest(
            context=self._context, turn_id=turn_id, path=path, before=before
        )
        answer: api.ReadTurnFileResponse = await self.client.checkpoints.ReadTurnFile(
            request, timeout=RESTORE_S
        )
        return answer

    async def restore(
        self, restore_id: str, turn_id: int, *, owner_epoch: int = 1
    ) -> checkpoint_pb2.RestoreReport:
        request = api.RestoreFilesRequest(
            context=self._context, request_id=restore_id, turn_id=turn_id, owner_epoch=owner_epoch
        )
        answer = await self.client.checkpoints.RestoreFiles(request, timeout=RESTORE_S)
        return answer.report

    async def undo(self, restore_id: str, undone: str) -> checkpoint_pb2.RestoreReport:
        request = api.RestoreFilesRequest(
            context=self._context, request_id=restore_id, undo_restore_id=undone, owner_epoch=1
        )
        answer = await self.client.checkpoints.RestoreFiles(request, timeout=RESTORE_S)
        return answer.report


def outcomes(report: checkpoint_pb2.RestoreReport) -> dict[str, str]:
    """Return what becomes of each path of a report."""
    return {
        each.path: _SHOWN[each.outcome].removeprefix("RESTORE_OUTCOME_").lower()
        for each in report.paths
    }


def actions(report: checkpoint_pb2.RestoreReport) -> dict[str, str]:
    """Return what is done to each path of a report."""
    return {
        each.path: _ACTIONS[each.action].removeprefix("RESTORE_ACTION_").lower()
        for each in report.paths
    }
