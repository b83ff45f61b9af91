"""P27: what a workspace feels of another that takes all it can get, on a real node."""

import asyncio
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from support.hosted_workspaces import Placer
from support.misbehaving import BOMBS, Felt, Latency, latency
from support.row_sizes import RowSizes
from support.sandboxes import offered
from support.toolrunner_node import House, connected, toolrunner
from toolrunner.sandbox import Level

MIB = 1024**2
STOP_S = 5.0
RATIO_MAX = 2.0
#: With few rounds the slowest one would decide; then those in the middle count.
SLACK_MS = 50.0


@pytest.fixture(params=offered(), ids=lambda level: level.word)
def house(request: pytest.FixtureRequest) -> Iterator[House]:
    level: Level = request.param
    directory = Path(tempfile.mkdtemp(prefix="parley-n-"))
    directory.chmod(0o711)
    house = replace(House.build(directory), sandbox_level=level.word)
    house.settings["TOOLRUNNER_WORKSPACE_MEMORY_BYTES"] = str(512 * MIB)
    house.settings["TOOLRUNNER_WORKSPACE_DISK_BYTES"] = str(256 * MIB)
    house.settings["TOOLRUNNER_WORKSPACE_INODES"] = "20000"
    house.settings["TOOLRUNNER_PROCESS_PIDS"] = "100"
    yield house
    shutil.rmtree(directory)


@pytest.mark.slow
async def test_p27_neighbours_are_hardly_slowed_down_and_the_offender_is_ended_at_once(
    house: House, sizes: RowSizes, record_property: Callable[[str, object], None]
) -> None:
    """Rows E1 to E5: the same command in one workspace, while each of these runs in another."""
    loop = asyncio.get_running_loop()
    async with toolrunner(house), connected(house) as client:
        placer = Placer(client, house.data)
        quiet = await placer.ready()

        async def work() -> None:
            placer.enter(quiet)
            ran = await client.run("echo fine")
            assert ran.output.text == "fine\n"

        await latency(work, 5)
        felt: dict[str, Felt] = {}
        for name, command in BOMBS.items():
            before = await latency(work, sizes.neighbour_rounds)
            loud = await placer.ready()
            placer.enter(loud)
            await client.start(command)
            during = await latency(work, sizes.neighbour_rounds)
            begun_s = loop.time()
            await placer.stop(loud, grace_ms=0)
            stopped_s = loop.time() - begun_s
            await placer.remove(loud)
            after = await latency(work, sizes.neighbour_rounds)
            felt[name] = Felt(Latency(before.times_ms + after.times_ms), during)
            told = (
                f"P27 at {house.sandbox_level}, {name}: p99 of a neighbour {felt[name].p99_ratio} "
                f"times, ended in {stopped_s * 1000:.0f} ms"
            )
            print(told)
            record_property("node", told)
            assert stopped_s < STOP_S, told
    slow = {name: each.figures() for name, each in felt.items() if is_slow(each, sizes)}
    assert slow == {}


def is_slow(felt: Felt, sizes: RowSizes) -> bool:
    if sizes.is_full:
        return felt.p99_ratio > RATIO_MAX
    return felt.during.p50_ms > RATIO_MAX * felt.calm.p50_ms + SLACK_MS
