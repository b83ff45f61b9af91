"""Whatever comes, a decoder of Responses raises nothing but its own error."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from chatd.models.domain.language_model import Finished, ModelEvent
from chatd.providers.responses import ResponsesDecoder
from chatd.providers.wire import ProviderFailed
from support.chatd.providers.responses_events import stored
from support.session.examples import examples

KINDS = [
    "response.output_text.delta",
    "response.refusal.delta",
    "response.reasoning_summary_text.delta",
    "response.reasoning_text.delta",
    "response.function_call_arguments.delta",
    "response.output_text.annotation.added",
    "response.output_item.added",
    "response.output_item.done",
    "response.completed",
    "response.incomplete",
    "response.failed",
    "error",
    "response.tomorrow",
]
ITEM_TYPES = [
    "message",
    "reasoning",
    "function_call",
    "web_search_call",
    "code_interpreter_call",
    "image_generation_call",
    "mcp_call",
    "mcp_list_tools",
    "compaction",
]
values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 5) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)
texts = st.text(max_size=4)
contents = st.lists(
    st.fixed_dictionaries(
        {"type": st.sampled_from(["output_text", "refusal", "logs", "image"])},
        optional={"text": texts, "refusal": texts, "annotations": values, "logs": texts},
    )
    | values,
    max_size=2,
)
fields = {
    "id": texts,
    "status": st.sampled_from(["completed", "incomplete", "failed"]),
    "content": contents,
    "summary": contents,
    "outputs": contents,
    "encrypted_content": texts,
    "call_id": texts,
    "name": texts,
    "arguments": texts | values,
    "action": values,
    "result": texts | values,
    "output": values,
    "tools": values,
}
items = st.fixed_dictionaries({"type": st.sampled_from(ITEM_TYPES)}, optional=fields) | values
responses = st.fixed_dictionaries(
    {},
    optional={
        "status": st.sampled_from(["completed", "incomplete", "failed", "cancelled"]),
        "output": st.lists(items, max_size=3),
        "usage": st.dictionaries(st.sampled_from(["input_tokens", "output_tokens"]), values),
        "error": values,
        "incomplete_details": values,
    },
)
events = st.fixed_dictionaries(
    {"type": st.sampled_from(KINDS)},
    optional={
        "delta": texts | values,
        "output_index": st.integers(-1, 2) | values,
        "content_index": st.integers(0, 1),
        "summary_index": st.integers(0, 1),
        "annotation": values,
        "item": items,
        "response": responses,
        "error": values,
        "message": values,
    },
).map(lambda event: json.dumps(event).encode())


def played(datas: list[bytes]) -> list[ModelEvent]:
    """Return what was told before the end or the failure; anything else fails the test."""
    decoder = ResponsesDecoder()
    told: list[ModelEvent] = []
    try:
        for data in datas:
            told.extend(decoder.decode(data))
        told.extend(decoder.end())
    except ProviderFailed:
        assert not any(isinstance(each, Finished) for each in told)
        return told
    assert [isinstance(each, Finished) for each in told].count(True) == 1
    assert isinstance(told[-1], Finished)
    return told


@settings(max_examples=examples(50))
@given(st.lists(events, max_size=8))
def test_events_in_any_order_end_in_one_finish_or_in_a_failure(datas: list[bytes]) -> None:
    stored(played(datas))


@given(st.lists(st.binary(max_size=60), max_size=4))
def test_bytes_are_a_failure(datas: list[bytes]) -> None:
    played(datas)


@settings(max_examples=examples(50))
@given(events, st.integers(0, 200), st.binary(min_size=1, max_size=3))
def test_damaged_events_are_read_or_refused(data: bytes, place: int, damage: bytes) -> None:
    place %= len(data)
    played([data[:place] + damage + data[place + 1 :]])
