"""A chat that may only read: whatever it tries, and whatever it left running, nothing changes."""

import asyncio
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import grpc
import pytest

from parley.api.workspace.v1 import (
    file_service_pb2,
    git_service_pb2,
    process_pb2,
    sandbox_pb2,
)
from parley.rpc import problem_of
from support.toolrunner.attacks import forbidden_writes
from support.toolrunner.files import Files
from support.toolrunner.node import Client, House, connected, node, running, toolrunner
from support.toolrunner.sandboxes import all_offered, offered, tell
from support.toolrunner.workspace_states import everything_in
from toolrunner.sandbox import Level

WITHIN_S = 20
WRITE = sandbox_pb2.SANDBOX_PROFILE_WORKSPACE_WRITE
READ_ONLY = sandbox_pb2.SANDBOX_PROFILE_READ_ONLY
PIPE = process_pb2.STDIN_MODE_PIPE


@dataclass(frozen=True)
class Kind:
    """A sandbox, and the user that the node runs as; None for that of the tests."""

    level: Level
    user: int | None = None

    def __str__(self) -> str:
        return self.level.word if self.user is None else f"{self.level.word}, ordinary user"


ORDINARY = [Kind(Level.NS, 65_534)] * (Level.NS in offered() and os.geteuid() == 0)
ENFORCING = (*map(Kind, offered()), *ORDINARY)
KINDS = (*map(Kind, dict.fromkeys((Level.NONE, *all_offered()))), *ORDINARY)


@pytest.fixture(params=KINDS, ids=str)
def kind(request: pytest.FixtureRequest) -> Kind:
    found: Kind = request.param
    return found


@pytest.fixture
def directory() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="parley-node-"))
    path.chmod(0o711)
    yield path
    shutil.rmtree(path)


@dataclass(frozen=True)
class Reader:
    """A chat, and the directories of its workspace."""

    client: Client
    directory: Path
    kind: Kind

    @property
    def runs_commands(self) -> bool:
        """Whether commands that may only read are run."""
        return self.kind.level in (Level.LANDLOCK, Level.NS)

    def context(self, profile: "sandbox_pb2.SandboxProfile.ValueType") -> None:
        self.client.context.profile = profile

    @property
    def root(self) -> Path:
        return self.directory / "files"

    async def first_line(self, command: str, **spec: object) -> str:
        """Start a process that goes on, wait for its first line, and return its id."""
        started = await self.client.start(command, background=True, **spec)  # type: ignore[arg-type]
        process_id = started.process.process_id
        waited = await self.client.wait(process_id, process_pb2.WAIT_UNTIL_OUTPUT)
        assert waited.output.text == "up\n", waited
        return process_id

    def everything(self) -> dict[str, object]:
        """Return all that can be changed of the workspace: files, home, temporary files, output."""
        return everything_in(self.directory)


@pytest.fixture
async def reader(kind: Kind, directory: Path) -> AsyncIterator[Reader]:
    house = replace(House.build(directory), sandbox_level=kind.level.word)
    if kind.user is not None:
        house = house.given_to(kind.user)
    async with AsyncExitStack() as stack:
        if kind.user is None:
            await stack.enter_async_context(node(house))
        else:
            await stack.enter_async_context(toolrunner(house))
        client = await stack.enter_async_context(connected(house))
        place = house.data / "workspaces" / client.context.workspace_id
        yield Reader(client, place, kind)


async def refusal_of(call: Awaitable[object]) -> str:
    try:
        await call
    except grpc.aio.AioRpcError as refused:
        return problem_of(refused).reason
    return ""


async def test_no_way_of_writing_is_left_to_a_chat_that_may_only_read(reader: Reader) -> None:
    client = reader.client
    await client.run(forbidden_writes.FILES)
    shell = await reader.first_line("echo up; exec sh", stdin_mode=PIPE)
    terminal = (
        await client.start("exec sh", terminal=process_pb2.TerminalSize(rows=24, columns=80))
    ).process.process_id
    servants = f"exec python3 -I -S -c '{forbidden_writes.SERVANTS}'"
    await reader.first_line(servants)
    await client.run(forbidden_writes.LEFTOVER)
    if reader.kind.level is not Level.NONE:
        await client.run(forbidden_writes.SHEDDING)
    await client.run(forbidden_writes.TMUX)
    person = await _person(reader)
    reader.context(READ_ONLY)
    # The first call, whichever it is, comes back when nothing from before can write any more.
    await Files(client, reader.root).read("kept")
    before = reader.everything()
    ways = {
        **{name: _ran(reader, text) for name, text in forbidden_writes.COMMANDS.items()},
        **_requests(reader, shell, terminal, person),
    }
    succeeded = []
    for name, attempt in ways.items():
        await attempt()
        after = reader.everything()
        if after != before:
            changed = {path for path in {*before, *after} if before.get(path) != after.get(path)}
            succeeded.append((name, sorted(changed)))
            before = after
    tell(
        f"writing where a chat may only read, {reader.kind}",
        reader.kind.level,
        len(succeeded),
        len(ways),
    )
    assert succeeded == []
    assert len(ways) >= 30
    states = [(await client.get(each)).state for each in (shell, terminal, person)]
    ended, running = process_pb2.PROCESS_STATE_EXITED, process_pb2.PROCESS_STATE_RUNNING
    assert states == [ended, ended, running]


async def _person(reader: Reader) -> str:
    """Open a shell as a person does: it belongs to no chat."""
    chat_id = reader.client.context.chat_id
    reader.client.context.chat_id = ""
    try:
        script = "trap 'echo hacked > by_signal' USR1; echo up; while :; do sleep 0.01; done"
        return await reader.first_line(script, stdin_mode=PIPE)
    finally:
        reader.client.context.chat_id = chat_id


