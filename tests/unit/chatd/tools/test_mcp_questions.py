"""What a call of an MCP server asks, and for how long."""

import pytest

from chatd.content.domain.tools import PendingKind
from chatd.tools.mcpgateway import question_of
from chatd.turns.domain.asking import ActionDeadlines
from parley.api.mcp.v1 import tool_pb2


@pytest.mark.parametrize(
    ("expires_after_ms", "deadline_s"),
    [(0, 86_400.0), (1500, 1.5), (-1, 0.0), (-5000, 0.0), (864_000_000, 86_400.0)],
)
def test_a_deadline_that_is_over_ends_a_question_at_once(
    expires_after_ms: int, deadline_s: float
) -> None:
    asked = tool_pb2.InputRequired(
        request_id="r1",
        kind=tool_pb2.INPUT_KIND_ELICITATION,
        message="Which?",
        expires_after_ms=expires_after_ms,
    )
    question = question_of(asked)
    assert question.kind is PendingKind.ELICITATION
    assert ActionDeadlines().of_question(question) == deadline_s
