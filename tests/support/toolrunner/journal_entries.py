"""Entries of a journal for tests, and the journal of a directory."""

from dataclasses import replace
from pathlib import Path

from msgspec import structs

from parley.clock import FakeClock
from toolrunner.journal.journal import Journal
from toolrunner.journal.records import (
    Effect,
    Execution,
    ExecutionState,
    Key,
    ProcessRecord,
    ProcessState,
)
from toolrunner.primitives.domain import ChatId, ExecutionId, ProcessId, WorkspaceId

CHAT = ChatId("chat-1")
CLOCK = FakeClock()
METHOD = "/Service/Start"
PROCESS = ProcessRecord(
    process_id=ProcessId("process-1"),
    workspace_id=WorkspaceId("workspace-1"),
    chat_id=CHAT,
    request_id="execution-1",
    command="true",
    workdir="/",
    is_background=False,
    state=ProcessState.STARTING,
    started_at=CLOCK.now(),
)
RUNNING = structs.replace(PROCESS, state=ProcessState.RUNNING, pid=7)
STARTED = Execution(
    request_id="execution-1",
    chat_id=CHAT,
    method=METHOD,
    body_hash=b"body",
    state=ExecutionState.STARTED,
    process_id=PROCESS.process_id,
    response=b"",
    started_at=CLOCK.now(),
    finished_at=None,
)
FINISHED = replace(
    STARTED, state=ExecutionState.FINISHED, response=b"response", finished_at=CLOCK.now()
)


def key(owner_epoch: int = 1, *, chat_id: str = CHAT, generation: str = "first") -> Key:
    return Key(ExecutionId("execution-1"), ChatId(chat_id), owner_epoch, generation)


FIRST_OWNER = key()


def effect(body: bytes = b"body", by: Key | None = FIRST_OWNER) -> Effect:
    workspace_id = PROCESS.workspace_id if by is None else by.workspace_id
    return Effect("execution-1", by, METHOD, body, lambda record: b"response", workspace_id)


def opened(directory: Path, *, generation: str = "first", boot_id: str = "boot-1") -> Journal:
    path = directory / "journal.sqlite"
    return Journal.open(path, new_generation=generation, boot_id=boot_id, clock=CLOCK)
