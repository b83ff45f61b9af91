"""Running a function as a user without rights, in a child of this process."""

import os
import pickle
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

#: Of nobody else: what one test does to all processes of a user does not reach those of another.
USER = 61_234


def as_ordinary_user(work: Callable[[], T]) -> T:
    """Return what a function returns that runs as an ordinary user; only root may change users."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.close(reading)
            if os.geteuid() == 0:
                os.setgroups([])
                os.setresgid(USER, USER, USER)
                os.setresuid(USER, USER, USER)
            with os.fdopen(writing, "wb") as file:
                file.write(pickle.dumps(work()))
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        data = file.read()
    _, status = os.waitpid(pid, 0)
    assert status == 0, "the function failed as an ordinary user"
    found: T = pickle.loads(data)
    return found
