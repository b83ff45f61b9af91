"""A request that the spawner cannot handle ends neither it nor what it started."""

import asyncio
from pathlib import Path

from toolrunner.primitives.domain import UNLIMITED, ProcessId, WorkspaceId
from toolrunner.spawner.client.spawner import Launch
from toolrunner.spawner.client.startup import running_spawner

NO_SIGNAL_OF_LINUX = 9999
WITHIN_S = 20.0


def launch(directory: Path, name: str, *argv: str) -> Launch:
    return Launch(
        process_id=ProcessId(name),
        workspace_id=WorkspaceId("w"),
        argv=argv,
        root=directory,
        workdir="",
        environment={"PATH": "/usr/bin:/bin"},
        has_input=False,
        terminal=None,
        confinement=None,
        limits=UNLIMITED,
    )


async def test_a_request_that_fails_unexpectedly_is_answered_and_nothing_ends(
    tmp_path: Path,
) -> None:
    exits: asyncio.Queue[str] = asyncio.Queue()
    async with asyncio.timeout(WITHIN_S), running_spawner(tmp_path, adoption_s=0) as spawner:
        before = launch(tmp_path, "before", "sleep", "60")
        started = await spawner.process.start(before, lambda name, _: exits.put_nowait(name))
        count = await spawner.process.signal(
            before.process_id, NO_SIGNAL_OF_LINUX, leader_only=False
        )
        assert count == 0
        after = launch(tmp_path, "after", "true")
        other = await spawner.process.start(after, lambda name, _: exits.put_nowait(name))
        assert await exits.get() == "after"
        assert not spawner.process.gone.done()
        for launched in (started, other):
            launched.close()
