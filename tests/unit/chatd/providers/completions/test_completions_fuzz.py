"""Whatever comes over the wire, the decoder fails in one way only, and pieces do not matter."""

import json
import re
from typing import Any

import msgspec
from hypothesis import example, given
from hypothesis import strategies as st

from chatd.content.domain.parts import Text, ToolCall
from chatd.models.domain.language_model import Finished, ModelEvent, ToolCallRequested
from chatd.providers.completions import CompletionsDecoder
from chatd.providers.wire import ProviderFailed
from support.chatd.providers.completions import Decoded, chunk, data, decoded_from, piece

FIELDS = st.sampled_from(
    re.findall(
        r"\w+",
        """
        choices delta content role refusal reasoning reasoning_content reasoning_details type text
        summary data signature index id tool_calls function name arguments function_call usage
        prompt_tokens completion_tokens prompt_tokens_details cached_tokens finish_reason error
        message code metadata raw annotations url_citation url title citations search_results
        x_groq extra_content content_filter_results filtered thinking detail total_tokens
        """,
    )
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(("stop", "error", "reasoning.text", "url_citation", "\ud83d", "\ude00", ""))
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(FIELDS | st.text(max_size=3), inner, max_size=5)
    ),
    max_leaves=12,
)
DELTAS = st.dictionaries(FIELDS, VALUES, max_size=6)
CHOICES = st.fixed_dictionaries(
    {"delta": DELTAS}, optional={"finish_reason": VALUES, "usage": VALUES, "error": VALUES}
)
CHUNKS = st.fixed_dictionaries(
    {"choices": st.lists(CHOICES, max_size=2)},
    optional={"usage": VALUES, "error": VALUES, "citations": VALUES, "x_groq": VALUES},
)
EVENTS = (
    st.binary(max_size=40)
    | CHUNKS.map(lambda value: json.dumps(value).encode())
    | VALUES.map(lambda value: json.dumps(value).encode())
    | st.sampled_from((b"[DONE]", chunk("stop"), chunk(content="a"), chunk(reasoning="b")))
)


@given(st.lists(EVENTS, max_size=8))
@example([b'{"error":{"message":"' + b"\xff" * 9 + b'"}}'])
def test_only_provider_failed_is_raised_and_events_can_be_stored(events: list[bytes]) -> None:
    decoder = CompletionsDecoder()
    made: list[ModelEvent] = []
    try:
        for event in events:
            for each in decoder.decode(event):
                made.append(each)
        made.extend(decoder.end())
        assert isinstance(made[-1], Finished)
    except ProviderFailed as failed:
        failed.failure.text.encode()
        assert not any(isinstance(event, Finished) for event in made[:-1])
    msgspec.json.encode([*made, *Decoded(tuple(made)).content])


ARGUMENTS = st.dictionaries(
    st.text(max_size=4), st.integers() | st.text(max_size=6) | st.dictionaries(st.text(), st.text())
).map(json.dumps)
NAMES = st.sampled_from(("look", "find", "write"))


@st.composite
def split_calls(draw: st.DrawFn) -> tuple[list[tuple[str, str, str]], list[bytes]]:
    """Draw calls and one way of several to stream them."""
    calls = draw(st.lists(st.tuples(NAMES, ARGUMENTS), min_size=1, max_size=4))
    wanted = [(f"c{place}", name, args) for place, (name, args) in enumerate(calls)]
    has_index, has_id = draw(st.tuples(st.booleans(), st.booleans()))
    is_interleaved = has_index and draw(st.booleans())
    queues: list[list[dict[str, Any]]] = []
    for place, (call_id, name, args) in enumerate(wanted):
        cuts = sorted(draw(st.lists(st.integers(0, len(args)), max_size=4)))
        texts = [args[a:b] for a, b in zip([0, *cuts], [*cuts, len(args)], strict=True)]
        place_field: dict[str, Any] = {"index": place} if has_index else {}
        head = piece(texts[0], name=name, **place_field, **({"id": call_id} if has_id else {}))
        queues.append([head, *(piece(text, **place_field) for text in texts[1:])])
    entries: list[dict[str, Any]] = []
    begun = 0
    while any(queues):
        ready = [queue for queue in queues[: begun + 1] if queue]
        queue = draw(st.sampled_from(ready)) if is_interleaved else ready[0]
        begun = max(begun, queues.index(queue) + 1) if is_interleaved else begun + (not queue[1:])
        entries.append(queue.pop(0))
    ids = [call_id if has_id else "" for call_id, _, _ in wanted]
    expected = [(each, name, args) for each, (_, name, args) in zip(ids, wanted, strict=True)]
    size = draw(st.integers(1, 3))
    groups = [entries[at : at + size] for at in range(0, len(entries), size)]
    return expected, [chunk(tool_calls=group) for group in groups]


@given(split_calls())
def test_calls_are_the_same_however_they_are_split(
    drawn: tuple[list[tuple[str, str, str]], list[bytes]],
) -> None:
    wanted, events = drawn
    answer = decoded_from([*events, chunk("tool_calls")])
    made = [event.call for event in answer.events if isinstance(event, ToolCallRequested)]
    assert [(call.tool_call_id, call.tool_name, call.args_json) for call in made] == wanted
    parts = [part for part in answer.content if isinstance(part, ToolCall)]
    assert [(part.tool_name, part.args_json) for part in parts] == [each[1:] for each in wanted]
    assert len({part.tool_call_id for part in parts}) == len(wanted)


@given(st.text(), st.data())
def test_text_is_the_same_however_it_is_split(text: str, drawing: st.DataObject) -> None:
    units = text.encode("utf-16-le")
    cuts = sorted(drawing.draw(st.lists(st.integers(0, len(units) // 2), max_size=4)))
    bounds = zip([0, *cuts], [*cuts, len(units) // 2], strict=True)
    pieces = [units[2 * a : 2 * b].decode("utf-16-le", "surrogatepass") for a, b in bounds]
    choices = [{"index": 0, "delta": {"content": each}} for each in pieces]
    answer = decoded_from([*(data({"choices": [each]}) for each in choices), chunk("stop")])
    assert "".join(part.text for part in answer.content if isinstance(part, Text)) == text
