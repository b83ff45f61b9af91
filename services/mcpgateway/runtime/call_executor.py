"""Executes calls: each is journaled, made once, monitored, and ended once.

A call runs in a task of the executor, not in the request that started it: closing that request's
stream does not cancel it, and the same execution id, at this or another replica, attaches to it. A
call is registered in the executor before it is journaled, so a call that the journal lists as
running in this process but the executor does not have was lost between the two, and was not sent.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Final

from mcpgateway.client.call import (
    CallEnd,
    CallKey,
    CallRecord,
    CallRequest,
    Outcome,
    Progress,
    Upstream,
)
from mcpgateway.client.questions import Answer
from mcpgateway.runtime.journal import Journal
from mcpgateway.runtime.journal_rows import check_content
from mcpgateway.runtime.running_call import Prepare, PreparedCall, RunningCall
from mcpgateway.runtime.upstream_calls import UpstreamCalls
from mcpgateway.servers.domain import Reason
from mcpgateway.servers.errors import (
    ExecutionIdReused,
    McpError,
    Overloaded,
    TooManyCalls,
)
from parley.clock import Clock
from parley.postgres import DatabaseUnavailable, PoolExhausted
from parley.rpc import detached
from parley.tasks import BackgroundTasks, Starter, Supervision

POLL_FIRST_S: Final = 0.1
POLL_LAST_S: Final = 1.0
STORE_RETRY_S: Final = 1.0
STOP_S: Final = 5.0
QUEUE_S: Final = 2.0
QUEUE_POLL_S: Final = 0.1
RENEW_S: Final = 3.0
DELETE_EXPIRED_S: Final = 600.0

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class JournaledCall:
    """A journaled call.

    Attributes:
        record: The record in the journal.
        is_attached: Whether an earlier request journaled it.
    """

    record: CallRecord
    is_attached: bool


class CallExecutor:
    """Starts calls, attaches to them, and ends them.

    Args:
        journal: The journal of calls.
        upstream: Makes them.
        clock: The clock of their limits.
        tasks: Owns them.
        login_url: Returns where users log in to a server; None if that is not known.
    """

    def __init__(
        self,
        journal: Journal,
        upstream: Upstream,
        clock: Clock,
        tasks: Starter,
        login_url: Callable[[str], str] | None = None,
    ) -> None:
        self._journal = journal
        self._calls = UpstreamCalls(journal.questions, upstream, clock, login_url)
        self._clock = clock
        self._tasks = tasks
        self._running: dict[str, RunningCall] = {}

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        journal: Journal,
        upstream: Upstream,
        supervision: Supervision,
        login_url: Callable[[str], str] | None = None,
    ) -> "AsyncIterator[CallExecutor]":
        """Yield the executor; at the end running calls are stopped and recorded as unknown."""
        async with BackgroundTasks(supervision) as tasks:
            executor = cls(journal, upstream, supervision.clock, tasks, login_url)
            try:
                yield executor
            finally:
                await executor._stop_all()

    async def attach(self, call_request: CallRequest) -> JournaledCall | None:
        """Return the call if it is already journaled, by any process.

        Raises:
            StaleOwner: A newer owner of the chat has called.
            ExecutionIdReused: The id names another call.
        """
        attached = await self.attach_by_key(call_request.key)
        if attached is not None:
            check_content(attached.record, call_request)
        return attached

    async def attach_by_key(self, key: CallKey) -> JournaledCall | None:
        """Return the same, for a caller that does not know the content of the call.

        Raises:
            StaleOwner: A newer owner of the chat has called.
            ExecutionIdReused: The id names a call of another caller or chat.
        """
        if not await self._journal.is_known(key):
            return None
        record = await self._journal.find(key)
        return None if record is None else JournaledCall(record, is_attached=True)

    async def start(
        self,
        call_request: CallRequest,
        prepared: PreparedCall,
        prepare: Prepare | None = None,
        on_waiting: Callable[[], None] = lambda: None,
    ) -> JournaledCall:
        """Journal the call and make it, unless the same one is in progress.

        Args:
            call_request: The call.
            prepared: The server; a call that cannot be made is journaled and ends with the reason.
            prepare: Prepares it again after a login; without it nobody is asked anything.
            on_waiting: Is called when it has to wait until its server has room.

        Raises:
            TooManyCalls: The server's limit of running calls is reached.
            ServerChanged: The server is not as it was when the call was prepared.
            StaleOwner: A newer owner of the chat has called.
            ExecutionIdReused: The id names another call.
        """
        if call_request.key.execution_id in self._running:
            return await self._join(call_request, is_attached=True)
        running = RunningCall(call_request, prepared, prepare, on_waiting)
        self._running[call_request.key.execution_id] = running
        self._tasks.create_task(self._run_call(running), context=detached())
        return await self._join(call_request, is_attached=False)

    async def attach_to_starting(self, call_request: CallRequest) -> JournaledCall | None:
        """Return the call if it is journaled, or being journaled by this process.

        Raises:
            McpError: The one that is being journaled may not be made.
        """
        if call_request.key.execution_id in self._running:
            return await self._join(call_request, is_attached=True)
        return await self.attach(call_request)

    async def _join(self, call_request: CallRequest, *, is_attached: bool) -> JournaledCall:
        """Wait until a call that this process makes is journaled."""
        running = self._running[call_request.key.execution_id]
        journaled = await asyncio.shield(running.journaled)
        if isinstance(journaled, Exception):
            raise journaled
        record, is_new = journaled
        if (record.key.caller, record.key.chat_id) != (
            call_request.key.caller,
            call_request.key.chat_id,
        ):
            raise ExecutionIdReused(call_request.key.execution_id)
        check_content(record, call_request)
        return JournaledCall(record, is_attached=is_attached or not is_new)

    async def follow(self, record: CallRecord) -> AsyncIterator[Progress | CallRecord]:
        """Yield the progress of a journaled call, and finally its record: finished, or asking."""
        if record.end is not None:
            yield record
            return
        running = self._running.get(record.key.execution_id)
        if running is not None:
            async for progress in running.progress_updates():
                yield progress
            if running.question is not None:
                yield replace(record, question=running.question)
                return
            finished = running.finished.result()
            if finished is not None:
                yield finished
                return
        yield await self._poll_journal(record.key.execution_id)

    async def answer(self, execution_id: str, question_id: str, answer: Answer) -> None:
        """Answer what a call asks, in whichever process it is made; others are ignored."""
        if await self._journal.questions.answer(execution_id, question_id, answer):
            running = self._running.get(execution_id)
            if running is not None:
                running.answer(question_id, answer)

    def cancel(self, execution_id: str) -> None:
        """Stop the call if this process makes it; other processes read it in the journal."""
        running = self._running.get(execution_id)
        if running is not None:
            running.stop(Reason.CANCELLED)

    def cancel_calls_of(self, server_id: str) -> None:
        """Stop the calls of a server that this process makes."""
        for running in self._running.values():
            if running.call_request.server_id == server_id:
                running.stop(Reason.CANCELLED)

    def cancel_calls_of_user(self, user_id: str, server_id: str | None = None) -> None:
        """Stop the calls of a user that this process makes, of one server or of all."""
        for running in self._running.values():
            request = running.call_request
            if request.user_id == user_id and server_id in (None, request.server_id):
                running.stop(Reason.CANCELLED)

    async def reconcile(self) -> None:
        """Renew this process's lease, stop cancelled calls, and end lost ones."""
        known = frozenset(self._running)
        for call in await self._journal.renew():
            if call.is_cancelled:
                self.cancel(call.execution_id)
            running = self._running.get(call.execution_id)
            if running is not None and call.question_id is not None and call.answer is not None:
                running.answer(call.question_id, call.answer)
            if call.execution_id not in known and call.execution_id not in self._running:
                message = "the call was lost before it was sent"
                end = CallEnd(
                    Outcome.FAILED,
                    reason=Reason.GATEWAY_LOST,
                    message=message,
                    may_have_executed=False,
                )
                await self._journal.finish(call.execution_id, end)

    async def renew_lease(self, end_dead: Callable[[], Awaitable[None]]) -> None:
        """Renew the lease periodically, and end the calls of processes that have none any more.

        Args:
            end_dead: Ends the leases of processes that are proven dead.
        """
        tidied_at = self._clock.monotonic() - DELETE_EXPIRED_S
        while True:
            try:
                await self.reconcile()
                await _attempted(end_dead)
                await self._journal.fail_abandoned_calls()
                is_due = self._clock.monotonic() - tidied_at >= DELETE_EXPIRED_S
                if is_due and not await self._journal.delete_expired():
                    tidied_at = self._clock.monotonic()
            except DatabaseUnavailable as error:
                logger.warning("the lease was not renewed: %s", error)
            await self._clock.sleep(RENEW_S)

    async def _begin(self, running: RunningCall) -> tuple[CallRecord, bool]:
        """Journal a call; while there are too many it waits for a short time.

        Raises:
            TooManyCalls: There are still too many.
            Overloaded: No connection to the database became free, so it is not journaled.
        """
        prepared = running.prepared
        waits_until = self._clock.monotonic() + QUEUE_S
        while True:
            try:
                return await self._journal.begin(
                    running.call_request,
                    prepared.target.server.settings.limits,
                    prepared.server_version,
                )
            except PoolExhausted as error:
                raise Overloaded(prepared.target.server.settings.limits.calls_max) from error
            except TooManyCalls:
                if self._clock.monotonic() >= waits_until or running.stopping.is_set():
                    raise
                running.on_waiting()
            await self._clock.sleep(QUEUE_POLL_S)

    async def _run_call(self, running: RunningCall) -> None:
        """Journal, make and end one call; waiters are always released, whatever fails."""
        finished: CallRecord | None = None
        try:
            journaled = await self._begin(running)
            running.journaled.set_result(journaled)
            if journaled[1]:
                finished = await self._store_end(running, await self._calls.make(running))
        except Exception as error:  # A failed call must not end the executor.
            if not running.journaled.done():
                running.journaled.set_result(error)
            if not isinstance(error, McpError | DatabaseUnavailable):
                logger.exception("call %s failed", running.call_request.key.execution_id)
        finally:
            running.journaled.cancel()
            del self._running[running.call_request.key.execution_id]
            running.finish(finished)

    async def _store_end(self, running: RunningCall, end: CallEnd) -> CallRecord:
        """Store the end in the journal, and retry as long as necessary."""
        while True:
            try:
                return await self._journal.finish(running.call_request.key.execution_id, end)
            except DatabaseUnavailable as error:
                if running.stop_reason is Reason.GATEWAY_LOST:
                    raise
                logger.warning("an outcome is not stored yet: %s", error)
            await self._clock.sleep(STORE_RETRY_S)

    async def _poll_journal(self, execution_id: str) -> CallRecord:
        """Return the record of a call that another process makes, once it asks or is finished."""
        delay_s = POLL_FIRST_S
        while True:
            record = await self._journal.read(execution_id)
            if record.end is not None or record.question is not None:
                return record
            await self._clock.sleep(delay_s)
            delay_s = min(2 * delay_s, POLL_LAST_S)

    async def _stop_all(self) -> None:
        finishing = {running.finished for running in self._running.values()}
        for running in self._running.values():
            running.stop(Reason.GATEWAY_LOST)
        if finishing:
            await asyncio.wait(finishing, timeout=STOP_S)


async def _attempted(end_dead: Callable[[], Awaitable[None]]) -> None:
    """Look for dead processes; whatever fails there, this process keeps its own lease.

    Raises:
        DatabaseUnavailable: The next renewal looks again.
    """
    try:
        await end_dead()
    except DatabaseUnavailable:
        raise
    except Exception:
        logger.exception("dead processes of this machine were not looked for")
