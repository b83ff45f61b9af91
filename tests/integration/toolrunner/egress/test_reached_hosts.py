"""A node tells with every response which hosts a workspace reached, whatever program it was."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from parley.api.workspace.v1 import file_service_pb2 as api
from parley.api.workspace.v1 import process_service_pb2, workspace_pb2
from support.host.conditions import until
from support.toolrunner.hosted_workspaces import Placer, fork
from support.toolrunner.node import Client, House, connected, node, toolrunner
from support.toolrunner.proxied_workspaces import (
    HOST,
    check_level,
    house_of,
    proxied,
    running_origin,
)

NOTHING = workspace_pb2.ReachedHosts()
REACHED = workspace_pb2.ReachedHosts(hosts=[HOST])
BY_GIT = workspace_pb2.ReachedHosts(git_hosts=[HOST])
#: Waits for a file, fetches and says so, long after the shell that started it has ended.
DAEMON = (
    "setsid sh -c 'while ! [ -e go ]; do sleep 0.05; done; {fetch} > got; touch done' "
    "> /dev/null 2>&1 &"
)


@dataclass(frozen=True)
class Scene:
    """A chat in a workspace that may reach a server, on a node of its own."""

    client: Client
    placer: Placer
    workspace_id: str
    origin: int

    def fetch(self, *options: str) -> str:
        return f"curl -sS -m 20 {' '.join(options)} http://{HOST}:{self.origin}/"

    def path(self, name: str) -> Path:
        return self.placer.root(self.workspace_id) / name

    async def read(self, name: str) -> api.ReadFileResponse:
        request = api.ReadFileRequest(context=self.client.context, path=name)
        return await self.client.files.ReadFile(request)

    async def until_there(self, name: str) -> None:
        """Wait for a file as the disk has it, without a call to the node."""
        await asyncio.to_thread(until, self.path(name).exists, name, within_s=60)

    def as_chat(self, *ancestors: str) -> workspace_pb2.WorkspaceContext:
        """Return the context of another chat in the same workspace."""
        context = workspace_pb2.WorkspaceContext()
        context.CopyFrom(self.client.context)
        context.chat_id = self.client.new_id()
        context.ancestor_chat_ids.extend(ancestors)
        return context


@pytest.fixture
async def origin() -> AsyncIterator[int]:
    async with running_origin() as port:
        yield port


@asynccontextmanager
async def scene(directory: Path, origin: int, *, setup: str = "") -> AsyncIterator[Scene]:
    house = house_of(directory, origin, "landlock")
    async with node(house), connected(house) as client:
        placer = Placer(client, Path(house.data))
        workspace_id = await placer.ready(proxied(origin, setup))
        placer.enter(workspace_id)
        await check_level(client, "landlock")
        yield Scene(client, placer, workspace_id, origin)


@pytest.fixture
async def used(tmp_path: Path, origin: int) -> AsyncIterator[Scene]:
    async with scene(tmp_path, origin) as found:
        yield found


async def test_a_program_that_was_there_before_and_fetches_is_told_of_with_its_output(
    used: Scene,
) -> None:
    used.path("Makefile").write_text(f"all:\n\t@{used.fetch()}\n")
    before = await used.client.run("ls")
    made = await used.client.run("make")
    after = await used.read("Makefile")
    assert (before.reached, made.output.text) == (NOTHING, "hello\n")
    assert [made.reached, after.reached] == [REACHED, REACHED]


async def test_every_response_to_a_call_of_a_chat_tells_it(used: Scene) -> None:
    await used.client.run(f"{used.fetch()} > got")
    files, processes, context = used.client.files, used.client.processes, used.client.context
    new_id = used.client.new_id

    def changing(**fields: object) -> dict[str, Any]:
        return {"context": context, "request_id": new_id(), **fields}

    started = await used.client.start("cat", stdin_mode="STDIN_MODE_PIPE")
    process_id = started.process.process_id
    signal = process_service_pb2.SignalProcessRequest(
        **changing(process_id=process_id, signal="PROCESS_SIGNAL_KILL")
    )
    search = api.SearchFilesRequest(context=context, pattern="hello")
    summaries = [each async for each in files.SearchFiles(search) if each.HasField("summary")]
    edit = [{"path": "got", "edits": [{"old_text": "hello", "new_text": "bye"}]}]
    patch = "*** Begin Patch\n*** Add File: b\n+c\n*** End Patch\n"
    told: dict[str, Any] = {
        "write to a process": await used.client.write(process_id, b"a\n"),
        "wait": await used.client.wait(process_id, max_wait_ms=1),
        "list processes": await processes.ListProcesses(
            process_service_pb2.ListProcessesRequest(context=context)
        ),
        "signal": await processes.SignalProcess(signal),
        "read": await used.read("got"),
        "list": await files.ListDirectory(api.ListDirectoryRequest(context=context)),
        "find": await files.FindFiles(api.FindFilesRequest(context=context, query="*")),
        "search": summaries[0].summary,
        "write": await files.WriteFile(api.WriteFileRequest(**changing(path="a", content=b"b"))),
        "edit": await files.EditFiles(api.EditFilesRequest(**changing(files=edit))),
        "patch": await files.ApplyPatch(api.ApplyPatchRequest(**changing(patch=patch))),
        "undo": await files.UndoEdit(api.UndoEditRequest(**changing(path="a"))),
    }
    silent = [name for name, response in told.items() if response.reached != REACHED]
    assert silent == []


async def test_a_daemon_that_fetches_later_is_told_of_by_the_next_call(used: Scene) -> None:
    started = await used.client.run(DAEMON.format(fetch=used.fetch()))
    used.path("go").touch()
    await used.until_there("done")
    read = await used.read("got")
    assert (started.reached, read.text, read.reached) == (NOTHING, "hello\n", REACHED)


async def test_a_fetch_counts_for_every_chat_of_the_workspace_and_not_for_a_later_one(
    used: Scene,
) -> None:
    client, other = used.client, used.as_chat()
    mine = client.context
    await client.run("true")
    process = await client.start("cat", stdin_mode="STDIN_MODE_PIPE")
    client.context = other
    fetched = await client.run(f"{used.fetch()} > got")
    client.context = mine
    ended = await client.write(process.process.process_id, b"", end_of_input=True)
    client.context = used.as_chat()
    later = await client.run("cat got")
    assert [fetched.reached, ended.reached] == [REACHED, REACHED]
    assert (later.output.text, later.reached) == ("hello\n", NOTHING)


async def test_an_agent_is_told_what_was_reached_since_the_first_chat_of_its_tree(
    used: Scene,
) -> None:
    await used.client.run(DAEMON.format(fetch=used.fetch()))
    used.path("go").touch()
    await used.until_there("done")
    root = used.client.chat_id
    # It has made no call before.
    used.client.context = used.as_chat(used.client.new_id(), root)
    assert (await used.read("got")).reached == REACHED


async def test_what_the_setup_script_fetched_is_of_the_workspace_itself(
    tmp_path: Path, origin: int
) -> None:
    fetch = f"curl -sS -m 20 http://{HOST}:{origin}/ > from-setup"
    async with scene(tmp_path, origin, setup=fetch) as found:
        read = await found.read("from-setup")
    assert (read.text, read.reached) == ("hello\n", NOTHING)


async def test_what_git_fetches_and_what_is_refused_are_told_apart(used: Scene) -> None:
    refused = await used.client.run("curl -sS -m 20 http://elsewhere.example/")
    fetched = await used.client.run(used.fetch("-A", "git/2.39.5"))
    assert (refused.reached, fetched.reached) == (NOTHING, BY_GIT)


async def test_a_person_at_the_workspace_is_told_nothing(used: Scene) -> None:
    await used.client.run("true")
    used.client.context = used.as_chat()
    used.client.context.chat_id = ""
    by_person = await used.client.run(used.fetch())
    assert (by_person.output.text, by_person.reached) == ("hello\n", NOTHING)


async def test_a_copy_of_a_workspace_has_what_the_original_reached(used: Scene) -> None:
    await used.client.run(f"{used.fetch()} > got")
    copy_id = await used.placer.ready(fork(used.workspace_id))
    used.client.context.ancestor_chat_ids.append(used.client.chat_id)
    used.client.context.chat_id = used.client.new_id()
    used.placer.enter(copy_id)
    assert (await used.read("got")).reached == REACHED


async def test_what_an_agent_fetched_in_a_copy_counts_where_its_files_are_merged(
    used: Scene,
) -> None:
    mine = used.client.context
    await used.client.run("true")
    copied = fork(used.workspace_id)
    copied.network.CopyFrom(proxied(used.origin).network)
    fork_id = await used.placer.ready(copied)
    used.client.context = used.as_chat()
    used.placer.enter(fork_id)
    await used.client.run(f"{used.fetch()} > got")
    used.client.context = mine
    before = await used.client.run("ls")
    await used.placer.merge(fork_id, used.workspace_id)
    merged = await used.read("got")
    assert (before.reached, merged.text, merged.reached) == (NOTHING, "hello\n", REACHED)


async def test_a_restart_between_the_fetch_and_the_next_call_loses_nothing(
    tmp_path: Path, origin: int
) -> None:
    house: House = house_of(tmp_path, origin, "ns")
    async with toolrunner(house) as killed:
        async with connected(house) as before:
            placer = Placer(before, Path(house.data))
            workspace_id = await placer.ready(proxied(origin))
            placer.enter(workspace_id)
            await check_level(before, "ns")
            found = Scene(before, placer, workspace_id, origin)
            await before.run(DAEMON.format(fetch=found.fetch()))
            found.path("go").touch()
            await found.until_there("done")
        killed.kill()
        await killed.wait()
    async with toolrunner(house), connected(house) as client:
        client.stands_for(before)
        again = Scene(client, Placer(client, Path(house.data)), workspace_id, origin)
        read = await again.read("got")
    assert (read.text, read.reached) == ("hello\n", REACHED)
