"""Copies of trees, which may take minutes, do not share threads with other work."""

import asyncio
from pathlib import Path

from support.chatd.streams.held_hubs import settle
from support.host.busy_threads import busy_threads
from toolrunner.primitives.domain import Quota
from toolrunner.workspaces.sources.copy_places import CopyPlaces
from toolrunner.workspaces.sources.tree_copies import TreeCopies

WITHIN_S = 20.0


async def test_a_copy_is_made_while_other_work_holds_all_threads(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "a").write_text("b")
    async with asyncio.TaskGroup() as tasks:
        copy = TreeCopies().copy(tmp_path / "tree", tmp_path / "copy", None, Quota(), user_id="ann")
        copying = tasks.create_task(copy)
        with busy_threads():
            done, _ = await asyncio.wait((copying,), timeout=WITHIN_S)
    assert done == {copying}
    assert (copying.result().files, (tmp_path / "copy" / "a").read_text()) == (1, "b")


async def test_copies_of_one_user_leave_places_to_others() -> None:
    places, held = CopyPlaces(), list[str]()
    ends = {name: asyncio.Event() for name in ("a1", "a2", "a3", "a4", "a5", "b1", "b2", "c1")}

    async def copy(name: str) -> None:
        async with places.held(name[0]):
            held.append(name)
            await ends[name].wait()

    async with asyncio.timeout(WITHIN_S), asyncio.TaskGroup() as tasks:
        for name in ends:
            tasks.create_task(copy(name))
        await settle()
        assert held == ["a1", "a2", "b1", "b2"]
        ends["a1"].set()
        await settle()
        # Those of others that wait for a place come before the next one of the same user.
        assert held[4:] == ["c1"]
        for end in ends.values():
            end.set()
    assert sorted(held) == sorted(ends)
