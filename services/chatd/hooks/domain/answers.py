"""What consumers of hooks answer; an answer that is not understood completely is a failure."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace

from chatd.content.domain.parts import HookAddition, HookContext, Notice
from chatd.content.domain.sanitizing import sanitized
from chatd.hooks.domain.hooks import INPUTS, HookEvent

REASON_CHARACTERS_MAX = 1000
#: How deep an answer is nested at most, far below the limit of recursion.
ANSWER_DEPTH_MAX = 200
CONTEXT_BYTES_MAX = 16 * 1024
NOTICE_CHARACTERS_MAX = 2000
#: Of all that hooks add at one place; the rest is left out.
ADDITIONS_BYTES_MAX = 64 * 1024
KEYS = frozenset({"decision", "reason", "rewrite", "context", "notice"})
#: Events after which no model reads what a hook adds.
UNREAD = frozenset({HookEvent.POST_COMPACT})


@dataclass(frozen=True, slots=True)
class Allowed:
    """The operation goes on.

    Attributes:
        rewrite: What replaces its input: arguments of a call or the text of a message, as JSON.
        added: What hooks add for the model, and their notices for people.
    """

    rewrite: object | None = None
    added: tuple[HookAddition, ...] = ()


@dataclass(frozen=True, slots=True)
class Denied:
    """The operation is refused."""

    reason: str
    added: tuple[HookAddition, ...] = ()


@dataclass(frozen=True, slots=True)
class Asked:
    """A person decides, about the input that an earlier or later hook may have replaced."""

    reason: str
    rewrite: object | None = None
    added: tuple[HookAddition, ...] = ()


Verdict = Allowed | Denied | Asked


class BadAnswer(Exception):
    """An answer is not one that this event has."""


def merged(so_far: Verdict, following: Verdict) -> Verdict:
    """Return what two hooks decide together: the strictest decision, and the last rewrite.

    What both add is kept.
    """
    added = (*so_far.added, *following.added)
    if isinstance(so_far, Denied):
        return replace(so_far, added=added)
    if isinstance(following, Denied):
        return replace(following, added=added)
    rewrite = so_far.rewrite if following.rewrite is None else following.rewrite
    asking = so_far if isinstance(so_far, Asked) else following
    return replace(asking, rewrite=rewrite, added=added)


def bounded_additions(added: Iterable[HookAddition]) -> tuple[HookAddition, ...]:
    """Return what hooks add at one place, up to the first text beyond the size limit."""
    left_bytes = ADDITIONS_BYTES_MAX
    kept: list[HookAddition] = []
    for addition in added:
        left_bytes -= len(addition.text.encode())
        if left_bytes < 0:
            break
        kept.append(addition)
    return tuple(kept)


def verdict_of(event: HookEvent, status: int, content: bytes, hook_name: str = "") -> Verdict:
    """Return what an answer decides, and what it adds in the name of its hook.

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
    is_refused_stop = event is HookEvent.STOP and decision == "deny"
    is_decided = decision != "allow" or rewrite is not None
    if is_decided and event not in INPUTS and not is_refused_stop:
        raise BadAnswer(f"it decides on {event} as only messages and calls are decided on")
    if rewrite is not None and decision != "allow":
        raise BadAnswer("it replaces the input of something that it does not allow")
    added: tuple[HookAddition, ...] = (
        *_context(event, answer, hook_name),
        *_notice(event, answer, hook_name),
    )
    if decision == "deny":
        return Denied(_reason(reason), added)
    if decision == "ask":
        if event is not HookEvent.PRE_TOOL_USE:
            raise BadAnswer("it asks a person, which only calls of tools can wait for")
        return Asked(_reason(reason), added=added)
    return Allowed(None if rewrite is None else _input(event, rewrite), added)


def _context(
    event: HookEvent, answer: dict[str, object], hook_name: str
) -> tuple[HookContext, ...]:
    """Return what an answer adds for the model.

    Raises:
        BadAnswer: It is no text or too long, or no model will read it.
    """
    added = answer.get("context", "")
    if not isinstance(added, str):
        raise BadAnswer("its context is no text")
    if not added.strip():
        return ()
    if len(added.encode()) > CONTEXT_BYTES_MAX:
        raise BadAnswer(f"its context has more than {CONTEXT_BYTES_MAX} bytes")
    is_denied = answer.get("decision") == "deny"
    is_over = event is HookEvent.STOP and not is_denied
    is_refused = event is HookEvent.USER_PROMPT_SUBMIT and is_denied
    if event in UNREAD or is_over or is_refused:
        raise BadAnswer(f"its context to {event} would be read by no model")
    return (HookContext(event.value, hook_name, added),)


def _notice(event: HookEvent, answer: dict[str, object], hook_name: str) -> tuple[Notice, ...]:
    """Return the notice for people in an answer, without characters that are not seen.

    Raises:
        BadAnswer: It is no text or too long, or would be shown to no person.
    """
    given = answer.get("notice", "")
    if not isinstance(given, str):
        raise BadAnswer("its notice is no text")
    if len(given) > NOTICE_CHARACTERS_MAX:
        raise BadAnswer(f"its notice has more than {NOTICE_CHARACTERS_MAX} characters")
    text = sanitized(given)
    if not text:
        return ()
    if event is HookEvent.USER_PROMPT_SUBMIT and answer.get("decision") == "deny":
        raise BadAnswer("its notice to a message that it refuses has no place; give it as reason")
    return (Notice(text, hook_name, event.value),)


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
        answer = json.loads(
            content, object_pairs_hook=_without_repetitions, parse_constant=_refuse_constant
        )
    except (ValueError, RecursionError) as error:
        raise BadAnswer(f"its answer is no JSON: {error}"[:200]) from None
    if not isinstance(answer, dict):
        raise BadAnswer("its answer is no object")
    if not _is_storable(answer, ANSWER_DEPTH_MAX):
        raise BadAnswer(
            "its answer cannot be stored: it has NUL or half of a surrogate, or is nested"
            f" deeper than {ANSWER_DEPTH_MAX}"
        )
    return answer


def _is_storable(value: object, depth_max: int) -> bool:
    if depth_max < 0:
        return False
    match value:
        case str():
            return not any(each == "\0" or "\ud800" <= each <= "\udfff" for each in value)
        case dict():
            return all(
                _is_storable(name, depth_max) and _is_storable(each, depth_max - 1)
                for name, each in value.items()
            )
        case list():
            return all(_is_storable(each, depth_max - 1) for each in value)
        case _:
            return True


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is no JSON")


def _without_repetitions(pairs: list[tuple[str, object]]) -> dict[str, object]:
    if len({name.casefold() for name, _ in pairs}) != len(pairs):
        raise ValueError("it has a field twice, or in two spellings")
    return dict(pairs)
