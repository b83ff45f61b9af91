"""Requests are checked by the rules that their protos declare."""

from typing import Any

import pytest

from parley.api.chat.v1 import chat_pb2, message_pb2
from parley.api.chat.v1 import chat_service_pb2 as api
from parley.api.identity.v1 import user_service_pb2
from parley.contract.validation import VIOLATIONS_MAX, RuleViolation, violations_of

CHAT_ID = "00000000-0000-0000-0000-000000000001"


def text(words: str) -> message_pb2.Part:
    return message_pb2.Part(text=message_pb2.TextPart(text=words))


def test_a_request_within_its_rules_has_no_violation() -> None:
    request = api.SendMessageRequest(request_id="r", chat_id=CHAT_ID, content=[text("hi")])

    assert violations_of(request) == ()


def test_every_violation_is_found_with_the_path_of_its_field() -> None:
    request = api.CreateChatRequest(
        request_id="r" * 129,
        content=[text("fine"), text(" ")],
        title="t" * 201,
        workspace_id="mine",
        mode=chat_pb2.CHAT_MODE_EXPLORE,
        mcp_server_ids=["x"],
        labels={"-": ""},
    )

    assert violations_of(request) == (
        RuleViolation("request_id", "must have at most 128 characters, and has 129"),
        RuleViolation("content[1].text.text", "must be more than spaces"),
        RuleViolation("title", "must have at most 200 characters, and has 201"),
        RuleViolation("mode", "must be another of its values"),
        RuleViolation("workspace_id", "must be a UUID"),
        RuleViolation("mcp_server_ids[0]", "must be a UUID"),
        RuleViolation(
            "labels.-",
            "as a key must be letters, digits, '.', '_', '/' or '-', beginning with a letter or "
            "digit",
        ),
        RuleViolation("labels.-", "must have at least 1 character, and has 0"),
    )


def test_the_form_of_an_id_that_is_answered_as_absent_is_not_checked() -> None:
    assert violations_of(user_service_pb2.GetUserRequest(user_id="nobody")) == ()


@pytest.mark.parametrize(
    ("request_message", "field"),
    [
        (
            api.MarkReadRequest(request_id="r", chat_id=CHAT_ID, last_message_id=-1),
            "last_message_id",
        ),
        (api.ListChatsRequest(page_size=201), "page_size"),
        (api.ListChatsRequest(page_size=-1), "page_size"),
        (api.SendMessageRequest(request_id="r", chat_id=CHAT_ID), "content"),
        (
            api.SetSharesRequest(request_id="r", chat_id=CHAT_ID, shares=[api.Share()]),
            "shares[0]",
        ),
    ],
)
def test_a_value_outside_its_bounds_is_a_violation(request_message: Any, field: str) -> None:
    assert [each.field for each in violations_of(request_message)] == [field]


def test_a_string_with_rules_contains_no_nul() -> None:
    request = api.CreateChatRequest(request_id="r\0", content=[text("a\0")], labels={"k": "\0"})

    problem = "must not contain the NUL character"
    assert violations_of(request) == (
        RuleViolation("request_id", problem),
        RuleViolation("content[0].text.text", problem),
        RuleViolation("labels.k", problem),
    )


def test_bytes_are_counted_where_bytes_are_the_limit() -> None:
    request = api.CreateChatRequest(request_id="r", content=[text("hi")], labels={"k": "é" * 129})

    assert violations_of(request) == (RuleViolation("labels.k", "must have at most 256 bytes"),)


def test_a_number_that_the_enum_does_not_declare_is_a_violation() -> None:
    request = api.CreateChatRequest(
        request_id="r",
        content=[text("hi")],
        mode=99,  # type: ignore[arg-type]
        reasoning_effort=99,  # type: ignore[arg-type]
    )

    assert violations_of(request) == (
        RuleViolation("reasoning_effort", "must be another of its values"),
        RuleViolation("mode", "must be another of its values"),
    )


def test_a_zero_that_means_the_default_is_accepted() -> None:
    assert violations_of(api.ListChatsRequest()) == ()


def test_items_of_a_list_that_is_too_long_are_not_checked() -> None:
    request = api.SendMessageRequest(request_id="r", chat_id=CHAT_ID, content=[text(" ")] * 101)

    (violation,) = violations_of(request)
    assert violation == RuleViolation("content", "must have at most 100 items, and has 101")


def test_the_number_of_violations_is_bounded() -> None:
    wrong = [chat_pb2.ClientTool(name=" ", description="x" * 8193)] * 100
    request = api.CreateChatRequest(content=[text("hi")], client_tools=wrong)

    assert len(violations_of(request)) == VIOLATIONS_MAX
