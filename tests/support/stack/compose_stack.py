"""The services of compose.yaml as local processes, with an embedded server for its PostgreSQL."""

import asyncio
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import asyncpg

from parley.postgres import EmbeddedServer
from support.host.conditions import until
from support.host.ports import free_ports
from support.stack.compose_file import ComposeService, Placement, Replica, document, services

#: Runs in this order and ends, before anything that stays.
ONE_SHOTS = ("keys", "roles")
POSTGRES = "postgres"

ONE_SHOT_S_MAX = 120.0
HEALTHY_S_MAX = 180.0
STOPPING_S_MAX = 60.0

PROGRAMS = Path(sys.executable).parent


@dataclass(frozen=True, slots=True)
class ComposeStack:
    """The project while it runs."""

    services: Mapping[str, ComposeService]
    placement: Placement
    processes: Mapping[str, "subprocess.Popen[bytes]"]
    logs: Path

    def replica(self, service: str, number: int) -> Replica:
        """Return one replica of `service`, counted from 1."""
        return Replica(self.services[service], number)

    def port(self, service: str, number: int, port: int) -> int:
        """Return where on this machine a replica's port is."""
        return self.placement.port(self.replica(service, number), port)

    def secret(self, service: str, name: str) -> str:
        """Return what a file in the service's /run/parley says."""
        replica = self.replica(service, 1)
        return (self.placement.directory(replica, "/run/parley") / name).read_text().strip()

    def is_healthy(self, replica: Replica) -> bool:
        """Run the health check of compose.yaml once."""
        asked = self._run(replica, replica.service.health)
        assert asked.returncode in (0, 1), f"{replica.name}: {asked.stderr}"
        return asked.returncode == 0

    def run(self, replica: Replica) -> None:
        """Run a replica that ends by itself."""
        ended = self._run(replica, replica.service.command)
        assert ended.returncode == 0, f"{replica.name}: {ended.stderr}"

    def _run(self, replica: Replica, words: tuple[str, ...]) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            self.placement.command(words, replica),
            env=self.placement.environment(replica, PROGRAMS),
            cwd=self.logs,
            capture_output=True,
            text=True,
            timeout=ONE_SHOT_S_MAX,
            check=False,
        )


@contextmanager
def compose_stack(root: Path) -> Iterator[ComposeStack]:
    """Run everything that compose.yaml names until the context ends; two of each service."""
    found = document()
    known = services(found)
    processes: dict[str, subprocess.Popen[bytes]] = {}
    replicas = [
        Replica(service, number + 1)
        for service in known.values()
        for number in range(service.replicas)
        if service.name != POSTGRES
    ]
    (database_port,) = free_ports(1)
    place = Placement(found["name"], replicas, root, {f"{POSTGRES}:5432": database_port})
    for replica in (*replicas, Replica(known[POSTGRES], 1)):
        place.prepare(replica)
    stack = ComposeStack(known, place, processes, root)
    server = EmbeddedServer(root / "server", tcp_port=database_port, is_durable=False)
    try:
        stack.run(stack.replica("keys", 1))
        asyncio.run(_start_database(server, stack))
        stack.run(stack.replica("roles", 1))
        for replica in replicas:
            if replica.service.name not in ONE_SHOTS:
                processes[replica.name] = _start(stack, replica)
        until_healthy(stack)
        yield stack
    finally:
        _stop(processes)
        asyncio.run(server.stop())


def until_healthy(stack: ComposeStack) -> None:
    """Wait until the health checks of all running replicas succeed."""
    for name, process in stack.processes.items():
        service, _, number = name.rpartition("-")
        replica = stack.replica(service, int(number))

        def look(replica: Replica = replica, process: "subprocess.Popen[bytes]" = process) -> bool:
            assert process.poll() is None, said(stack, replica.name)
            # The check itself starts an interpreter, which would only delay those that start.
            return accepts(stack.placement, replica) and stack.is_healthy(replica)

        until(look, f"the health of {name}", within_s=HEALTHY_S_MAX)


def accepts(placement: Placement, replica: Replica) -> bool:
    """Tell whether all ports of the replica can be connected to."""
    for port in replica.service.ports:
        with socket.socket() as attempt:
            if attempt.connect_ex(("127.0.0.1", placement.port(replica, port))) != 0:
                return False
    return True


def said(stack: ComposeStack, name: str) -> str:
    """Return what a process wrote."""
    return (stack.logs / f"{name}.log").read_text()


def _start(stack: ComposeStack, replica: Replica) -> "subprocess.Popen[bytes]":
    with (stack.logs / f"{replica.name}.log").open("wb") as log:
        return subprocess.Popen(
            stack.placement.command(replica.service.command, replica),
            env=stack.placement.environment(replica, PROGRAMS),
            cwd=stack.logs,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


async def _start_database(server: EmbeddedServer, stack: ComposeStack) -> None:
    """Do what the image of PostgreSQL does at its first start, as its environment says."""
    await server.start()
    given = stack.services[POSTGRES].environment
    directory = stack.placement.directory(stack.replica(POSTGRES, 1), "/run/parley")
    password = (directory / Path(given["POSTGRES_PASSWORD_FILE"]).name).read_text().strip()
    role, name = given["POSTGRES_USER"], given["POSTGRES_DB"]
    connection = await asyncpg.connect(server.admin_url())
    try:
        await connection.execute(f"CREATE ROLE {role} SUPERUSER LOGIN PASSWORD '{password}'")
        await connection.execute(f"CREATE DATABASE {name} OWNER {role}")
    finally:
        await connection.close()


def _stop(processes: Mapping[str, "subprocess.Popen[bytes]"]) -> None:
    for process in processes.values():
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
    for process in processes.values():
        try:
            process.wait(STOPPING_S_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(STOPPING_S_MAX)
