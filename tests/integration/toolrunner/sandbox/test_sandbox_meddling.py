"""Processes of a workspace that stop, kill and hinder whatever they see: no others suffer."""

import os
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from support.host.ordinary_user import as_ordinary_user, needs_root
from support.toolrunner.attacks.staging import meddled
from support.toolrunner.jail import Jail
from support.toolrunner.sandboxes import all_offered, offered, tell
from toolrunner.sandbox import Level

#: 0 stands for limits, priorities, processors and tracing instead of a signal.
NUMBERS = [signal.SIGSTOP, signal.SIGTTOU, signal.SIGKILL, 0]
AS_ORDINARY_USER = """
from support.toolrunner.attacks.staging import meddled
async def main():
    async with Jail.opened(directory, Level[arguments[0]], minimum=Level.NONE) as jail:
        print(json.dumps(await meddled(jail, int(arguments[1]))))
asyncio.run(main())
"""


@pytest.fixture
def directory() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="parley-jail-"))
    path.chmod(0o711)
    yield path
    shutil.rmtree(path)


@pytest.fixture(params=all_offered(), ids=lambda level: level.word)
async def jail(request: pytest.FixtureRequest, directory: Path) -> AsyncIterator[Jail]:
    async with Jail.opened(directory, request.param) as opened:
        yield opened


def check(told: dict[str, object], who: str, level: Level) -> None:
    starts = told.pop("starts")
    is_hindered = told != {"neighbour": "fine\n", "after": "fine\n"}
    tell(f"meddling {who}", level, int(is_hindered), 1)
    assert told == {"neighbour": "fine\n", "after": "fine\n"}
    # A workspace can keep its own starts from becoming what they should, but each is answered.
    assert starts


@pytest.mark.parametrize("number", NUMBERS)
async def test_others_are_not_reached_by_what_stops_and_hinders_all_it_sees(
    jail: Jail, number: int
) -> None:
    check(await meddled(jail, number), "with a user", jail.level)


@needs_root
@pytest.mark.parametrize("number", NUMBERS)
async def test_the_same_in_a_directory_of_the_service_itself(directory: Path, number: int) -> None:
    async with Jail.opened(directory, Level.NS) as jail:
        paths = jail.workspace()
        for path in (paths.root, paths.home, paths.temporary):
            os.chown(path, 0, 0)
        check(await meddled(jail, number), "as root", jail.level)


@needs_root
@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("level", offered(), ids=lambda level: level.word)
def test_the_same_where_the_service_is_an_ordinary_user(level: Level, number: int) -> None:
    check(as_ordinary_user(AS_ORDINARY_USER, level.name, str(number)), "as nobody", level)
