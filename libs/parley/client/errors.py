"""The errors of a caller.

ClientError                     .reason
├── CallFailed                  .problem; a call that was answered with a problem
│   ├── NotFound                absent, or not visible to the caller
│   ├── Invalid                 the request cannot be accepted as it is
│   ├── Refused                 the token does not allow it
│   │   ├── Unauthenticated     it is not valid: missing, expired, revoked
│   │   └── Forbidden           it is valid, and lacks the scope or the role
│   ├── Conflict                not in this state; read the chat again
│   ├── Busy                    a limit is reached: queue, quota, spending
│   ├── Unavailable             no replica answered, after every attempt
│   ├── DeadlineExceeded        the deadline passed; a change may or may not have happened
│   └── ServerFault             an internal error of the server
└── NoAnswer                    .chat_id; a turn that gave no answer
    ├── AnswerFailed            .error; the turn ended with an error
    ├── AnswerNeedsAction       the turn waits for tools that the client executes, or for a person
    └── AnswerTimeout           .within_s; the turn takes longer than the caller waits
"""

from collections.abc import Mapping
from typing import Final

import grpc

from parley.client.chats import TurnError
from parley.rpc import Problem


class ClientError(Exception):
    """Base of the errors of this package.

    Attributes:
        reason: A constant for programs.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class CallFailed(ClientError):
    """A call that was answered with a problem.

    Attributes:
        problem: The complete problem that the server answered.
    """

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.reason, f"{problem.reason}: {problem.message}")
        self.problem = problem


class NotFound(CallFailed):
    """The requested object is absent, or not visible to the caller."""


class Invalid(CallFailed):
    """The request is invalid; `problem.violations` lists the fields."""


class Refused(CallFailed):
    """The token does not allow the call."""


class Unauthenticated(Refused):
    """The token is not valid; get a new one."""


class Forbidden(Refused):
    """The token is valid and lacks the scope or the role."""


class Conflict(CallFailed):
    """The chat is not in a state that allows this; read it again."""


class Busy(CallFailed):
    """A limit is reached; `problem.retry_after_s` may say for how long."""


class Unavailable(CallFailed):
    """No replica answered, after every attempt."""


class DeadlineExceeded(CallFailed):
    """The deadline passed; repeat a change with its request id to get its result."""


class ServerFault(CallFailed):
    """An internal error of the server."""


class NoAnswer(ClientError):
    """A turn that gave no answer.

    Attributes:
        chat_id: The chat.
    """

    def __init__(self, chat_id: str, reason: str, message: str) -> None:
        super().__init__(reason, message)
        self.chat_id = chat_id


class AnswerFailed(NoAnswer):
    """The turn ended with an error.

    Attributes:
        error: The error; None if the chat has changed meanwhile.
    """

    def __init__(self, chat_id: str, error: TurnError | None) -> None:
        reason = "TURN_FAILED" if error is None else error.kind.name
        message = "the turn failed" if error is None else error.message
        super().__init__(chat_id, reason, f"chat {chat_id}: {message}")
        self.error = error


class AnswerNeedsAction(NoAnswer):
    """The turn waits; submit the results of client tools, answer the actions of people."""

    def __init__(self, chat_id: str) -> None:
        message = f"chat {chat_id} waits for client tools or people; see its required action"
        super().__init__(chat_id, "REQUIRES_ACTION", message)


class AnswerTimeout(NoAnswer):
    """The turn takes longer than the caller waits, and goes on.

    Attributes:
        within_s: How long the caller waited.
    """

    def __init__(self, chat_id: str, within_s: float) -> None:
        message = f"chat {chat_id} gave no answer in {within_s:g} s; it goes on, follow it"
        super().__init__(chat_id, "ANSWER_LATE", message)
        self.within_s = within_s


_BY_STATUS: Final[Mapping[grpc.StatusCode, type[CallFailed]]] = {
    grpc.StatusCode.NOT_FOUND: NotFound,
    grpc.StatusCode.INVALID_ARGUMENT: Invalid,
    grpc.StatusCode.OUT_OF_RANGE: Invalid,
    grpc.StatusCode.UNAUTHENTICATED: Unauthenticated,
    grpc.StatusCode.PERMISSION_DENIED: Forbidden,
    grpc.StatusCode.FAILED_PRECONDITION: Conflict,
    grpc.StatusCode.ALREADY_EXISTS: Conflict,
    grpc.StatusCode.ABORTED: Conflict,
    grpc.StatusCode.RESOURCE_EXHAUSTED: Busy,
    grpc.StatusCode.UNAVAILABLE: Unavailable,
    grpc.StatusCode.DEADLINE_EXCEEDED: DeadlineExceeded,
}


def error_of(problem: Problem) -> CallFailed:
    """Return the error for a problem."""
    return _BY_STATUS.get(problem.status, ServerFault)(problem)
