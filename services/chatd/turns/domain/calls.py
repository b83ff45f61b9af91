"""The calls of one answer: which are executed, which are sent to the client, which are refused."""

import difflib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from chatd.chats.domain.pieces import is_json, storable_call
from chatd.content.domain.arguments import parsed
from chatd.content.domain.messages import ChatMode
from chatd.content.domain.parts import Part, ToolCall, ToolOutcome, ToolResult
from chatd.content.domain.tools import (
    BUILT_IN_TOOL_NAMES,
    Executor,
    Outcome,
    PendingKind,
    ToolSpec,
    edit_style_of,
)
from chatd.content.domain.truncation import repaired, truncated_json
from chatd.turns.domain.asking import asking_problem

CALLS_MAX = 100
_TOO_MANY = (
    f"this did not run: of one answer only the first {CALLS_MAX} calls do",
    "Call this again.",
)


NOTHING_WITHHELD: Mapping[str, ChatMode] = {}
NOTHING_MISSING: Mapping[str, str] = {}
#: Between the name of an MCP server and that of its tool.
SERVER_SEPARATOR = "__"
#: The advisor helps to plan: where it is missing in plan mode, it is disabled.
NEVER_WITHHELD_BY_PLANS = frozenset({"advisor"})


@dataclass(frozen=True, slots=True)
class AskFirst:
    """A call runs only if a person allows it."""

    kind: PendingKind
    reason: str


@dataclass(frozen=True, slots=True)
class Refuse:
    """A call may not run."""

    problem: str
    hint: str


NOTHING_REFUSED: Mapping[str, Refuse] = {}
Verdict = AskFirst | Refuse | None
#: Decides whether a call may run; None means that it may.
Judge = Callable[[ToolCall, ToolSpec], Verdict]


def allow_all(call: ToolCall, spec: ToolSpec) -> Verdict:
    """Allow every call."""
    return None


@dataclass(frozen=True, slots=True)
class Asked:
    """A call that waits for a client or a person."""

    call: ToolCall
    kind: PendingKind
    reason: str = ""


@dataclass(frozen=True, slots=True)
class CallPlan:
    """The decision on each call of an answer."""

    dispatched: tuple[ToolCall, ...] = ()
    asked: tuple[Asked, ...] = ()
    refused: tuple[ToolResult, ...] = ()
    mended: tuple[ToolCall, ...] = ()  # Calls whose arguments were repaired.


def offered_tools(
    local: tuple[ToolSpec, ...], client: tuple[ToolSpec, ...], model_name: str = ""
) -> tuple[ToolSpec, ...]:
    """Return all tools of a turn; a client's tool cannot replace another with the same name.

    Of tools that do the same in different styles, a model gets those that it was trained on.
    """
    style = edit_style_of(model_name)
    fitting = tuple([spec for spec in local if spec.edit_style in (None, style)])
    taken = {spec.name for spec in fitting}
    return (*fitting, *(spec for spec in client if spec.name not in taken))


def withheld_tools(
    mode: ChatMode, offered: Iterable[ToolSpec], client: Iterable[ToolSpec]
) -> Mapping[str, ChatMode]:
    """Return the tools that are not offered because of the mode of a turn."""
    if mode is ChatMode.ORDINARY:
        return NOTHING_WITHHELD
    names = BUILT_IN_TOOL_NAMES | {spec.name for spec in client}
    if mode is ChatMode.PLAN:
        names -= NEVER_WITHHELD_BY_PLANS
    return dict.fromkeys(names - {spec.name for spec in offered}, mode)


def local_calls(content: Sequence[Part]) -> tuple[ToolCall, ...]:
    """Return the calls of an answer that its provider did not execute itself."""
    return tuple(
        part for part in content if isinstance(part, ToolCall) and not part.provider_executed
    )


def plan_calls(
    calls: tuple[ToolCall, ...],
    specs: Mapping[str, ToolSpec],
    judge: Judge = allow_all,
    withheld: Mapping[str, ChatMode] = NOTHING_WITHHELD,
    refusals: Mapping[str, Refuse] = NOTHING_REFUSED,
    missing: Mapping[str, str] = NOTHING_MISSING,
) -> CallPlan:
    """Decide on every call; an exclusive call beside others refuses the whole batch.

    Calls beyond `CALLS_MAX` are refused.

    Args:
        calls: The calls of one answer.
        specs: The tools that are offered.
        judge: Decides whether a call may run.
        withheld: Tools that exist and are not offered, each with the mode that forbids it.
        refusals: Calls that may not run whatever their tool is, by their ids.
        missing: Why MCP servers lack tools, by the first half of the names of their tools.
    """
    exclusive = {
        call.tool_name
        for call in calls
        if call.tool_name in specs and specs[call.tool_name].is_exclusive
    }
    if exclusive and len(calls) > 1:
        return CallPlan(refused=tuple(_refused_batch(call, exclusive) for call in calls))
    dispatched: list[ToolCall] = []
    asked: list[Asked] = []
    refused: list[ToolResult] = []
    for place, given_call in enumerate(calls):
        problem = _problem(given_call, specs, withheld, missing)
        if place >= CALLS_MAX:
            problem = _TOO_MANY
        if problem is not None:
            refused.append(error_result(given_call, *problem))
            continue
        if (refusal := refusals.get(given_call.tool_call_id)) is not None:
            refused.append(error_result(given_call, refusal.problem, refusal.hint))
            continue
        call, spec = storable_call(given_call), specs[given_call.tool_name]
        is_client = spec.executor is Executor.CLIENT
        match PendingKind.CLIENT if is_client else spec.asks or judge(call, spec):
            case PendingKind() as kind:
                asked.append(Asked(call, kind))
            case AskFirst(kind, reason):
                asked.append(Asked(call, kind, reason))
            case Refuse(why, hint):
                refused.append(error_result(call, why, hint))
            case None:
                dispatched.append(call)
    given = {call.tool_call_id: repaired(call.args_json) for call in calls}
    mended = tuple(
        call
        for call in (*dispatched, *(each.call for each in asked))
        if given[call.tool_call_id].strip() and call.args_json != given[call.tool_call_id]
    )
    return CallPlan(tuple(dispatched), tuple(asked), tuple(refused), mended)


