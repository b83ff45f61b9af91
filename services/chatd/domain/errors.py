"""Every way in which something asked of a chat can fail.

ChatError
├── ChatNotFound            no such chat for this caller
├── TransitionNotAllowed    the command is not legal in the chat's status
├── FenceLost               a worker wrote for a chat that is no longer its own
└── InvalidRequest          the request itself is wrong; `field` says where
"""

from chatd.domain.chat import ChatId, Status


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


class FenceLost(ChatError):
    """The worker no longer owns the chat, or its episode is over."""

    def __init__(self, chat_id: ChatId) -> None:
        super().__init__(f"chat {chat_id} has another owner or episode now")
        self.chat_id = chat_id


class InvalidRequest(ChatError):
    """The request itself is wrong."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field
        self.problem = problem
