"""What a toolrunner loads at its start."""

import subprocess
import sys

import pytest

DATABASE = ("asyncpg", "sqlalchemy", "alembic", "parley.postgres")


@pytest.mark.slow
def test_no_driver_of_a_database_is_loaded() -> None:
    code = (
        "import sys\n"
        "import toolrunner.app\n"
        f"print([name for name in {DATABASE!r} if name in sys.modules])\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert ended.stdout.splitlines() == ["[]"]
