"""Errors that any kind of request can raise."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

T = TypeVar("T")


class ChatError(Exception):
    """Base class of errors of operations on chats."""


class RequestIdReused(ChatError):
    """The same request id came with another body."""

    def __init__(self, request_id: str) -> None:
        super().__init__(f"request id {request_id} was used with another body; choose a new one")
        self.request_id = request_id


class NotPermitted(ChatError):
    """The operation requires another role."""

    def __init__(self, what: str) -> None:
        super().__init__(f"only administrators may {what}")
        self.what = what


class ResourceNotFound(ChatError):
    """There is no such provider, model or key for this caller."""

    def __init__(self, resource: str, resource_id: str) -> None:
        super().__init__(f"no {resource} {resource_id}")
        self.resource = resource
        self.resource_id = resource_id


class NameTaken(ChatError):
    """The name is already used."""

    def __init__(self, resource: str, name: str) -> None:
        super().__init__(f"another {resource} is called {name}; choose another name")
        self.resource = resource
        self.name = name


class VersionConflict(ChatError):
    """The resource changed since it was read."""

    def __init__(self, etag: str) -> None:
        super().__init__("somebody changed it meanwhile; read it and try again")
        self.etag = etag


class InvalidRequest(ChatError):
    """The request is invalid.

    Attributes:
        field: The first invalid field.
        problem: What is wrong with it.
        faults: Every invalid field with its problem.
    """

    def __init__(self, field: str, problem: str, *others: tuple[str, str]) -> None:
        self.field = field
        self.problem = problem
        self.faults = ((field, problem), *others)
        super().__init__("; ".join(f"{field}: {problem}" for field, problem in self.faults))

    @classmethod
    def together(cls, refusals: Sequence["InvalidRequest"]) -> "InvalidRequest":
        """Combine the faults of several errors into one."""
        (field, problem), *others = (fault for each in refusals for fault in each.faults)
        return cls(field, problem, *others)


class UnknownIds(ChatError):
    """Ids of resources that do not exist or belong to another user; the error is the same.

    Attributes:
        resource: The kind of resource, such as "workspace".
        problems: The problem of each field.
    """

    def __init__(self, resource: str, problems: Mapping[str, str]) -> None:
        super().__init__("; ".join(f"{field}: {why}" for field, why in problems.items()))
        self.resource = resource
        self.problems = dict(problems)


class CheckUnavailable(ChatError):
    """The service that can check an id is not available.

    Attributes:
        resource: The kind of resource, such as "MCP server".
    """

    def __init__(self, resource: str) -> None:
        super().__init__(f"no service tells now whether there is such a {resource}")
        self.resource = resource


class ChatNotFound(ChatError):
    """There is no such chat for this caller."""

    def __init__(self, chat_id: str) -> None:
        super().__init__(f"no chat {chat_id}")
        self.chat_id = chat_id


class WorkspaceNotFound(ChatError):
    """There is no such workspace for this caller."""

    def __init__(self, workspace_id: str) -> None:
        super().__init__(f"no workspace {workspace_id}")
        self.workspace_id = workspace_id


def all_of(checks: Iterable[Callable[[], T]]) -> tuple[T, ...]:
    """Return the results of all checks.

    Raises:
        InvalidRequest: some checks failed; it contains the faults of all of them.
    """
    passed: list[T] = []
    refused: list[InvalidRequest] = []
    for check in checks:
        try:
            passed.append(check())
        except InvalidRequest as refusal:
            refused.append(refusal)
    if refused:
        raise InvalidRequest.together(refused)
    return tuple(passed)
