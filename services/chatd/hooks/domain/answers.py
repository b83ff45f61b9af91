"""What consumers of hooks answer; anything that is not understood completely is a failure."""

import json
from dataclasses import dataclass

from chatd.hooks.domain.hooks import DECIDED, HookEvent

REASON_CHARACTERS_MAX = 1000
KEYS = frozenset({"decision", "reason", "rewrite"})


@dataclass(frozen=True, slots=True)
class Allowed:
    """The operation goes on.

    Attributes:
        rewrite: What replaces its input: arguments of a call or the text of a message, as JSON.
    """

    rewrite: object | None = None


@dataclass(frozen=True, slots=True)
class Denied:
    """The operation is refused."""

    reason: str


@dataclass(frozen=True, slots=True)
class Asked:
    """A person decides."""

    reason: str


Verdict = Allowed | Denied | Asked


class BadAnswer(Exception):
    """An answer is not one that this event has."""


def verdict_of(event: HookEvent, status: int, content: bytes) -> Verdict:
    """Return what an answer decides.

    Raises:
        BadAnswer: It is no answer to this event.
    """
    if not 200 <= status < 300:
        raise BadAnswer(f"it answered with status {status}")
    if not content.strip():
        return Allowed()
    answer = _object(content)
    if unknown := sorted(answer.keys() - KEYS):
        raise BadAnswer(f"its answer has an unknown field {unknown[0][:64]!r}")
    decision, reason = answer.get("decision", "allow"), answer.get("reason", "")
    rewrite = answer.get("rewrite")
    if decision not in ("allow", "deny", "ask") or not isinstance(reason, str):
        raise BadAnswer("its decision is not allow, deny or ask, or its reason is no text")
    if (decision != "allow" or rewrite is not None) and event not in DECIDED:
        raise BadAnswer(f"it decides on {event}, which is only told")
    if rewrite is not None and decision != "allow":
        raise BadAnswer("it replaces the input of something that it does not allow")
    if rewrite is not None:
        return Allowed(_input(event, rewrite))
    if decision == "deny":
        return Denied(_reason(reason))
    if decision == "ask":
        if event is not HookEvent.PRE_TOOL_USE:
            raise BadAnswer("it asks a person, which only calls of tools can wait for")
        return Asked(_reason(reason))
    return Allowed()


def _input(event: HookEvent, rewrite: object) -> object:
    if event is HookEvent.PRE_TOOL_USE and not isinstance(rewrite, dict):
        raise BadAnswer("its rewrite is no object of arguments")
    if event is HookEvent.USER_PROMPT_SUBMIT and not (isinstance(rewrite, str) and rewrite.strip()):
        raise BadAnswer("its rewrite is no text")
    return rewrite


def _reason(given: str) -> str:
    return " ".join(given.split())[:REASON_CHARACTERS_MAX] or "it gave no reason"


def _object(content: bytes) -> dict[str, object]:
    try:
        answer = json.loads(content, object_pairs_hook=_without_repetitions)
    except (ValueError, RecursionError) as error:
        raise BadAnswer(f"its answer is no JSON: {error}"[:200]) from None
    if not isinstance(answer, dict):
        raise BadAnswer("its answer is no object")
    return answer


def _without_repetitions(pairs: list[tuple[str, object]]) -> dict[str, object]:
    if len({name.casefold() for name, _ in pairs}) != len(pairs):
        raise ValueError("it has a field twice")
    return dict(pairs)
