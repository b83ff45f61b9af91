"""A run of several workers: which tests one of them takes together, and that it leaves nothing."""

import signal
from contextlib import suppress

import psutil
import pytest
from xdist.dsession import DSession
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import NodeManager

#: Directories whose tests share a stack that takes long to start, and the files that have another.
SHARED = {
    "tests/e2e/": (
        "test_bad_input.py",
        "test_compose.py",
        "test_provider_faults.py",
        "test_readme.py",
        "test_real_keys.py",
        "test_real_model.py",
        "test_statement_counts.py",
    ),
    "tests/faults/": (),
}
STOP_S_MAX = 20.0


class WholeFiles(LoadScopeScheduling):  # type: ignore[misc]  # xdist comes without types.
    """Gives out files, and what shares a stack as if it were one file."""

    def __init__(self, config: pytest.Config, log: Producer) -> None:
        # In the order of their names: what takes longest happens to come first, and little last.
        config.option.loadscopereorder = False
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid)


def unit_of(nodeid: str) -> str:
    """Return the name of what a test is given out with."""
    file = nodeid.split("::", 1)[0]
    directory, _, name = file.rpartition("/")
    alone = SHARED.get(f"{directory}/")
    return file if alone is None or name in alone else f"{directory}/"


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


def end_leftovers(marks: tuple[str, ...]) -> None:
    """End all processes that mention one of `marks`: their worker was killed before they were."""
    found = [process for process in psutil.process_iter() if _mentions(process, marks)]
    for process in found:
        _send(process, signal.SIGTERM)
    _, left = psutil.wait_procs(found, timeout=STOP_S_MAX)
    for process in left:
        _send(process, signal.SIGKILL)
    psutil.wait_procs(left, timeout=STOP_S_MAX)


def _mentions(process: psutil.Process, marks: tuple[str, ...]) -> bool:
    try:
        words = [*process.cmdline(), *process.environ().values(), process.cwd()]
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return False
    return any(mark in word for word in words for mark in marks)


def _send(process: psutil.Process, number: signal.Signals) -> None:
    with suppress(psutil.NoSuchProcess):
        process.send_signal(number)