def _ran(reader: Reader, command: str) -> Callable[[], Awaitable[object]]:
    async def attempt() -> None:
        script = f"exec 2>&1; {command}"
        run = reader.client.run(script, environment={"W": str(reader.root)})
        refused = await refusal_of(run)
        assert refused == ("" if reader.runs_commands else "SANDBOX_TOO_WEAK")

    return attempt


def _requests(
    reader: Reader, shell: str, terminal: str, person: str
) -> dict[str, Callable[[], Awaitable[object]]]:
    """Return requests that change something, each of which has to be refused."""
    client, files = reader.client, Files(reader.client, reader.root)
    given = {"context": client.context}

    def named() -> dict[str, object]:
        return {**given, "request_id": client.new_id()}

    def refused(
        make: Callable[[], Awaitable[object]], *reasons: str
    ) -> Callable[[], Awaitable[None]]:
        async def attempt() -> None:
            assert await refusal_of(make()) in (reasons or ("READ_ONLY",))

        return attempt

    line = b"echo hacked > by_input\n"
    kill, git, api = process_pb2.PROCESS_SIGNAL_KILL, git_service_pb2, file_service_pb2
    over = ("READ_ONLY", "PROCESS_NOT_RUNNING")

    def upload() -> Awaitable[object]:
        head = api.UploadFileHead(context=client.context, request_id=client.new_id(), path="new")
        parts = (api.UploadFileRequest(head=head), api.UploadFileRequest(chunk=b"x"))
        return client.files.UploadFile(iter(parts))

    async def in_a_terminal() -> None:
        """Write into a terminal that was opened in this mode, which may only read as well."""
        size = process_pb2.TerminalSize(rows=24, columns=80)
        started = await client.start("exec sh", terminal=size)
        process_id = started.process.process_id
        await client.write(process_id, b"echo hacked > new; exit\n")
        await client.wait(process_id)

    return {
        "process_write to a shell from before": refused(lambda: client.write(shell, line), *over),
        "process_write to a terminal": refused(lambda: client.write(terminal, line), *over),
        "process_write to a person's shell": refused(lambda: client.write(person, line)),
        "process_signal to a person's shell": refused(lambda: client.signal(person, kill)),
        "write_file": refused(lambda: files.write("new", b"hacked")),
        "edit_files": refused(lambda: files.edit(("kept", "before", "hacked"))),
        "apply_patch": refused(lambda: files.patch("*** Delete File: kept")),
        "undo": refused(lambda: files.undo(path="kept")),
        "upload": refused(upload),
        "make directory": refused(
            lambda: client.files.MakeDirectory(api.MakeDirectoryRequest(**named(), path="made"))  # type: ignore[arg-type]
        ),
        "move": refused(
            lambda: client.files.MovePath(
                api.MovePathRequest(**named(), path="kept", new_path="moved")  # type: ignore[arg-type]
            )
        ),
        "delete": refused(
            lambda: client.files.DeletePath(api.DeletePathRequest(**named(), path="kept"))  # type: ignore[arg-type]
        ),
        "checkpoint": refused(
            lambda: client.git.CreateCheckpoint(
                git.CreateCheckpointRequest(**named(), label="hacked")  # type: ignore[arg-type]
            )
        ),
        "restore": refused(
            lambda: client.git.RestoreCheckpoint(git.RestoreCheckpointRequest(**named(), ref="x"))  # type: ignore[arg-type]
        ),
        **({"a terminal": in_a_terminal} if reader.runs_commands else {}),
    }


async def test_the_same_command_lines_write_where_a_chat_may_write(directory: Path) -> None:
    level = all_offered()[-1]
    house = replace(House.build(directory), sandbox_level=level.word)
    written = 0
    async with node(house), connected(house) as client:
        reader = Reader(
            client, house.data / "workspaces" / client.context.workspace_id, Kind(level)
        )
        for command in forbidden_writes.COMMANDS.values():
            await client.run(f"rm -rf ./* .git; {forbidden_writes.FILES}")
            before = reader.everything()
            await client.run(command, environment={"W": str(reader.root)})
            written += reader.everything() != before
    # The others need what a chat leaves running, or rights that no command has.
    assert written >= 40


@pytest.mark.parametrize("kind", ENFORCING, ids=str)
async def test_temporary_files_vanish_with_the_process_that_made_them(reader: Reader) -> None:
    reader.context(READ_ONLY)
    made = await reader.client.run(
        'echo x > "$TMPDIR/made"; cat "$TMPDIR/made"; (env -i setsid sleep 6789 >/dev/null 2>&1 &)'
    )
    found = await reader.client.run('find "$TMPDIR" /tmp /var/tmp /dev/shm -name made 2>/dev/null')
    assert (made.output.text, found.output.text) == ("x\n", "")
    assert [*(reader.directory / "tmp").iterdir()] == []
    async with asyncio.timeout(WITHIN_S):
        while running("6789"):
            await reader.client.get(made.process.process_id)
    scratch = reader.directory / "scratch"
    assert [each.name for each in scratch.glob("*") if each.name != "trash"] == []


async def test_a_chat_that_only_reads_keeps_what_it_starts_and_leaves_others_alone(
    reader: Reader,
) -> None:
    client = reader.client
    own, other = client.context.chat_id, client.new_id()
    client.context.chat_id = other
    others = await reader.first_line("echo up; exec sleep 600")
    client.context.chat_id = own
    reader.context(READ_ONLY)
    started = [others]
    if reader.runs_commands:
        started.append(await reader.first_line("echo up; exec sleep 600"))
    await Files(client, reader.root).search("nothing")
    client.context.chat_id = ""
    states = [(await client.get(each)).state for each in started]
    assert states == [process_pb2.PROCESS_STATE_RUNNING] * len(started)
