"""A service that does as its mode says, for tests that start it as a process of its own."""

import asyncio
import ctypes
import logging
import os
import resource
import threading
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from parley.process import ConfigurationError, Process, ServiceSettings, run_service
from parley.process.open_files import LOOK_S
from parley.settings import Secret, setting

PR_GET_DUMPABLE = 3


class Mode(StrEnum):
    WAIT = "wait"
    IGNORE = "ignore"
    HANG = "hang"
    FINISH = "finish"
    FAIL = "fail"
    MISCONFIGURED = "misconfigured"
    SHOW = "show"
    EXHAUST = "exhaust"


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoSettings(ServiceSettings):
    mode: Mode = setting("What to do.", default=Mode.WAIT)
    password: Secret | None = setting("Something to hide.", default=None)
    seconds: float = setting("A number.", default=1.0)


async def run(settings: DemoSettings, process: Process) -> None:
    match settings.mode:
        case Mode.WAIT:
            say("ready")
            await process.stopping.wait()
            say("stopped")
        case Mode.IGNORE:
            say("ready")
            await process.stopping.wait()
            say("not yet")
            await asyncio.Event().wait()
        case Mode.HANG:
            say("ready")
            # Not one wait for ever: a signal that comes just before it begins would not be seen.
            while True:
                threading.Event().wait(0.05)
        case Mode.FINISH:
            pass
        case Mode.FAIL:
            assert settings.password is not None
            raise RuntimeError(f"could not log in with {settings.password.reveal()}")
        case Mode.MISCONFIGURED:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(refuse())
        case Mode.SHOW:
            logging.getLogger("demo").info("an id: %s", process.new_id())
            say(f"dumpable {ctypes.CDLL(None).prctl(PR_GET_DUMPABLE, 0, 0, 0, 0)}")
            say(f"open files {resource.getrlimit(resource.RLIMIT_NOFILE)[0]}")
            say(f"open files at start {process.open_files.limit_at_start}")
            say(f"loop {type(asyncio.get_running_loop()).__module__}")
        case Mode.EXHAUST:
            await exhaust(process)
        case _:
            assert_never(settings.mode)


async def exhaust(process: Process) -> None:
    """Open all files that may be open, let twice as much time pass as is between two looks."""
    opened = []
    with suppress(OSError):
        while True:
            opened.append(os.dup(2))
    await process.clock.sleep(2 * LOOK_S)
    for each in opened:
        os.close(each)
    await process.clock.sleep(2 * LOOK_S)


async def refuse() -> None:
    raise ConfigurationError("the key file does not fit the database: give the right one")


def say(word: str) -> None:
    print(word, flush=True)


if __name__ == "__main__":
    run_service("demo", DemoSettings, run)
