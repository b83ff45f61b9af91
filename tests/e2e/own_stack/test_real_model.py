"""A key in the environment is all it takes: a whole stack against providers on this machine."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from parley.clock import SystemClock
from parley.testing.llm_mock import MockModels
from support.stack.local_stack import LocalStack

pytestmark = pytest.mark.slow

KEY = "sk-a-key-that-nobody-may-see-0123"


@asynccontextmanager
async def running(home: Path, **environment: str) -> AsyncIterator[tuple[LocalStack, str]]:
    """Run a stack with one process of each kind; give it and what its start said."""
    stack = LocalStack.at(home, **environment)
    started = await asyncio.to_thread(stack.up, "--chatd", "1")
    try:
        assert started.returncode == 0, started.stdout + started.stderr
        yield stack, started.stdout
    finally:
        await asyncio.to_thread(stack.parley, "down")


async def told(stack: LocalStack, *arguments: str) -> str:
    """Call `parley` while the providers of this test answer."""
    done = await asyncio.to_thread(stack.parley, *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def written_by(stack: LocalStack) -> str:
    """Return everything that a running stack left in files that people read."""
    files = [stack.home.processes_file, stack.home.endpoints_file]
    logs = stack.home.root.rglob("*.log")
    return "".join(path.read_text(errors="replace") for path in (*files, *logs))


async def test_an_endpoint_of_openais_kind_answers_with_the_model_that_it_lists(
    tmp_path: Path,
) -> None:
    async with (
        MockModels.serving(clock=SystemClock()) as mock,
        running(tmp_path, OPENAI_BASE_URL=f"{mock.url}/v1", OPENAI_API_KEY=KEY) as (stack, said),
    ):
        assert "models:       127.0.0.1, mock by default" in said
        assert "yes it works" in await told(stack, "run", "repeat after me: yes it works")
        assert "models: 127.0.0.1, mock by default" in await told(stack, "status")
        assert "OpenAI-compatible at 127.0.0.1" in await told(stack, "doctor")
        assert {request.path for request in mock.requests()} == {"/v1/chat/completions"}
        assert KEY not in written_by(stack) + said
        for process in stack.everyone():
            assert KEY not in " ".join(process.cmdline())


async def test_a_key_of_anthropic_answers_with_the_default_that_is_named(tmp_path: Path) -> None:
    async with (
        MockModels.serving(clock=SystemClock()) as mock,
        running(
            tmp_path,
            ANTHROPIC_API_KEY=KEY,
            ANTHROPIC_BASE_URL=mock.url,
            PARLEY_MODEL="claude-sonnet-4-5",
        ) as (stack, said),
    ):
        assert "models:       Anthropic, claude-sonnet-4-5 by default" in said
        assert "good day" in await told(stack, "run", "repeat after me: good day")
        (request, *_) = mock.requests()
        assert request.path == "/v1/messages"
        assert KEY not in written_by(stack)