def callable_calls(
    calls: tuple[ToolCall, ...],
    specs: Mapping[str, ToolSpec],
    withheld: Mapping[str, ChatMode] = NOTHING_WITHHELD,
) -> tuple[ToolCall, ...]:
    """Return the calls that could run if they were allowed, with the arguments that they run with.

    Calls of unknown tools, ambiguous arguments and mixed exclusive batches are left out.
    """
    plan = plan_calls(calls, specs, allow_all, withheld)
    return (*plan.dispatched, *(each.call for each in plan.asked))


def error_result(call: ToolCall, problem: str, hint: str = "") -> ToolResult:
    """Return the result of a call that failed before it started, with a hint for the model."""
    told = {"ok": False, "error": problem, "reason": "NOT_RUN", **({"hint": hint} if hint else {})}
    return ToolResult(
        call.tool_call_id,
        call.tool_name,
        json.dumps(told, ensure_ascii=False),
        ToolOutcome.FAILED,
        call.mcp_server_id,
    )


def crashed(error: Exception, incident: str) -> Outcome:
    """Return the outcome of a tool that crashed, with the incident id of the log."""
    problem = f"the tool crashed ({type(error).__name__}); it may have taken effect in part"
    hint = "Look at what it did before you call it again."
    told = {"ok": False, "error": problem, "reason": "CRASHED", "hint": hint, "incident": incident}
    return Outcome(ToolOutcome.FAILED, json.dumps(told))


def executed_result(
    call: ToolCall, outcome: Outcome, *, budget_bytes: int, at: datetime
) -> ToolResult:
    """Return the result of a call as it is stored: valid JSON within the size budget."""
    told = repaired(outcome.result_json)
    if not is_json(told):
        told = json.dumps({"output": told}, ensure_ascii=False)
    return ToolResult(
        call.tool_call_id,
        call.tool_name,
        truncated_json(told, budget_bytes),
        outcome.outcome,
        call.mcp_server_id,
        created_at=at,
        files=outcome.files,
        reached=outcome.reached,
    )


def _refused_batch(call: ToolCall, exclusive: set[str]) -> ToolResult:
    if call.tool_name in exclusive:
        return error_result(
            call, f"nothing ran: {call.tool_name} must be the only call", "Call it alone."
        )
    names = ", ".join(sorted(exclusive))
    return error_result(
        call, f"skipped, because {names} must be called alone", "Call this again without it."
    )


def is_workspace_away(tool_name: str, specs: Mapping[str, ToolSpec]) -> bool:
    """Return whether a tool of ours is missing because its workspace offers none now."""
    return (
        tool_name not in specs
        and tool_name in BUILT_IN_TOOL_NAMES
        and all(each.executor is not Executor.TOOLRUNNER for each in specs.values())
    )


def _problem(
    call: ToolCall,
    specs: Mapping[str, ToolSpec],
    withheld: Mapping[str, ChatMode],
    missing: Mapping[str, str],
) -> tuple[str, str] | None:
    """Return why a call cannot be executed, and a hint; None if it can."""
    spec = specs.get(call.tool_name)
    if is_workspace_away(call.tool_name, specs):
        problem = f"{call.tool_name} cannot be called now, because the workspace does not answer"
        return problem, "Try again in a moment, or go on without it and say so."
    if spec is None and call.tool_name in withheld:
        mode = withheld[call.tool_name].value
        problem = f"{call.tool_name} cannot be called in {mode} mode, in which nothing is changed"
        return problem, "Look and read with the tools that are offered, and say what to change."
    if spec is None:
        return f"there is no tool {call.tool_name}", _missing_hint(call.tool_name, specs, missing)
    try:
        arguments = parsed(call.args_json)
    except ValueError as error:
        return str(error), "Nothing ran: send one JSON object with each argument once."
    if asking := asking_problem(spec.asks, arguments):
        return asking, "Nobody was asked: correct it and call again."
    if spec.executor is Executor.TOOLRUNNER and arguments.has_case_variants():
        problem = "the arguments have names that differ only in case"
        return problem, "Nothing ran: give each argument once."
    return None


def _missing_hint(tool_name: str, specs: Mapping[str, ToolSpec], missing: Mapping[str, str]) -> str:
    """Return what to do about a tool that is not offered; never a tool of another MCP server."""
    slug, separator, _ = tool_name.partition(SERVER_SEPARATOR)
    if separator and slug in missing:
        return f"{missing[slug]} Do without it, and tell the person if the task needs it."
    known = [each for each in specs if each.startswith(slug + separator)] if separator else specs
    if separator and not known:
        return (
            f"No MCP server {slug} can be used in this chat: it may be gone, switched off or not "
            "trusted. Do without it, and tell the person if the task needs it."
        )
    near = difflib.get_close_matches(tool_name, known, n=1)
    return f"Did you mean {near[0]}?" if near else "Call one that is offered."
