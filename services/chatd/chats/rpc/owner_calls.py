"""Calls methods of this process as a user would, for work that goes on without them.

Admission, spend limits, checks of ids and idempotency are those of every other request.
"""

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import grpc

from chatd.chats.domain.errors import ChatReadOnly
from chatd.chats.domain.owner_calls import CallPostponed, CallRefused
from chatd.primitives.domain.errors import ChatNotFound
from chatd.primitives.domain.ids import Owner
from chatd.users.domain.status import UserSuspended
from parley.identity import Caller, Role, ServiceName, User, UserId
from parley.rpc import ErrorTable, Problem, Problems, serving

T = TypeVar("T")

TIMEOUT_S: Final = 30.0
#: Statuses of errors that another attempt may not get.
PASSING: Final = frozenset(
    {
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.DEADLINE_EXCEEDED,
    }
)
#: Reasons with such a status that every other attempt gets too.
LASTING: Final = frozenset({"OUTCOME_UNKNOWN", "EXECUTION_CANCELLED"})
#: States in which a workspace is not ready yet.
PREPARED: Final = frozenset({"pending", "preparing"})


class OwnerCalls:
    """Calls methods of this process as a user would.

    Args:
        errors: The error table of the service.
    """

    def __init__(self, errors: ErrorTable) -> None:
        self._problems = Problems(errors)

    async def call(self, owner: Owner, method: str, ask: Callable[[], Awaitable[T]]) -> T:
        """Call a method, named as `package.Service/Method`, for a user.

        Raises:
            CallRefused: It was refused.
            CallPostponed: Something that it needs is away.
        """
        with serving(_caller(owner), method=method, timeout_s=TIMEOUT_S):
            try:
                return await ask()
            except Exception as error:
                problem = self._problems.of(error)
                if problem is None:
                    raise  # It is a defect, not a refusal.
                if is_passing(problem) or isinstance(error, UserSuspended):
                    raise CallPostponed(problem.message) from error
                is_lasting = isinstance(error, ChatNotFound | ChatReadOnly)
                raise CallRefused(problem.message, is_lasting=is_lasting) from error


def is_passing(problem: Problem) -> bool:
    """Return whether another attempt with the same request id may succeed."""
    if problem.reason == "WORKSPACE_NOT_READY":
        return problem.metadata.get("state") in PREPARED
    return problem.status in PASSING and problem.reason not in LASTING


def _caller(owner: Owner) -> Caller:
    return Caller(
        service=ServiceName.CHATD,
        user=User(UserId(owner.id), Role(owner.role)),
        scopes=frozenset(),
        token_id=None,
        name=ServiceName.CHATD,
    )
