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
        content=[text("fine"), text(" ")],
        title="t" * 201,
        workspace_id="mine",
        mode=chat_pb2.CHAT_MODE_EXPLORE,
        mcp_server_ids=["x"],
        labels={"-": ""},
    )

    assert violations_of(request) == (
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
        RuleViolation("labels.-", "must have at least 1 characters, and has 0"),
    )


def test_the_form_of_an_id_that_is_answered_as_absent_is_not_checked() -> None:
    assert violations_of(user_service_pb2.GetUserRequest(user_id="nobody")) == ()


@pytest.mark.parametrize(
    ("request_message", "field"),
    [
        (api.MarkReadRequest(chat_id=CHAT_ID, last_message_id=-1), "last_message_id"),
        (api.ListChatsRequest(page_size=201), "page_size"),
        (api.ListChatsRequest(page_size=-1), "page_size"),
        (api.SendMessageRequest(chat_id=CHAT_ID), "content"),
        (api.SetSharesRequest(chat_id=CHAT_ID, shares=[api.Share()]), "shares[0]"),
    ],
)
def test_a_value_outside_its_bounds_is_a_violation(request_message: Any, field: str) -> None:
    assert [each.field for each in violations_of(request_message)] == [field]


def test_a_zero_that_means_the_default_is_accepted() -> None:
    assert violations_of(api.ListChatsRequest()) == ()


def test_the_number_of_violations_is_bounded() -> None:
    request = api.CreateChatRequest(content=[text(" ")] * 5000)

    assert len(violations_of(request)) == VIOLATIONS_MAX
