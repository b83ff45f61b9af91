"""Why the message of a run was not sent."""


class RunRefused(Exception):
    """The message was refused.

    Attributes:
        reason: Why, in words for the owner.
        is_lasting: Whether later runs would be refused as well.
    """

    def __init__(self, reason: str, *, is_lasting: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.is_lasting = is_lasting


class RunPostponed(Exception):
    """Something that sending needs is away; trying again later may succeed."""
