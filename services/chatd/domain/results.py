"""Results that clients send for their tools: whether they fit what was asked."""

import json
from collections import Counter

from chatd.domain.chat import PendingCall
from chatd.domain.errors import BadToolResult, ResultProblem
from chatd.domain.parts import ToolResult


def check_client_results(pending: tuple[PendingCall, ...], results: tuple[ToolResult, ...]) -> None:
    """Require exactly one result, which is JSON, for each call that the client was asked.

    Raises:
        BadToolResult: the first that does not fit, looked for in a fixed order.
    """
    asked = {call.tool_call_id for call in pending if call.is_client}
    counts = Counter(result.tool_call_id for result in results)
    for result in results:
        if counts[result.tool_call_id] > 1:
            raise BadToolResult(result.tool_call_id, ResultProblem.DUPLICATE)
    for result in results:
        try:
            json.loads(result.result_json)
        except ValueError:
            raise BadToolResult(result.tool_call_id, ResultProblem.INVALID_JSON) from None
    for call_id in sorted(asked - counts.keys()):
        raise BadToolResult(call_id, ResultProblem.MISSING)
    for call_id in sorted(counts.keys() - asked):
        raise BadToolResult(call_id, ResultProblem.UNEXPECTED)
