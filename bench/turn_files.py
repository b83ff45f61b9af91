"""Counts the files and lines that a plain turn and a turn with one tool call run through.

Run it with `python bench/turn_files.py`. It starts a stack with `parley up` whose processes record,
between two signals, which functions they call, and prints one JSON object: files and their lines by
service, for a turn that answers at once and for one that executes a command first. Generated code
is not counted, and neither is what runs without any request in the same time.
"""

import asyncio
import json
import os
import signal
import sys
import sysconfig
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))
sys.path.append(str(Path(__file__).resolve().parent.parent))

from bench.chats import stack_of
from bench.machine import print_figures

from support.stack.faulty_stack import FaultyStack

ROOT = Path(__file__).resolve().parent.parent
SERVICES = ("gateway", "chatd", "toolrunner")
RECORDED_S = 6.0
RECORDER = """
import json, os, signal, sys, threading

called = set()


def record(frame, event, argument):
    if event == "call":
        called.add(frame.f_code.co_filename)


def toggle(number, frame):
    if sys.getprofile() is None:
        called.clear()
        threading.setprofile(record)
        sys.setprofile(record)
        return
    sys.setprofile(None)
    threading.setprofile(None)
    path = os.path.join({directory!r}, f"{{os.getpid()}}.json")
    with open(path + ".new", "w") as file:
        json.dump(sorted(called), file)
    os.rename(path + ".new", path)


signal.signal(signal.SIGUSR2, toggle)
"""


async def main() -> None:
    """Record an idle time, a plain turn and a turn with a tool call."""
    with tempfile.TemporaryDirectory() as directory:
        # Services inherit no environment, so the recorder is started by the interpreter itself.
        hook = Path(sysconfig.get_path("purelib")) / "parley_turn_files.pth"
        recorder = Path(directory) / "recorder.py"
        recorder.write_text(RECORDER.format(directory=directory))
        hook.write_text(f"import sys; exec(open({str(recorder)!r}).read(), {{}})\n")
        with ExitStack() as cleanup:
            cleanup.callback(hook.unlink)
            idle, plain, tool = await _recorded(Path(directory))
    turn = plain - idle
    print_figures({"plain_turn": _counted(turn), "tool_call_adds": _counted(tool - idle - turn)})


async def _recorded(directory: Path) -> tuple[set[Path], set[Path], set[Path]]:
    async with stack_of(1) as stack:
        recorded = Recorded(stack, directory)
        chat_id = stack.create("repeat after me: warm")
        await stack.until(chat_id, lambda where: where.status == "waiting")
        idle = await recorded.during(lambda: None)
        plain = await recorded.during(lambda: stack.send(chat_id, "repeat after me: hello"))
        tool = await recorded.during(lambda: stack.send(chat_id, "run: true"))
        return idle, plain, tool


class Recorded:
    """Records the files that the processes of a stack run."""

    def __init__(self, stack: FaultyStack, directory: Path) -> None:
        self._directory = directory
        self._pids = _service_pids(stack)

    async def during(self, work: Any) -> set[Path]:
        """Return the files of the product that run while something is done."""
        for path in self._directory.glob("*.json"):
            path.unlink()
        self._signal()
        await asyncio.to_thread(work)
        await asyncio.sleep(RECORDED_S)
        self._signal()
        deadline_s = time.monotonic() + 20
        while len([*self._directory.glob("*.json")]) < len(self._pids):
            assert time.monotonic() < deadline_s, "a process did not write what it ran"
            await asyncio.sleep(0.1)
        names = [
            name for path in self._directory.glob("*.json") for name in json.loads(path.read_text())
        ]
        return {Path(name) for name in names if _is_product(Path(name))}

    def _signal(self) -> None:
        for pid in self._pids:
            os.kill(pid, signal.SIGUSR2)


def _service_pids(stack: FaultyStack) -> list[int]:
    """Return the service processes of a stack."""
    return [
        process.pid
        for process in stack.stack.everyone()
        if any(f"-m {service}" in " ".join(process.cmdline()) for service in SERVICES)
    ]


def _is_product(path: Path) -> bool:
    text = str(path)
    is_ours = text.startswith((str(ROOT / "services"), str(ROOT / "libs" / "parley")))
    return is_ours and "libs/parley/api" not in text and path.name != "__init__.py"


def _counted(files: set[Path]) -> dict[str, Any]:
    lines = {path: len(path.read_text().splitlines()) for path in files}
    by_room = Counter(path.relative_to(ROOT).parts[1] for path in files)
    return {
        "files": len(files),
        "lines": sum(lines.values()),
        "files_by_service": dict(sorted(by_room.items())),
    }


if __name__ == "__main__":
    asyncio.run(main())
