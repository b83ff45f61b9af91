"""A toolrunner to test against: in this process, or in one of its own."""

import asyncio
import os
import random  # noqa: TID251 (this composes a process)
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterable, AsyncIterator, Awaitable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import grpc
import psutil

from parley.api.workspace.v1 import (
    execution_pb2,
    process_pb2,
    process_service_pb2,
    sandbox_pb2,
    workspace_pb2,
)
from parley.api.workspace.v1 import execution_service_pb2 as executions_api
from parley.api.workspace.v1.checkpoint_service_pb2_grpc import CheckpointServiceStub
from parley.api.workspace.v1.execution_service_pb2_grpc import ExecutionServiceStub
from parley.api.workspace.v1.file_service_pb2_grpc import FileServiceStub
from parley.api.workspace.v1.git_service_pb2_grpc import GitServiceStub
from parley.api.workspace.v1.process_service_pb2_grpc import ProcessServiceStub
from parley.clock import SystemClock
from parley.identity import ServiceName, Signer, SigningKey, TrustFile
from parley.process import OpenFiles, TimeOrderedIds
from parley.process import Process as RunningProcess
from parley.rpc import Address, connect, problem_of
from parley.settings import read
from parley.telemetry import InMemoryTelemetry
from support.session.sandbox_levels import levels_of_tests
from support.toolrunner.worker_users import WORKER_USERS
from toolrunner.app import serve_node
from toolrunner.settings import Settings

READY_S = 60
STOP_S = 60


@dataclass(frozen=True)
class House:
    """The files that a toolrunner needs, and a chatd that it believes."""

    directory: Path
    key: SigningKey
    clock: SystemClock = field(default_factory=SystemClock)
    settings: dict[str, str] = field(default_factory=dict)
    sandbox_level: str = "none"
    #: Whom a real toolrunner runs as; None for the user of the tests.
    user: int | None = None

    @classmethod
    def build(cls, directory: Path) -> "House":
        key = SigningKey.generate()
        TrustFile(directory / "trust.json").add_key(ServiceName.CHATD, key)
        SigningKey.generate().save(directory / "key.pem")
        return cls(directory, key)

    def given_to(self, user: int) -> "House":
        """Return the same for another user, who owns all of it."""
        for path in (self.directory, *self.directory.rglob("*")):
            os.chown(path, user, user)
        return replace(self, user=user)

    @property
    def address(self) -> Address:
        return Address.parse(f"unix:{self.directory}/s/toolrunner.sock")

    @property
    def data(self) -> Path:
        return self.directory / "data"

    def environment(self) -> dict[str, str]:
        return {
            "PATH": os.defpath,
            "TOOLRUNNER_LISTEN": str(self.address),
            "TOOLRUNNER_TRUST_FILE": str(self.directory / "trust.json"),
            "TOOLRUNNER_SIGNING_KEY_FILE": str(self.directory / "key.pem"),
            "TOOLRUNNER_DATA_DIRECTORY": str(self.data),
            "TOOLRUNNER_FIRST_USER": str(WORKER_USERS.first),
            "TOOLRUNNER_USERS_MAX": str(WORKER_USERS.count),
            # What is tested with a sandbox says so itself.
            "TOOLRUNNER_SANDBOX_LEVEL": self.sandbox_level,
            "TOOLRUNNER_SANDBOX_MINIMUM": self.sandbox_level,
            "A_SECRET_OF_THE_SERVICE": "hunter2",
            **self.settings,
        }


