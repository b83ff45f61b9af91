from datetime import UTC, datetime

import grpc
import pytest

from parley.identity import Forbidden, RefusalReason, Unauthenticated
from parley.rpc import NoAddress, Problem, Refusal
from parley.rpc.problem_table import Problems


class ChatError(Exception):
    """Base of a service's errors in these tests."""


class ChatNotFound(ChatError):
    """One that the table knows."""


class ChatArchived(ChatNotFound):
    """One that the table knows by its base."""


NOT_FOUND = Problem(grpc.StatusCode.NOT_FOUND, "CHAT_NOT_FOUND", "no such chat")


def upstream(status: grpc.StatusCode) -> grpc.aio.AioRpcError:
    return grpc.aio.AioRpcError(status, grpc.aio.Metadata(), grpc.aio.Metadata(), "secret")


def test_a_service_answers_by_its_table() -> None:
    problems = Problems({ChatNotFound: lambda error: NOT_FOUND})
    assert problems.of(ChatNotFound()) == NOT_FOUND


def test_an_error_is_known_by_its_nearest_base() -> None:
    other = Problem(grpc.StatusCode.ABORTED, "OTHER", "other")
    problems = Problems({ChatError: lambda error: other, ChatNotFound: lambda error: NOT_FOUND})
    assert problems.of(ChatArchived()) == NOT_FOUND
    assert problems.of(ChatError()) == other


def test_an_error_outside_the_table_is_unknown() -> None:
    assert Problems({ChatNotFound: lambda error: NOT_FOUND}).of(KeyError("x")) is None


def test_a_refusal_answers_its_own_problem() -> None:
    assert Problems({}).of(Refusal(NOT_FOUND)) == NOT_FOUND


def test_a_service_may_answer_shared_errors_in_its_own_way() -> None:
    problems = Problems({NoAddress: lambda error: NOT_FOUND})
    assert problems.of(NoAddress()) == NOT_FOUND


def test_identity_errors_keep_their_reason() -> None:
    unauthenticated = Problems({}).of(Unauthenticated(RefusalReason.TOKEN_EXPIRED))
    forbidden = Problems({}).of(Forbidden(RefusalReason.SCOPE_MISSING, "/a.B/C"))
    assert unauthenticated == Problem(
        grpc.StatusCode.UNAUTHENTICATED,
        "TOKEN_EXPIRED",
        str(Unauthenticated(RefusalReason.TOKEN_EXPIRED)),
    )
    assert forbidden == Problem(
        grpc.StatusCode.PERMISSION_DENIED,
        "SCOPE_MISSING",
        str(Forbidden(RefusalReason.SCOPE_MISSING, "/a.B/C")),
        {"method": "/a.B/C"},
    )


def test_a_refusal_because_of_time_carries_the_time() -> None:
    time = datetime(2026, 1, 1, 12, 0, 0, 900_000, tzinfo=UTC)
    problem = Problems({}).of(Unauthenticated(RefusalReason.TOKEN_EXPIRED, time))
    assert problem is not None
    assert problem.metadata == {"time": str(int(time.timestamp()))}


def test_a_guard_that_does_not_know_the_revocations_yet_asks_to_come_back() -> None:
    problem = Problems({}).of(Unauthenticated(RefusalReason.REVOCATIONS_UNKNOWN))
    assert problem is not None
    assert (problem.status, problem.retry_after_s) == (grpc.StatusCode.UNAVAILABLE, 1.0)


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (grpc.StatusCode.UNAVAILABLE, "UPSTREAM_UNAVAILABLE"),
        (grpc.StatusCode.DEADLINE_EXCEEDED, "DEADLINE_EXCEEDED"),
    ],
)
def test_a_service_behind_that_is_away_or_late_is_passed_on(
    status: grpc.StatusCode, reason: str
) -> None:
    problem = Problems({}).of(upstream(status))
    assert problem is not None
    assert (problem.status, problem.reason) == (status, reason)
    assert "secret" not in problem.message


def test_what_else_a_service_behind_refuses_is_our_own_fault() -> None:
    assert Problems({}).of(upstream(grpc.StatusCode.PERMISSION_DENIED)) is None
