"""Every way in which something asked of a chat can fail.

ChatError
├── ChatNotFound            no such chat for this caller
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
├── RequestIdReused         the same request id came with another body
└── InvalidRequest          the request itself is wrong; `field` says where
"""

from enum import StrEnum

from chatd.domain.chat import ChatId, MessageId, QueuedMessageId, Role, Status


class ChatError(Exception):
    """Something asked of a chat failed."""


class ChatNotFound(ChatError):
    """There is no such chat for this caller."""

    def __init__(self, chat_id: str) -> None:
        super().__init__(f"no chat {chat_id}")
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
        super().__init__(f"chat {chat_id} is archived; take it back first")
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
    """A client's result does not fit what was asked."""

    def __init__(self, tool_call_id: str, problem: ResultProblem) -> None:
        super().__init__(f"the result of {tool_call_id} is {problem}")
        self.tool_call_id = tool_call_id
        self.problem = problem


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


class RequestIdReused(ChatError):
    """The same request id came with another body."""

    def __init__(self, request_id: str) -> None:
        super().__init__(f"request id {request_id} was used with another body; choose a new one")
        self.request_id = request_id


class InvalidRequest(ChatError):
    """The request itself is wrong."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field
        self.problem = problem