class Client:
    """A chatd that works for one chat in one workspace."""

    def __init__(self, channel: grpc.aio.Channel, new_id: TimeOrderedIds) -> None:
        self.processes = ProcessServiceStub(channel)
        self.executions = ExecutionServiceStub(channel)
        self.files = FileServiceStub(channel)
        self.git = GitServiceStub(channel)
        self.checkpoints = CheckpointServiceStub(channel)
        self.channel = channel
        self.new_id = new_id
        self.chat_id = new_id()
        self.context = workspace_pb2.WorkspaceContext(
            workspace_id=new_id(),
            chat_id=self.chat_id,
            profile=sandbox_pb2.SANDBOX_PROFILE_WORKSPACE_WRITE,
        )

    async def generation(self) -> str:
        journal = await self.executions.GetJournal(executions_api.GetJournalRequest())
        return journal.journal_generation

    async def key(self, execution_id: str, epoch: int = 1) -> execution_pb2.ExecutionKey:
        return execution_pb2.ExecutionKey(
            execution_id=execution_id,
            chat_id=self.chat_id,
            owner_epoch=epoch,
            journal_generation=await self.generation(),
        )

    async def start(
        self, command: str, *, key: execution_pb2.ExecutionKey | None = None, **spec: object
    ) -> process_service_pb2.StartProcessResponse:
        request = process_service_pb2.StartProcessRequest(
            context=self.context,
            request_id=self.new_id() if key is None else key.execution_id,
            key=key,
            spec=process_pb2.ProcessSpec(command=command, **spec),  # type: ignore[arg-type]
        )
        return await self.processes.StartProcess(request)

    async def wait(
        self,
        process_id: str,
        until: "process_pb2.WaitUntil.ValueType" = process_pb2.WAIT_UNTIL_EXIT,
        *,
        max_wait_ms: int = 10_000,
        since_cursor: int = 0,
        pattern: str = "",
        budget: process_pb2.OutputBudget | None = None,
    ) -> process_service_pb2.WaitOutputResponse:
        request = process_service_pb2.WaitOutputRequest(
            context=self.context,
            process_id=process_id,
            since_cursor=since_cursor,
            condition=process_pb2.WaitCondition(
                until=until, max_wait_ms=max_wait_ms, pattern=pattern
            ),
            budget=budget,
        )
        return await self.processes.WaitOutput(request, timeout=max_wait_ms / 1000 + 30)

    async def run(self, command: str, **spec: object) -> process_service_pb2.WaitOutputResponse:
        started = await self.start(command, **spec)  # type: ignore[arg-type]
        return await self.wait(started.process.process_id, max_wait_ms=60_000)

    async def get(self, process_id: str) -> process_pb2.Process:
        request = process_service_pb2.GetProcessRequest(context=self.context, process_id=process_id)
        return (await self.processes.GetProcess(request)).process

    async def write(
        self,
        process_id: str,
        data: bytes = b"",
        *,
        key: execution_pb2.ExecutionKey | None = None,
        **fields: object,
    ) -> process_service_pb2.WriteStdinResponse:
        request = process_service_pb2.WriteStdinRequest(
            context=self.context,
            request_id=self.new_id() if key is None else key.execution_id,
            key=key,
            process_id=process_id,
            data=data,
            **fields,  # type: ignore[arg-type]
        )
        return await self.processes.WriteStdin(request, timeout=40)

    async def resize(self, process_id: str, rows: int, columns: int) -> None:
        request = process_service_pb2.ResizeTerminalRequest(
            context=self.context,
            request_id=self.new_id(),
            process_id=process_id,
            size=process_pb2.TerminalSize(rows=rows, columns=columns),
        )
        await self.processes.ResizeTerminal(request)

    def stream(
        self, process_id: str, *, since_cursor: int = 0, follow: bool = True
    ) -> AsyncIterable[process_service_pb2.StreamOutputResponse]:
        request = process_service_pb2.StreamOutputRequest(
            context=self.context, process_id=process_id, since_cursor=since_cursor, follow=follow
        )
        return self.processes.StreamOutput(request, timeout=60)

    async def cancel(self, key: execution_pb2.ExecutionKey) -> execution_pb2.Execution:
        request = executions_api.CancelExecutionRequest(request_id=self.new_id(), key=key)
        return (await self.executions.CancelExecution(request)).execution

    async def execution(self, key: execution_pb2.ExecutionKey) -> execution_pb2.Execution:
        request = executions_api.GetExecutionRequest(key=key)
        return (await self.executions.GetExecution(request)).execution

    def stands_for(self, other: "Client") -> None:
        """Work for the chat and in the workspace of another client."""
        self.chat_id, self.context = other.chat_id, other.context

    async def signal(
        self,
        process_id: str,
        signal: "process_pb2.ProcessSignal.ValueType" = process_pb2.PROCESS_SIGNAL_TERMINATE,
        **fields: object,
    ) -> process_pb2.Process:
        request = process_service_pb2.SignalProcessRequest(
            context=self.context,
            request_id=self.new_id(),
            process_id=process_id,
            signal=signal,
            **fields,  # type: ignore[arg-type]
        )
        return (await self.processes.SignalProcess(request)).process


