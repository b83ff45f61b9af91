"""An embedded PostgreSQL server: initialised, started, stopped and recovered in one directory."""

import asyncio
import logging
import os
import socket
import subprocess
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from parley.clock import Clock, SystemClock
from parley.files import write_atomically
from parley.postgres.address import compose_url
from parley.postgres.binaries import installed_binaries
from parley.postgres.directory import Account, ServerDirectory
from parley.postgres.errors import DirectoryUnusable, ServerStartFailed, WrongMajorVersion
from parley.postgres.processes import (
    STOP_S_MAX,
    end_leftover,
    is_ready,
    start_process,
    stop_process,
    until_exit,
)

SUPERUSER = "postgres"
SOCKET_PORT = 5432
INITIALISE_S = 120.0
READY_S = 120.0  # Recovery after a crash replays the WAL that was not yet written to the tables.
REFUSED_START_S = 15.0
POLL_S = 0.02
RETRY_S = 0.25
LOG_BYTES_MAX = 10 * 1024 * 1024
TAIL_BYTES = 4096
# The server's message while backends of its killed predecessor are still running.
STILL_OCCUPIED = ("pre-existing shared memory block", "lock file", "is still in use")

TUNING: Mapping[str, str] = {
    "shared_buffers": "64MB",
    "max_connections": "200",
    "jit": "off",
    "io_method": "sync",  # No extra worker processes: the data fits into memory.
    "max_wal_size": "512MB",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_checkpoints": "off",
    "log_line_prefix": "%m [%p] %q%u@%d ",
}
WITHOUT_DURABILITY: Mapping[str, str] = {
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
}

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Running:
    """The resources held while the server runs."""

    lock: int
    process: "subprocess.Popen[bytes] | None" = None


