"""The grammar of behaviours: `mock:deltas=40,delay=20ms,fail=429*2`."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any
from urllib.parse import unquote

from parley.testing.llm_mock.behaviour.options import (
    Behaviour,
    FailureRule,
    Fault,
    FaultKind,
    Ids,
    RetryForm,
    Stop,
    Usage,
)
from parley.testing.llm_mock.errors import BehaviourUnknown

DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|)")
DURATION_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "": 1.0}
BYTES = re.compile(r"(\d+(?:\.\d+)?)(kB|MB|)")
BYTES_OF = {"kB": 1000, "MB": 1_000_000, "": 1}
FAILING = re.compile(r"(\d{3}|quota)(?:(\*)(\d*)|@(.+))?")
HUGE_LINE_BYTES = 10_000_000
ARGS_BYTES_MAX = 100_000_000
QUOTA_STATUS = 429
# A date this many seconds ahead can still be formatted.
RETRY_MAX = 1e10
OPENING, CLOSING, SEPARATORS = "{[", "}]", ",&"

Change = Callable[[Behaviour, str], Behaviour]


@dataclass(frozen=True, slots=True)
class Word:
    """One word of the grammar: the form of its value, its effect, and its line of help."""

    form: str
    meaning: str
    change: Change


def _sets(form: str, meaning: str, name: str, read: Callable[[str], object]) -> Word:
    def change(behaviour: Behaviour, value: str) -> Behaviour:
        changes: dict[str, Any] = {name: read(value)}
        return replace(behaviour, **changes)

    return Word(form, meaning, change)


def _flag(meaning: str, name: str, value: object) -> Word:
    def read(given: str) -> object:
        if given:
            raise ValueError("takes no value")
        return value

    return _sets("", meaning, name, read)


def _count(value: str) -> int:
    if not value.isdecimal():
        raise ValueError("is a whole number, such as 3")
    return int(value)


def _seconds(value: str) -> float:
    found = DURATION.fullmatch(value)
    if found is None:
        raise ValueError("is a time, such as 20ms, 1.5s or 2m")
    return float(found[1]) * DURATION_S[found[2]]


def _bytes(value: str) -> int:
    found = BYTES.fullmatch(value)
    if found is None or (count := int(float(found[1]) * BYTES_OF[found[2]])) > ARGS_BYTES_MAX:
        raise ValueError("is a size up to 100MB, such as 200, 64kB or 5MB")
    return count


def _one_of(choices: Iterable[str]) -> Callable[[str], str]:
    known = tuple(choices)

    def read(value: str) -> str:
        if value not in known:
            raise ValueError(f"is one of {', '.join(known)}")
        return value

    return read


def _failures(value: str) -> tuple[FailureRule, ...]:
    return tuple(_failing(each) for each in value.split("+"))


def _failing(value: str) -> FailureRule:
    found = FAILING.fullmatch(value)
    if found is None:
        raise ValueError("is a list of statuses, such as 429*2+529, 401* or 503@30s")
    is_quota = found[1] == "quota"
    status = QUOTA_STATUS if is_quota else int(found[1])
    if not 400 <= status <= 599:
        raise ValueError("is a list of statuses from 400 to 599")
    if found[4] is not None:
        return FailureRule(status, is_quota, None, _seconds(found[4]))
    if found[2] is None:
        return FailureRule(status, is_quota)
    return FailureRule(status, is_quota, int(found[3]) if found[3] else None)


def _retry(form: RetryForm, meaning: str) -> Word:
    def change(behaviour: Behaviour, value: str) -> Behaviour:
        try:
            count = float(value)
        except ValueError:
            count = RETRY_MAX + 1
        if not abs(count) <= RETRY_MAX:
            raise ValueError(f"is a number up to {RETRY_MAX:g}, such as 7 or 1e9")
        return replace(behaviour, retry_form=form, retry_s=count)

    return Word("N", meaning, change)


def _fault(
    kind: FaultKind,
    form: str,
    meaning: str,
    amount: Callable[[str], float] | None = None,
    amount_default: float = 0,
) -> Word:
    def change(behaviour: Behaviour, value: str) -> Behaviour:
        after, at, more = value.partition("@")
        if at and amount is None:
            raise ValueError("is a whole number, such as 3")
        extent = amount(more) if at and amount is not None else amount_default
        return replace(behaviour, fault=Fault(kind, _count(after), extent))

    return Word(form, meaning, change)


WORDS: Mapping[str, Word] = {
    "text": _sets("TEXT", "say this", "text", str),
    "deltas": _sets("N", "pieces of text (8)", "deltas", _count),
    "size": _sets("N", "characters per piece (6)", "size", lambda value: max(1, _count(value))),
    "reasoning": _sets("N", "pieces of thought before the answer (0)", "reasoning", _count),
    "redacted": _flag("thoughts without words", "is_redacted", True),
    "reasoning_field": _sets(
        "NAME",
        "where Chat Completions puts thoughts (reasoning_content)",
        "reasoning_field",
        _one_of(("reasoning_content", "reasoning")),
    ),
    "wait": _sets("TIME", "before the headers", "wait_s", _seconds),
    "latency": _sets("TIME", "between the headers and the first piece", "latency_s", _seconds),
    "delay": _sets("TIME", "between two pieces", "delay_s", _seconds),
    "ping": _sets("TIME", "between two heartbeats while nothing else is sent", "ping_s", _seconds),
    "drip": _sets("TIME", "between two single bytes", "drip_s", _seconds),
    "tools": _sets("N", "parallel calls of the first offered tool (0)", "tools", _count),
    "tool": _sets("NAME", "call this tool, offered or not", "tool", str),
    "tool_like": _sets(
        "PATTERN", "call the first offered tool like this: read_*", "tool_like", str
    ),
    "args": _sets("JSON", "with these arguments, valid or not", "args", str),
    "args_bytes": _sets("SIZE", "with arguments this long", "args_bytes", _bytes),
    "args_depth": _sets("N", "with arguments this deep", "args_depth", _count),
    "rounds": _sets("N", "call again until so many steps are done (1)", "rounds", _count),
    "preface": _sets("N", "pieces of text before the calls (0)", "preface", _count),
    "ids": _sets(
        "duplicate|missing", "spoil the ids of calls", "ids", lambda v: Ids(_one_of(Ids)(v))
    ),
    "no_index": _flag("call deltas of Chat Completions have no index", "has_index", False),
    "stop": _sets(
        "length|filter|refusal", "end like this", "stop", lambda v: Stop(_one_of(Stop)(v))
    ),
    "usage": _sets(
        "missing|negative|huge", "spoil the usage", "usage", lambda v: Usage(_one_of(Usage)(v))
    ),
    "input_tokens": _sets("N", "tokens of input (estimated)", "input_tokens", _count),
    "output_tokens": _sets("N", "tokens of output (estimated)", "output_tokens", _count),
    "reasoning_tokens": _sets("N", "of them thoughts (estimated)", "reasoning_tokens", _count),
    "cache_read": _sets("N", "tokens of input that a cache held (0)", "cache_read", _count),
    "cache_write": _sets("N", "tokens of input written to a cache (0)", "cache_write", _count),
    "context": _sets("N", "refuse more input tokens than this", "context", _count),
    "fail": _sets(
        "STATUSES", "answer so first: 429*2+529, 401*, quota, 503@30s", "failures", _failures
    ),
    "retry_after": _retry(RetryForm.SECONDS, "seconds to wait, with failures"),
    "retry_after_ms": _retry(RetryForm.MILLISECONDS, "milliseconds, in a header of their own"),
    "retry_date": _retry(RetryForm.DATE, "seconds, as a date"),
    "times": _sets("N", "only the first N streams go wrong (all)", "times", _count),
    "cut": _fault(FaultKind.CUT, "N", "end the body after N events"),
    "cut_byte": _fault(FaultKind.CUT_BYTE, "N", "end the body after N bytes"),
    "drop": _fault(FaultKind.DROP, "N", "close the connection after N events"),
    "reset": _fault(FaultKind.RESET, "N", "reset the connection after N events"),
    "stall": _fault(
        FaultKind.STALL, "N[@TIME]", "fall silent after N events, for good or a while", _seconds
    ),
    "error": _fault(FaultKind.ERROR, "N", "report an error after N events"),
    "garbage": _fault(FaultKind.GARBAGE, "N", "send noise after N events"),
    "bad_json": _fault(FaultKind.BAD_JSON, "N", "send broken JSON after N events"),
    "bad_utf8": _fault(FaultKind.BAD_UTF8, "N", "send invalid UTF-8 after N events"),
    "nul": _fault(FaultKind.NUL, "N", "send NUL bytes after N events"),
    "huge_line": _fault(
        FaultKind.HUGE_LINE,
        "N[@SIZE]",
        "send one line of 10MB after N events",
        _bytes,
        HUGE_LINE_BYTES,
    ),
    "endless": _flag("never stop talking", "is_endless", True),
    "no_done": _flag("Chat Completions without [DONE]", "has_done", False),
}


def behaviour_of(model: str, default: Behaviour) -> Behaviour:
    """Return the behaviour of a model name; names without words have the default behaviour.

    Raises:
        BehaviourUnknown: the name has an unknown word.
    """
    words = words_of(model)
    return default if words is None else change(default, words)


def words_of(model: str) -> str | None:
    """Return the words in a model name, None if there are none."""
    name, colon, words = model.partition(":")
    if colon and (name == "mock" or name.startswith("mock-")):
        return words
    _, mark, words = model.partition("?")
    return words if mark else None


def change(behaviour: Behaviour, words: str) -> Behaviour:
    """Return the behaviour with the words applied to it.

    Raises:
        BehaviourUnknown: a word is unknown.
    """
    for each in _split(words):
        name, _, value = each.partition("=")
        word = WORDS.get(name.strip())
        if word is None:
            raise BehaviourUnknown(_no_such_word(name.strip()))
        try:
            behaviour = word.change(behaviour, unquote(value))
        except ValueError as error:
            raise BehaviourUnknown(
                f"mock: {name}={value} cannot be read: {name} {error}. "
                f"Write {name}{'=' if word.form else ''}{word.form}"
            ) from error
    return behaviour


def grammar_help() -> str:
    """Return all words with their meaning, one line each."""
    heads = {name: f"{name}={word.form}" if word.form else name for name, word in WORDS.items()}
    width = max(map(len, heads.values())) + 2
    return "\n".join(f"{heads[name]:<{width}}{word.meaning}" for name, word in WORDS.items())


def _no_such_word(name: str) -> str:
    near = get_close_matches(name, WORDS, 1)
    hint = f"Did you mean {near[0]!r}? " if near else ""
    return f"mock: no word {name!r} in the grammar of behaviours. {hint}Words: {', '.join(WORDS)}"


def _split(words: str) -> Iterable[str]:
    """Yield the words, separated by commas or ampersands outside of brackets."""
    depth, begin = 0, 0
    for place, letter in enumerate(words):
        if letter in OPENING:
            depth += 1
        elif letter in CLOSING:
            depth -= 1
        elif letter in SEPARATORS and depth <= 0:
            yield from filter(None, (words[begin:place],))
            begin = place + 1
    yield from filter(None, (words[begin:],))