@asynccontextmanager
async def node(house: House) -> AsyncIterator[None]:
    """Serve a node in this process: everything but what a process does to itself."""
    telemetry = InMemoryTelemetry().telemetry
    chance = random.SystemRandom()
    process = RunningProcess(
        service="toolrunner",
        instance="toolrunner-1",
        stopping=asyncio.Event(),
        clock=house.clock,
        telemetry=telemetry,
        random=chance,
        new_id=TimeOrderedIds(house.clock, chance),
        open_files=OpenFiles(limit=4096, limit_at_start=1024),
    )
    environment = house.environment()
    given = {name: value for name, value in environment.items() if name.startswith("TOOLRUNNER_")}
    settings = read(Settings, given, prefix="TOOLRUNNER")
    house.data.mkdir(exist_ok=True)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(serve_node(settings, process, house.data))
        try:
            with levels_of_tests.held(environment["TOOLRUNNER_SANDBOX_LEVEL"]):
                yield
        finally:
            process.stopping.set()


@asynccontextmanager
async def toolrunner(house: House, **settings: str) -> AsyncIterator[Process]:
    """Run a real toolrunner, and leave nothing behind."""
    environment = {**house.environment(), **settings}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "toolrunner",
        env=environment,
        stderr=PIPE,
        user=house.user,
        group=house.user,
        extra_groups=None if house.user is None else [],
    )
    try:
        with levels_of_tests.held(environment["TOOLRUNNER_SANDBOX_LEVEL"]):
            yield process
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        try:
            async with asyncio.timeout(STOP_S):
                await process.wait()
        except TimeoutError:
            process.kill()
            raise


@asynccontextmanager
async def connected(house: House) -> AsyncIterator[Client]:
    """Connect as chatd, once the toolrunner answers."""
    signer = Signer(ServiceName.CHATD, house.key, house.clock)
    telemetry = InMemoryTelemetry().telemetry
    channel = connect(
        house.address, audience=ServiceName.TOOLRUNNER, signer=signer, telemetry=telemetry
    )
    async with AsyncExitStack() as stack:
        stack.push_async_callback(channel.close)
        client = Client(channel, TimeOrderedIds(house.clock, random.SystemRandom()))
        async with asyncio.timeout(READY_S):
            await client.executions.GetJournal(
                executions_api.GetJournalRequest(), wait_for_ready=True, timeout=READY_S
            )
        yield client


async def reason_of(call: Awaitable[object]) -> tuple[grpc.StatusCode, str]:
    """Return why a call was refused."""
    try:
        await call
    except grpc.aio.AioRpcError as refused:
        problem = problem_of(refused)
        return problem.status, problem.reason
    raise AssertionError("the call was not refused")


def running(word: str) -> list[int]:
    """Return the processes of these tests whose command line holds a word.

    Others on the machine may run the same tests. What these leave behind comes to this process,
    once it has said that it reaps (see the fixture `reaping`).
    """
    found = []
    for process in psutil.Process().children(recursive=True):
        with suppress(OSError):
            if word.encode() in Path(f"/proc/{process.pid}/cmdline").read_bytes():
                found.append(process.pid)
    return found
