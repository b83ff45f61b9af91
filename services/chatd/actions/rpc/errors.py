"""Maps errors of answers to what chats ask to gRPC problems."""

from typing import Final

from chatd.actions.domain.action import ActionEnded, ActionNotFound, PlanNotFound
from chatd.chats.domain.errors import ActionNotOpen
from chatd.chats.domain.writes import ActionOutcome
from parley.rpc import ErrorTable, Problem


def _action_not_open(error: ActionNotOpen) -> Problem:
    return Problem.of(
        "ACTION_NOT_FOUND", "The chat does not wait for this.", {"action_id": error.action_id}
    )


def _action_not_found(error: ActionNotFound) -> Problem:
    return Problem.of(
        "ACTION_NOT_FOUND",
        "The chat never asked this.",
        {"chat_id": error.chat_id, "action_id": error.action_id},
    )


def _action_ended(error: ActionEnded) -> Problem:
    action = error.action
    ended_at = "" if action.ended_at is None else action.ended_at.isoformat()
    how = "expired" if action.outcome is ActionOutcome.EXPIRED else f"was {action.outcome}"
    return Problem.of(
        "ACTION_ENDED",
        f"It {how} at {ended_at}; this answer changed nothing.",
        {
            "action_id": action.id,
            "state": str(action.outcome),
            "ended_by": action.ended_by,
            "ended_at": ended_at,
        },
    )


def _plan_not_found(error: PlanNotFound) -> Problem:
    return Problem.of(
        "PLAN_NOT_FOUND", "No plan was proposed in this chat.", {"chat_id": error.chat_id}
    )


ACTION_ERRORS: Final[ErrorTable] = {
    ActionNotOpen: _action_not_open,
    ActionNotFound: _action_not_found,
    ActionEnded: _action_ended,
    PlanNotFound: _plan_not_found,
}
