import pwd
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.database.postgres import empty_database, postgres

__all__ = ["empty_database", "postgres"]


@pytest.fixture
def private_to_nobody() -> Iterator[Path]:
    """A directory of the user nobody, below one that everybody can reach."""
    nobody = pwd.getpwnam("nobody")
    directory = Path(tempfile.mkdtemp(prefix="parley-nobody-", dir="/tmp"))
    shutil.chown(directory, nobody.pw_uid, nobody.pw_gid)
    yield directory
    shutil.rmtree(directory)
