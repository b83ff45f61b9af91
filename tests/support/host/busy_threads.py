"""All threads that work of a loop shares, kept busy."""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager


@contextmanager
def busy_threads() -> Iterator[None]:
    """Let `asyncio.to_thread` wait as long as the context is open."""
    is_over, executor = threading.Event(), ThreadPoolExecutor(1)
    asyncio.get_running_loop().set_default_executor(executor)
    executor.submit(is_over.wait)
    try:
        yield
    finally:
        is_over.set()
