"""Level `uid`: only a user of its own parts a workspace from the rest; what that keeps is kept."""

import json
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.toolrunner import attacks
from support.toolrunner.jail import Jail
from support.toolrunner.sandboxes import judged, requires
from support.toolrunner.victims import SECRET, Service, service
from support.toolrunner.worker_users import WORKER_USERS
from toolrunner.primitives.errors import SandboxTooWeak
from toolrunner.sandbox import Layer, Level, Network, Profile

pytestmark = requires(Level.UID)


@pytest.fixture
def directory() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="parley-jail-"))
    path.chmod(0o711)
    yield path
    shutil.rmtree(path)


@pytest.fixture
async def jail(directory: Path) -> AsyncIterator[Jail]:
    async with Jail.opened(directory, Level.UID) as opened:
        yield opened


@pytest.fixture
async def victim(directory: Path) -> AsyncIterator[Service]:
    async with service(directory) as opened:
        yield opened


async def test_a_workspace_belongs_to_its_own_user_and_runs_as_it(jail: Jail) -> None:
    ran = await jail.shell("id -u; id -G; echo made > made")
    root = jail.workspace().root
    user = WORKER_USERS.first
    assert ran.text == f"{user}\n{user}\n"
    assert {root.stat().st_uid, (root / "made").stat().st_uid} == {user}
    assert root.stat().st_mode & 0o777 == 0o700
    assert {Layer.UID, Layer.NO_NEW_PRIVILEGES, Layer.SECCOMP} <= set(ran.layers)


async def test_e10_nothing_of_others_or_of_the_service_is_read_or_written(
    jail: Jail, victim: Service
) -> None:
    other = jail.put("secret", SECRET, workspace="w2", mode=0o666)
    private = jail.directory / "private"
    private.write_text(SECRET)
    private.chmod(0o600)
    closed = jail.directory / "closed"
    closed.mkdir(mode=0o700)
    targets = {
        "read": [
            str(other),
            str(other.parent.parent / "home"),
            str(private),
            str(closed),
            str(jail.directory),
            str(jail.workspace().undo),
            "/root",
            "/etc/shadow",
            "/dev/mem",
            "/proc/kcore",
            "/proc/1/environ",
            "/proc/1/mem",
            f"/proc/{victim.pid}/environ",
            f"/proc/{victim.pid}/mem",
            f"/proc/{jail.spawner_pid}/environ",
            f"/proc/{jail.spawner_pid}/fd",
        ],
        "write": [
            str(other),
            str(private),
            "/etc/passwd",
            "/usr/bin/hacked",
            "/proc/sys/kernel/core_pattern",
            str(jail.workspace().logs / "hacked"),
            str(jail.workspace().undo / "hacked"),
        ],
        "make": [str(other.parent), str(jail.directory), "/usr", "/", "/etc"],
    }
    ran = await jail.python(attacks.READING, json.dumps(targets))
    assert judged("E10", jail.level, ran.text) == {}
    assert other.read_text() == private.read_text() == SECRET


async def test_e18_and_e19_no_dangerous_call_is_made_and_no_process_meddled_with(
    jail: Jail, victim: Service
) -> None:
    _, pid = await jail.begin("sleep", "60", workspace="w2")
    targets = json.dumps({"victim": [victim.pid, os.getpid(), jail.spawner_pid, pid]})
    ran = await jail.python(attacks.CALLING, targets)
    told = json.loads(ran.text)
    # The list of processes is the host's, and everybody sees it; no secret is in a command line.
    meant = {name: each for name, each in told.items() if not name.endswith("cmdline")}
    assert judged("E18, E19", jail.level, json.dumps(meant)) == {}
    await jail.stop("w2")


async def test_what_this_level_cannot_keep_is_refused_and_not_promised(jail: Jail) -> None:
    paths = jail.workspace()
    refused: tuple[dict[str, Any], ...] = (
        {"profile": Profile.READ_ONLY, "network": None},
        {"profile": Profile.FULL, "network": Network.NONE},
        {"profile": Profile.FULL, "network": Network.PROXY},
    )
    for asked in refused:
        with pytest.raises(SandboxTooWeak):
            jail.sandbox.confined(paths, **asked)


async def test_a_directory_of_the_service_is_not_worked_in(jail: Jail) -> None:
    os.chown(jail.workspace().root, 0, 0)
    paths = jail.workspaces.at(jail.launch("true").workspace_id)
    os.chown(paths.root, 0, 0)
    with pytest.raises(SandboxTooWeak):
        jail.sandbox.confined(paths, profile=Profile.FULL, network=None)
