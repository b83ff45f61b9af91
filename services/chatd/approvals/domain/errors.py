"""Errors of approval rules."""

from chatd.primitives.domain.errors import ChatError


class TooManyRules(ChatError):
    """The scope has as many rules as it may have."""

    def __init__(self, rules_max: int) -> None:
        super().__init__(f"there are {rules_max} rules already; delete one first")
        self.rules_max = rules_max
