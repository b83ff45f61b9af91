"""The users of the workspaces that the tests of one worker make."""

import os
from typing import Final

from toolrunner.directories.users import UserRange

#: Below the users of real nodes; the tests of a worker run one after another.
FIRST: Final = 4_000
WIDTH: Final = 500
WORKERS: Final = 32


def _of_worker() -> UserRange:
    name = os.environ.get("PYTEST_XDIST_WORKER", "gw0")  # noqa: TID251 (xdist tells it there)
    part = int(name.removeprefix("gw")) % WORKERS
    return UserRange(FIRST + part * WIDTH, WIDTH - 2)


WORKER_USERS: Final = _of_worker()
