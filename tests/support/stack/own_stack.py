"""A stack of one test."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from support.stack.local_stack import LocalStack


@asynccontextmanager
async def reaching_here(home: Path) -> AsyncIterator[LocalStack]:
    """Run a stack with two chatd that may call push services on loopback."""
    stack = LocalStack.at(home, CHATD_PUSH_ALLOWED_HOSTS="127.0.0.0/8")
    started = await asyncio.to_thread(stack.up, "--chatd", "2")
    try:
        assert started.returncode == 0, started.stdout + started.stderr
        yield stack
    finally:
        await asyncio.to_thread(stack.parley, "down")
