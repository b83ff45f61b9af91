"""Tests on both event loops: the one that services run on, and the one that tests do."""

import asyncio
import inspect
import types
from collections.abc import Callable, Coroutine, Generator
from typing import Any

import pytest
import uvloop

Test = Callable[..., Coroutine[Any, Any, None]]


def on_both_loops(test: Test) -> Callable[..., None]:
    """Run a test on each loop; it stands nearest to the test, whose fixtures are plain ones."""

    def ran(run: Callable[[Coroutine[Any, Any, None]], None], **arguments: object) -> None:
        run(test(**arguments))

    signature = inspect.signature(test)
    own = inspect.Parameter("run", inspect.Parameter.KEYWORD_ONLY)
    ran.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[*signature.parameters.values(), own]
    )
    ran.__name__, ran.__doc__, ran.__module__ = test.__name__, test.__doc__, test.__module__
    runs = pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
    marked: Callable[..., None] = runs(ran)
    return marked


@types.coroutine
def one_turn() -> Generator[None, None, None]:
    """Let the loop turn once."""
    yield
