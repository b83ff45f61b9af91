"""The local part of a load test: open files, a mock provider, and measurements of a local stack.

The mock runs in a process of its own, so that its cost is measured separately.
"""

import asyncio
import ipaddress
import json
import os
import resource
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from parley.cli.errors import CliError, ConfigurationProblem
from parley.cli.home.layout import Home
from parley.cli.supervision.process_table import load
from parley.cli.supervision.stale_processes import running

MOCK = ("-m", "parley.cli", "llm-mock")
MOCK_URL = "OPENAI_BASE_URL="
MOCK_S_MAX = 30.0
#: Open files of a client process other than those of its chats.
FILES_ASIDE = 100
#: A stream and one request.
FILES_PER_CHAT = 2


@dataclass(frozen=True, slots=True)
class LocalStack:
    """A stack on this machine.

    Attributes:
        services: The processes of each service.
        database_url: Its database.
        database_log: Where the database logs to, if it is the stack's own.
    """

    services: dict[str, tuple[int, ...]]
    database_url: str | None = field(repr=False)
    database_log: Path | None


def stack_here(home: Home, url: str) -> LocalStack | None:
    """Return the stack that serves `url`, if it runs in this home."""
    table = load(home.processes_file)
    if running(table.supervisor) is None or (table.http or "").rstrip("/") != url:
        return None
    services: dict[str, tuple[int, ...]] = {}
    for record in table.processes:
        services[record.service] = (*services.get(record.service, ()), record.identity.pid)
    try:
        database_url = str(json.loads(home.endpoints_file.read_text())["database"])
    except (OSError, ValueError, KeyError):
        database_url = None
    log = home.postgres_log if "postgres" in services and home.postgres_log.exists() else None
    return LocalStack(services, database_url, log)


def allow_open_files(chats_per_process: int) -> None:
    """Raise this process's limit of open files, and so that of its children, as far as needed.

    Raises:
        ConfigurationProblem: The hard limit is too low.
    """
    needed = chats_per_process * FILES_PER_CHAT + FILES_ASIDE
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise ConfigurationProblem(
            f"a client process with {chats_per_process} chats needs {needed} open files and may "
            f"have {hard}: raise the hard limit (`ulimit -Hn`), or use more processes with "
            "--clients N"
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def check_reachable(url: str) -> None:
    """Refuse to start a mock on this machine for a Parley that runs on another.

    Raises:
        ConfigurationProblem: Parley could not reach it.
    """
    host = urlsplit(url).hostname or ""
    try:
        is_here = ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_here = host == "localhost"
    if not is_here:
        raise ConfigurationProblem(
            f"Parley at {host} cannot reach a mock on this machine's loopback: start "
            "`parley llm-mock --host ADDRESS` where it can, and name it with --llm-mock-url URL, "
            "or name a model that is there with --model NAME"
        )


@asynccontextmanager
async def mock_here() -> AsyncIterator[tuple[str, int]]:
    """Yield the URL and the process of a mock that runs until the context ends.

    Raises:
        CliError: It does not start.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *MOCK,
        "--parent-pid",
        str(os.getpid()),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(MOCK_S_MAX):
            url = await _mock_url(process)
        yield url, process.pid
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def _mock_url(process: asyncio.subprocess.Process) -> str:
    assert process.stdout is not None
    while line := (await process.stdout.readline()).decode().strip():
        if line.startswith(MOCK_URL):
            return line.removeprefix(MOCK_URL)
    raise CliError("the mock of the load test did not start: try `parley llm-mock` by itself")
