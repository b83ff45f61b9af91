"""Ending the processes that a killed test run left behind, known by what they mention."""

import signal
from contextlib import suppress

import psutil

STOP_S_MAX = 20.0


def end_leftovers(marks: tuple[str, ...], since_s: float = 0.0) -> int:
    """End all processes that mention one of `marks`; return how many there were.

    Those that were there before `since_s` are nothing that the run left.
    """
    found = [
        process
        for process in psutil.process_iter()
        if _is_since(process, since_s) and _mentions(process, marks)
    ]
    for process in found:
        _send(process, signal.SIGTERM)
    _, left = psutil.wait_procs(found, timeout=STOP_S_MAX)
    for process in left:
        _send(process, signal.SIGKILL)
    psutil.wait_procs(left, timeout=STOP_S_MAX)
    return len(found)


def _is_since(process: psutil.Process, since_s: float) -> bool:
    with suppress(psutil.NoSuchProcess):
        return process.create_time() >= since_s
    return False


def _mentions(process: psutil.Process, marks: tuple[str, ...]) -> bool:
    try:
        words = [*process.cmdline(), *process.environ().values(), f"{process.cwd()}/"]
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return False
    return any(mark in word for word in words for mark in marks)


def _send(process: psutil.Process, number: signal.Signals) -> None:
    with suppress(psutil.NoSuchProcess):
        process.send_signal(number)
