"""Results of tools: one format for all of them; errors contain a hint for the next step."""

import json
from collections.abc import Mapping
from typing import Final

from chatd.content.domain.parts import File, ToolOutcome
from chatd.content.domain.tools import Outcome
from chatd.tools.workspace.arguments import BadArguments
from chatd.tools.workspace.hints import hint_for
from parley.rpc import Problem

INVALID_ARGUMENTS: Final = "INVALID_ARGUMENTS"


def succeeded(
    fields: Mapping[str, object],
    *,
    truncation: Mapping[str, object] | None = None,
    notes: tuple[str, ...] = (),
    next_step: str = "",
    files: tuple[File, ...] = (),
) -> Outcome:
    """Return the result of a successful call."""
    told = {"ok": True, **fields, **_beside(truncation, notes, next_step)}
    return Outcome(ToolOutcome.DONE, encoded(told), files)


def failed(
    error: str,
    reason: str,
    hint: str,
    *,
    fields: Mapping[str, object] | None = None,
    truncation: Mapping[str, object] | None = None,
    notes: tuple[str, ...] = (),
    outcome: ToolOutcome = ToolOutcome.FAILED,
) -> Outcome:
    """Return the result of a failed call."""
    told = {
        "ok": False,
        "error": error,
        "reason": reason,
        "hint": hint,
        **(fields or {}),
        **_beside(truncation, notes, ""),
    }
    return Outcome(outcome, encoded(told))


def misused(error: BadArguments) -> Outcome:
    """Return the result of a call with invalid arguments; nothing ran."""
    end = "" if error.hint.endswith((".", "?")) else "."
    return failed(error.problem, INVALID_ARGUMENTS, f"Nothing ran: {error.hint}{end}")


def refused(problem: Problem, fields: Mapping[str, object] | None = None) -> Outcome:
    """Return the result of a call that toolrunner refused, with the reason."""
    return failed(problem.message, problem.reason, hint_for(problem), fields=fields)


def encoded(told: Mapping[str, object]) -> str:
    """Encode a result as JSON text."""
    return json.dumps(told, ensure_ascii=False)


def _beside(
    truncation: Mapping[str, object] | None, notes: tuple[str, ...], next_step: str
) -> dict[str, object]:
    beside: dict[str, object] = {}
    if truncation:
        beside["truncation"] = dict(truncation)
    if notes:
        beside["notes"] = list(notes)
    if next_step:
        beside["next_step"] = next_step
    return beside
