"""What answers of consumers decide, and what several hooks decide together."""

import pytest

from chatd.content.domain.parts import HookContext, Notice
from chatd.hooks.domain.answers import (
    Allowed,
    Asked,
    BadAnswer,
    Denied,
    Verdict,
    merged,
    verdict_of,
)
from chatd.hooks.domain.hooks import HookEvent

TOOL = HookEvent.PRE_TOOL_USE
PROMPT = HookEvent.USER_PROMPT_SUBMIT
NO_REASON = "it gave no reason"


def look(event: HookEvent) -> HookContext:
    return HookContext(event.value, "", "Look.")


LOOK = look(TOOL)


@pytest.mark.parametrize(
    ("event", "content", "verdict"),
    [
        (TOOL, b"", Allowed()),
        (HookEvent.STOP, b"", Allowed()),
        (HookEvent.STOP, b"{}", Allowed()),
        (HookEvent.STOP, b'{"decision": "deny", "reason": "not yet"}', Denied("not yet")),
        (TOOL, b'{"decision": "allow"}', Allowed()),
        (TOOL, b'{"rewrite": {"path": "/ok"}}', Allowed({"path": "/ok"})),
        (PROMPT, b'{"decision": "allow", "rewrite": "hello"}', Allowed("hello")),
        (TOOL, b'{"decision": "deny", "reason": " no\\nway "}', Denied("no way")),
        (PROMPT, b'{"decision": "deny"}', Denied("it gave no reason")),
        (TOOL, b'{"decision": "ask", "reason": "sure?"}', Asked("sure?")),
        (TOOL, b'{"context": " "}', Allowed()),
        (TOOL, b'{"context": "Look."}', Allowed(None, (LOOK,))),
        (TOOL, b'{"decision": "deny", "context": "Look."}', Denied(NO_REASON, (LOOK,))),
        (TOOL, b'{"decision": "ask", "context": "Look."}', Asked(NO_REASON, None, (LOOK,))),
        (PROMPT, b'{"context": "Look."}', Allowed(None, (look(PROMPT),))),
        (
            HookEvent.POST_TOOL_USE,
            b'{"context": "Look."}',
            Allowed(None, (look(HookEvent.POST_TOOL_USE),)),
        ),
    ],
)
def test_an_answer_decides(event: HookEvent, content: bytes, verdict: Verdict) -> None:
    assert verdict_of(event, 200, content) == verdict


