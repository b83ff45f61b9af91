"""Makes PostgreSQL log statements during a run, and no longer.

The settings outlive the session that sets them and would fill the disk. So a separate process sets
them and resets them when its standard input ends, in whatever way its parent ended.
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import asyncpg
import msgspec

MARK = "@scaletest "
SETTINGS = {
    "log_line_prefix": f"'{MARK}%u %m '",
    "log_min_duration_sample": "0",
    "log_parameter_max_length": "0",
}
RATE = "log_statement_sample_rate"
READY = b"ready\n"
STARTING_S_MAX = 30.0
ENDING_S_MAX = 10.0


@dataclass(frozen=True, slots=True)
class Logging:
    """The database that logs statements, and the sampling rate."""

    url: str = field(repr=False)
    rate: float


class LoggingRefused(Exception):
    """The server does not log statements."""


@asynccontextmanager
async def logged(wanted: Logging) -> AsyncIterator[None]:
    """Make the server log statements until the context ends.

    Raises:
        LoggingRefused: The settings could not be made.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        __name__,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(msgspec.json.encode(wanted) + b"\n")
        async with asyncio.timeout(STARTING_S_MAX):
            if await process.stdout.readline() != READY:
                raise LoggingRefused
        yield
    finally:
        process.stdin.close()
        try:
            async with asyncio.timeout(ENDING_S_MAX):
                await process.wait()
        except TimeoutError:
            process.terminate()
            await process.wait()


async def _log() -> None:
    wanted = msgspec.json.decode(await asyncio.to_thread(sys.stdin.readline), type=Logging)
    connection = await asyncpg.connect(wanted.url)
    try:
        for name, value in {**SETTINGS, RATE: f"{wanted.rate:.6f}"}.items():
            await connection.execute(f"ALTER SYSTEM SET {name} = {value}")
        await connection.execute("SELECT pg_reload_conf()")
        while await connection.fetchval("SHOW log_min_duration_sample") != "0":
            await connection.execute("SELECT pg_sleep(0.01)")
        sys.stdout.buffer.write(READY)
        sys.stdout.buffer.flush()
        await asyncio.to_thread(sys.stdin.read)
    finally:
        for name in (*SETTINGS, RATE):
            await connection.execute(f"ALTER SYSTEM RESET {name}")
        await connection.execute("SELECT pg_reload_conf()")
        await connection.close()


if __name__ == "__main__":
    asyncio.run(_log())
