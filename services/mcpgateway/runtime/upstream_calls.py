"""Makes a journaled call: sends it to its server, asks people on its way, and limits its time."""

import asyncio
import itertools
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Final

import msgspec

from mcpgateway.client.call import CallEnd, CallRequest, OnProgress, Outcome, Progress, Upstream
from mcpgateway.client.content import TooLarge, truncated
from mcpgateway.client.questions import Answer, AnswerAction, Question, QuestionKind
from mcpgateway.client.tool_names import sent_arguments
from mcpgateway.runtime.journal_rows import CallQuestions
from mcpgateway.runtime.running_call import (
    CANCEL_ANSWER,
    CallTimeouts,
    PreparedCall,
    RunningCall,
)
from mcpgateway.servers.domain import Reason
from mcpgateway.servers.errors import McpError, UpstreamFailed
from mcpgateway.servers.health import OF_LOGIN
from parley.clock import Clock

ANSWER_S_MAX: Final = 86_400.0
LOGINS_MAX: Final = 5

logger = logging.getLogger(__name__)


class UpstreamCalls:
    """Makes calls that are journaled already.

    Args:
        questions: Stores what they ask.
        upstream: Sends them.
        clock: The clock of their limits.
        login_url: Returns where users log in to a server; None if that is not known.
    """

    def __init__(
        self,
        questions: CallQuestions,
        upstream: Upstream,
        clock: Clock,
        login_url: Callable[[str], str] | None,
    ) -> None:
        self._questions = questions
        self._upstream = upstream
        self._clock = clock
        self._login_url = login_url

    async def make(self, running: RunningCall) -> CallEnd:
        """Make the call and return its end; all failures are returned as values."""
        if running.stopping.is_set():
            return replace(_stopped(running.stop_reason), may_have_executed=False)
        silence = CallTimeouts(running, self._clock)

        def on_progress(progress: Progress) -> None:
            silence.reset_idle()
            running.note(progress)

        call_request = running.call_request
        async with asyncio.TaskGroup() as tasks:
            calling = tasks.create_task(self._call_logged_in(running, silence, on_progress))
            stopping = tasks.create_task(running.stopping.wait())
            waiting = tasks.create_task(silence.wait_timeout())
            watched = (calling, stopping, waiting)
            await asyncio.wait(watched, return_when=asyncio.FIRST_COMPLETED)
            for task in watched:
                task.cancel()
        if not calling.cancelled():
            return calling.result()
        if not waiting.cancelled():
            return _timed_out(waiting.result(), call_request)
        return _stopped(running.stop_reason)

    async def _call_logged_in(
        self, running: RunningCall, silence: CallTimeouts, on_progress: OnProgress
    ) -> CallEnd:
        """Make the call; while its user is not logged in, it waits until they are."""
        prepared = running.prepared
        for attempt in itertools.count(1):
            failure = prepared.blocking_error
            if failure is None:
                ended = await self._call(running, prepared, silence, on_progress)
                if isinstance(ended, CallEnd):
                    return ended
                failure = ended
            is_of_login = failure.reason in OF_LOGIN and not failure.may_have_executed
            if not is_of_login or attempt > LOGINS_MAX:
                return _failed(failure)
            if self._login_url is None or running.prepare is None:
                return _failed(failure)
            url = self._login_url(running.call_request.server_id)
            question = Question(QuestionKind.LOGIN, str(failure)[:4096], url=url)
            answer = await self._ask(running, silence, question)
            if answer.action is not AnswerAction.ACCEPT:
                return _failed(failure)
            try:
                prepared = await running.prepare()
            except McpError as error:
                return replace(_failed(failure), message=str(error))
        raise AssertionError("the last attempt returns")

    async def _ask(self, running: RunningCall, silence: CallTimeouts, question: Question) -> Answer:
        """Ask a person; the time until they answer does not count."""
        if running.prepare is None:
            return CANCEL_ANSWER
        execution_id = running.call_request.key.execution_id
        async with running.asking:
            running.question_count += 1
            question = msgspec.structs.replace(question, id=str(running.question_count))
            silence.pause()
            try:
                await self._questions.ask(execution_id, question)
                answered = running.open_question(question)
                await asyncio.wait({answered}, timeout=ANSWER_S_MAX)
                running.answer(question.id, CANCEL_ANSWER)
                await self._questions.go_on(execution_id, question.id)
                return answered.result()
            finally:
                silence.resume()

    async def _call(
        self,
        running: RunningCall,
        prepared: PreparedCall,
        silence: CallTimeouts,
        on_progress: OnProgress,
    ) -> CallEnd | UpstreamFailed:
        call_request, target = running.call_request, prepared.target
        bytes_max = target.server.settings.limits.result_bytes_max
        arguments_json = call_request.arguments_json
        if prepared.input_schema_json is not None:
            arguments_json = sent_arguments(arguments_json, prepared.input_schema_json)
        try:
            answer = await self._upstream.call_tool(
                target,
                call_request.tool,
                arguments_json,
                on_progress,
                lambda question: self._ask(running, silence, question),
            )
        except UpstreamFailed as error:
            return error
        except Exception:  # Its effect is unknown, which must be recorded.
            logger.exception("call %s failed", call_request.key.execution_id)
            message = "the call failed inside Parley; the tool may have run"
            return CallEnd(Outcome.UNKNOWN, reason=Reason.GATEWAY_LOST, message=message)
        try:
            parts = truncated(answer.parts, bytes_max)
        except TooLarge:
            return CallEnd(
                Outcome.FAILED,
                reason=Reason.RESULT_TOO_LARGE,
                message=f"the result exceeds {bytes_max} bytes and was not kept",
                original_bytes=answer.bytes,
            )
        outcome = Outcome.TOOL_ERROR if answer.is_error else Outcome.SUCCEEDED
        return CallEnd(outcome, parts, original_bytes=answer.bytes)


def _failed(error: UpstreamFailed) -> CallEnd:
    # A request that was sent but not answered is not known to have failed.
    is_unknown = error.may_have_executed and error.reason is Reason.SESSION_LOST
    return CallEnd(
        Outcome.UNKNOWN if is_unknown else Outcome.FAILED,
        reason=error.reason,
        message=f"{error}; the tool may have run" if is_unknown else str(error),
        may_have_executed=error.may_have_executed,
        retry_after_ms=error.retry_after_ms,
    )


def _timed_out(reason: Reason, call_request: CallRequest) -> CallEnd:
    limit_s = call_request.limit_s if reason is Reason.CALL_TIMEOUT else call_request.idle_s
    what = "did not finish" if reason is Reason.CALL_TIMEOUT else "was silent"
    message = f"the tool {what} for {limit_s:g} s; it may have taken effect"
    return CallEnd(Outcome.TIMED_OUT, reason=reason, message=message)


def _stopped(reason: Reason | None) -> CallEnd:
    if reason is Reason.CANCELLED:
        message = "cancelled; it may have taken effect"
        return CallEnd(Outcome.CANCELLED, reason=Reason.CANCELLED, message=message)
    message = "this process stopped during the call; the tool may have run"
    return CallEnd(Outcome.UNKNOWN, reason=Reason.GATEWAY_LOST, message=message)
