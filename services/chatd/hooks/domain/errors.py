"""Errors of hooks."""

from chatd.primitives.domain.errors import ChatError


class TooManyHooks(ChatError):
    """There are as many hooks as may be."""

    def __init__(self, hooks_max: int) -> None:
        super().__init__(f"there are {hooks_max} hooks already; delete one first")
        self.hooks_max = hooks_max
