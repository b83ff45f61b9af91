"""An answer while it is being written."""

from dataclasses import replace
from decimal import Decimal

from chatd.chats.domain.pieces import Piece, completed, joined
from chatd.content.domain.messages import Role
from chatd.content.domain.parts import (
    Part,
    Reasoning,
    Source,
    Text,
    ToolCall,
    ToolOutcome,
    ToolResult,
)
from chatd.models.domain.language_model import (
    Finished,
    ModelEvent,
    ProviderToolResult,
    ReasoningDelta,
    ReasoningEnded,
    SourceCited,
    TextDelta,
    TextEnded,
    ToolCallRequested,
    ToolInputDelta,
    UsageReported,
)
from chatd.models.domain.price import ModelUse, Price
from chatd.models.domain.profile import ModelProfile
from chatd.turns.engine.answer import Answer
from parley.clock import FakeClock
from parley.clock.fake import EPOCH


def answered(*events: ModelEvent) -> tuple[tuple[Part, ...], list[Piece]]:
    shown: list[Piece] = []
    answer = Answer(lambda role, index, part: shown.append(Piece(role, index, part)), FakeClock())
    for event in events:
        answer.on_event(event)
    return answer.content, shown


def test_deltas_of_a_block_are_one_part_and_spaces_are_kept() -> None:
    content, shown = answered(TextDelta("a"), TextDelta(" "), TextDelta(""), TextDelta("b"))
    assert content == (Text("a b"),)
    assert shown == [Piece(Role.ASSISTANT, 0, Text(text)) for text in ("a", " ", "b")]


def test_another_block_or_kind_begins_another_part() -> None:
    content, _ = answered(
        TextDelta("a", "1"), TextDelta("b", "2"), ReasoningDelta("c"), TextDelta("d", "2")
    )
    assert content == (Text("a"), Text("b"), Reasoning("c", EPOCH, EPOCH), Text("d"))


def test_what_a_provider_wants_back_is_kept_with_its_part() -> None:
    content, _ = answered(
        ReasoningDelta("hm"),
        ReasoningEnded("signed"),
        ReasoningEnded("redacted"),
        TextDelta("so"),
        TextEnded("cited"),
        TextDelta("then"),
    )
    assert content == (
        Reasoning("hm", EPOCH, EPOCH, "signed"),
        Reasoning("", EPOCH, EPOCH, "redacted"),
        Text("so", "cited"),
        Text("then"),
    )


def test_arguments_of_several_calls_may_come_mixed() -> None:
    content, shown = answered(
        ToolInputDelta("a", "one", '{"x"'),
        ToolInputDelta("b", "two", "{"),
        ToolInputDelta("a", "one", ":1}"),
        ToolCallRequested(ToolCall("b", "two", "{}")),
        ToolCallRequested(ToolCall("a", "one", '{"x":1}')),
    )
    assert content == (
        ToolCall("a", "one", '{"x":1}', created_at=EPOCH),
        ToolCall("b", "two", "{}", created_at=EPOCH),
    )
    assert [piece.part_index for piece in shown] == [0, 1, 0, 1, 0]
    assert joined(shown) == content


def test_a_call_that_was_begun_and_never_made_is_not_stored() -> None:
    content, _ = answered(TextDelta("a"), ToolInputDelta("b", "two", "{}"), Finished())
    assert completed(content) == (Text("a"),)


def test_ids_of_calls_are_unique_within_an_answer() -> None:
    content, _ = answered(
        ToolInputDelta("c", "one", "{}"),
        ToolCallRequested(ToolCall("c", "one", "{}")),
        ToolCallRequested(ToolCall("c", "one", "{}")),
        ToolCallRequested(ToolCall("", "one", "{}")),
    )
    ids = [part.tool_call_id for part in content if isinstance(part, ToolCall)]
    assert ids == ["c", "c_1", "call_2"]


def test_sources_and_what_the_provider_executed_keep_their_place() -> None:
    search = ToolCall("s", "web_search", "{}", provider_executed=True)
    found = ToolResult("s", "web_search", "[]", ToolOutcome.DONE, provider_executed=True)
    source = Source("1", "http://x")
    content, _ = answered(
        ToolCallRequested(search), ProviderToolResult(found), SourceCited(source), TextDelta("so")
    )
    assert content[1:] == (found, source, Text("so"))


def test_a_character_that_was_split_is_whole_again() -> None:
    content, _ = answered(TextDelta("\ud83d"), TextDelta("\ude00"))
    assert content == (Text("😀"),)


def test_use_has_tokens_cost_and_time() -> None:
    clock = FakeClock()
    answer = Answer(lambda *_: None, clock)
    answer.on_event(UsageReported(1, 1))
    answer.on_event(UsageReported(10, 20, 5, 30, 40))
    clock.advance(1.5)
    profile = ModelProfile("m", 1000, Price(Decimal(1), Decimal(2)))
    used = ModelUse("m", 10, 20, 5, 30, 40, 1000, 50, 2000, 1500, price=profile.price)
    assert answer.use(profile, lambda: 7, 2000) == replace(used, is_estimate=True)
    answer.on_event(Finished())
    assert answer.use(profile, lambda: 7, 2000) == used


def test_what_was_written_is_counted_once_however_it_came() -> None:
    answer = Answer(lambda *_: None, FakeClock())
    for event in (
        ReasoningDelta("12345678"),
        TextDelta("1234"),
        TextDelta("\u4f1a\u8a71"),
        ToolInputDelta("a", "one", "[12"),
        ToolInputDelta("a", "one", "345]"),
        ToolCallRequested(ToolCall("a", "one", "[12345]")),
        ToolCallRequested(ToolCall("b", "one", "[1]")),
    ):
        answer.on_event(event)
    assert answer.output_tokens == (8 + 4 + 6 + 7 + 3) // 4


def test_every_piece_of_a_call_names_the_server_of_its_tool_unless_the_provider_runs_it() -> None:
    shown: list[Piece] = []
    answer = Answer(
        lambda role, index, part: shown.append(Piece(role, index, part)),
        FakeClock(),
        {"ask": "server", "other": ""},
    )
    answer.on_event(ToolInputDelta("1", "ask", "{"))
    answer.on_event(ToolCallRequested(ToolCall("1", "ask", "{}")))
    answer.on_event(ToolCallRequested(ToolCall("2", "other", "{}", "made up")))
    answer.on_event(ToolCallRequested(ToolCall("3", "ask", "{}", provider_executed=True)))
    named = [
        (part.tool_call_id, part.mcp_server_id)
        for part in (piece.part for piece in shown)
        if isinstance(part, ToolCall)
    ]
    assert named == [("1", "server"), ("1", "server"), ("2", ""), ("3", "")]
