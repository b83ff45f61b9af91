"""Why a call that is made for a user who is away was not successful."""


class CallRefused(Exception):
    """The call was refused.

    Attributes:
        reason: Why, in words for the user.
        is_lasting: Whether later calls would be refused as well.
    """

    def __init__(self, reason: str, *, is_lasting: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.is_lasting = is_lasting


class CallPostponed(Exception):
    """Something that the call needs is away; trying again later may succeed."""
