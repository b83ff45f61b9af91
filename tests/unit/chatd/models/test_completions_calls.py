"""Tool calls that come in pieces."""

import pytest

from chatd.content.domain.messages import FinishReason
from chatd.content.domain.parts import Text, ToolCall
from chatd.models.domain.language_model import (
    Finished,
    TextDelta,
    ToolCallRequested,
    ToolInputDelta,
)
from support.chatd.providers.completions import DONE, chunk, decoded, piece

MADE = chunk("tool_calls")
Entry = dict[str, object]


def calls(*deltas: list[Entry]) -> list[tuple[str, str, str]]:
    """Return the calls that these deltas make: id, name, arguments."""
    answer = decoded(*(chunk(tool_calls=entries) for entries in deltas), MADE, DONE)
    assert answer.finished == Finished(FinishReason.TOOL_CALLS)
    made = [event.call for event in answer.events if isinstance(event, ToolCallRequested)]
    return [(call.tool_call_id, call.tool_name, call.args_json) for call in made]


def test_arguments_are_shown_while_they_come_and_then_the_call() -> None:
    answer = decoded(
        chunk(content="I look."),
        chunk(tool_calls=[piece("", index=0, id="c1", type="function", name="look")]),
        chunk(tool_calls=[piece('{"at":', index=0)]),
        chunk(tool_calls=[piece('"it"}', index=0)]),
        MADE,
        DONE,
    )
    assert answer.events == (
        TextDelta("I look."),
        ToolInputDelta("c1", "look", ""),
        ToolInputDelta("c1", "look", '{"at":'),
        ToolInputDelta("c1", "look", '"it"}'),
        ToolCallRequested(ToolCall("c1", "look", '{"at":"it"}')),
        Finished(FinishReason.TOOL_CALLS),
    )


def test_pieces_are_matched_by_index_in_any_order() -> None:
    assert calls(
        [piece("", index=0, id="c1", name="f"), piece('{"b"', index=1, id="c2", name="g")],
        [piece('{"a"', index=0), piece(":2}", index=1)],
        [piece(":1}", index=0)],
    ) == [("c1", "f", '{"a":1}'), ("c2", "g", '{"b":2}')]


def test_pieces_without_an_index_are_matched_by_id() -> None:
    assert calls(
        [piece('{"a"', id="c1", name="f")],
        [piece('{"b"', id="c2", name="g")],
        [piece(":1}", id="c1")],
        [piece(":2}", id="c2")],
    ) == [("c1", "f", '{"a":1}'), ("c2", "g", '{"b":2}')]


def test_pieces_with_nothing_but_arguments_go_on_with_the_last_call() -> None:
    assert calls(
        [piece('{"a"', id="c1", name="f")],
        [piece(":1}")],
        [piece('{"b"', id="c2", name="g")],
        [piece(":2}")],
    ) == [("c1", "f", '{"a":1}'), ("c2", "g", '{"b":2}')]


def test_without_index_and_id_a_name_begins_a_call() -> None:
    assert calls(
        [piece('{"a"', name="f")], [piece(":1}")], [piece("{}", name="f"), piece("{}", name="g")]
    ) == [("", "f", '{"a":1}'), ("", "f", "{}"), ("", "g", "{}")]


def test_one_index_for_all_calls_is_told_apart_by_id() -> None:
    assert calls(
        [piece("{}", index=0, id="c1", name="f")],
        [piece("{", index=0, id="c2", name="f")],
        [piece("}", index=0)],
    ) == [("c1", "f", "{}"), ("c2", "f", "{}")]


def test_a_second_call_whose_index_wanders_is_kept_together() -> None:
    assert calls(
        [piece('{"a":1}', index=0, id="c1", name="f")],
        [piece("", index=0, id="c2", name="g")],
        [piece('{"b"', index=1)],
        [piece(":2}", index=1)],
    ) == [("c1", "f", '{"a":1}'), ("c2", "g", '{"b":2}')]


def test_one_index_without_ids_is_told_apart_by_complete_arguments() -> None:
    assert calls([piece('{"a":1}', index=0, name="f")], [piece('{"b":2}', index=0, name="f")]) == [
        ("", "f", '{"a":1}'),
        ("", "f", '{"b":2}'),
    ]


def test_id_and_name_may_be_repeated_with_every_piece() -> None:
    for fields in ({"index": 0, "id": "c1"}, {"id": "c1"}, {"index": 0}):
        told: list[Entry] = [
            piece(text, name="f", **fields) for text in ('{"a"', ":", '{"b":1}', "}", "")
        ]
        assert calls(*([each] for each in told)) == [(fields.get("id", ""), "f", '{"a":{"b":1}}')]


