"""The errors of requests on chats.

ChatError
├── ChatNotFound            no such chat for this caller
├── ChatReadOnly            the chat is shared with the caller, who may only read it
├── TransitionNotAllowed    the command is not legal in the chat's status
├── AgentAtWork             an agent works in the workspace that the chat would leave
├── ChatArchived            an archived chat can only be unarchived
├── InvalidState            the stored state is impossible; reconcile it
├── FenceLost               a worker wrote to a chat that it no longer owns
├── QueueFull               no more messages can be queued
├── QueuedMessageNotFound   no such queued message
├── BreakGlassNeeded        the chats of another user need an open access
├── MessageNotFound         no such message to edit
├── NotEditable             only live messages of a user can be edited
├── RevertNotFound          no such revert that could be undone
├── RevertSuperseded        messages were added since the revert
├── TitleUnavailable        no model could write a title
├── ActionNotOpen           the chat does not wait for this action
├── HookDenied              a hook refuses the message
├── HookFailed              a hook that fails closed failed
├── TooManyHooks            there are as many hooks as may be
├── NothingToCompact        there are no messages since the last summary
├── BadToolResult           a client's result does not match the calls
├── FileNotFound            no such file for this caller
├── TooManyFiles            the chat would have too many files
├── FileTooLarge            the file exceeds the size limit
├── MediaTypeRefused        the media type is not accepted
├── WorkspaceNotFound       no such workspace for this caller
├── UserSuspended           the user was suspended or deleted
├── RequestIdReused         the same request id came with another body
├── UsageLimitReached       the owner has reached a spend limit
├── GroupsUnavailable       the groups cannot be queried
├── UnknownIds              ids that do not exist for the caller
├── CheckUnavailable        the service that checks an id does not answer
├── NotPermitted            only administrators may do this
├── ModelNotFound           no such model, or it is disabled
├── ResourceNotFound        no such provider, model or key for this caller
├── NameTaken               the name is in use
├── VersionConflict         it was changed since it was read
├── KeyNeeded               stored keys would be sent to another host
└── InvalidRequest          the request is invalid; `field` says where
"""

from collections.abc import Mapping
from enum import StrEnum

from chatd.chats.domain.chat import Status
from chatd.content.domain.messages import Role
from chatd.primitives.domain.errors import ChatError
from chatd.primitives.domain.ids import ChatId, MessageId, OwnerId, QueuedMessageId, RevertId


class ChatReadOnly(ChatError):
    """The chat is shared with the caller for reading only."""

    def __init__(self, chat_id: str) -> None:
        super().__init__(f"chat {chat_id} is shared for reading")
        self.chat_id = chat_id


class TransitionNotAllowed(ChatError):
    """The command is not legal in the chat's status."""

    def __init__(self, status: Status, command: str) -> None:
        super().__init__(f"{command} is not allowed while the chat is {status}")
        self.status = status
        self.command = command


class AgentAtWork(ChatError):
    """An agent below the chat works in the workspace that the chat would leave."""

    def __init__(self, chat_id: ChatId, status: Status) -> None:
        super().__init__(f"the agent {chat_id} is {status} in the workspace of the chat")
        self.chat_id = chat_id
        self.status = status


class ChatArchived(ChatError):
    """The chat is archived; the only allowed command is unarchiving."""

    def __init__(self, chat_id: ChatId) -> None:
        super().__init__(f"chat {chat_id} is archived; unarchive it first")
        self.chat_id = chat_id


class InvalidState(ChatError):
    """The stored state of the chat is impossible."""

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
    """The queue of this chat is full."""

    def __init__(self, queue_length_max: int) -> None:
        super().__init__(f"{queue_length_max} messages wait already")
        self.queue_length_max = queue_length_max


class QueuedMessageNotFound(ChatError):
    """There is no such queued message."""

    def __init__(self, queued_message_id: QueuedMessageId) -> None:
        super().__init__(f"no queued message {queued_message_id}")
        self.queued_message_id = queued_message_id


class BreakGlassNeeded(ChatError):
    """The caller has no open access to the chats of this user."""

    def __init__(self, user_id: OwnerId) -> None:
        super().__init__("the chats of another user need an open break-glass access")
        self.user_id = user_id


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


class RevertNotFound(ChatError):
    """There is no such revert of messages."""

    def __init__(self, revert_id: RevertId) -> None:
        super().__init__(f"no revert {revert_id}")
        self.revert_id = revert_id


class RevertSuperseded(ChatError):
    """The history was changed since the revert, which cannot be undone any more."""

    def __init__(self, revert_id: RevertId) -> None:
        super().__init__(f"the chat went on after revert {revert_id}")
        self.revert_id = revert_id


class TitleUnavailable(ChatError):
    """No model could write a title."""

    def __init__(self, chat_id: ChatId) -> None:
        super().__init__(f"no model could write a title for chat {chat_id}; try again or write one")
        self.chat_id = chat_id


class ActionNotOpen(ChatError):
    """The chat does not wait for this action: it has ended, or never existed."""

    def __init__(self, action_id: str) -> None:
        super().__init__(f"no open action {action_id}")
        self.action_id = action_id


class NothingToCompact(ChatError):
    """There are no messages since the last summary."""

    def __init__(self, chat_id: ChatId) -> None:
        super().__init__(f"chat {chat_id} has nothing to summarise")
        self.chat_id = chat_id


class ResultProblem(StrEnum):
    """A problem of a client's tool result."""

    DUPLICATE = "duplicate"
    INVALID_JSON = "invalid_json"
    MISSING = "missing"
    UNEXPECTED = "unexpected"


class BadToolResult(ChatError):
    """Results of a client do not match the requested calls.

    Attributes:
        tool_call_id: The call of the first problem.
        problem: The first problem.
        problems: Every problem, by call.
        fields: The request fields of the results, by call.
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
        """Return it with the request fields of the results."""
        return BadToolResult(self.tool_call_id, self.problem, problems=self.problems, fields=fields)


class HookDenied(ChatError):
    """A hook refuses a message."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"a hook refuses this message: {reason}")
        self.reason = reason


class HookFailed(ChatError):
    """A hook that fails closed failed."""

    def __init__(self, hook_id: str, problem: str) -> None:
        super().__init__(f"the hook {hook_id} failed: {problem}")
        self.hook_id = hook_id
        self.problem = problem
