"""Memory in buffers of sockets and pipes counts as the workspace's, without control groups."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.host.ordinary_user import as_ordinary_user, needs_root
from support.toolrunner.buffering_node import buffered
from support.toolrunner.sandboxes import offered, requires, tell
from toolrunner.sandbox import Level

#: At level `landlock` no socket over IP can be made in a closed network.
ATTACKS = [
    (level, kind)
    for level in offered()
    for kind in ("sockets", "left", "streams", "pipes")
    if level is Level.NS or kind != "streams"
]
AS_ORDINARY_USER = """
from support.toolrunner.buffering_node import buffered
print(json.dumps(asyncio.run(buffered(directory, arguments[0], arguments[1]))))
"""
KEPT = ("memory_bytes", "fine\n")


@pytest.fixture
def directory() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="parley-buffers-"))
    path.chmod(0o711)
    yield path
    shutil.rmtree(path)


@pytest.mark.parametrize(("level", "kind"), ATTACKS)
async def test_what_lies_in_buffers_of_the_kernel_counts_as_memory_of_the_workspace(
    directory: Path, level: Level, kind: str
) -> None:
    told = await buffered(directory, level.word, kind)
    tell(f"hidden memory, {kind}", level, int(told != KEPT), 1)
    assert told == KEPT


@needs_root
@requires(Level.NS)
@pytest.mark.parametrize("kind", ["sockets", "left", "streams", "pipes"])
def test_the_same_where_the_service_is_an_ordinary_user(kind: str) -> None:
    told = tuple(as_ordinary_user(AS_ORDINARY_USER, "ns", kind))
    tell(f"hidden memory as nobody, {kind}", Level.NS, int(told != KEPT), 1)
    assert told == KEPT
