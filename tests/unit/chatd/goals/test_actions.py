"""What became of the check of a goal."""

import pytest

from chatd.chats.domain.owner_calls import CallRefused
from chatd.goals.domain.goal import CheckResult
from chatd.goals.rpc.actions import result_of
from parley.api.workspace.v1 import process_pb2


def test_what_the_database_cannot_store_of_an_output_is_replaced() -> None:
    ended = process_pb2.Process(state=process_pb2.PROCESS_STATE_EXITED)
    assert result_of(ended, "a\0b") == CheckResult(0, "a\ufffdb")
    failed = process_pb2.Process(
        state=process_pb2.PROCESS_STATE_START_FAILED, start_error="no \0 here"
    )
    with pytest.raises(CallRefused, match="no \ufffd here"):
        result_of(failed, "")