def test_the_same_id_twice_makes_two_calls() -> None:
    two = [("c1", "f", '{"a":1}'), ("c1", "g", '{"b":2}')]
    first, second = '{"a":1}', '{"b":2}'
    assert (
        calls([piece(first, index=0, id="c1", name="f"), piece(second, index=1, id="c1", name="g")])
        == two
    )
    assert calls([piece(first, id="c1", name="f")], [piece(second, id="c1", name="g")]) == two
    assert calls([piece(first, id="c1", name="f")], [piece(second, id="c1", name="f")]) == [
        ("c1", "f", first),
        ("c1", "f", second),
    ]


def test_calls_that_share_an_id_reach_the_engine_as_two() -> None:
    answer = decoded(
        chunk(tool_calls=[piece('{"a"', index=0, id="c1", name="f")]),
        chunk(tool_calls=[piece('{"b"', index=1, id="c1", name="f")]),
        chunk(tool_calls=[piece(":1}", index=0), piece(":2}", index=1)]),
        chunk(tool_calls=[piece("{}", index=2, id="c3", name="g")]),
        MADE,
    )
    made = [part for part in answer.content if isinstance(part, ToolCall)]
    assert [(call.tool_call_id, call.args_json) for call in made] == [
        ("c1", '{"a":1}'),
        ("c1_1", '{"b":2}'),
        ("c3", "{}"),
    ]


def test_calls_without_ids_are_named_by_the_engine() -> None:
    answer = decoded(
        chunk(content="a"),
        chunk(tool_calls=[piece("{}", index=0, name="f"), piece("{}", index=1, name="g")]),
        MADE,
    )
    text, *made = answer.content
    assert text == Text("a")
    assert [(call.tool_call_id, call.tool_name) for call in made if isinstance(call, ToolCall)] == [
        ("call_1", "f"),
        ("call_2", "g"),
    ]


def test_ids_and_names_may_come_late() -> None:
    assert calls(
        [piece('{"a"', index=0)], [piece(":1}", index=0, name="f")], [piece("", index=0, id="c1")]
    ) == [("c1", "f", '{"a":1}')]
    assert calls([piece('{"a":1}', id="c1")], [piece("", id="c1", name="f")]) == [
        ("c1", "f", '{"a":1}')
    ]


def test_names_may_come_in_pieces() -> None:
    assert calls(
        [piece("", index=0, id="c1", name="get_")], [piece("{}", index=0, name="time")]
    ) == [("c1", "get_time", "{}")]


@pytest.mark.parametrize(
    ("arguments", "args_json"),
    [
        (None, "{}"),
        ("", "{}"),
        ("  ", "{}"),
        ("null", "{}"),
        ({}, "{}"),
        ({"a": [1, "ü"]}, '{"a":[1,"ü"]}'),
        ('{"a":1}', '{"a":1}'),
        ("not json", "not json"),
    ],
)
def test_arguments_may_be_missing_or_an_object(arguments: object, args_json: str) -> None:
    assert calls([piece(arguments, index=0, id="c1", name="f")]) == [("c1", "f", args_json)]


def test_a_call_of_nothing_is_one_of_an_unknown_tool() -> None:
    assert calls([piece("{}", index=0, id="c1")]) == [("c1", "unknown_tool", "{}")]


def test_ids_that_are_numbers_are_texts() -> None:
    assert calls([piece("{}", index="0", id=7, name="f")]) == [("7", "f", "{}")]


def test_a_call_in_the_old_manner_is_a_call() -> None:
    answer = decoded(
        chunk(function_call={"name": "f", "arguments": '{"a"'}),
        chunk(function_call={"arguments": ":1}"}),
        chunk("function_call"),
    )
    assert answer.events == (
        ToolCallRequested(ToolCall("", "f", '{"a":1}')),
        Finished(FinishReason.TOOL_CALLS),
    )


@pytest.mark.parametrize("reason", ["stop", "eos", "something_new", "tool_use"])
def test_calls_are_made_whatever_the_reason_to_finish_says(reason: str) -> None:
    entries = [piece("{}", index=0, id="c1", name="f")]
    answer = decoded(chunk(tool_calls=entries), chunk(reason))
    assert answer.finished == Finished(FinishReason.TOOL_CALLS)


def test_calls_that_were_cut_by_the_limit_say_so() -> None:
    entries = [piece('{"a"', index=0, id="c1", name="f")]
    assert decoded(chunk(tool_calls=entries), chunk("length")).events == (
        ToolInputDelta("c1", "f", '{"a"'),
        ToolCallRequested(ToolCall("c1", "f", '{"a"')),
        Finished(FinishReason.LENGTH),
    )


def test_what_google_wants_back_is_kept_with_the_call() -> None:
    extra = {"google": {"thought_signature": "s1"}}
    entries = [piece("{}", index=0, id="c1", name="f", extra_content=extra)]
    answer = decoded(chunk(tool_calls=entries), MADE)
    stored = '{"chat":{"extra_content":{"google":{"thought_signature":"s1"}}}}'
    assert answer.events[1] == ToolCallRequested(
        ToolCall("c1", "f", "{}", provider_metadata=stored)
    )
