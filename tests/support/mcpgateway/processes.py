"""The program `python -m mcpgateway`, in processes of their own."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from mcpgateway.settings import Settings
from parley.clock import SystemClock
from parley.identity import ServiceName, Signer
from parley.rpc import connect
from parley.telemetry import InMemoryTelemetry
from support.mcpgateway.gateway import McpGateway, make_settings

#: Many programs may be starting on the machine, and a start is mostly imports.
PATIENCE_S = 60


def environment_of(settings: Settings, allowed: str) -> dict[str, str]:
    """Return the environment that gives these settings, with places that may be reached."""
    return {
        **os.environ,  # noqa: TID251 (handed on to the child)
        "MCPGATEWAY_LISTEN": str(settings.listen),
        "MCPGATEWAY_TRUST_FILE": str(settings.trust_file),
        "MCPGATEWAY_SIGNING_KEY_FILE": str(settings.signing_key_file),
        "MCPGATEWAY_DATABASE_URL": settings.database_url.reveal(),
        "MCPGATEWAY_MASTER_KEY_FILE": str(settings.master_key_file),
        "MCPGATEWAY_ENVIRONMENT": "development",
        "MCPGATEWAY_ALLOWED_HOSTS": allowed,
    }


@asynccontextmanager
async def started(
    environment: dict[str, str], errors: int = subprocess.PIPE
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run mcpgateway, at most until the end of the context."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "mcpgateway", env=environment, stderr=errors
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


async def until_healthy(settings: Settings) -> None:
    """Wait until the health service says that calls are taken."""
    async with grpc.aio.insecure_channel(settings.listen.target) as channel:
        check = health_pb2_grpc.HealthStub(channel).Check
        answer = await check(
            health_pb2.HealthCheckRequest(), wait_for_ready=True, timeout=PATIENCE_S
        )
    assert answer.status == health_pb2.HealthCheckResponse.SERVING


@asynccontextmanager
async def gateway_process(
    directory: Path, database_url: str, *, allowed: str
) -> AsyncIterator[McpGateway]:
    """Run a mcpgateway in a process of its own, and give channels to it."""
    settings, keys = make_settings(directory, database_url)
    telemetry = InMemoryTelemetry("test").telemetry

    def channel(service: ServiceName) -> grpc.aio.Channel:
        return connect(
            settings.listen,
            audience=ServiceName.MCPGATEWAY,
            signer=Signer(service, keys[service], SystemClock()),
            telemetry=telemetry,
        )

    # Its log is not read, and must not fill a pipe.
    async with started(environment_of(settings, allowed), subprocess.DEVNULL):
        await until_healthy(settings)
        async with channel(ServiceName.CHATD) as chatd, channel(ServiceName.GATEWAY) as gateway:
            yield McpGateway(settings, chatd, gateway)
