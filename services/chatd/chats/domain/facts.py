"""Inputs of some decisions beside the execution row, read at the same version."""

from dataclasses import dataclass

from chatd.chats.domain.chat import Message


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts a decision may need; those that its command does not need stay empty.

    Attributes:
        is_queued: Whether the queued message that the command names exists.
        is_queue_head: Whether it is the first.
        target: The live message that the command names.
        has_material: Whether the model answered since the last summary.
    """

    is_queued: bool = False
    is_queue_head: bool = False
    target: Message | None = None
    has_material: bool = False


NO_FACTS = Facts()
