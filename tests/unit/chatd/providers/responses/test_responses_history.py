"""Which items of an earlier answer are sent back, by what the provider keeps."""

from typing import Any

import pytest

from chatd.content.domain.messages import Role
from chatd.content.domain.parts import Part, Reasoning, Text, ToolCall, ToolOutcome, ToolResult
from chatd.content.domain.prompts import PromptMessage
from chatd.providers.responses.history import AnswerItems
from chatd.providers.responses.item_origins import ItemOrigin, encoded_origin

SEARCH = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"query": "q"}}
FOUND = ToolResult(
    "ws_1", "web_search", '{"status":"completed"}', ToolOutcome.DONE, provider_executed=True
)
PLAIN_CALL = {"type": "function_call", "call_id": "call_1", "name": "add", "arguments": "{}"}
PLAIN_TEXT = {"role": "assistant", "content": "Hi."}
FOREIGN = '{"anthropic":{"signature":"s"}}'


def thought(number: int, text: str = "", encrypted: str = "sealed") -> Reasoning:
    return Reasoning(text, provider_metadata=encoded_origin(ItemOrigin(f"rs_{number}", encrypted)))


def text(item_id: str = "msg_1", words: str = "Hi.", **fields: Any) -> Text:
    return Text(words, encoded_origin(ItemOrigin(item_id, **fields)))


def call(item_id: str = "fc_1", call_id: str = "call_1") -> ToolCall:
    return ToolCall(call_id, "add", "{}", provider_metadata=encoded_origin(ItemOrigin(item_id)))


def search(item: dict[str, Any] | None = SEARCH) -> ToolCall:
    metadata = encoded_origin(ItemOrigin("ws_1", item=item))
    return ToolCall("ws_1", "web_search", "{}", provider_executed=True, provider_metadata=metadata)


def reasoning_item(number: int, *summary: str) -> dict[str, Any]:
    return {
        "type": "reasoning",
        "id": f"rs_{number}",
        "summary": [{"type": "summary_text", "text": each} for each in summary],
        "encrypted_content": "sealed",
    }


def message_item(item_id: str, *texts: str, **fields: Any) -> dict[str, Any]:
    return {
        "type": "message",
        "id": item_id,
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": each, "annotations": []} for each in texts],
        **fields,
    }


def items(*parts: Part, store: bool) -> list[dict[str, Any]]:
    return list(AnswerItems(PromptMessage(Role.ASSISTANT, parts), store=store, sent_ids=set()))


def test_where_answers_are_stored_a_text_goes_under_its_id() -> None:
    assert items(text(phase="commentary"), store=True) == [
        message_item("msg_1", "Hi.", phase="commentary")
    ]


def test_where_answers_are_stored_no_thought_goes_nor_the_id_of_what_followed_it() -> None:
    sent = items(thought(1, "Hm."), text(phase="final_answer"), call(), store=True)
    assert sent == [{**PLAIN_TEXT, "phase": "final_answer"}, PLAIN_CALL]


def test_where_nothing_is_stored_a_thought_goes_before_what_followed_it() -> None:
    sent = items(thought(1, "Hm."), call(), call("fc_2", "call_2"), store=False)
    assert sent == [
        reasoning_item(1, "Hm."),
        {**PLAIN_CALL, "id": "fc_1"},
        {**PLAIN_CALL, "id": "fc_2", "call_id": "call_2"},
    ]


def test_where_nothing_is_stored_a_text_goes_with_its_thought() -> None:
    sent = items(thought(1), text(phase="final_answer"), store=False)
    assert sent == [reasoning_item(1), message_item("msg_1", "Hi.", phase="final_answer")]


def test_where_nothing_is_stored_what_had_no_thought_goes_without_an_id() -> None:
    assert items(text(), call(), store=False) == [PLAIN_TEXT, PLAIN_CALL]


def test_a_thought_in_several_parts_is_one_item() -> None:
    sent = items(Reasoning("One"), Reasoning("Two"), thought(1, "Three"), text(), store=False)
    assert sent == [reasoning_item(1, "One", "Two", "Three"), message_item("msg_1", "Hi.")]


