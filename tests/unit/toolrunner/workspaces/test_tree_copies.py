"""Copies of trees, which may take minutes, do not share threads with other work."""

import asyncio
from pathlib import Path

from support.host.busy_threads import busy_threads
from toolrunner.primitives.domain import Quota
from toolrunner.workspaces.sources.tree_copies import TreeCopies

WITHIN_S = 20.0


async def test_a_copy_is_made_while_other_work_holds_all_threads(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "a").write_text("b")
    async with asyncio.TaskGroup() as tasks:
        copy = TreeCopies().copy(tmp_path / "tree", tmp_path / "copy", None, Quota())
        copying = tasks.create_task(copy)
        with busy_threads():
            done, _ = await asyncio.wait((copying,), timeout=WITHIN_S)
    assert done == {copying}
    assert (copying.result().files, (tmp_path / "copy" / "a").read_text()) == (1, "b")
