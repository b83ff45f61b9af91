"""Maps errors of users to gRPC problems."""

from typing import Final

from chatd.users.domain.status import UserSuspended
from parley.rpc import ErrorTable, Problem


def _user_suspended(error: UserSuspended) -> Problem:
    return Problem.of("FORBIDDEN", str(error), {})


USER_ERRORS: Final[ErrorTable] = {
    UserSuspended: _user_suspended,
}
