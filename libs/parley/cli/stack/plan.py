"""The processes of a stack as values: command, environment, readiness and dependencies of each."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from parley.cli.stack.service_settings import environment_of
from parley.cli.stack.spec import (
    CHATD,
    GATEWAY,
    MCP_DEMO,
    MCPGATEWAY,
    STARTS_AFTER,
    TOOLRUNNER,
    Stack,
)

#: Service -> the arguments of the interpreter.
PROGRAMS: Mapping[str, tuple[str, ...]] = {
    MCP_DEMO: ("-m", "mcpgateway.demo"),
    TOOLRUNNER: ("-m", "toolrunner"),
    MCPGATEWAY: ("-m", "mcpgateway"),
    CHATD: ("-m", "chatd"),
    GATEWAY: ("-m", "gateway"),
}

#: The first process of each service is restarted before the second one of any. chatd continues the
#: turns, and needs toolrunner for their commands.
RESTARTS = (CHATD, TOOLRUNNER, GATEWAY, MCPGATEWAY, MCP_DEMO)


class Sign(StrEnum):
    """The kinds of readiness checks."""

    GRPC_HEALTH = "grpc_health"  # grpc.health.v1 says SERVING at the target address
    HTTP_OK = "http_ok"  # the target URL answers 200
    ACCEPTS = "accepts"  # the target address accepts connections


@dataclass(frozen=True, slots=True)
class Readiness:
    """One readiness check and its target."""

    sign: Sign
    target: str


@dataclass(frozen=True, slots=True)
class ProcessSpec:
    """One process of the stack, before it is started."""

    name: str
    service: str
    argv: tuple[str, ...]
    environment: Mapping[str, str]
    address: str
    #: All of these must succeed.
    readiness: tuple[Readiness, ...]
    #: Services that are started before it and stopped after it.
    depends_on: tuple[str, ...] = ()
    #: The URL of its metrics; None if it has none.
    metrics: str | None = None
    #: The file that it holds locked and in which it names itself; None if it has none.
    instance_file: Path | None = None
    #: Of processes that ended at the same time the lowest rank is started again first.
    restart_rank: int = 0


def plan(
    stack: Stack, programs: Mapping[str, tuple[str, ...]] = PROGRAMS
) -> tuple[ProcessSpec, ...]:
    """Return every process of `stack`, in an order in which they may start."""
    return tuple(
        ProcessSpec(
            name=f"{service}-{number}",
            service=service,
            argv=(stack.caller.python, *programs[service]),
            environment=environment_of(stack, service, number),
            address=stack.address(service, number),
            readiness=_readiness(stack, service, number),
            depends_on=STARTS_AFTER[service],
            metrics=stack.metrics_url(service, number),
            instance_file=stack.instance_file(service, number),
            restart_rank=number * len(RESTARTS) + RESTARTS.index(service),
        )
        for service in STARTS_AFTER
        for number in range(stack.sizes.of(service))
    )


def waves(specs: tuple[ProcessSpec, ...]) -> tuple[tuple[ProcessSpec, ...], ...]:
    """Return `specs` in groups that each depend only on the groups before."""
    remaining = list(specs)
    grouped: list[tuple[ProcessSpec, ...]] = []
    while remaining:
        waiting = {spec.service for spec in remaining}
        wave = tuple(spec for spec in remaining if not waiting.intersection(spec.depends_on))
        if not wave:
            raise ValueError(f"these services wait for each other: {sorted(waiting)}")
        grouped.append(wave)
        remaining = [spec for spec in remaining if spec not in wave]
    return tuple(grouped)


def _readiness(stack: Stack, service: str, number: int) -> tuple[Readiness, ...]:
    address = stack.address(service, number)
    if service == MCP_DEMO:
        return (Readiness(Sign.ACCEPTS, address),)
    health = Readiness(Sign.GRPC_HEALTH, address)
    if service == GATEWAY:
        return (health, Readiness(Sign.HTTP_OK, f"{stack.ports.http[number].url}/readyz"))
    return (health,)
