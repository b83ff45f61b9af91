"""P27: what a workspace feels of another that takes all it can get, on a real node."""

import asyncio
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from support.session.row_sizes import RowSizes
from support.toolrunner.hosted_workspaces import Placer
from support.toolrunner.misbehaving import BOMBS, Felt, Latency, latency
from support.toolrunner.node import House, connected, toolrunner
from support.toolrunner.sandboxes import offered
from toolrunner.sandbox import Level

MIB = 1024**2
STOP_S = 5.0
RATIO_MAX = 2.0

#: By control groups, where this machine has them, and where only users and looking are left.
KINDS = tuple((level, has_groups) for has_groups in (True, False) for level in offered())


@pytest.fixture(params=KINDS, ids=lambda kind: f"{kind[0].word}{'' if kind[1] else '-no-groups'}")
def house(request: pytest.FixtureRequest) -> Iterator[House]:
    level: Level
    level, has_groups = request.param
    directory = Path(tempfile.mkdtemp(prefix="parley-n-"))
    directory.chmod(0o711)
    house = replace(House.build(directory), sandbox_level=level.word)
    house.settings["TOOLRUNNER_WORKSPACE_MEMORY_BYTES"] = str(512 * MIB)
    house.settings["TOOLRUNNER_WORKSPACE_DISK_BYTES"] = str(256 * MIB)
    house.settings["TOOLRUNNER_WORKSPACE_INODES"] = "20000"
    house.settings["TOOLRUNNER_PROCESS_PIDS"] = "100"
    house.settings["TOOLRUNNER_CONTROL_GROUPS"] = str(has_groups).lower()
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
            assert ran.output.text == "fine\n", ran.process

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
                f"P27 at {kind_of(house)}, {name}: p99 of a neighbour {felt[name].p99_ratio} "
                f"times, ended in {stopped_s * 1000:.0f} ms"
            )
            print(told)
            record_property("node", told)
            assert not sizes.is_full or stopped_s < STOP_S, told
    slow = {name: each.figures() for name, each in felt.items() if is_slow(each, sizes)}
    assert slow == {}


@pytest.mark.slow
async def test_e3_all_processors_busy_for_long_are_hardly_felt(
    house: House, sizes: RowSizes, record_property: Callable[[str, object], None]
) -> None:
    loop = asyncio.get_running_loop()
    async with toolrunner(house), connected(house) as client:
        placer = Placer(client, house.data)
        quiet, loud = await placer.ready(), await placer.ready()

        async def work() -> None:
            placer.enter(quiet)
            ran = await client.run("echo fine")
            assert ran.output.text == "fine\n", ran.process

        await latency(work, 5)
        before = await latency(work, sizes.neighbour_rounds)
        placer.enter(loud)
        await client.start(BOMBS["cpu spin"])
        until_s = loop.time() + sizes.spin_s
        during = await latency(work, 5)
        while loop.time() < until_s:
            during = Latency(during.times_ms + (await latency(work, 5)).times_ms)
        await placer.stop(loud, grace_ms=0)
        after = await latency(work, sizes.neighbour_rounds)
    felt = Felt(Latency(before.times_ms + after.times_ms), during)
    told = f"E3 at {kind_of(house)}, {sizes.spin_s:g} s: {felt.figures()}"
    print(told)
    record_property("node", told)
    assert not is_slow(felt, sizes), told


def kind_of(house: House) -> str:
    has_groups = house.settings["TOOLRUNNER_CONTROL_GROUPS"] == "true"
    return house.sandbox_level + ("" if has_groups else " without control groups")


def is_slow(felt: Felt, sizes: RowSizes) -> bool:
    """Judge times only in a run of full size, alone on a machine: beside others they say little."""
    return sizes.is_full and felt.p99_ratio > RATIO_MAX
