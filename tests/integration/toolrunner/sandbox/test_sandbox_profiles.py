"""Two commands of one workspace, of which one may write and the other may only read."""

import json
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from support.toolrunner import attacks
from support.toolrunner.jail import Jail
from support.toolrunner.sandboxes import judged, offered
from toolrunner.sandbox import Layer, Level, Profile

NO_LANDLOCK = (Layer.LANDLOCK_FILES, Layer.LANDLOCK_NETWORK)
#: Level `ns` needs no Landlock, and an older kernel has none.
KINDS = (
    *((level, ()) for level in offered()),
    *([(Level.NS, NO_LANDLOCK)] * (Level.NS in offered())),
)


@pytest.fixture
def directory() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="parley-jail-"))
    path.chmod(0o711)
    yield path
    shutil.rmtree(path)


@pytest.fixture(params=KINDS, ids=lambda kind: kind[0].word + "-without-landlock" * bool(kind[1]))
async def jail(request: pytest.FixtureRequest, directory: Path) -> AsyncIterator[Jail]:
    level, without = request.param
    async with Jail.opened(directory, level, without) as opened:
        yield opened


async def test_who_may_only_read_writes_nothing_by_way_of_who_may_write(jail: Jail) -> None:
    kept = jail.put("kept", "before")
    _, pid = await jail.begin("bash", "-c", "exec 9>>kept; echo > up; exec sleep 600")
    await jail.shell("until [ -s up ]; do sleep 0.01; done")
    root = json.dumps({"root": str(jail.workspace().root)})
    ran = await jail.python(attacks.BORROWING, root, str(pid), profile=Profile.READ_ONLY)
    has_landlock = Layer.LANDLOCK_FILES in jail.sandbox.report.layers
    row = "read-only beside a writer" + ("" if has_landlock else ", without Landlock")
    assert judged(row, jail.level, ran.text) == {}
    assert (kept.read_text(), kept.stat().st_mode & 0o777) == ("before", 0o644)
    assert {each.name for each in jail.workspace().root.iterdir()} == {"kept", "up"}
    await jail.stop()
