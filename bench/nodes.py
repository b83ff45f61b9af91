"""A real toolrunner for the benches of its parts, and what they tell times by."""

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc
from grpc_health.v1 import health_pb2
from grpc_health.v1.health_pb2_grpc import HealthStub

from parley.clock import SystemClock
from parley.identity import ServiceName, Signer, SigningKey, TrustFile
from parley.rpc import Address, connect
from parley.telemetry import LogLevel, start

READY_S = 30
MEBIBYTE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Node:
    """A toolrunner that serves; its data is in the directory `data`."""

    channel: grpc.aio.Channel
    pid: int
    data: Path


@asynccontextmanager
async def running(
    directory: Path, settings: Mapping[str, str] | None = None
) -> AsyncIterator[Node]:
    """Run a toolrunner in a directory, with these settings besides, and connect to it as chatd."""
    key = SigningKey.generate()
    TrustFile(directory / "trust.json").add_key(ServiceName.CHATD, key)
    SigningKey.generate().save(directory / "key.pem")
    address = Address.parse(f"unix:{directory}/s/toolrunner.sock")
    process = subprocess.Popen(  # noqa: ASYNC220 (nothing else happens meanwhile)
        [sys.executable, "-m", "toolrunner"],
        env={
            "PATH": os.defpath,
            "TOOLRUNNER_LISTEN": str(address),
            "TOOLRUNNER_TRUST_FILE": str(directory / "trust.json"),
            "TOOLRUNNER_SIGNING_KEY_FILE": str(directory / "key.pem"),
            "TOOLRUNNER_DATA_DIRECTORY": str(directory / "data"),
            **(settings or {}),
        },
    )
    try:
        async with start("bench", instance="bench", log_level=LogLevel.ERROR) as telemetry:
            signer = Signer(ServiceName.CHATD, key, SystemClock())
            channel = connect(
                address, audience=ServiceName.TOOLRUNNER, signer=signer, telemetry=telemetry
            )
            await HealthStub(channel).Check(
                health_pb2.HealthCheckRequest(), wait_for_ready=True, timeout=READY_S
            )
            yield Node(channel, process.pid, directory / "data")
            await channel.close()
    finally:
        process.terminate()
        process.wait()


def quantiles(seconds: list[float]) -> dict[str, float]:
    """Return the middle, the end and the last of some times, in milliseconds."""
    ordered = sorted(seconds)
    at = {"p50": 0.5, "p99": 0.99, "max": 1.0}
    return {
        name: round(ordered[min(len(ordered) - 1, int(len(ordered) * part))] * 1000, 3)
        for name, part in at.items()
    }
