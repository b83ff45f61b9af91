"""The commands of docs/backup.md, run as written: a backup of one stack becomes another one."""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from support.database.postgres import TestPostgres, postgres
from support.host.ports import free_port

__all__ = ["postgres"]

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[3]
BACKUP, RESTORE = re.findall(r"```sh\n(.*?)```", (ROOT / "docs/backup.md").read_text(), re.DOTALL)
NEW_DATABASE = "postgresql://postgres:secret@127.0.0.1:5432/parley_restored"


def shell(script: str, home: Path) -> str:
    environment = {"PATH": os.environ["PATH"], "HOME": str(home)}  # noqa: TID251 (for a child)
    done = subprocess.run(
        ["sh", "-eu", "-c", script],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def homes(tmp_path: Path) -> Iterator[tuple[Path, Path]]:
    """Give the directories of two users; what they start is stopped."""
    found = tmp_path / "a", tmp_path / "b"
    for home in found:
        home.mkdir()
    yield found
    for home in found:
        shell(".venv/bin/parley down", home)


async def test_the_documented_backup_is_restored_under_another_name(
    homes: tuple[Path, Path], postgres: TestPostgres
) -> None:
    first, second = homes
    shell(f".venv/bin/parley up --detach --chatd 1 --http 127.0.0.1:{free_port()}", first)
    shell('.venv/bin/parley run "hello before the backup"', first)
    listed = shell(".venv/bin/parley ls", first)
    shell(BACKUP, first)
    shell(".venv/bin/parley down", first)
    for name in ("parley.dump", "parley-home.tar.gz"):
        # They hold every chat and the keys.
        assert (first / name).stat().st_mode & 0o077 == 0
        (first / name).rename(second / name)

    assert NEW_DATABASE in RESTORE
    async with postgres.database() as url:
        assert urlsplit(url).path != "/parley"
        start = f"parley up --http 127.0.0.1:{free_port()} --chatd 1"
        restore = RESTORE.replace(NEW_DATABASE, f"'{url}'").replace("parley up", start)
        shell(restore, second)
        assert shell(".venv/bin/parley ls", second) == listed
        assert "hello" in shell('.venv/bin/parley run "hello after the restore"', second)
        shell(".venv/bin/parley down", second)
