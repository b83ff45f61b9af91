"""Secrets of adopted processes are requested until all of them are masked."""

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from msgspec import structs

from parley.clock import FakeClock
from toolrunner.egress import Delivery, Grant, SecretUnavailable
from toolrunner.egress.listeners import EgressRoute
from toolrunner.journal.records import ProcessRecord, ProcessState
from toolrunner.primitives.domain import ChatId, ProcessId, WorkspaceId
from toolrunner.processes.adopted_masks import AGAIN_S, AdoptedMasks
from toolrunner.processes.live_process import LiveProcess, Pipes
from toolrunner.processes.output.buffer import KeptOutput
from toolrunner.processes.output.log import OutputLog
from toolrunner.spawner.client.spawner import Launched

FIRST, SECOND = "swordfish-0123456789", "sword-of-another-kind"
RECORD = ProcessRecord(
    process_id=ProcessId("p"),
    workspace_id=WorkspaceId("w"),
    chat_id=ChatId("c"),
    request_id="r",
    command="env",
    workdir="/",
    is_background=False,
    state=ProcessState.STARTING,
    started_at=FakeClock().now(),
)


@dataclass
class Secrets:
    """The secrets of one workspace.

    Attributes:
        values: Those that are available.
        refused: Names of those that are not granted any more.
        requests: The names requested, in order.
    """

    values: dict[str, str]
    refused: frozenset[str] = frozenset()
    requests: list[tuple[str, str]] = field(default_factory=list)

    async def egress_route(self, workspace_id: WorkspaceId) -> EgressRoute | None:
        raise NotImplementedError

    async def secret_variables(
        self, workspace_id: WorkspaceId, process_id: ProcessId
    ) -> Mapping[str, str]:
        raise NotImplementedError

    def variable_grants(self, workspace_id: WorkspaceId) -> tuple[Grant, ...]:
        return tuple(
            Grant(name, (), Delivery.ENVIRONMENT, variable=name) for name in ("first", "second")
        )

    async def secret_text(
        self, workspace_id: WorkspaceId, process_id: ProcessId, grant: Grant
    ) -> str:
        self.requests.append((process_id, grant.name))
        if grant.name not in self.values:
            is_final = grant.name in self.refused
            raise SecretUnavailable(grant.name, "not now", is_final=is_final)
        return self.values[grant.name]


class Printing:
    """A process whose output the test writes."""

    def __init__(self, directory: Path, name: str = "p") -> None:
        self.pipes = Pipes()
        record = structs.replace(RECORD, process_id=ProcessId(name))
        output = KeptOutput(OutputLog(directory, name, 1000))
        self.live = LiveProcess(record, output, 0.0, self.pipes)
        output_fd, self.writing = os.pipe()
        self.live.run(Launched(pid=1, output_fd=output_fd))

    def prints(self, text: str) -> str:
        """Print something; return all output so far."""
        os.write(self.writing, text.encode())
        self.live.read_rest()
        return self.live.output.read(0, self.live.output.total_bytes).decode()

    def close(self) -> None:
        self.live.close()
        self.pipes.close()
        os.close(self.writing)


async def test_each_secret_is_masked_as_soon_as_it_is_available(tmp_path: Path) -> None:
    secrets, clock, process = Secrets({"second": SECOND}), FakeClock(), Printing(tmp_path)
    masks, stars = AdoptedMasks(secrets, clock), "*" * len(SECOND)
    masks.add(process.live)
    async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
        tasks.create_task(masks.run())
        await clock.until_sleeping()
        assert process.prints(f"{FIRST} {SECOND}\n") == f"{FIRST} {stars}\n"
        # The beginning of the second is one of the first, too.
        assert process.prints("sword") == f"{FIRST} {stars}\n"
        secrets.values["first"] = FIRST
        clock.advance(AGAIN_S)
    shown = process.prints(f"{FIRST[5:]} {SECOND}\n")
    process.close()

    assert shown == f"{FIRST} {stars}\n{'*' * len(FIRST)} {stars}\n"
    assert secrets.requests == [("p", "first"), ("p", "second"), ("p", "first")]
    assert masks.unmasked == []


async def test_a_process_that_prints_no_more_is_dropped(tmp_path: Path) -> None:
    secrets, clock = Secrets({}), FakeClock()
    processes = [Printing(tmp_path, name) for name in ("p", "q")]
    masks = AdoptedMasks(secrets, clock)
    for each in processes:
        masks.add(each.live)
    async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
        tasks.create_task(masks.run())
        await clock.until_sleeping()
        processes[0].live.close()
        clock.advance(AGAIN_S)
        await clock.until_sleeping_for(2 * AGAIN_S)
        left = [each.live for each in masks.unmasked]
        processes[1].live.close()
        clock.advance(2 * AGAIN_S)
    for each in processes:
        each.close()

    assert left == [processes[1].live]
    assert masks.unmasked == []
    assert secrets.requests.count(("p", "first")) == 1
    assert secrets.requests.count(("q", "first")) == 2


async def test_a_secret_that_is_not_granted_any_more_is_not_requested_again(
    tmp_path: Path,
) -> None:
    process = Printing(tmp_path)
    secrets = Secrets({"second": SECOND}, refused=frozenset({"first"}))
    masks = AdoptedMasks(secrets, FakeClock())
    masks.add(process.live)
    async with asyncio.timeout(10):
        await masks.run()
    shown = process.prints(f"{SECOND}\n")
    process.close()

    assert shown == "*" * len(SECOND) + "\n"
    assert secrets.requests == [("p", "first"), ("p", "second")]
