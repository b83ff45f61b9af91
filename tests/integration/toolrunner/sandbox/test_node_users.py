"""The users of workspaces where several nodes run on one machine, and where their range changes."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from parley.cli.stack.node_users import FIRST_USER, USERS_MAX, users_of_node
from support.toolrunner.hosted_workspaces import Placer
from support.toolrunner.node import House, connected, toolrunner
from support.toolrunner.sandboxes import offered
from support.toolrunner.worker_users import WORKER_USERS

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not offered(), reason="only root gives workspaces a user of their own"
)

GIVEN = {FIRST_USER: str(WORKER_USERS.first), USERS_MAX: str(WORKER_USERS.count)}


@pytest.fixture
def directory() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="parley-users-"))
    path.chmod(0o711)
    yield path
    shutil.rmtree(path)


def house_in(directory: Path, users: dict[str, str]) -> House:
    directory.mkdir(mode=0o711)
    house = replace(House.build(directory), sandbox_level=offered()[0].word)
    house.settings.update(users)
    return house


async def owners_of(house: House, count: int) -> list[int]:
    """Return the users of new workspaces of a node."""
    async with connected(house) as client:
        placer = Placer(client, house.data)
        found = []
        for _ in range(count):
            placer.enter(await placer.ready())
            ran = await client.run("id -u")
            found.append(int(ran.output.text))
        return found


async def test_workspaces_of_two_nodes_never_have_the_same_user(directory: Path) -> None:
    houses = [
        house_in(directory / str(number), users_of_node(GIVEN, number, 2)) for number in range(2)
    ]
    async with AsyncExitStack() as stack:
        for house in houses:
            await stack.enter_async_context(toolrunner(house))
        users = [await owners_of(house, 3) for house in houses]
    checks = [os.stat(house.data / "command-check").st_uid for house in houses]
    first, second = (int(each.settings[FIRST_USER]) for each in houses)
    assert users == [[first, first + 1, first + 2], [second, second + 1, second + 2]]
    assert checks == [first - 2, second - 2]


async def test_a_workspace_keeps_its_user_when_the_range_of_its_node_changes(
    directory: Path,
) -> None:
    before, after = (users_of_node(GIVEN, number, 2) for number in range(2))
    house = house_in(directory / "node", before)
    async with toolrunner(house), connected(house) as client:
        placer = Placer(client, house.data)
        kept = await placer.ready()
    house.settings.update(after)
    async with toolrunner(house) as process, connected(house) as client:
        placer = Placer(client, house.data)
        placer.enter(kept)
        told = (await client.run("id -u; echo made > made; stat -c %u made")).output.text
        placer.enter(await placer.ready())
        told_of_new = (await client.run("id -u")).output.text
        process.terminate()
        _, log = await process.communicate()
    first = before[FIRST_USER]
    assert (told, told_of_new) == (f"{first}\n{first}\n", f"{after[FIRST_USER]}\n")
    assert f"workspaces get the users {after[FIRST_USER]} to".encode() in log
    assert b"workspaces keep a user outside of TOOLRUNNER_FIRST_USER" in log
