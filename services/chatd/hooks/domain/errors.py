"""Errors of hooks."""

from chatd.primitives.domain.errors import ChatError


class TooManyHooks(ChatError):
    """There are as many hooks as may be."""

    def __init__(self, hooks_max: int) -> None:
        super().__init__(f"there are {hooks_max} hooks already; delete one first")
        self.hooks_max = hooks_max


class HookDenied(ChatError):
    """A hook refuses a message."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"a hook refuses this message: {reason}")
        self.reason = reason


class HookFailed(ChatError):
    """A hook that must be asked failed."""

    def __init__(self, hook_id: str, problem: str) -> None:
        super().__init__(f"the hook {hook_id} failed: {problem}")
        self.hook_id = hook_id
        self.problem = problem
