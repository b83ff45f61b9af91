"""One more chatd beside those of a stack, with settings of its own."""

import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import psutil

from support.faults.lab import ChatdProcess, FaultLab

STOP_S_MAX = 60.0


@asynccontextmanager
async def extra_chatd(
    lab: FaultLab, directory: Path, changes: Mapping[str, str]
) -> AsyncIterator[ChatdProcess]:
    """Run a chatd that is told what the stack's are, but for some changes."""
    model = psutil.Process(lab.processes()[0].pid)
    environment = {**model.environ(), **changes}
    for name in ("CHATD_PARENT_PID", *(f"{name}_FILE" for name in changes)):
        environment.pop(name, None)
    socket = directory / "chatd.sock"
    socket.unlink(missing_ok=True)
    environment["CHATD_LISTEN"] = address = f"unix:{socket}"
    started = _start(environment, directory / "chatd.log")
    process = ChatdProcess("chatd-extra", started.pid, address)

    async def is_ready() -> bool:
        assert started.poll() is None, (directory / "chatd.log").read_text()
        return process.accepts()

    try:
        await lab.until(is_ready, "one more chatd", 60)
        yield process
    finally:
        started.kill()
        started.wait(STOP_S_MAX)


def _start(environment: Mapping[str, str], log_file: Path) -> "subprocess.Popen[bytes]":
    with log_file.open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "chatd"], env=environment, cwd="/", stdout=log, stderr=log
        )


def through(url: str, directory: Path) -> str:
    """Return a database URL whose socket is in another directory."""
    parts = urlsplit(url)
    query = dict(parse_qsl(parts.query)) | {"host": str(directory)}
    return urlunsplit(parts._replace(query=urlencode(query)))


def socket_of(url: str) -> Path:
    """Return the socket of the server that a URL names."""
    query = dict(parse_qsl(urlsplit(url).query))
    return Path(query["host"]) / f".s.PGSQL.{query.get('port', '5432')}"
