"""Every way in which something asked of a chat can fail.

ChatError
├── ChatNotFound            no such chat for this caller
├── ChatReadOnly            the chat is shared with the caller, who may only read it
├── TransitionNotAllowed    the command is not legal in the chat's status
├── ChatArchived            an archived chat takes nothing but unarchiving
├── InvalidState            what is stored cannot be; reconcile it
├── FenceLost               a worker wrote for a chat that is no longer its own
├── QueueFull               no more messages can wait
├── QueuedMessageNotFound   no such message waits
├── MessageNotFound         no such message to edit
├── NotEditable             only live messages of a user can be edited
├── NothingToCompact        nothing was said since the last summary
├── BadToolResult           a client's result does not fit what was asked
├── FileNotFound            no such file for this caller
├── TooManyFiles            the chat would hold more files than it may
├── FileTooLarge            the file has more bytes than a file may have
├── MediaTypeRefused        the file is of a type that is not taken
├── WorkspaceNotFound       no such workspace for this caller
├── UserBarred              the user was locked out or deleted
├── RequestIdReused         the same request id came with another body
├── UsageLimitReached       the owner has spent what they may
├── GroupsUnavailable       nobody can be asked about groups
├── UnknownIds              ids that name nothing which the caller may use
├── CheckUnavailable        the service that knows an id cannot be asked
├── NotPermitted            only administrators may do this
├── ModelNotFound           no such model, or it is switched off
├── ResourceNotFound        no such provider, model or key for this caller
├── NameTaken               something else has the name
├── VersionConflict         somebody changed it since it was read
├── KeyNeeded               stored keys would be sent to another host
└── InvalidRequest          the request itself is wrong; `field` says where
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum

from chatd.domain.chat import ChatId, MessageId, QueuedMessageId, Role, Status
from chatd.domain.limits import dollars


class ChatError(Exception):
    """Something asked of a chat failed."""


class ChatNotFound(ChatError):
    """There is no such chat for this caller."""

    def __init__(self, chat_id: str) -> None:
        super().__init__(f"no chat {chat_id}")
        self.chat_id = chat_id


class ChatReadOnly(ChatError):
    """The chat is shared with the caller, who may only read it."""

    def __init__(self, chat_id: str) -> None:
        super().__init__(f"chat {chat_id} is shared for reading")
        self.chat_id = chat_id


class TransitionNotAllowed(ChatError):
    """The command is not legal in the chat's status."""

    def __init__(self, status: Status, command: str) -> None:
        super().__init__(f"{command} is not allowed while the chat is {status}")
        self.status = status
        self.command = command


class ChatArchived(ChatError):
    """The chat is archived and takes nothing but unarchiving."""

    def __init__(self, chat_id: ChatId) -> None:
        super().__init__(f"chat {chat_id} is archived; unarchive it first")
        self.chat_id = chat_id


class InvalidState(ChatError):
    """What is stored of the chat cannot be."""

    def __init__(self, chat_id: ChatId, problem: str) -> None:
        super().__init__(f"the state of chat {chat_id} is impossible: {problem}; reconcile it")
        self.chat_id = chat_id
        self.problem = problem


class FenceLost(ChatError):
    """The worker no longer owns the chat, or its episode is over."""

    def __init__(self, chat_id: ChatId) -> None:
        super().__init__(f"chat {chat_id} has another owner or episode now")
        self.chat_id = chat_id


class QueueFull(ChatError):
    """No more messages can wait for this chat."""

    def __init__(self, queue_length_max: int) -> None:
        super().__init__(f"{queue_length_max} messages wait already")
        self.queue_length_max = queue_length_max


class QueuedMessageNotFound(ChatError):
    """No such message waits."""

    def __init__(self, queued_message_id: QueuedMessageId) -> None:
        super().__init__(f"no queued message {queued_message_id}")
        self.queued_message_id = queued_message_id


class MessageNotFound(ChatError):
    """There is no such live message."""

    def __init__(self, message_id: MessageId) -> None:
        super().__init__(f"no message {message_id}")
        self.message_id = message_id


class NotEditable(ChatError):
    """Only live messages of a user can be edited."""

    def __init__(self, message_id: MessageId, role: Role) -> None:
        super().__init__(f"message {message_id} is of role {role}; only a user's can be edited")
        self.message_id = message_id
        self.role = role


class NothingToCompact(ChatError):
    """Nothing was said since the last summary."""

    def __init__(self, chat_id: ChatId) -> None:
        super().__init__(f"chat {chat_id} has nothing to summarise")
        self.chat_id = chat_id


class ResultProblem(StrEnum):
    """What is wrong with a client's tool result."""

    DUPLICATE = "duplicate"
    INVALID_JSON = "invalid_json"
    MISSING = "missing"
    UNEXPECTED = "unexpected"


