"""Restore of the files of a turn through the file worker, with the rights of the workspace."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from parley.rpc import detached
from parley.tasks import Shielding
from toolrunner.checkpoints.domain import Entry, Outcome, Step, Turn
from toolrunner.checkpoints.service import Checkpoints, Preview
from toolrunner.checkpoints.store import Restore
from toolrunner.checkpoints.turn_files import TurnFiles
from toolrunner.checkpoints.turn_reading import TurnReader
from toolrunner.directories.workspaces import Workspaces
from toolrunner.files.changes import FileChanges
from toolrunner.files.worker_pool import FileWorkerPool
from toolrunner.fileworker.protocol import EntriesRestored, EntryToRestore, RestoreEntries
from toolrunner.journal.thread import JournalThread
from toolrunner.primitives.domain import Scope

BATCH_ENTRIES: Final = 500
BATCH_BYTES: Final = 16 * 1024 * 1024
#: A step of a batch is a write with a sync.
BATCH_S: Final = 300.0


@dataclass(frozen=True, slots=True)
class FileRestores:
    """Restores files to the start of a turn, and back."""

    checkpoints: Checkpoints
    file_workers: FileWorkerPool
    changes: FileChanges
    workspaces: Workspaces
    tasks: Shielding
    journal: JournalThread

    async def preview(self, scope: Scope, turn: Turn, agents: frozenset[str]) -> Preview:
        """Return what a restore would do.

        Raises:
            FileWorkerGone: The file worker exited; retry.
            ToolrunnerError: The workspace may not be used.
        """
        self.workspaces.check(scope)
        async with self.changes.alone(scope.workspace_id):
            return await self.checkpoints.preview(scope, turn, agents)

    async def turn_files(self, scope: Scope, turn: Turn, files_max: int) -> TurnFiles:
        """Return the files that a turn changed, with their differences.

        Raises:
            ToolrunnerError: The workspace may not be used.
        """
        self.workspaces.check(scope)
        return await TurnReader(self.checkpoints).files(scope.workspace_id, turn, files_max)

    async def turn_content(self, scope: Scope, turn: Turn, path: str, *, is_before: bool) -> bytes:
        """Return the content of a file at the end of a turn, or at its start.

        Raises:
            TurnFileNotKept: The turn did not change it, or its content is not kept.
            ToolrunnerError: The workspace may not be used.
        """
        self.workspaces.check(scope)
        reader = TurnReader(self.checkpoints)
        return await reader.content(scope.workspace_id, turn, path, is_before=is_before)

    async def restore(
        self,
        scope: Scope,
        owner_epoch: int,
        restore_id: str,
        turn: Turn,
        undoes: str,
        agents: frozenset[str],
    ) -> Restore:
        """Restore files, also if the caller is cancelled; repeated, return what was done.

        Raises:
            StaleOwner: A newer owner of the chat has called.
            RestoreNotFound: There is none to undo.
            FileWorkerGone: The file worker exited; retry.
            ToolrunnerError: The workspace may not be used.
        """
        self.workspaces.check(scope)
        return await self.tasks.complete(
            self._restore(scope, owner_epoch, restore_id, turn, undoes, agents),
            context=detached(),
        )

    async def _restore(
        self,
        scope: Scope,
        owner_epoch: int,
        restore_id: str,
        turn: Turn,
        undoes: str,
        agents: frozenset[str],
    ) -> Restore:
        async with self.changes.alone(scope.workspace_id):
            # Only now: meanwhile a newer owner may have restored, and have changed files since.
            await self.journal.run(lambda journal: journal.admit(scope.chat_id, owner_epoch))
            restore = await self.checkpoints.plan(scope, restore_id, turn, undoes, agents)
            if restore.is_done:
                return restore
            steps = await self._carry_out(scope, restore)
            await self.checkpoints.finish(scope.workspace_id, restore, steps, agents)
            return replace(restore, is_done=True, steps=steps)

    async def _carry_out(self, scope: Scope, restore: Restore) -> tuple[Step, ...]:
        outcomes = {step.path: step.outcome for step in restore.steps}
        open_steps = [step for step in restore.steps if step.outcome is Outcome.RESTORED]
        removed = [step for step in open_steps if _kind(step.found) not in ("", _kind(step.target))]
        sizes = await self.checkpoints.sizes(scope.workspace_id, open_steps)
        for batch in _batches(sorted(removed, key=lambda step: step.path, reverse=True), {}):
            outcomes.update(await self._send(scope, restore, batch, is_removing=True))
        for batch in _batches(open_steps, sizes):
            written = [
                step
                for step in batch
                if step.target is not None and outcomes[step.path] is Outcome.RESTORED
            ]
            outcomes.update(await self._send(scope, restore, written, is_removing=False))
        return tuple(replace(step, outcome=outcomes[step.path]) for step in restore.steps)

    async def _send(
        self, scope: Scope, restore: Restore, steps: Sequence[Step], *, is_removing: bool
    ) -> dict[str, Outcome]:
        if not steps:
            return {}
        contents = {} if is_removing else await self.checkpoints.contents(scope.workspace_id, steps)
        lost = {
            step.path: Outcome.NOT_KEPT
            for step in steps
            if step.target is not None and contents.get(step.target.etag, b"") is None
        }
        sent = [step for step in steps if step.path not in lost]
        request = RestoreEntries(
            restore.restore_id,
            tuple(_entry_of(step, contents) for step in sent),
            is_removing,
        )
        answer = await self.file_workers.ask(scope.workspace_id, request, limit_s=BATCH_S)
        assert isinstance(answer, EntriesRestored), "that is what it is answered by"
        pairs = zip(sent, answer.outcomes, strict=True)
        return {**lost, **{step.path: Outcome(outcome) for step, outcome in pairs}}


def _entry_of(step: Step, contents: dict[str, bytes | None]) -> EntryToRestore:
    found, target = step.found, step.target
    return EntryToRestore(
        path=os.fsencode(step.path),
        found_kind=_kind(found),
        found_etag="" if found is None else found.etag,
        kind=_kind(target),
        etag="" if target is None else target.etag,
        mode=-1 if target is None else target.mode,
        content=(None if target is None else contents.get(target.etag)) or b"",
    )


def _kind(entry: Entry | None) -> str:
    return "" if entry is None else entry.kind


def _batches(steps: Sequence[Step], sizes: dict[str, int]) -> Iterator[list[Step]]:
    """Split steps by number, and by the size of their contents."""
    batch: list[Step] = []
    size = 0
    for step in steps:
        size += 0 if step.target is None else sizes.get(step.target.etag, 0)
        if batch and (len(batch) >= BATCH_ENTRIES or size > BATCH_BYTES):
            yield batch
            batch, size = [], 0 if step.target is None else sizes.get(step.target.etag, 0)
        batch.append(step)
    if batch:
        yield batch
