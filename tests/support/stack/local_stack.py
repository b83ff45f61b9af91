"""A real stack in a home of its own, driven by nothing but the `parley` command."""

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from parley.cli.home.layout import Home
from parley.cli.supervision import process_table
from parley.cli.supervision.stale_processes import running
from support.host.conditions import until
from support.host.ports import free_port

PROGRAMS = Path(sys.executable).parent
#: What an answer of the scripted model holds when both of its tools have worked.
SHELL_RESULT = "hello from the workspace"
CLOCK_RESULT = r"(?s)get_current_time` answered:.*UTC"

COMMAND_S_MAX = 180.0
WHOLE_S_MAX = 120.0


@dataclass(frozen=True, slots=True)
class LocalStack:
    """A home, a port, and the command."""

    home: Home
    http: str
    environment: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def at(cls, directory: Path, **environment: str) -> "LocalStack":
        """Return the stack that would run in `directory`; nothing is started."""
        return cls(Home.at(directory), f"127.0.0.1:{free_port()}", environment)

    def command(self, *arguments: str) -> list[str]:
        """Return the words of a call of `parley` for this home."""
        return [str(PROGRAMS / "parley"), *arguments, "--home", str(self.home.root)]

    def variables(self) -> dict[str, str]:
        """Return the whole environment of a call; nothing of the tester's is in it."""
        path = f"{PROGRAMS}{os.pathsep}{os.defpath}"
        return {"PATH": path, "HOME": str(self.home.root.parent), **self.environment}

    def parley(
        self, *arguments: str, said: str = "", cwd: Path | None = None
    ) -> "subprocess.CompletedProcess[str]":
        """Call `parley` in a directory, say something to it, and wait for its end."""
        return subprocess.run(
            self.command(*arguments),
            env=self.variables(),
            cwd=cwd,
            input=said,
            capture_output=True,
            text=True,
            timeout=COMMAND_S_MAX,
            check=False,
        )

    def up(self, *options: str) -> "subprocess.CompletedProcess[str]":
        """Start the stack in the background."""
        return self.parley("up", "--detach", "--http", self.http, *options)

    def is_up(self) -> bool:
        """Tell whether a supervisor runs and everything was ready once, without a command."""
        table = process_table.load(self.home.processes_file)
        return running(table.supervisor) is not None and self.home.endpoints_file.exists()

    def ensure_up(self) -> None:
        """Start the stack unless it runs."""
        if not self.is_up():
            started = self.up()
            assert started.returncode == 0, started.stdout + started.stderr

    def status(self) -> dict[str, Any]:
        """Return what `status --json` says."""
        asked = self.parley("status", "--json")
        assert asked.returncode == 0, asked.stderr
        found: dict[str, Any] = json.loads(asked.stdout)
        return found

    def until_whole(self, *, without: int) -> list[dict[str, Any]]:
        """Wait until every process is healthy and none of them is `without`."""

        def look() -> list[dict[str, Any]]:
            found: list[dict[str, Any]] = self.status()["processes"]
            is_whole = all(process["healthy"] for process in found)
            is_rid = without not in [process["pid"] for process in found]
            return found if is_whole and is_rid else []

        # The command takes longer than many looks at the table, and delays the restart.
        what = f"the start of a process in place of {without}"
        until(lambda: self._is_replaced(without), what, within_s=WHOLE_S_MAX)
        return until(look, f"the restart of process {without}", within_s=WHOLE_S_MAX)

    def _is_replaced(self, pid: int) -> bool:
        """Tell whether a process is gone, and whatever should listen does."""
        records = process_table.load(self.home.processes_file).processes
        return all(each.identity.pid != pid and _accepts(each.address) for each in records)

    def endpoints(self) -> dict[str, Any]:
        """Return what `endpoints.json` says."""
        found: dict[str, Any] = json.loads(self.home.endpoints_file.read_text())
        return found

    def supervisor(self) -> psutil.Process:
        """Return the process that looks after the others."""
        table = process_table.load(self.home.processes_file)
        assert table.supervisor is not None
        return psutil.Process(table.supervisor.pid)

    def everyone(self) -> list[psutil.Process]:
        """Return the supervisor and all that descends from it."""
        supervisor = self.supervisor()
        return [supervisor, *supervisor.children(recursive=True)]

    def is_running(self, word: str) -> bool:
        """Tell whether a command line below the supervisor has a word."""
        for process in self.everyone():
            with suppress(psutil.NoSuchProcess):
                if word in process.cmdline():
                    return True
        return False

    def strangers(self) -> list[psutil.Process]:
        """Return processes that mention this home anywhere, wherever they come from."""
        mark = str(self.home.root)
        found = []
        for process in psutil.process_iter():
            try:
                words = [*process.cmdline(), *process.environ().values(), process.cwd()]
            except (psutil.NoSuchProcess, psutil.AccessDenied):
                continue
            if any(mark in word for word in words):
                found.append(process)
        return found

    @contextmanager
    def repeating(self, *arguments: str) -> Iterator[None]:
        """Call `parley` again and again, whatever comes of it, until the context ends."""
        stopping = threading.Event()
        current: list[subprocess.Popen[bytes]] = []

        def repeat() -> None:
            while not stopping.is_set():
                with subprocess.Popen(
                    self.command(*arguments),
                    env=self.variables(),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                ) as called:
                    current[:] = [called]
                    called.wait(COMMAND_S_MAX)

        repeater = threading.Thread(target=repeat)
        repeater.start()
        try:
            yield
        finally:
            stopping.set()
            for called in current:
                called.kill()
            repeater.join(COMMAND_S_MAX)


def _accepts(address: str) -> bool:
    """Tell whether something listens at an address of the table of processes."""
    scheme, _, rest = address.partition(":")
    host, _, port = rest.rpartition(":")
    family = socket.AF_UNIX if scheme == "unix" else socket.AF_INET
    with socket.socket(family) as probe:
        probe.settimeout(1)
        try:
            probe.connect(rest if scheme == "unix" else (host, int(port)))
        except OSError:
            return False
    return True


def lines_of(text: str) -> list[str]:
    """Return the lines of `text` that say something."""
    return [line for line in text.splitlines() if line.strip()]
