"""Maps errors of hooks to gRPC problems."""

from typing import Final

from chatd.chats.domain.errors import HookDenied, HookFailed
from chatd.hooks.domain.errors import TooManyHooks
from parley.rpc import ErrorTable, Problem


def _too_many_hooks(error: TooManyHooks) -> Problem:
    return Problem.of(
        "TOO_MANY_HOOKS",
        f"There are {error.hooks_max} hooks already; delete one first.",
        {"hooks_max": str(error.hooks_max)},
    )


def _hook_denied(error: HookDenied) -> Problem:
    return Problem.of(
        "HOOK_DENIED", f"A hook refuses this message: {error.reason}", {"reason": error.reason}
    )


def _hook_failed(error: HookFailed) -> Problem:
    return Problem.of(
        "HOOK_FAILED",
        "A hook that decides on messages failed. Try again; an administrator can read why with "
        f"`parley hook log {error.hook_id}`.",
        {"hook_id": error.hook_id},
    )


HOOK_ERRORS: Final[ErrorTable] = {
    TooManyHooks: _too_many_hooks,
    HookDenied: _hook_denied,
    HookFailed: _hook_failed,
}
