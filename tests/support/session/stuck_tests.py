"""Ends a process that runs tests when one of them neither ends nor can be interrupted.

`--timeout` raises an error in the main thread, and ends its watch when a test has failed. A task
that swallows the error, a loop that never waits, or a fixture that waits for ever after a failure
would go on, and the run with it. Then only the end of the process helps: another worker replaces it
and goes on with the next test, and the guard ends what its tests started.
"""

import faulthandler
import os
from collections.abc import Generator

import pytest
from xdist import is_xdist_worker


class StuckTests:
    """Ends this process, telling what every thread did, when one test takes too long."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        # What pytest captures later would be lost with this process.
        self._told_to = os.dup(2)
        self._is_watching = False

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self) -> Generator[None, object, object]:
        """Watch a test from its setup to the end of its teardown."""
        self._watch()
        try:
            return (yield)
        finally:
            self._end_watch()

    @pytest.hookimpl(trylast=True)
    def pytest_exception_interact(self) -> None:
        """Watch what follows a failure, for which pytest ends every watch."""
        if self._is_watching:
            self._watch()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None]:
        """Watch a worker that stops what all of its tests used."""
        if is_xdist_worker(session):
            self._watch()
        try:
            yield
        finally:
            self._end_watch()

    def _watch(self) -> None:
        # A thread that needs no lock of the interpreter ends the process, whatever holds that lock.
        faulthandler.dump_traceback_later(self._limit_s, exit=True, file=self._told_to)
        self._is_watching = True

    def _end_watch(self) -> None:
        faulthandler.cancel_dump_traceback_later()
        self._is_watching = False
