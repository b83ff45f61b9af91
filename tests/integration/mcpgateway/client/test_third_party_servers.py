"""MCP servers of third parties, as published, over HTTP and SSE."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from mcpgateway.client.call import Progress
from mcpgateway.client.content import BlobPart, TextPart, ToolAnswer
from mcpgateway.client.sessions import Sessions
from mcpgateway.servers.domain import Limits, Reason, Target, Transport
from mcpgateway.servers.errors import UpstreamFailed
from parley.egress import Policy
from support.host.ports import free_port
from support.host.supervised import supervision
from support.mcpgateway.answers import cancel_question
from support.mcpgateway.servers import START_S_MAX, until_listening
from support.mcpgateway.third_party import (
    BRIDGE,
    EVERYTHING,
    FILESYSTEM,
    PROGRAMS,
    install_packages,
    node,
)
from support.mcpgateway.values import a_server, a_target

pytestmark = pytest.mark.slow

# A bridge starts a program for each session, on machines that are busy.
PATIENT = Limits(connect_timeout_ms=60_000)
LEGACY, CURRENT = "2025-11-25", "2026-07-28"


@pytest.fixture(scope="session", autouse=True)
def packages() -> None:
    install_packages()


def bridged(command: list[str], transport: str) -> Callable[[int], list[str]]:
    """Return the words that serve a program of standard streams over HTTP or SSE."""
    options = ["--stateful"] if transport == "streamableHttp" else []
    words = ["--stdio", " ".join(command), "--outputTransport", transport, *options]
    return lambda port: node(BRIDGE, *words, "--port", port)


@contextlib.contextmanager
def started(words: list[str], port: int) -> Iterator[None]:
    """Run a program in a group of its own: a bridge does not end what it started."""
    environment = {**os.environ, "PORT": str(port)}  # noqa: TID251 (handed on to the child)
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(
        words, env=environment, stdout=quiet, stderr=quiet, start_new_session=True
    )
    try:
        yield
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@contextlib.asynccontextmanager
async def server(
    words: Callable[[int], list[str]], path: str
) -> AsyncIterator[tuple[Sessions, Target]]:
    """Run a server, and yield sessions and the target that leads to it."""
    port = free_port()
    url = f"http://127.0.0.1:{port}/{path}"
    transport = Transport.SSE if path == "sse" else Transport.STREAMABLE_HTTP
    with started(words(port), port):
        await until_listening(port)
        async with (
            asyncio.timeout(START_S_MAX),
            Sessions.open(Policy().with_url(url), supervision()) as sessions,
        ):
            yield sessions, a_target(a_server(url=url, transport=transport, limits=PATIENT))


def text_of(answer: ToolAnswer) -> str:
    return "\n".join(part.text for part in answer.parts if isinstance(part, TextPart))


async def called(sessions: Sessions, target: Target, tool: str, **arguments: object) -> ToolAnswer:
    progress: list[Progress] = []
    encoded = json.dumps(arguments).encode()
    return await sessions.call_tool(target, tool, encoded, progress.append, cancel_question)


@pytest.mark.parametrize(("mode", "path"), [("streamableHttp", "mcp"), ("sse", "sse")])
async def test_everything_of_the_protocol_is_used_over_http_and_sse(mode: str, path: str) -> None:
    async with server(lambda _: node(EVERYTHING, mode), path) as (sessions, target):
        tools = (await sessions.list_tools(target)).tools
        echoed = await called(sessions, target, "echo", message="the sea")
        picture = await called(sessions, target, "get-tiny-image")
        resources = await sessions.list_resources(target)
        prompts = await sessions.list_prompts(target)
        version = await sessions.protocol_version(target)
        with pytest.raises(UpstreamFailed) as no_prompt:
            await sessions.get_prompt(target, "no-such-prompt", {})
        with pytest.raises(UpstreamFailed) as no_resource:
            await sessions.read_resource(target, "demo://no/such/resource")
        seen: list[Progress] = []
        await sessions.call_tool(
            target,
            "trigger-long-running-operation",
            b'{"duration":1,"steps":4}',
            seen.append,
            cancel_question,
        )

    assert {"echo", "get-tiny-image"} <= set(tools)
    for refused in (no_prompt.value, no_resource.value):
        assert refused.reason is Reason.REQUEST_REFUSED
        assert "no-such-prompt" in str(refused) or "no/such/resource" in str(refused)
    assert "the sea" in text_of(echoed)
    assert [type(part) for part in picture.parts] == [TextPart, BlobPart, TextPart]
    assert [each.progress for each in seen][-1:] == [4.0]
    assert (bool(resources), bool(prompts), version) == (True, True, LEGACY)


@pytest.mark.parametrize(("transport", "path"), [("streamableHttp", "mcp"), ("sse", "sse")])
async def test_the_filesystem_server_reads_inside_its_directory_only(
    tmp_path: Path, transport: str, path: str
) -> None:
    (tmp_path / "note.txt").write_text("remember the milk")
    words = bridged(node(FILESYSTEM, tmp_path), transport)
    async with server(words, path) as (sessions, target):
        read = await called(sessions, target, "read_text_file", path=str(tmp_path / "note.txt"))
        outside = await called(sessions, target, "read_text_file", path="/etc/passwd")

    assert (read.is_error, text_of(read)) == (False, "remember the milk")
    assert outside.is_error


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Make a repository with a file that is not added."""
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    (tmp_path / "new.txt").write_text("new")
    return tmp_path


async def test_the_git_server_tells_the_state_of_a_repository(repository: Path) -> None:
    words = bridged([str(PROGRAMS / "mcp-server-git")], "streamableHttp")
    async with server(words, "mcp") as (_, target):
        policy, version, status = Policy().with_url(target.server.settings.url), "", ""
        while version != CURRENT:
            # A program that takes over 10 s to start is taken for one of the older protocol.
            async with Sessions.open(policy, supervision()) as sessions:
                answer = await called(sessions, target, "git_status", repo_path=str(repository))
                status, version = text_of(answer), await sessions.protocol_version(target)

    assert "new.txt" in status


async def test_the_time_server_converts_between_zones() -> None:
    program = [str(PROGRAMS / "mcp-server-time"), "--local-timezone", "UTC"]
    async with server(bridged(program, "streamableHttp"), "mcp") as (sessions, target):
        now = await called(sessions, target, "get_current_time", timezone="Asia/Tokyo")

    assert json.loads(text_of(now))["timezone"] == "Asia/Tokyo"
