"""Errors of egress.

EgressError
├── PolicyInvalid           a preset or a host pattern cannot be parsed
├── SecretUnavailable       chatd returns no value for a granted secret
└── Refused                 a request is not allowed, or cannot be forwarded
"""

from enum import StrEnum
from typing import Final


class EgressError(Exception):
    """An error of egress."""


class PolicyInvalid(EgressError):
    """A preset or a host pattern cannot be parsed.

    Attributes:
        text: The given text.
        problem: What is wrong, and what is valid.
    """

    def __init__(self, text: str, problem: str) -> None:
        super().__init__(f"{text!r} {problem}")
        self.text = text
        self.problem = problem


class SecretUnavailable(EgressError):
    """No value is available for a granted secret.

    Attributes:
        name: The secret.
        cause: The reason.
        is_final: Whether another request would have the same result.
    """

    def __init__(self, name: str, cause: str, *, is_final: bool = False) -> None:
        super().__init__(f"the secret {name!r} cannot be used: {cause}")
        self.name = name
        self.cause = cause
        self.is_final = is_final


class Reason(StrEnum):
    """Why a request is refused."""

    NO_NETWORK = "no_network"
    NOT_ALLOWED = "not_allowed"
    DENIED = "denied"
    PRIVATE_ADDRESS = "private_address"
    UNRESOLVED = "unresolved"
    UNREACHABLE = "unreachable"
    UNTRUSTED = "untrusted"
    MALFORMED = "malformed"
    MISMATCH = "mismatch"
    UNSUPPORTED = "unsupported"
    WRONG_TOKEN = "wrong_token"
    SECRET_UNAVAILABLE = "secret_unavailable"
    TOO_LARGE = "too_large"
    TOO_SLOW = "too_slow"
    TOO_MANY = "too_many"
    BAD_ANSWER = "bad_answer"
    PASSWORD_WANTED = "password_wanted"


ASK_FOR_HOST: Final = (
    "Nothing inside the workspace can change this. The workspace's owner can allow the host: name "
    "it, or a preset that holds it, in the network policy of the workspace or of its template."
)
ASK_OPERATOR: Final = (
    "Private, local and metadata addresses are closed to workspaces. The operator of the node can "
    "open one service by naming its HOST:PORT in TOOLRUNNER_EGRESS_PRIVATE_HOSTS."
)
_REMEDIES: Final = {
    Reason.NO_NETWORK: "This workspace has no network. Its owner can give it one, by its policy.",
    Reason.NOT_ALLOWED: ASK_FOR_HOST,
    Reason.DENIED: "The workspace's policy denies this host by name; denying wins over allowing.",
    Reason.PRIVATE_ADDRESS: ASK_OPERATOR,
    Reason.UNRESOLVED: "Check the spelling of the host.",
    Reason.UNREACHABLE: "The host may be down; try again later.",
    Reason.UNTRUSTED: "The host's certificate is not one that the node trusts.",
    Reason.MALFORMED: "Send one plain HTTP/1.1 request, as curl does.",
    Reason.MISMATCH: "Ask for the host that is meant; both names have to be the same.",
    Reason.UNSUPPORTED: "Use CONNECT for https, or a plain http:// address.",
    Reason.WRONG_TOKEN: "Use the proxy address of the workspace, from its environment.",
    Reason.SECRET_UNAVAILABLE: "Ask the owner to look at the workspace's secrets.",
    Reason.TOO_LARGE: "Send less at a time.",
    Reason.TOO_SLOW: "Try again.",
    Reason.TOO_MANY: "Close other connections of this workspace first.",
    Reason.BAD_ANSWER: "The answer of the host cannot be passed on as it is.",
    Reason.PASSWORD_WANTED: "Nothing inside the workspace holds a password, nor has to.",
}
_STATUS: Final = {
    Reason.UNRESOLVED: 502,
    Reason.UNREACHABLE: 502,
    Reason.UNTRUSTED: 502,
    Reason.BAD_ANSWER: 502,
    Reason.SECRET_UNAVAILABLE: 502,
    Reason.MALFORMED: 400,
    Reason.MISMATCH: 400,
    Reason.UNSUPPORTED: 400,
    Reason.WRONG_TOKEN: 407,
    Reason.TOO_LARGE: 413,
    Reason.TOO_SLOW: 408,
    Reason.TOO_MANY: 429,
}


class Refused(EgressError):
    """A request is not allowed, or cannot be forwarded.

    Attributes:
        reason: The reason.
        problem: The same as text, for users and models.
    """

    def __init__(self, reason: Reason, problem: str) -> None:
        super().__init__(f"{problem} {_REMEDIES[reason]}")
        self.reason = reason
        self.problem = problem

    @property
    def status(self) -> int:
        """The HTTP status of the refusal."""
        return _STATUS.get(self.reason, 403)
