"""Which problems of a call for a user who is away may pass."""

import pytest

from chatd.chats.rpc.owner_calls import is_passing
from parley.rpc import Problem


@pytest.mark.parametrize(
    ("reason", "metadata", "expected"),
    [
        ("UPSTREAM_UNAVAILABLE", {}, True),
        ("DEADLINE_EXCEEDED", {}, True),
        ("OUTCOME_UNKNOWN", {}, False),
        ("EXECUTION_CANCELLED", {}, False),
        ("WORKSPACE_NOT_READY", {"state": "preparing"}, True),
        ("WORKSPACE_NOT_READY", {"state": "stopped"}, False),
        ("CHAT_NOT_FOUND", {}, False),
    ],
)
def test_only_what_another_attempt_may_not_get_is_tried_again(
    reason: str, metadata: dict[str, str], expected: bool
) -> None:
    assert is_passing(Problem.of(reason, "No.", metadata)) == expected
