"""A run of several workers: which tests one of them takes together, and that it leaves nothing."""

import os
import secrets
import signal
from collections.abc import Collection

import pytest
from xdist.dsession import DSession
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import NodeManager, WorkerController

#: Directories whose tests share a stack that takes long to start.
SHARED = ("tests/e2e", "tests/faults")
#: Where each test has a browser, which computes more than most tests wait.
BROWSERS = "tests/e2e/page/"


class WholeFiles(LoadScopeScheduling):  # type: ignore[misc]  # xdist comes without types.
    """Gives out files, and what shares a stack as if it were one file."""

    def __init__(self, config: pytest.Config, log: Producer) -> None:
        # In the order of their names: what takes longest happens to come first, and little last.
        config.option.loadscopereorder = False
        super().__init__(config, log)
        self._last_units: dict[WorkerController, str] = {}

    def remove_node(self, node: WorkerController) -> str | None:
        """Give what a worker left to others, without the test that it crashed in; return that one.

        That test would crash them as well, one after the other.
        """
        units = self.assigned_work.pop(node)
        unfinished = [(unit, test) for unit in units for test in _unfinished(units[unit])]
        if not unfinished:
            return None
        unit, crashed = unfinished[0]
        units[unit][crashed] = True
        for unit in reversed(units):
            if _unfinished(units[unit]):
                self.workqueue[unit] = units[unit]
                # It was begun early because it takes long.
                self.workqueue.move_to_end(unit, last=False)
        for other in self.nodes:
            self._reschedule(other)
        return crashed

    def _reschedule(self, node: WorkerController) -> None:
        # A worker that replaces another gets tests once it has read them.
        if node in self.registered_collections:
            super()._reschedule(node)

    def _assign_work_unit(self, node: WorkerController) -> None:
        """Let half of the workers run what has a browser, as long as the others have other tests.

        They keep their browser and its stack from file to file, and meanwhile the others wait more
        than they compute.
        """
        with_browser = {each for each in self.nodes if self._has_browser(each)}
        may_have_browser = node in with_browser or len(with_browser) < max(self.numnodes // 2, 1)
        unit = next_unit(self.workqueue.keys(), may_have_browser=may_have_browser)
        self._last_units[node] = unit
        self.workqueue.move_to_end(unit, last=False)
        super()._assign_work_unit(node)

    def _has_browser(self, node: WorkerController) -> bool:
        return self._last_units.get(node, "").startswith(BROWSERS)

    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid)


def next_unit(waiting: Collection[str], *, may_have_browser: bool) -> str:
    """Return what a worker runs next: with a browser if it may, then what takes long, then any."""
    of_browsers = [unit for unit in waiting if unit.startswith(BROWSERS)]
    others = [unit for unit in waiting if not unit.startswith(BROWSERS)]
    long = [unit for unit in others if unit.rstrip("/") in SHARED]
    first, second = (of_browsers, others) if may_have_browser else (long + others, of_browsers)
    return (first or long or second)[0]


def _unfinished(tests: dict[str, bool]) -> list[str]:
    return [test for test, is_finished in tests.items() if not is_finished]


def unit_of(nodeid: str) -> str:
    """Return the name of what a test is given out with."""
    file = nodeid.split("::", 1)[0]
    directory = file.rpartition("/")[0]
    return f"{directory}/" if directory in SHARED else file


def marks_of_workers(config: pytest.Config) -> tuple[str, ...]:
    """Return what tells the processes of a run's workers, in the process that gives out tests."""
    controller: DSession | None = config.pluginmanager.get_plugin("dsession")
    workers: NodeManager | None = getattr(controller, "nodemanager", None)
    if workers is None:
        return ()
    # What keeps the environment of its worker, and what has only a home below the worker's.
    basetemp = config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
    return workers.testrunuid, f"{basetemp}/popen-gw"


def end_undisturbed() -> None:
    """Let nothing interrupt this worker from now on: it is stopping its servers."""
    # One Ctrl-C reaches a worker twice: from the terminal, and five seconds later from execnet.
    signal.signal(signal.SIGINT, lambda *_: None)


def marks_of_process(config: pytest.Config) -> tuple[str, ...]:
    """Return what tells the processes that the tests of this process start, from now on."""
    # What keeps the environment of this process, and what has only a home below its directory.
    stamp = f"{os.getpid()}-{secrets.token_hex(8)}"
    os.environ["STARTED_BY_TESTS"] = stamp  # noqa: TID251 (for the children of this process)
    basetemp = config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
    return stamp, f"{basetemp}/"
