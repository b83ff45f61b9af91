import grpc
import pytest

from parley.contract.errors import ErrorSpec, error_spec, received_spec


def test_a_reason_is_read_with_everything_that_its_option_declares() -> None:
    assert error_spec("FILE_TOO_LARGE") == ErrorSpec(
        reason="FILE_TOO_LARGE",
        grpc_status=grpc.StatusCode.OUT_OF_RANGE,
        http_status=413,
        if_match_http_status=413,
        is_retryable=False,
        meaning="The file has more bytes than are allowed.",
        remedy="Use a smaller one, or parts of it.",
        public_metadata=("size_bytes", "limit_bytes"),
        has_generic_text=False,
        body_field="",
        text="The file has more bytes than are allowed. Use a smaller one, or parts of it.",
    )


def test_a_declared_detail_replaces_meaning_and_remedy() -> None:
    assert error_spec("UNIMPLEMENTED").text == "This is not served yet."


def test_a_conflict_has_another_status_under_a_condition() -> None:
    conflict = error_spec("VERSION_CONFLICT")

    assert (conflict.http_status, conflict.if_match_http_status) == (409, 412)


def test_a_reason_that_no_call_declares_is_refused() -> None:
    with pytest.raises(KeyError):
        error_spec("NOT_KNOWN_HERE")


def test_a_received_reason_keeps_its_own_status() -> None:
    known = received_spec("QUEUE_FULL", grpc.StatusCode.UNAVAILABLE)

    assert known == error_spec("QUEUE_FULL")


@pytest.mark.parametrize("reason", ["NOT_KNOWN_HERE", "VIEW_ONLY"])
def test_a_received_reason_that_no_call_has_is_known_by_its_status(reason: str) -> None:
    unknown = received_spec(reason, grpc.StatusCode.ABORTED)

    assert (unknown.reason, unknown.http_status, unknown.has_generic_text) == (reason, 409, False)
