"""Failures thrown into tasks that run: each is raised where the task waits at that moment."""

import asyncio
from collections.abc import Coroutine, Generator, Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary


class Injected(RuntimeError):
    """A failure that nothing in the product expects."""


class InjectableTasks:
    """Knows every task that is started while it is installed, and makes them fail."""

    def __init__(self) -> None:
        self._steps: WeakKeyDictionary[asyncio.Task[Any], _Steps] = WeakKeyDictionary()

    @contextmanager
    def installed(self) -> Iterator["InjectableTasks"]:
        """Watch the tasks of the running loop."""
        loop = asyncio.get_running_loop()
        before = loop.get_task_factory()
        loop.set_task_factory(self._new_task)  # type: ignore[arg-type]
        try:
            yield self
        finally:
            loop.set_task_factory(before)

    def alive(self) -> list[asyncio.Task[Any]]:
        """Return the tasks that run, oldest first."""
        return [task for task in self._steps if not task.done()]

    def parent_of(self, task: asyncio.Task[Any]) -> asyncio.Task[Any] | None:
        """Return the task that started another."""
        steps = self._steps.get(task)
        return None if steps is None else steps.parent

    def file_of(self, task: asyncio.Task[Any]) -> str:
        """Return the file of the function that a task runs; empty for compiled ones."""
        code = getattr(self._steps[task].work, "cr_code", None)
        return "" if code is None else str(code.co_filename)

    def fail(self, task: asyncio.Task[Any]) -> None:
        """Raise a failure where a task waits now."""
        self._steps[task].is_due = True
        task.cancel()  # Wakes it; what it is woken with is replaced.

    def waits_since(self, task: asyncio.Task[Any]) -> int:
        """Return how often a task has waited since it failed; -1 if it has not failed yet."""
        return self._steps[task].waits

    def _new_task(
        self, loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any], **options: Any
    ) -> asyncio.Task[Any]:
        steps = _Steps(work, asyncio.current_task(loop) if loop.is_running() else None)
        task = asyncio.Task(_awaited(steps), loop=loop, **options)
        # One that is cancelled before it began would leave its work unawaited.
        task.add_done_callback(lambda _: work.close())
        self._steps[task] = steps
        return task


class _Steps:
    def __init__(self, work: Coroutine[Any, Any, Any], parent: asyncio.Task[Any] | None) -> None:
        self.parent = parent
        self.is_due = False
        self.waits = -1
        self.work = work

    def __await__(self) -> Generator[Any, Any, Any]:
        error: BaseException | None = None
        while True:
            try:
                awaited = self.work.send(None) if error is None else self.work.throw(error)
            except StopIteration as end:
                return end.value
            if self.waits >= 0:
                self.waits += 1
            try:
                yield awaited
                # What it waited for may have gone on in spite of the cancellation.
                error = self._injected(None)
            except BaseException as thrown:
                error = self._injected(thrown)

    def _injected(self, thrown: BaseException | None) -> BaseException | None:
        if not self.is_due:
            return thrown
        task = asyncio.current_task()
        assert task is not None
        task.uncancel()
        self.is_due, self.waits = False, 0
        return Injected()


async def _awaited(steps: _Steps) -> Any:
    return await steps
