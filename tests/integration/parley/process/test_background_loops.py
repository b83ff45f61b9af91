"""A failure in any loop of any service is survived by the process and by the loop.

Each service runs whole in this process, against a real database. Every loop that it has then is
listed here by name, so that a new one is noticed; and each is made to fail where it waits.
"""

import asyncio
import os
import random  # noqa: TID251 (a composition root of tests)
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import chatd.app
import chatd.settings
import gateway.app
import gateway.settings
import mcpgateway.app
import mcpgateway.settings
import toolrunner.app
import toolrunner.settings
from parley.clock import SystemClock
from parley.identity import ApiKey, ServiceName, SigningKey, TrustFile
from parley.process import OpenFiles, Process, TimeOrderedIds
from parley.secrets import Keyring
from parley.settings import read
from parley.tasks import LOOP_PREFIX
from parley.telemetry import InMemoryTelemetry
from support.host.injected_failures import InjectableTasks

WITHIN_S = 60.0
ENDED_WITHIN_S = 20.0
ROOT = Path(__file__).resolve().parents[4]
OURS = (str(ROOT / "services"), str(ROOT / "libs"))
BUS = {"bus.listen", "bus.send"}
LOOPS = {
    "chatd": {
        *BUS,
        "agents.resume",
        "approvals.follow",
        "audit_events.deliver",
        "calls.store",
        "chats.follow",
        "chats.run",
        "configuration.follow",
        "configuration.read",
        "diffs.look",
        "executions.acknowledge",
        "executions.cancel",
        "feeds.look",
        "goals.run",
        "groups.check",
        "groups.follow",
        "hooks.follow",
        "hooks.read",
        "labels.generate",
        "labels.wait",
        "lease.reconcile",
        "lease.renew",
        "ledger.enter",
        "limits.follow",
        "master_keys.follow",
        "models.discover",
        "monitors.run",
        "notes.follow",
        "partials.write",
        "push.follow",
        "push.send",
        "quarantine.run",
        "replicas.look",
        "revocations.follow",
        "retention.run",
        "rows.expire",
        "schedules.run",
        "search.index",
        "servers.follow",
        "streams.access",
        "streams.poll",
        "sweeps.follow",
        "sweeps.run",
        "sweeps.time",
        "timer.flush",
        "trusted_servers.follow",
        "users.check",
        "users.follow",
        "workspaces.check",
        "workspaces.drive",
        "workspaces.follow",
    },
    "gateway": {
        *BUS,
        "audit_log.prune",
        "audit_log.sign",
        "exports.run",
        "keys.follow",
        "master_keys.follow",
        "names.follow",
        "rates.share",
        "replicas.follow",
        "revocations.read",
        "sign_ins.check",
        "streams.renew",
        "streams.time",
    },
    "mcpgateway": {
        *BUS,
        "audit_events.deliver",
        "catalogues.ask_failed",
        "catalogues.expire",
        "lease.renew",
        "logins.follow",
        "master_keys.follow",
        "recorded_calls.expire",
        "revocations.follow",
        "servers.follow",
        "sessions.expire",
        "users.follow",
        "users.sweep",
    },
    "toolrunner": {
        "checkpoints.close",
        "checkpoints.settle",
        "commands.check",
        "file_workers.expire",
        "node.register",
        "processes.expire",
        "quotas.check",
        "usage.measure",
    },
}


@dataclass(frozen=True, slots=True)
class Service:
    """A service as its program runs it.

    Attributes:
        run: Its composition root.
        settings: What it reads its settings into.
        environment: What is set for it, without the prefix.
    """

    run: Callable[[Any, Process], Awaitable[None]]
    settings: type[Any]
    environment: Callable[[Path, str], dict[str, str]]


def of_chatd(directory: Path, database: str) -> dict[str, str]:
    return {
        "DATABASE_URL": database,
        "MASTER_KEY_FILE": str(directory / "master.json"),
        "GATEWAY": f"unix:{directory}/none",
        "TOOLRUNNER": f"unix:{directory}/none",
        "MCPGATEWAY": f"unix:{directory}/none",
        # Its models are asked for again until it answers, which nothing does at this port.
        "OPENAI_BASE_URL": "http://127.0.0.1:1/v1",
    }


def of_gateway(directory: Path, database: str) -> dict[str, str]:
    return {
        "DATABASE_URL": database,
        "HTTP_LISTEN": "127.0.0.1:0",
        "PUBLIC_URL": "http://parley.test",
        "CHATD": f"unix:{directory}/none",
        "MASTER_KEY_FILE": str(directory / "master.json"),
        "OWNER_API_KEY": ApiKey.generate().reveal(),
        "AUDIT_KEY_FILE": str(directory / "signing.pem"),
        "AUDIT_HEADS_FILE": str(directory / "audit_heads.jsonl"),
    }


def of_mcpgateway(directory: Path, database: str) -> dict[str, str]:
    return {
        "DATABASE_URL": database,
        "MASTER_KEY_FILE": str(directory / "master.json"),
        "GATEWAY": f"unix:{directory}/none",
    }


