"""A run of several workers: which tests one of them takes together, and that it leaves nothing."""

import os
import secrets
import signal

import pytest
from xdist.dsession import DSession
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import NodeManager, WorkerController

#: Directories whose tests share a stack that takes long to start.
SHARED = ("tests/e2e", "tests/faults")


class WholeFiles(LoadScopeScheduling):  # type: ignore[misc]  # xdist comes without types.
    """Gives out files, and what shares a stack as if it were one file."""

    def __init__(self, config: pytest.Config, log: Producer) -> None:
        # In the order of their names: what takes longest happens to come first, and little last.
        config.option.loadscopereorder = False
        super().__init__(config, log)

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

    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid)


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
