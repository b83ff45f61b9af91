"""Starts that wait for the spawner, in an order that is fair to users.

Theory: the spawner does one start after the other, and one that creates a namespace set takes many
times as long as the others. So users take turns: whatever number of starts one user has waiting,
the start of another user waits for one of these at most. Starts of one user keep their order.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

Message = dict[str, Any]

#: Requests that a waiting start does not have to come before.
INDEPENDENT = ("give_way", "socket_use")


@dataclass
class StartQueue:
    """The requests to start that were received and not begun, by user."""

    waiting: dict[str, deque[Message]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.waiting)

    def put(self, message: Message) -> None:
        """Add a start; without a known user those of its workspace take turns with users."""
        user = message.get("user") or message["workspace"]
        self.waiting.setdefault(user, deque()).append(message)

    def take(self) -> Message:
        """Remove and return the next start; its user is then the last one in turn."""
        user = next(iter(self.waiting))
        messages = self.waiting.pop(user)
        message = messages.popleft()
        if messages:
            self.waiting[user] = messages
        return message

    def take_before(self, request: Message) -> Iterator[Message]:
        """Remove and yield the starts that come before another request.

        A request for a process or a workspace has to find what was started there before it; one
        that names neither is for all.
        """
        if request["op"] in INDEPENDENT:
            return
        named = {name: request[name] for name in ("id", "workspace") if name in request}
        for user, messages in list(self.waiting.items()):
            before, after = deque[Message](), deque[Message]()
            for each in messages:
                is_meant = all(each[name] == value for name, value in named.items())
                (before if is_meant else after).append(each)
            if after:
                self.waiting[user] = after
            else:
                del self.waiting[user]
            yield from before