def of_toolrunner(directory: Path, database: str) -> dict[str, str]:
    (directory / "data").mkdir()
    return {
        "DATA_DIRECTORY": str(directory / "data"),
        "CHATD": f"unix:{directory}/none",
        "SANDBOX_LEVEL": "none",
        "SANDBOX_MINIMUM": "none",
    }


async def run_node(settings: toolrunner.settings.Settings, process: Process) -> None:
    await toolrunner.app.serve_node(settings, process, settings.data_directory)


SERVICES = {
    "chatd": Service(chatd.app.run, chatd.settings.Settings, of_chatd),
    "gateway": Service(gateway.app.run, gateway.settings.GatewaySettings, of_gateway),
    "mcpgateway": Service(mcpgateway.app.run, mcpgateway.settings.Settings, of_mcpgateway),
    "toolrunner": Service(run_node, toolrunner.settings.Settings, of_toolrunner),
}


@asynccontextmanager
async def running(name: str, directory: Path, database: str) -> AsyncIterator[Process]:
    """Run a service in this process; it must end by itself when it is asked to stop."""
    service = SERVICES[name]
    key = SigningKey.generate()
    key.save(directory / "signing.pem")
    TrustFile(directory / "trust.json").add_key(ServiceName(name), key)
    Keyring.generate().save(directory / "master.json")
    clock, rng = SystemClock(), random.Random(1)
    given = {
        "LISTEN": f"unix:{directory}/listen.sock",
        "TRUST_FILE": str(directory / "trust.json"),
        "SIGNING_KEY_FILE": str(directory / "signing.pem"),
        "ENVIRONMENT": "development",
        **service.environment(directory, database),
    }
    prefix = name.upper()
    environment = {f"{prefix}_{variable}": value for variable, value in given.items()}
    settings = read(service.settings, environment, prefix=prefix)
    process = Process(
        service=name,
        instance=f"{name}-{os.getpid()}",
        stopping=asyncio.Event(),
        clock=clock,
        telemetry=InMemoryTelemetry(name).telemetry,
        random=rng,
        new_id=TimeOrderedIds(clock, rng),
        open_files=OpenFiles(limit=4096, limit_at_start=1024),
    )

    async def run() -> None:
        await service.run(settings, process)

    async with asyncio.timeout(WITHIN_S), asyncio.TaskGroup() as group:
        serving = group.create_task(run(), name=name)
        try:
            yield process
            assert not serving.done()
        finally:
            process.stopping.set()
            await asyncio.wait((serving,))


def loops_of(tasks: InjectableTasks) -> dict[str, asyncio.Task[Any]]:
    return {
        task.get_name().removeprefix(LOOP_PREFIX): task
        for task in tasks.alive()
        if task.get_name().startswith(LOOP_PREFIX)
    }


async def until(holds: Callable[[], bool]) -> None:
    while not holds():
        await asyncio.to_thread(lambda: None)


@pytest.mark.parametrize("name", SERVICES)
async def test_every_loop_of_a_service_survives_its_own_failure(
    name: str, tmp_path: Path, empty_database: str
) -> None:
    with InjectableTasks().installed() as tasks:
        async with running(name, tmp_path, empty_database) as process:
            await until(lambda: loops_of(tasks).keys() >= LOOPS[name])
            assert loops_of(tasks).keys() == LOOPS[name]

            def failures(loop: str) -> bool:
                counted = f'parley_background_failures_total{{task="{loop}"}}'
                return counted in process.telemetry.metrics_text()

            for loop in sorted(LOOPS[name]):
                # Looked up anew: one that fails may have started others, which then begin anew.
                await until(lambda loop=loop: loop in loops_of(tasks))  # type: ignore[misc]
                task = loops_of(tasks)[loop]
                tasks.fail(task)
                await until(lambda task=task: tasks.waits_since(task) > 0)  # type: ignore[misc]
                if failures(loop):
                    # It waits once for the pause, and again because it has begun anew.
                    await until(lambda task=task: tasks.waits_since(task) > 1)  # type: ignore[misc]
                assert not task.done()
            await until(lambda: loops_of(tasks).keys() == LOOPS[name])


@pytest.mark.parametrize("name", SERVICES)
async def test_nothing_but_loops_is_started_for_as_long_as_a_service_runs(
    name: str, tmp_path: Path, empty_database: str
) -> None:
    with InjectableTasks().installed() as tasks:
        async with running(name, tmp_path, empty_database):
            await until(lambda: loops_of(tasks).keys() >= LOOPS[name])
            known = set(loops_of(tasks).values())

            def is_known(task: asyncio.Task[Any] | None) -> bool:
                return task is not None and (task in known or is_known(tasks.parent_of(task)))

            def others() -> set[str]:
                return {
                    task.get_name()
                    for task in tasks.alive()
                    if tasks.file_of(task).startswith(OURS) and not is_known(task)
                }

            # What the start itself needed may still be about to end.
            with suppress(TimeoutError):
                async with asyncio.timeout(ENDED_WITHIN_S):
                    await until(lambda: not others())
            assert others() == set()
