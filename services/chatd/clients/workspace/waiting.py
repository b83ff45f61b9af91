"""Waiting for a process: in pieces, and with a fresh look at it whenever a wait is lost."""

from dataclasses import dataclass
from typing import Final

import grpc

from chatd.clients.workspace.calling import ANSWER_S, HEADROOM_S, Call, cause_of, is_lost
from parley.api.workspace.v1 import process_pb2
from parley.api.workspace.v1 import process_service_pb2 as api

#: Longest single wait; a longer one is asked for again.
PIECE_S: Final = 300.0
OUTPUT_BYTES_MAX: Final = 32 * 1024
GOING_AWAY: Final = "the node is stopping"


@dataclass(frozen=True, slots=True)
class Wait:
    """What to wait for.

    Attributes:
        since: Cursor after which output is returned.
        output_bytes: How much output is returned.
    """

    process_id: str
    wait_s: float
    until: "process_pb2.WaitUntil.ValueType" = process_pb2.WAIT_UNTIL_EXIT
    pattern: str = ""
    since: int = 0
    output_bytes: int = OUTPUT_BYTES_MAX


@dataclass(frozen=True, slots=True)
class Observed:
    """A process as it was last seen.

    Attributes:
        lost_because: Why the wait for it was lost; empty if it was not.
    """

    process: process_pb2.Process
    output: process_pb2.ProcessOutput
    reason: "process_pb2.WaitReason.ValueType"
    lost_because: str = ""


class OutOfSight(Exception):
    """Neither the wait nor a look at the process succeeded.

    Attributes:
        process_id: The process, which may well run.
        causes: Why the wait was lost, and why the look failed.
    """

    def __init__(self, process_id: str, causes: tuple[str, str]) -> None:
        super().__init__(f"process {process_id} cannot be seen: {'; then '.join(causes)}")
        self.process_id = process_id
        self.causes = causes


def output_budget(wanted_bytes: int, budget_bytes: int) -> int:
    """Return how much output fits into a result, whose escapes take room as well."""
    return min(wanted_bytes, OUTPUT_BYTES_MAX, budget_bytes // 2)


async def observed(call: Call, wait: Wait, *, is_refusal_final: bool) -> Observed:
    """Wait for a process; if the wait is lost, see at least where it is.

    Args:
        call: The call that waits.
        wait: What it waits for.
        is_refusal_final: Whether a wait that toolrunner refused is not worth a look.

    Raises:
        OutOfSight: it could not be seen either.
        grpc.aio.AioRpcError: toolrunner refused, and that is final.
    """
    try:
        answer = await _waited(call, wait)
        if answer.reason != process_pb2.WAIT_REASON_GOING_AWAY:
            return Observed(answer.process, answer.output, answer.reason)
        cause = GOING_AWAY
    except grpc.aio.AioRpcError as error:
        if is_refusal_final and not is_lost(error):
            raise
        cause = cause_of(error)
    try:
        answer = await call.processes.WaitOutput(
            _request(call, wait, 0.0), timeout=ANSWER_S, wait_for_ready=True
        )
    except grpc.aio.AioRpcError as error:
        raise OutOfSight(wait.process_id, (cause, cause_of(error))) from error
    return Observed(answer.process, answer.output, answer.reason, cause)


async def _waited(call: Call, wait: Wait) -> api.WaitOutputResponse:
    end_s = call.clock.monotonic() + wait.wait_s
    left_s = wait.wait_s
    while True:
        piece_s = min(left_s, PIECE_S)
        answer = await call.processes.WaitOutput(
            _request(call, wait, piece_s), timeout=piece_s + HEADROOM_S
        )
        left_s = min(left_s - piece_s, end_s - call.clock.monotonic())
        if answer.reason != process_pb2.WAIT_REASON_TIMEOUT or left_s <= 0:
            return answer


def _request(call: Call, wait: Wait, wait_s: float) -> api.WaitOutputRequest:
    until = wait.until if wait_s > 0 else process_pb2.WAIT_UNTIL_SNAPSHOT
    return api.WaitOutputRequest(
        context=call.context,
        process_id=wait.process_id,
        since_cursor=wait.since,
        condition=condition(until, wait.pattern, wait_s),
        budget=process_pb2.OutputBudget(max_bytes=wait.output_bytes),
    )


def condition(
    until: "process_pb2.WaitUntil.ValueType", pattern: str, wait_s: float
) -> process_pb2.WaitCondition:
    """Return a condition with a pattern only where one is matched."""
    is_match = until == process_pb2.WAIT_UNTIL_MATCH
    return process_pb2.WaitCondition(
        until=until, pattern=pattern if is_match else "", max_wait_ms=round(wait_s * 1000)
    )
