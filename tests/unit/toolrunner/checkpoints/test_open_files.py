"""How many files of checkpoints stay open."""

import asyncio
import os
from pathlib import Path

from parley.clock import FakeClock
from support.host.conditions import until
from support.host.supervised import supervision
from toolrunner.checkpoints.domain import Turn
from toolrunner.checkpoints.service import Checkpoints
from toolrunner.checkpoints.store import FILE
from toolrunner.directories.workspaces import Workspaces
from toolrunner.primitives.domain import ChatId, Scope, WorkspaceId

SCOPES = [Scope(WorkspaceId(f"w{number}"), ChatId("c"), turn_id=1) for number in range(5)]


def open_files(under: Path) -> set[str]:
    """Return the workspaces whose files this process has open."""
    targets = []
    for each in os.listdir("/proc/self/fd"):
        try:
            targets.append(Path(os.readlink(f"/proc/self/fd/{each}")))
        except FileNotFoundError:
            continue  # The listing itself, or one that was closed meanwhile.
    return {each.parent.name for each in targets if each.name == FILE and under in each.parents}


async def test_files_that_were_not_used_for_longest_are_closed_and_open_again(
    tmp_path: Path,
) -> None:
    clock, workspaces = FakeClock(), Workspaces(tmp_path)
    async with (
        asyncio.timeout(20),
        Checkpoints(workspaces, clock, supervision(clock), open_max=2) as checkpoints,
    ):
        for scope in SCOPES:
            root = workspaces.prepared(scope.workspace_id).root
            await checkpoints.before_process(scope)
            (root / "a").write_text("made by a process")
            await checkpoints.settle(scope.workspace_id)

        await asyncio.to_thread(
            until, lambda: open_files(tmp_path) == {"w3", "w4"}, "closed files", within_s=15
        )
        for scope in SCOPES:
            preview = await checkpoints.preview(scope, Turn(scope.chat_id, 1))
            assert [step.path for step in preview.steps] == ["a"]
