"""What the kernel counts for a user: a workspace that takes all it gets leaves others theirs."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.host.ordinary_user import as_ordinary_user, needs_root
from support.toolrunner.attacks.staging import WANTED, exhausted
from support.toolrunner.jail import Jail
from support.toolrunner.sandboxes import requires, tell
from toolrunner.sandbox import Level

AS_ORDINARY_USER = """
from support.toolrunner.attacks.staging import exhausted
async def main():
    async with Jail.opened(directory, Level.NS) as jail:
        print(json.dumps(await exhausted(jail)))
asyncio.run(main())
"""
SHARED_MIB = 64
ALL = dict.fromkeys(("watch", "queue_signal", "share_memory", "open_terminal"), WANTED)

pytestmark = requires(Level.NS)


@pytest.fixture
def directory() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="parley-jail-"))
    path.chmod(0o711)
    yield path
    shutil.rmtree(path)


def check(told: dict[str, dict[str, int]], who: str) -> None:
    attacker = told.pop("attacker")
    print(f"taken {who}: {attacker}")
    lacking = [
        (name, kind) for name, got in told.items() for kind in ALL if got.get(kind) != WANTED
    ]
    tell(f"counts of a user, {who}", Level.NS, len(lacking), len(told) * len(ALL))
    assert told == {"neighbour": ALL, "service": ALL}
    # It got some: the limits are those of workspaces, and not of nothing.
    assert attacker["share_memory"] <= SHARED_MIB
    assert all(count >= WANTED for count in attacker.values()), attacker


async def test_a_workspace_leaves_others_their_watches_signals_and_terminals(
    directory: Path,
) -> None:
    async with Jail.opened(directory, Level.NS) as jail:
        check(await exhausted(jail), "with a user")


@needs_root
def test_the_same_where_all_workspaces_share_an_ordinary_user() -> None:
    check(as_ordinary_user(AS_ORDINARY_USER), "as nobody")