def test_a_message_in_several_parts_is_one_item() -> None:
    assert items(Text("One"), text(words="Two"), store=True) == [
        message_item("msg_1", "One", "Two")
    ]


def test_a_thought_that_cannot_be_read_back_is_left_out_with_the_ids_after_it() -> None:
    assert items(thought(1, "Hm.", encrypted=""), text(), call(), store=False) == [
        PLAIN_TEXT,
        PLAIN_CALL,
    ]


def test_a_thought_that_nothing_followed_is_left_out() -> None:
    assert items(text(), thought(1), store=False) == [PLAIN_TEXT]


def test_a_thought_whose_text_was_interrupted_is_left_out() -> None:
    assert items(thought(1), Text("Hi."), store=False) == [PLAIN_TEXT]
    assert items(thought(1), Text("Hi."), call(), store=False) == [PLAIN_TEXT, PLAIN_CALL]


def test_a_thought_without_its_mark_keeps_ids_away() -> None:
    assert items(Reasoning("Hm."), text(), store=True) == [PLAIN_TEXT]


def test_two_thoughts_go_each_before_its_own() -> None:
    sent = items(thought(1), search(), FOUND, thought(2), text(), store=False)
    assert sent == [reasoning_item(1), SEARCH, reasoning_item(2), message_item("msg_1", "Hi.")]


def test_a_search_goes_only_with_its_thought() -> None:
    assert items(thought(1), search(), FOUND, text(), store=True) == [PLAIN_TEXT]
    assert items(thought(1, encrypted=""), search(), FOUND, text(), store=False) == [PLAIN_TEXT]


@pytest.mark.parametrize("store", [True, False])
def test_a_search_without_a_thought_goes_alone(store: bool) -> None:
    assert items(search(), FOUND, store=store) == [SEARCH]


def test_a_thought_goes_not_without_the_search_that_followed_it() -> None:
    lost = {"type": "code_interpreter_call", "id": "ws_1"}  # Its result is not there.
    assert items(thought(1), search(lost), text(), store=False) == [PLAIN_TEXT]


@pytest.mark.parametrize("store", [True, False])
def test_what_another_provider_left_is_not_sent(store: bool) -> None:
    sent = items(
        Reasoning("Hm.", provider_metadata=FOREIGN),
        ToolCall("x", "web_search", "{}", provider_executed=True, provider_metadata=FOREIGN),
        ToolResult("x", "web_search", "{}", ToolOutcome.DONE, provider_executed=True),
        Text("Hi.", FOREIGN),
        ToolCall("call_1", "add", "{}", provider_metadata=FOREIGN),
        store=store,
    )
    assert sent == [PLAIN_TEXT, PLAIN_CALL]


@pytest.mark.parametrize("metadata", ["{", "[]", '{"openai":7}', '{"openai":{"id":7}}'])
def test_metadata_that_cannot_be_read_is_as_good_as_none(metadata: str) -> None:
    assert items(Text("Hi.", metadata), store=True) == [PLAIN_TEXT]


def test_no_id_goes_twice() -> None:
    sent_ids: set[str] = set()
    answer = PromptMessage(Role.ASSISTANT, (text(),))
    first = list(AnswerItems(answer, store=True, sent_ids=sent_ids))
    again = list(AnswerItems(answer, store=True, sent_ids=sent_ids))
    assert (first, again) == ([message_item("msg_1", "Hi.")], [PLAIN_TEXT])


def test_a_refusal_goes_back_as_one() -> None:
    assert items(text(is_refusal=True), store=True) == [
        message_item("msg_1") | {"content": [{"type": "refusal", "refusal": "Hi."}]}
    ]


@pytest.mark.parametrize("store", [True, False])
def test_what_only_the_provider_understands_goes_back_as_it_came(store: bool) -> None:
    item = {"type": "compaction", "id": "cmp_1", "encrypted_content": "sealed"}
    opaque = Reasoning("", provider_metadata=encoded_origin(ItemOrigin("cmp_1", item=item)))
    assert items(opaque, store=store) == [item]
