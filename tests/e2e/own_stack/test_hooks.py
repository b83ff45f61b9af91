"""Hooks in a real stack: added with `parley`, asked about messages and calls, and verified."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import quote

import pytest

from parley.clock import SystemClock
from parley.testing.llm_mock import MockModels
from support.host.ports import free_port
from support.mcpgateway.servers import until_listening
from support.stack.local_stack import LocalStack

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[3]
COMMAND = "echo written; touch forbidden.txt"
CALLING = f"tool=execute,args={quote(json.dumps({'command': COMMAND}))},rounds=1"
EVENTS = ("user_prompt_submit", "pre_tool_use", "post_tool_use", "stop")


@asynccontextmanager
async def running(home: Path) -> AsyncIterator[LocalStack]:
    """Run a stack whose model runs the command once, and whose hooks may be on this machine."""
    async with MockModels.serving(clock=SystemClock(), behaviour=CALLING) as mock:
        stack = LocalStack.at(
            home,
            OPENAI_BASE_URL=f"{mock.url}/v1",
            OPENAI_API_KEY="sk-test",
            CHATD_ALLOWED_HOSTS="127.0.0.0/8",
        )
        started = await asyncio.to_thread(stack.up, "--chatd", "2")
        try:
            assert started.returncode == 0, started.stdout + started.stderr
            yield stack
        finally:
            await asyncio.to_thread(stack.parley, "down")


def example() -> str:
    """Return the consumer that docs/hooks.md shows."""
    text = (ROOT / "docs" / "hooks.md").read_text()
    return text.partition("```python\n")[2].partition("```")[0]


async def test_the_consumer_of_the_document_decides_on_a_turn(tmp_path: Path) -> None:
    async with running(tmp_path / "home") as stack:
        port = free_port()
        events = [argument for event in EVENTS for argument in ("--event", event)]
        added = await asyncio.to_thread(
            stack.parley, "hook", "add", "policy", f"http://127.0.0.1:{port}/", *events, "--json"
        )
        assert added.returncode == 0, added.stderr
        listed = await asyncio.to_thread(stack.parley, "hook", "ls")
        assert "user_prompt_submit, pre_tool_use, post_tool_use, stop" in listed.stdout
        down = await asyncio.to_thread(stack.parley, "hook", "test", "policy")
        assert (down.returncode, "failed" in down.stdout) == (1, True)
        refused = await asyncio.to_thread(stack.parley, "run", "write")
        assert refused.returncode != 0
        assert "hook" in refused.stderr
        consumer = tmp_path / "consumer.py"
        consumer.write_text(example())
        secret = json.loads(added.stdout)["secret"]
        process = await asyncio.create_subprocess_exec(
            sys.executable, str(consumer), str(port), secret
        )
        try:
            await until_listening(port)
            tested = await asyncio.to_thread(stack.parley, "hook", "test", "policy")
            assert tested.returncode == 0, tested.stdout
            ran = await asyncio.to_thread(stack.parley, "run", "--json", "write")
            assert ran.returncode == 0, ran.stderr
            assert "a hook refuses it: forbidden.txt is not to be touched" in ran.stdout
            assert "A call about forbidden.txt was refused." in ran.stdout
            log = await asyncio.to_thread(stack.parley, "hook", "log", "policy", "--json")
            shown = await asyncio.to_thread(stack.parley, "run", "write")
            assert "! policy: A call about forbidden.txt was refused." in shown.stderr
        finally:
            process.terminate()
            await process.wait()
        told = [
            (each["event"], each["outcome"])
            for each in reversed(json.loads(log.stdout)["items"])
            if each["chat_id"] is not None and each["outcome"] != "failed"
        ]
        assert told == [
            ("user_prompt_submit", "allow"),
            ("pre_tool_use", "deny"),
            ("post_tool_use", "allow"),
            ("stop", "allow"),
        ]
        gone = await asyncio.to_thread(stack.parley, "hook", "rm", "policy")
        assert gone.returncode == 0, gone.stderr
        free = await asyncio.to_thread(stack.parley, "run", "--json", "write")
        assert "written" in free.stdout, free.stdout
