"""Waits for a process in several requests, and retries a lost wait."""

from dataclasses import dataclass, replace
from typing import Final

import grpc

from chatd.tools.workspace.call import (
    ANSWER_S,
    HEADROOM_S,
    Call,
    NodeAway,
    NodeStopping,
    failure_reason,
    is_lost,
    retry_until_back,
)
from parley.api.workspace.v1 import process_pb2
from parley.api.workspace.v1 import process_service_pb2 as api

#: Longest wait of one request; a longer wait is split.
PIECE_S: Final = 300.0
OUTPUT_BYTES_MAX: Final = 32 * 1024
#: Live output: how much of it one request returns at most, and the pause before the next one.
LIVE_OUTPUT_BYTES_MAX: Final = 8 * 1024
LIVE_OUTPUT_PAUSE_S: Final = 0.1
LIVE_OUTPUT_RETRY_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class Wait:
    """The condition and limits of a wait.

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
    """A process as last read."""

    process: process_pb2.Process
    output: process_pb2.ProcessOutput
    reason: "process_pb2.WaitReason.ValueType"


class ProcessUnobserved(Exception):
    """Neither the wait nor a read of the process succeeded.

    Attributes:
        process_id: The process, which may still run.
        cause: Why not.
    """

    def __init__(self, process_id: str, cause: str) -> None:
        super().__init__(f"process {process_id} cannot be seen: {cause}")
        self.process_id = process_id
        self.cause = cause


def output_budget(wanted_bytes: int, budget_bytes: int) -> int:
    """Return how much output fits into a result; JSON escapes take space as well."""
    return min(wanted_bytes, OUTPUT_BYTES_MAX, budget_bytes // 2)


async def observed(call: Call, wait: Wait, *, is_refusal_final: bool) -> Observed:
    """Wait for a process; while its node is unavailable, retry, then continue the wait.

    Args:
        call: The call that waits.
        wait: The condition.
        is_refusal_final: Whether to raise a refusal of toolrunner without reading the process.

    Raises:
        ProcessUnobserved: it could not be read either.
        grpc.aio.AioRpcError: toolrunner refused, and that is final.
    """
    end_s = call.clock.monotonic() + wait.wait_s

    async def ask(is_again: bool) -> Observed:
        left_s = max(0.0, end_s - call.clock.monotonic())
        answer = await _waited(call, replace(wait, wait_s=left_s), is_again=is_again)
        if answer.reason == process_pb2.WAIT_REASON_GOING_AWAY:
            raise NodeStopping
        return Observed(answer.process, answer.output, answer.reason)

    try:
        return await retry_until_back(call.clock, ask)
    except NodeAway as away:
        raise ProcessUnobserved(wait.process_id, away.cause) from away
    except grpc.aio.AioRpcError as error:
        if is_refusal_final:
            raise
        return await _looked(call, wait, error)


async def _looked(call: Call, wait: Wait, refused: grpc.aio.AioRpcError) -> Observed:
    """Read the current state of a process whose wait was refused."""
    try:
        answer = call.noted(
            await call.processes.WaitOutput(
                _request(call, wait, 0.0), timeout=ANSWER_S, wait_for_ready=True
            )
        )
    except grpc.aio.AioRpcError:
        raise ProcessUnobserved(wait.process_id, failure_reason(refused)) from refused
    return Observed(answer.process, answer.output, answer.reason)


async def _waited(call: Call, wait: Wait, *, is_again: bool) -> api.WaitOutputResponse:
    end_s = call.clock.monotonic() + wait.wait_s
    left_s = wait.wait_s
    while True:
        piece_s = min(left_s, PIECE_S)
        answer = call.noted(
            await call.processes.WaitOutput(
                _request(call, wait, piece_s), timeout=piece_s + HEADROOM_S, wait_for_ready=is_again
            )
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
    """Return a condition; the pattern is set only when it is matched."""
    is_match = until == process_pb2.WAIT_UNTIL_MATCH
    return process_pb2.WaitCondition(
        until=until, pattern=pattern if is_match else "", max_wait_ms=round(wait_s * 1000)
    )


async def follow_output(call: Call, process_id: str, cursor: int) -> None:
    """Show the output of a process after a cursor until it ends, or toolrunner refuses.

    Of output that is faster than it is read, only the end is requested. A wait does not depend on
    this: while the node is unavailable nothing is shown.
    """
    pause_s = LIVE_OUTPUT_PAUSE_S
    while True:
        await call.clock.sleep(pause_s)
        is_again = pause_s > LIVE_OUTPUT_PAUSE_S
        request = api.WaitOutputRequest(
            context=call.context,
            process_id=process_id,
            since_cursor=cursor,
            condition=condition(process_pb2.WAIT_UNTIL_OUTPUT, "", PIECE_S),
            budget=process_pb2.OutputBudget(max_bytes=LIVE_OUTPUT_BYTES_MAX, head_bytes=0),
        )
        try:
            answer = await call.processes.WaitOutput(
                request, timeout=PIECE_S + HEADROOM_S, wait_for_ready=is_again
            )
        except grpc.aio.AioRpcError as error:
            if not is_lost(error):
                return
            pause_s = LIVE_OUTPUT_RETRY_S
            continue
        call.report(answer.output.text)
        cursor = answer.output.next_cursor
        if answer.reason == process_pb2.WAIT_REASON_EXITED:
            return
        is_going = answer.reason == process_pb2.WAIT_REASON_GOING_AWAY
        pause_s = LIVE_OUTPUT_RETRY_S if is_going else LIVE_OUTPUT_PAUSE_S
