"""The program `python -m gateway`, in processes of their own."""

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from gateway.settings import GatewaySettings


def environment_of(settings: GatewaySettings, http_listen: str) -> dict[str, str]:
    """Return the environment that gives these settings, and nothing else."""
    return {
        "GATEWAY_LISTEN": str(settings.listen),
        "GATEWAY_TRUST_FILE": str(settings.trust_file),
        "GATEWAY_SIGNING_KEY_FILE": str(settings.signing_key_file),
        "GATEWAY_HTTP_LISTEN": http_listen,
        "GATEWAY_PUBLIC_URL": str(settings.public_url),
        "GATEWAY_DATABASE_URL": settings.database_url.reveal(),
        "GATEWAY_CHATD": ",".join(map(str, settings.chatd)),
        "GATEWAY_OWNER_API_KEY": settings.owner_api_key.reveal(),
    }


@asynccontextmanager
async def started(variables: Mapping[str, str], *arguments: str) -> AsyncIterator[Process]:
    """Run a gateway at most until the end of the context, by `arguments` of Python if given."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, *(arguments or ("-m", "gateway")), env=variables, stderr=PIPE
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def http_port_of(process: Process) -> int:
    """Wait until the process says where it serves."""
    assert process.stderr is not None
    seen = b""
    while line := await process.stderr.readline():
        seen += line
        if b"serving HTTP on" in line:
            return int(line.partition(b"127.0.0.1:")[2].split()[0])
    raise AssertionError(seen.decode())