class BadToolResult(ChatError):
    """Results of a client do not fit what was asked.

    Attributes:
        tool_call_id: The call of the first problem.
        problem: The first problem.
        problems: Every problem, by call.
        fields: Where the results of calls are in the request.
    """

    def __init__(
        self,
        tool_call_id: str,
        problem: ResultProblem,
        *,
        problems: Mapping[str, ResultProblem] | None = None,
        fields: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(f"the result of {tool_call_id} is {problem}")
        self.tool_call_id = tool_call_id
        self.problem = problem
        self.problems = dict(problems or {tool_call_id: problem})
        self.fields = dict(fields or {})

    def at(self, fields: Mapping[str, str]) -> "BadToolResult":
        """Return it with the places of the results in the request."""
        return BadToolResult(self.tool_call_id, self.problem, problems=self.problems, fields=fields)


class FileNotFound(ChatError):
    """There is no such file for this caller."""

    def __init__(self, file_id: str) -> None:
        super().__init__(f"no file {file_id}; upload it first")
        self.file_id = file_id


class TooManyFiles(ChatError):
    """The chat would hold more files than it may."""

    def __init__(self, files_max: int) -> None:
        super().__init__(f"a chat holds at most {files_max} files; start another one")
        self.files_max = files_max


class WorkspaceNotFound(ChatError):
    """There is no such workspace for this caller."""

    def __init__(self, workspace_id: str) -> None:
        super().__init__(f"no workspace {workspace_id}")
        self.workspace_id = workspace_id


class FileTooLarge(ChatError):
    """The file has more bytes than a file may have."""

    def __init__(self, limit_bytes: int) -> None:
        super().__init__(f"a file has at most {limit_bytes} bytes; send a smaller one")
        self.limit_bytes = limit_bytes


class MediaTypeRefused(ChatError):
    """The file is of a type that is not taken, or of another than was said."""

    def __init__(self, media_type: str, accepted: tuple[str, ...], declared: str = "") -> None:
        is_another = f"its bytes are {media_type}, not {declared}"
        is_refused = f"{media_type} is not taken; send one of {', '.join(accepted)}"
        super().__init__(is_another if declared else is_refused)
        self.media_type = media_type
        self.accepted = accepted
        self.declared = declared


class UserBarred(ChatError):
    """Nobody may act for this user any more."""

    def __init__(self, user_id: str) -> None:
        super().__init__("this user is locked out; an administrator can let them in again")
        self.user_id = user_id


class RequestIdReused(ChatError):
    """The same request id came with another body."""

    def __init__(self, request_id: str) -> None:
        super().__init__(f"request id {request_id} was used with another body; choose a new one")
        self.request_id = request_id


class UsageLimitReached(ChatError):
    """The owner has spent what they may until a moment."""

    def __init__(
        self, *, spent_micros: int, limit_micros: int, resets_at: datetime, retry_after_s: float
    ) -> None:
        super().__init__(
            f"{dollars(spent_micros)} of {dollars(limit_micros)} are spent; go on after {resets_at}"
        )
        self.spent_micros = spent_micros
        self.limit_micros = limit_micros
        self.resets_at = resets_at
        self.retry_after_s = retry_after_s


class GroupsUnavailable(ChatError):
    """Nobody can be asked about groups."""

    def __init__(self) -> None:
        super().__init__("no gateway tells about groups; try again")


class NotPermitted(ChatError):
    """Only somebody with another role may do this."""

    def __init__(self, what: str) -> None:
        super().__init__(f"only administrators may {what}")
        self.what = what


class ModelNotFound(ChatError):
    """There is no such model, or it is switched off."""

    def __init__(self, model_id: str) -> None:
        super().__init__(f"no model {model_id} can be used; choose one of the list of models")
        self.model_id = model_id


class ResourceNotFound(ChatError):
    """There is no such provider, model or key for this caller."""

    def __init__(self, resource: str, resource_id: str) -> None:
        super().__init__(f"no {resource} {resource_id}")
        self.resource = resource
        self.resource_id = resource_id


class NameTaken(ChatError):
    """Something else has the name."""

    def __init__(self, resource: str, name: str) -> None:
        super().__init__(f"another {resource} is called {name}; choose another name")
        self.resource = resource
        self.name = name


class VersionConflict(ChatError):
    """Somebody changed it since it was read."""

    def __init__(self, etag: str) -> None:
        super().__init__("somebody changed it meanwhile; read it and try again")
        self.etag = etag


class KeyNeeded(ChatError):
    """Stored keys of a provider would be sent to another host."""

    def __init__(self, old_origin: str, new_origin: str) -> None:
        super().__init__(f"the stored keys were given for {old_origin}, not for {new_origin}")
        self.old_origin = old_origin
        self.new_origin = new_origin


class InvalidRequest(ChatError):
    """The request itself is wrong.

    Attributes:
        field: The first field at fault.
        problem: What is wrong with it.
        faults: Every field at fault with what is wrong with it.
    """

    def __init__(self, field: str, problem: str, *others: tuple[str, str]) -> None:
        self.field = field
        self.problem = problem
        self.faults = ((field, problem), *others)
        super().__init__("; ".join(f"{field}: {problem}" for field, problem in self.faults))

    @classmethod
    def together(cls, refusals: Sequence["InvalidRequest"]) -> "InvalidRequest":
        """Return the faults of several refusals as one."""
        (field, problem), *others = (fault for each in refusals for fault in each.faults)
        return cls(field, problem, *others)


class UnknownIds(ChatError):
    """Ids that name nothing which the caller may use; unknown and foreign ones look the same.

    Attributes:
        resource: What they should name, such as "workspace".
        problems: What is wrong, by field.
    """

    def __init__(self, resource: str, problems: Mapping[str, str]) -> None:
        super().__init__("; ".join(f"{field}: {why}" for field, why in problems.items()))
        self.resource = resource
        self.problems = dict(problems)


class CheckUnavailable(ChatError):
    """The service that knows whether an id exists cannot be asked now.

    Attributes:
        resource: What the id should name, such as "MCP server".
    """

    def __init__(self, resource: str) -> None:
        super().__init__(f"no service tells now whether there is such a {resource}")
        self.resource = resource