@pytest.mark.parametrize(
    ("event", "status", "content", "problem"),
    [
        (TOOL, 500, b"{}", "it answered with status 500"),
        (TOOL, 302, b"", "it answered with status 302"),
        (TOOL, 200, b"<html>", "its answer is no JSON"),
        (TOOL, 200, b"[" * 100_000, "its answer is no JSON"),
        (TOOL, 200, b"\xff", "its answer is no JSON"),
        (TOOL, 200, b"[]", "its answer is no object"),
        (TOOL, 200, b'{"decision": "deny", "decision": "allow"}', "a field twice"),
        (TOOL, 200, b'{"decision": "deny", "Decision": "allow"}', "in two spellings"),
        (TOOL, 200, b'{"rewrite": {"a": 1, "A": 2}}', "in two spellings"),
        (TOOL, 200, b'{"rewrite": {"a": NaN}}', "its answer is no JSON"),
        (TOOL, 200, b'{"rewrite": {"a": ["\\ud800"]}}', "its answer cannot be stored"),
        (TOOL, 200, b'{"rewrite": ' + b'{"a":' * 800 + b"1" + b"}" * 801, "deeper than 200"),
        (TOOL, 200, b'{"rewrite": {"a": ' + b"[" * 300 + b"]" * 300 + b"}}", "deeper than 200"),
        (PROMPT, 200, b'{"rewrite": "a\\u0000"}', "its answer cannot be stored"),
        (TOOL, 200, b'{"verdict": "allow"}', "an unknown field 'verdict'"),
        (TOOL, 200, b'{"decision": "maybe"}', "is not allow, deny or ask"),
        (TOOL, 200, b'{"decision": ["deny"]}', "is not allow, deny or ask"),
        (TOOL, 200, b'{"decision": "deny", "rewrite": {}}', "that it does not allow"),
        (TOOL, 200, b'{"rewrite": "x"}', "its rewrite is no object of arguments"),
        (PROMPT, 200, b'{"rewrite": " "}', "its rewrite is no text"),
        (PROMPT, 200, b'{"decision": "ask"}', "which only calls of tools can wait for"),
        (HookEvent.STOP, 200, b'{"decision": "ask"}', "as only messages and calls are"),
        (HookEvent.STOP, 200, b'{"rewrite": {}}', "as only messages and calls are"),
        (HookEvent.PRE_COMPACT, 200, b'{"decision": "deny"}', "as only messages and calls are"),
        (TOOL, 200, b'{"context": ["a"]}', "its context is no text"),
        (TOOL, 200, b'{"context": "a\\u0000"}', "its answer cannot be stored"),
        (TOOL, 200, b'{"context": "' + b"x" * 16_385 + b'"}', "more than 16384 bytes"),
        (PROMPT, 200, b'{"decision": "deny", "context": "x"}', "would be read by no model"),
        (HookEvent.STOP, 200, b'{"context": "x"}', "would be read by no model"),
        (HookEvent.POST_COMPACT, 200, b'{"context": "x"}', "would be read by no model"),
        (TOOL, 200, b'{"notice": ["a"]}', "its notice is no text"),
        (TOOL, 200, b'{"notice": "' + b"x" * 2001 + b'"}', "more than 2000 characters"),
        (PROMPT, 200, b'{"decision": "deny", "notice": "x"}', "give it as reason"),
    ],
)
def test_an_answer_that_is_not_valid_is_a_failure(
    event: HookEvent, status: int, content: bytes, problem: str
) -> None:
    with pytest.raises(BadAnswer) as refused:
        verdict_of(event, status, content)
    assert problem in str(refused.value)


@pytest.mark.parametrize("event", HookEvent)
def test_a_notice_is_bounded_and_sanitised(event: HookEvent) -> None:
    content = b'{"notice": " Mind\\u202e the\\r\\ngap\\u200b. "}'
    given = Notice("Mind the\ngap.", "policy", event.value)
    assert verdict_of(event, 200, content, "policy") == Allowed(None, (given,))
    assert verdict_of(event, 200, b'{"notice": " \\u200b "}') == Allowed()
    longest = b'{"notice": "' + b"x" * 2000 + b'"}'
    assert verdict_of(event, 200, longest, "policy").added == (
        Notice("x" * 2000, "policy", event.value),
    )


@pytest.mark.parametrize(
    ("first", "second", "together"),
    [
        (Allowed(), Allowed(), Allowed()),
        (Allowed({"a": 1}), Allowed(), Allowed({"a": 1})),
        (Allowed({"a": 1}), Allowed({"a": 2}), Allowed({"a": 2})),
        (Allowed({"a": 1}), Asked("sure?"), Asked("sure?", {"a": 1})),
        (Asked("sure?"), Allowed({"a": 1}), Asked("sure?", {"a": 1})),
        (Asked("sure?"), Asked("really?"), Asked("sure?")),
        (Asked("sure?"), Denied("no"), Denied("no")),
        (Denied("no"), Allowed({"a": 1}), Denied("no")),
        (Allowed(None, (LOOK,)), Allowed({"a": 1}, (LOOK,)), Allowed({"a": 1}, (LOOK, LOOK))),
        (Allowed(None, (LOOK,)), Denied("no", (LOOK,)), Denied("no", (LOOK, LOOK))),
        (Asked("sure?", None, (LOOK,)), Allowed(), Asked("sure?", None, (LOOK,))),
    ],
)
def test_of_several_hooks_the_strictest_decides(
    first: Verdict, second: Verdict, together: Verdict
) -> None:
    assert merged(first, second) == together