class EmbeddedServer:
    """Runs PostgreSQL from one directory, for as long as this process lives.

    Connections use a UNIX socket that only this user can reach, and loopback if a TCP port is
    given; all of them need a password. Call it from a thread that lives as long as the server
    should (in practice the main one): the kernel ends the server with that thread.
    """

    def __init__(
        self,
        directory: Path,
        *,
        clock: Clock | None = None,
        tcp_port: int | None = None,
        is_durable: bool = True,
        runtime_root: Path = Path("/tmp"),
    ) -> None:
        """Configure the server; nothing is started before `start`.

        Args:
            directory: Holds the data, the log, the superuser's password and the lock.
            clock: Times the polls and retries.
            tcp_port: A port on 127.0.0.1; 0 chooses a free one; None means the socket only.
            is_durable: False turns durability off for speed, for tests.
            runtime_root: The directory of the socket when the path in `directory` is too long.
        """
        self._place = ServerDirectory.at(directory, runtime_root=runtime_root)
        self._clock = clock or SystemClock()
        self._tcp_port = tcp_port
        self._is_durable = is_durable
        self._running: _Running | None = None

    @property
    def log_file(self) -> Path:
        """The server's log file."""
        return self._place.log_file

    @property
    def socket_directory(self) -> Path:
        """The directory of the UNIX socket."""
        return self._place.socket_directory

    @property
    def port(self) -> int:
        """The number in the socket's name, which is also the TCP port if there is one."""
        return SOCKET_PORT if self._tcp_port is None else self._tcp_port

    @property
    def pid(self) -> int | None:
        """The server's process id, while it runs."""
        process = self._running.process if self._running else None
        return process.pid if process is not None and process.poll() is None else None

    def url(self, *, role: str, password: str, database: str) -> str:
        """Return a URL that connects through the UNIX socket."""
        return compose_url(
            role=role,
            password=password,
            database=database,
            host=self._place.socket_directory,
            port=self.port,
        )

    def admin_url(self, database: str = "postgres") -> str:
        """Return the superuser's URL."""
        return self.url(role=SUPERUSER, password=self._place.password(), database=database)

    @asynccontextmanager
    async def running(self) -> "AsyncIterator[EmbeddedServer]":
        """Start the server and stop it at the end."""
        await self.start()
        try:
            yield self
        finally:
            await self.stop()

    async def start(self) -> None:
        """Return when the server accepts connections, after recovery from a crash if necessary.

        Raises:
            DirectoryInUse: Another process runs this server.
            DirectoryUnusable: The directory cannot be used, or holds other files.
            WrongMajorVersion: The data was written by a version that is not installed.
            ServerStartFailed: PostgreSQL did not start; the error contains its output.
            BinariesMissing: PostgreSQL is not installed.
        """
        if self.pid is not None:
            return
        try:
            await self._start_in_place()
        except OSError as error:
            self._release()
            remedy = "choose a home that this user can read and write"
            raise DirectoryUnusable(self._place.root, _reason(error), remedy) from error
        except BaseException:
            self._release()
            raise

    async def stop(self, *, within_s: float = STOP_S_MAX) -> None:
        """Stop the server, with SIGKILL when the time is nearly over; return if none runs."""
        pid = self.pid
        if pid is not None:
            await stop_process(pid, within_s=within_s)
        self._release()
        self.remove_runtime_directory()

    def remove_runtime_directory(self) -> None:
        """Remove the socket's directory if it is outside the server's; no server may run."""
        self._place.remove_runtime_directory()

    async def wait(self) -> int:
        """Return the server's exit status when it ends, for a supervisor that restarts it."""
        process = self._running.process if self._running else None
        if process is None:
            raise RuntimeError("the server was not started")
        await until_exit(process.pid)
        return process.wait()

    async def _start_in_place(self) -> None:
        place = self._place
        account = place.account()
        place.prepare(account)
        if self._running is None:
            self._running = _Running(place.lock())
        binaries = await asyncio.to_thread(installed_binaries)
        major = place.major_version()
        if major is None:
            major = max(binaries)
            await self._initialise(binaries[major], account)
        if major not in binaries:
            raise WrongMajorVersion(place.data, major, tuple(sorted(binaries)))
        place.password()
        await end_leftover(place.data)
        self._running.process = await self._start(binaries[major] / "postgres", account)

    def _release(self) -> None:
        running, self._running = self._running, None
        if running is None:
            return
        if running.process is not None:
            with suppress(subprocess.TimeoutExpired):
                running.process.wait(timeout=1)
        os.close(running.lock)

    async def _initialise(self, binaries: Path, account: Account | None) -> None:
        """Run initdb in a temporary directory and rename it, so that no incomplete one is found."""
        place = self._place
        if place.remove_unfinished():
            log.warning("removed %s, which an earlier start did not finish", place.unfinished)
        place.make_password()
        # The server's user cannot read this user's files.
        password_copy = place.root / "superuser-password.copy"
        owner = None if account is None else (account.uid, account.gid)
        write_atomically(password_copy, place.password().encode(), owner=owner)
        command = [
            binaries / "initdb",
            f"--pgdata={place.unfinished}",
            f"--username={SUPERUSER}",
            f"--pwfile={password_copy}",
            "--auth-local=scram-sha-256",
            "--auth-host=scram-sha-256",
            "--data-checksums",
            "--encoding=UTF8",
            "--locale=C",
            "--locale-provider=builtin",
            "--builtin-locale=C.UTF-8",
            *(f"--set={name}={value}" for name, value in TUNING.items()),
            *(() if self._is_durable else ("--no-sync",)),
        ]
        try:
            await self._run(command, account)
        finally:
            password_copy.unlink(missing_ok=True)
        place.adopt_unfinished()

    async def _run(self, command: list[str | Path], account: Account | None) -> None:
        said_before = self._log_size()
        process = await start_process(command, place=self._place, account=account)
        try:
            async with asyncio.timeout(INITIALISE_S):
                await until_exit(process.pid)
        except TimeoutError:
            log.warning("initialising took longer than %.0f s", INITIALISE_S)
        finally:
            if process.poll() is None:
                await stop_process(process.pid)
            status = process.wait()
        if status != 0:
            raise ServerStartFailed(self.log_file, self._log_since(said_before))

    async def _start(self, program: Path, account: Account | None) -> "subprocess.Popen[bytes]":
        """Start the server, retrying while processes of a killed predecessor still use the data."""
        self._rotate_log()
        give_up_at = self._clock.monotonic() + REFUSED_START_S
        while True:
            said_before = self._log_size()
            process = await start_process(
                [program, *self._options()], place=self._place, account=account
            )
            if await self._becomes_ready(process):
                return process
            said = self._log_since(said_before)
            is_occupied = any(sign in said for sign in STILL_OCCUPIED)
            if not is_occupied or self._clock.monotonic() > give_up_at:
                raise ServerStartFailed(self.log_file, said)
            await self._clock.sleep(RETRY_S)

    def _options(self) -> list[str]:
        if self._tcp_port == 0:
            self._tcp_port = _free_port()
        settings = {
            "unix_socket_directories": str(self._place.socket_directory),
            "unix_socket_permissions": "0700",
            "listen_addresses": "" if self._tcp_port is None else "127.0.0.1",
            "port": str(self.port),
            **({} if self._is_durable else WITHOUT_DURABILITY),
        }
        options = [part for item in settings.items() for part in ("-c", "=".join(item))]
        return ["-D", str(self._place.data), *options]

    async def _becomes_ready(self, process: "subprocess.Popen[bytes]") -> bool:
        """Return True once the server accepts connections, False when it ended instead."""
        give_up_at = self._clock.monotonic() + READY_S
        try:
            while process.poll() is None:
                if is_ready(self._place.data, process.pid):
                    return True
                if self._clock.monotonic() > give_up_at:
                    break
                await self._clock.sleep(POLL_S)
        except BaseException:
            await stop_process(process.pid)
            process.wait()
            raise
        if process.poll() is None:
            await stop_process(process.pid)
            process.wait()
        return False

    def _rotate_log(self) -> None:
        if self._log_size() > LOG_BYTES_MAX:
            self.log_file.rename(self.log_file.with_name("postgres.log.1"))

    def _log_size(self) -> int:
        return self.log_file.stat().st_size if self.log_file.exists() else 0

    def _log_since(self, offset: int) -> str:
        if not self.log_file.exists():
            return "(nothing)"
        with self.log_file.open("rb") as file:
            file.seek(max(offset, self._log_size() - TAIL_BYTES))
            return file.read().decode(errors="replace").strip() or "(nothing)"


def _reason(error: OSError) -> str:
    where = "" if error.filename is None else f" ({error.filename})"
    return f"{error.strerror or error}{where}"


def _free_port() -> int:
    """Return a port that is free now; PostgreSQL cannot choose one itself."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
