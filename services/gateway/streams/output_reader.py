"""Reads the output of one process for one client, as events.

The output is read by waiting calls, one at a time. The next one is made after the client has got
what the last one returned, and after a pause: a slow client delays only its own reading, and of a
process that writes faster excerpts are sent, which contain what they leave out as a mark. The node
reads all that is left out, to count its lines, so after much of it the pause is longer.
"""

import logging
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from google.protobuf.message import Message

from gateway.http.problems.errors import HttpProblem, UpstreamProblem, http_problem_of
from parley.api.chat.v1 import event_pb2
from parley.api.workspace.v1 import process_pb2
from parley.api.workspace.v1 import workspace_access_service_pb2 as api
from parley.clock import Clock

WAIT_MS: Final = 20_000
EVENT_BYTES_MAX: Final = 32 * 1024
PACE_S: Final = 0.1
#: After an excerpt that leaves out more than so many bytes.
SLOW_PACE_S: Final = 1.0
OMITTED_BYTES_MAX: Final = 1024 * 1024
RETRY_S: Final = 0.5
RETRY_S_MAX: Final = 8.0

RUNNING: Final = (process_pb2.PROCESS_STATE_STARTING, process_pb2.PROCESS_STATE_RUNNING)

_log = logging.getLogger(__name__)

#: Waits for output, or for the end of a process.
Wait = Callable[[api.WaitWorkspaceOutputRequest], Awaitable[api.WaitWorkspaceOutputResponse]]


class OutputClient(Protocol):
    """The client that gets the events."""

    def send(self, kind: str, event: Message) -> None:
        """Queue one event."""
        ...

    async def wait_sent(self) -> None:
        """Wait until everything queued so far has been sent."""
        ...


class OutputReader:
    """Reads one process until it ends.

    Args:
        wait: Waits for output; raises HttpProblem or UpstreamProblem.
        client: Gets the events.
        clock: The clock.
    """

    def __init__(self, wait: Wait, client: OutputClient, clock: Clock) -> None:
        self._wait = wait
        self._client = client
        self._clock = clock

    async def read(self, workspace_id: str, process_id: str, cursor: int) -> None:
        """Send the output after a cursor as it comes, and then how the process ended."""
        asked = api.WaitWorkspaceOutputRequest(
            workspace_id=workspace_id,
            process_id=process_id,
            since_cursor=cursor,
            # The first event tells the client at once what there is, also if that is nothing.
            condition=process_pb2.WaitCondition(until=process_pb2.WAIT_UNTIL_SNAPSHOT),
            budget=process_pb2.OutputBudget(max_bytes=EVENT_BYTES_MAX, keep_escapes=True),
        )
        failures = 0
        while True:
            await self._client.wait_sent()
            try:
                answer = await self._wait(asked)
            except (HttpProblem, UpstreamProblem) as error:
                problem = http_problem_of(error)
                if not is_temporary(problem):
                    self.refuse(process_id, problem)
                    return
                await self._clock.sleep(min(RETRY_S * 2**failures, RETRY_S_MAX))
                failures += 1
                continue
            failures = 0
            # During the wait the queue may have filled again; an output that no longer fits there
            # would end the stream of the chat.
            await self._client.wait_sent()
            self._send_output(asked, answer)
            if answer.process.state not in RUNNING:
                ended = event_pb2.ProcessEndedEvent(process_id=process_id, process=answer.process)
                self._client.send("process_ended", ended)
                return
            await self._clock.sleep(_pause_s(answer))

    def refuse(self, process_id: str, problem: HttpProblem) -> None:
        """Send why a process is not followed any longer."""
        error = event_pb2.FollowError(code=problem.code, message=problem.detail)
        ended = event_pb2.ProcessEndedEvent(process_id=process_id, error=error)
        self._client.send("process_ended", ended)

    def _send_output(
        self,
        asked: api.WaitWorkspaceOutputRequest,
        answer: api.WaitWorkspaceOutputResponse,
    ) -> None:
        """Send what a wait returned, and ask for what follows it from now on."""
        output, begun_at = answer.output, asked.since_cursor
        is_first = asked.condition.until == process_pb2.WAIT_UNTIL_SNAPSHOT
        asked.since_cursor = output.next_cursor
        asked.condition.CopyFrom(
            process_pb2.WaitCondition(until=process_pb2.WAIT_UNTIL_OUTPUT, max_wait_ms=WAIT_MS)
        )
        if output.next_cursor == begun_at and not is_first:
            return
        event = event_pb2.ProcessOutputEvent(
            process_id=asked.process_id,
            cursor=begun_at,
            text=output.text,
            next_cursor=output.next_cursor,
        )
        if output.HasField("truncation"):
            event.truncation.CopyFrom(output.truncation)
        self._client.send("process_output", event)


def _pause_s(answer: api.WaitWorkspaceOutputResponse) -> float:
    """Return how long after an answer the next wait begins."""
    if answer.output.truncation.omitted_bytes > OMITTED_BYTES_MAX:
        return SLOW_PACE_S
    return RETRY_S if answer.reason == process_pb2.WAIT_REASON_GOING_AWAY else PACE_S


def is_temporary(problem: HttpProblem) -> bool:
    """Return whether the same call may succeed later."""
    return problem.status >= 500 or problem.status == 429
