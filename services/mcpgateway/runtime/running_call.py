"""A call while it runs: what it needs, its progress, what it asks, and its limits of time."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from mcpgateway.client.call import CallRecord, CallRequest, Progress
from mcpgateway.client.questions import Answer, AnswerAction, Question
from mcpgateway.servers.domain import Reason, Target
from mcpgateway.servers.errors import UpstreamFailed
from parley.clock import Clock

PROGRESS_PERIOD_S: Final = 0.25
CANCEL_ANSWER: Final = Answer(AnswerAction.CANCEL)


@dataclass(frozen=True, slots=True)
class PreparedCall:
    """A server that a call may be made to.

    Attributes:
        target: The server.
        blocking_error: Why the call cannot be made; None if it can.
        server_version: The version that the server must still have when the call is journaled,
            because it may have been read from a cache; None if it does not matter.
        input_schema_json: The arguments of the tool, if a model calls it; None for a person.
    """

    target: Target
    blocking_error: UpstreamFailed | None = None
    server_version: int | None = None
    input_schema_json: bytes | None = None


Prepare = Callable[[], Awaitable[PreparedCall]]


class RunningCall:
    """A call that this process is making.

    Args:
        call_request: The call.
        prepared: The server that it is made to.
        prepare: Prepares it again, after the user logged in; None if nobody is there to answer.
        on_waiting: Is called when it has to wait until its server has room.
    """

    def __init__(
        self,
        call_request: CallRequest,
        prepared: PreparedCall,
        prepare: Prepare | None,
        on_waiting: Callable[[], None] = lambda: None,
    ) -> None:
        loop = asyncio.get_running_loop()
        self.call_request = call_request
        self.prepared = prepared
        self.prepare = prepare
        self.on_waiting = on_waiting
        self.question: Question | None = None
        self.question_count = 0
        self.asking = asyncio.Lock()
        self._answer: asyncio.Future[Answer] = loop.create_future()
        self.progress: Progress | None = None
        self.progress_count = 0
        self.stop_reason: Reason | None = None
        self.stopping = asyncio.Event()
        self.journaled: asyncio.Future[tuple[CallRecord, bool] | Exception] = loop.create_future()
        self.finished: asyncio.Future[CallRecord | None] = loop.create_future()
        self._progress_changed = asyncio.Event()

    def note(self, progress: Progress) -> None:
        """Record the progress of the tool."""
        self.progress = progress
        self.progress_count += 1
        self._progress_changed.set()

    def stop(self, reason: Reason) -> None:
        """Signal the call to end."""
        self.stop_reason = self.stop_reason or reason
        self.stopping.set()

    def open_question(self, question: Question) -> "asyncio.Future[Answer]":
        """Show a question to the followers; return what its answer will be set to."""
        self.question = question
        self._answer = asyncio.get_running_loop().create_future()
        self._progress_changed.set()
        return self._answer

    def answer(self, question_id: str, answer: Answer) -> None:
        """Answer the open question; any other is ignored."""
        if self.question is not None and self.question.id == question_id:
            self.question = None
            self._answer.set_result(answer)

    def finish(self, record: CallRecord | None) -> None:
        """Wake the followers; with None they read the record from the journal."""
        if self.question is not None:
            # What asked may still wait in a session that other calls use.
            self.answer(self.question.id, CANCEL_ANSWER)
        self.finished.set_result(record)
        self._progress_changed.set()

    async def progress_updates(self) -> AsyncIterator[Progress]:
        """Yield progress, at most four times a second, until the call asks or is finished."""
        seen = 0
        while not self._is_settled or seen < self.progress_count:
            if seen < self.progress_count and self.progress is not None:
                seen = self.progress_count
                yield self.progress
                await asyncio.wait({self.finished}, timeout=PROGRESS_PERIOD_S)
            elif not self._is_settled:
                self._progress_changed.clear()
                await self._progress_changed.wait()

    @property
    def _is_settled(self) -> bool:
        return self.finished.done() or self.question is not None


class CallTimeouts:
    """Measures the idle time and the total time of a call, without those in which it waits."""

    def __init__(self, running: RunningCall, clock: Clock) -> None:
        self._clock = clock
        self._idle_s = running.call_request.idle_s
        self._idle_since = clock.monotonic()
        self._over_at = clock.monotonic() + running.call_request.limit_s
        self._paused_at = 0.0
        self._counting = asyncio.Event()
        self._counting.set()

    def reset_idle(self) -> None:
        """Record that the tool sent something."""
        self._idle_since = self._clock.monotonic()

    def pause(self) -> None:
        """Stop counting: the call waits for a person."""
        self._paused_at = self._clock.monotonic()
        self._counting.clear()

    def resume(self) -> None:
        """Count again."""
        self._over_at += self._clock.monotonic() - self._paused_at
        self.reset_idle()
        self._counting.set()

    async def wait_timeout(self) -> Reason:
        """Wait until one of the two limits is reached, and return which."""
        while True:
            await self._counting.wait()
            now = self._clock.monotonic()
            if now >= self._over_at:
                return Reason.CALL_TIMEOUT
            if now >= self._idle_since + self._idle_s:
                return Reason.IDLE_TIMEOUT
            await self._clock.sleep(min(self._over_at, self._idle_since + self._idle_s) - now)
