"""Results of tool calls that clients submit, and of calls that never got one."""

import json
from collections import Counter

import msgspec

from chatd.chats.domain.chat import PendingCall
from chatd.chats.domain.errors import BadToolResult, ResultProblem
from chatd.content.domain.parts import ToolCall, ToolOutcome, ToolResult
from chatd.content.domain.tools import InputRequired, PendingKind


def check_client_results(pending: tuple[PendingCall, ...], results: tuple[ToolResult, ...]) -> None:
    """Require exactly one result, valid JSON, for each call that the client was asked to execute.

    Raises:
        BadToolResult: With all problems.
    """
    asked = {
        call.tool_call_id for call in pending if call.is_asked and call.kind is PendingKind.CLIENT
    }
    counts = Counter(result.tool_call_id for result in results)
    found: dict[str, ResultProblem] = {}
    for result in results:
        if counts[result.tool_call_id] > 1:
            found.setdefault(result.tool_call_id, ResultProblem.DUPLICATE)
    for result in results:
        try:
            json.loads(result.result_json)
        except ValueError:
            found.setdefault(result.tool_call_id, ResultProblem.INVALID_JSON)
    for call_id in sorted(asked - counts.keys()):
        found[call_id] = ResultProblem.MISSING
    for call_id in sorted(counts.keys() - asked):
        found.setdefault(call_id, ResultProblem.UNEXPECTED)
    for call_id, problem in found.items():
        raise BadToolResult(call_id, problem, problems=found)


def asked_json(question: InputRequired) -> str:
    """Return what a running call asks, as a person sees it."""
    asked: dict[str, object] = {"message": question.message}
    if question.schema_json:
        asked["schema"] = json.loads(question.schema_json)
    if question.url:
        asked["url"] = question.url
    if question.agent_ids:
        asked["agents"] = list(question.agent_ids)
        asked["until"] = "any" if question.is_any else "all"
    return json.dumps(asked, ensure_ascii=False)


def asking_call(pending: PendingCall, call: ToolCall) -> ToolCall:
    """Return a call with what it asks in place of its arguments, if it asks while it runs."""
    if pending.question is None:
        return call
    return msgspec.structs.replace(call, args_json=asked_json(pending.question))


def synthetic_result(call: PendingCall, reason: str) -> ToolResult:
    """Return the result of a call that was cancelled for `reason`."""
    return ToolResult(
        tool_call_id=call.tool_call_id,
        tool_name=call.tool_name,
        result_json=json.dumps({"error": reason}),
        outcome=ToolOutcome.CANCELLED,
        mcp_server_id=call.mcp_server_id,
    )
