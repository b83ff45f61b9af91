"""What a model thinks, in the fields that endpoints put it into."""

import json
from typing import Any

import pytest

from chatd.content.domain.messages import FinishReason
from chatd.content.domain.parts import Reasoning, Text, ToolCall
from chatd.models.domain.language_model import (
    Finished,
    ReasoningDelta,
    ReasoningEnded,
    TextDelta,
    ToolCallRequested,
    ToolInputDelta,
)
from parley.clock.fake import EPOCH
from support.chatd.providers.completions import chunk, decoded

STOP = chunk("stop")


def detail(text: str | None = None, **fields: Any) -> dict[str, Any]:
    told = {"type": "reasoning.text", "format": "unknown", "index": 0, **fields}
    return told if text is None else {**told, "text": text}


def metadata(*details: dict[str, Any]) -> str:
    return json.dumps({"chat": {"reasoning_details": details}}, separators=(",", ":"))


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_a_thought_ends_where_the_text_begins(field: str) -> None:
    answer = decoded(
        chunk(role="assistant", content="", **{field: "a"}),
        chunk(content=None, **{field: "b"}),
        chunk(content="c", **{field: None}),
        STOP,
    )
    assert answer.events == (
        ReasoningDelta("a"),
        ReasoningDelta("b"),
        ReasoningEnded(),
        TextDelta("c"),
        Finished(),
    )


def test_a_thought_that_comes_in_several_fields_is_shown_once() -> None:
    answer = decoded(
        chunk(reasoning_content="a", reasoning="a", reasoning_details=[detail("a")]),
        chunk(reasoning="b", reasoning_details=[detail("b")]),
        chunk(content="c"),
        STOP,
    )
    stored = metadata(detail("ab"))
    assert answer.content == (Reasoning("ab", EPOCH, EPOCH, stored), Text("c"))


def test_details_alone_are_shown() -> None:
    answer = decoded(
        chunk(reasoning_details=[detail("a"), detail("b")]),
        chunk(reasoning_details=[detail(type="reasoning.summary", summary="c", id="s1")]),
        chunk(content="d"),
        STOP,
    )
    stored = metadata(detail("ab"), detail(type="reasoning.summary", summary="c", id="s1"))
    assert answer.content == (Reasoning("abc", EPOCH, EPOCH, stored), Text("d"))


def test_a_signature_closes_its_detail() -> None:
    answer = decoded(
        chunk(reasoning="a", reasoning_details=[detail("a")]),
        chunk(reasoning_details=[detail(signature="s1", text=None)]),
        chunk(reasoning="b", reasoning_details=[detail("b")]),
        chunk(content="c"),
        STOP,
    )
    stored = metadata(detail("a", signature="s1"), detail("b"))
    (thought, _) = answer.content
    assert isinstance(thought, Reasoning)
    assert json.loads(thought.provider_metadata) == json.loads(stored)


def test_details_of_other_places_or_ids_stay_apart() -> None:
    details = [
        detail("a"),
        detail("b", index=1),
        detail("c", index=1, id="x"),
        detail("d", index=1),
    ]
    others = [detail("e", index=1, id="y")]
    answer = decoded(chunk(reasoning_details=details), chunk(reasoning_details=others), STOP)
    stored = metadata(detail("a"), detail("bcd", index=1, id="x"), detail("e", index=1, id="y"))
    (thought,) = answer.content
    assert isinstance(thought, Reasoning)
    assert json.loads(thought.provider_metadata) == json.loads(stored)


def test_an_encrypted_thought_before_a_call_is_told_before_it() -> None:
    encrypted = {"type": "reasoning.encrypted", "data": "xyz", "index": 0}
    call = {"index": 0, "id": "c1", "function": {"name": "f", "arguments": "{}"}}
    answer = decoded(
        chunk(reasoning=None, reasoning_details=[encrypted]),
        chunk(tool_calls=[call]),
        chunk("tool_calls"),
    )
    assert answer.events == (
        ReasoningEnded(metadata(encrypted)),
        ToolInputDelta("c1", "f", "{}"),
        ToolCallRequested(ToolCall("c1", "f", "{}")),
        Finished(FinishReason.TOOL_CALLS),
    )


def test_an_encrypted_thought_within_a_text_does_not_cut_it() -> None:
    encrypted = {"type": "reasoning.encrypted", "data": "xyz", "index": 0}
    answer = decoded(
        chunk(content="a"),
        chunk(reasoning_details=[encrypted], content=""),
        chunk(content="b"),
        STOP,
    )
    assert answer.content == (Text("ab"), Reasoning("", EPOCH, EPOCH, metadata(encrypted)))


def test_thoughts_between_texts_are_parts_of_their_own() -> None:
    answer = decoded(
        chunk(reasoning="a"), chunk(content="b"), chunk(reasoning="c"), chunk(content="d"), STOP
    )
    assert answer.content == (
        Reasoning("a", EPOCH, EPOCH),
        Text("b"),
        Reasoning("c", EPOCH, EPOCH),
        Text("d"),
    )


def test_thoughts_among_the_parts_of_content_are_thoughts() -> None:
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "a"}]}
    answer = decoded(
        chunk(content=[thinking]),
        chunk(content=[{"type": "thinking", "thinking": "b"}, {"type": "text", "text": "c"}]),
        STOP,
    )
    assert answer.content == (Reasoning("ab", EPOCH, EPOCH), Text("c"))


def test_thoughts_of_odd_shapes_are_left_out() -> None:
    answer = decoded(
        chunk(content="a", reasoning={"x": 1}, reasoning_content=5, reasoning_details=["x", 5, {}]),
        chunk(reasoning_details={"type": "reasoning.text"}),
        STOP,
    )
    assert answer.events == (TextDelta("a"), Finished())


def test_a_thought_without_an_answer_is_complete() -> None:
    assert decoded(chunk(reasoning="a"), chunk("length")).events == (
        ReasoningDelta("a"),
        ReasoningEnded(),
        Finished(FinishReason.LENGTH),
    )
