"""Calls of tools as hooks leave them."""

from collections.abc import Iterable, Mapping

import msgspec

from chatd.chats.domain.errors import HookFailed
from chatd.content.domain.messages import ErrorKind, TurnError
from chatd.content.domain.parts import Part, ToolCall
from chatd.content.domain.tools import Executor, PendingKind, ToolSpec
from chatd.hooks.domain.answers import Allowed, Asked, Denied, Verdict
from chatd.turns.domain.calls import AskFirst, Refuse
from chatd.turns.domain.calls import Verdict as CallVerdict

POLICY = "This is a policy, not a fault: do not try it again; say what is in the way."


def rewritten(parts: tuple[Part, ...], verdicts: Mapping[str, Verdict]) -> tuple[Part, ...]:
    """Return the parts of an answer with the arguments that hooks replaced."""
    return tuple(
        rewritten_call(part, verdicts.get(part.tool_call_id))
        if isinstance(part, ToolCall)
        else part
        for part in parts
    )


def rewritten_call(call: ToolCall, verdict: Verdict | None) -> ToolCall:
    """Return a call with the arguments that a hook replaced, if it did."""
    if not isinstance(verdict, Allowed | Asked) or verdict.rewrite is None:
        return call
    args_json = msgspec.json.encode(verdict.rewrite).decode()
    return msgspec.structs.replace(call, args_json=args_json)


def hooked(verdict: Verdict | None) -> CallVerdict:
    """Return the verdict of hooks on a call; one that allows it has none."""
    match verdict:
        case Denied(reason):
            return Refuse(f"this did not run, because a hook refuses it: {reason}", POLICY)
        case Asked(reason):
            return AskFirst(PendingKind.APPROVAL, f"a hook asks: {reason}")
        case _:
            return None


def refused_by_hooks(
    verdicts: Mapping[str, Verdict], calls: Iterable[ToolCall], specs: Mapping[str, ToolSpec]
) -> Mapping[str, Refuse]:
    """Return the calls that hooks refuse, by their ids.

    A call that waits for a client or a person anyway cannot wait for an approval before, so a
    question of a hook about it refuses it.
    """
    refused = {}
    for call in calls:
        match hooked(verdicts.get(call.tool_call_id)):
            case Refuse() as refusal:
                refused[call.tool_call_id] = refusal
            case AskFirst(_, reason) if _waits_anyway(specs.get(call.tool_name)):
                problem = f"this did not run, because it cannot be approved first: {reason}"
                refused[call.tool_call_id] = Refuse(problem, POLICY)
            case _:
                pass
    return refused


def _waits_anyway(spec: ToolSpec | None) -> bool:
    return spec is not None and (spec.executor is Executor.CLIENT or spec.asks is not None)


def hook_error(failure: HookFailed) -> TurnError:
    """Return the error of a turn whose hook failed; why is only in the log of the hook."""
    command = f"parley hook log {failure.hook_id}".strip()
    return TurnError(
        f"A hook that decides on this chat failed. An administrator can read why with `{command}`. "
        "What the turn did before stays; look at it before you send the message again.",
        ErrorKind.HOOK_DISPATCH_FAILED,
        detail=f"hook {failure.hook_id}" if failure.hook_id else failure.problem,
    )
