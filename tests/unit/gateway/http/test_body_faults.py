"""Everything that is wrong with a body is told at once, in words, with the choices."""

import json
from typing import Annotated, Any

import msgspec
import pytest
from msgspec import inspect

from gateway.http.application import UserRoute
from gateway.http.body_errors import FIELD_ERRORS_MAX, field_errors_of
from gateway.http.problems.errors import FieldError, HttpProblem
from gateway.http.request_body import decode
from parley.contract.errors import FIELD_CODES
from support.gateway.bodies import body as body_of_route
from support.gateway.routes import every_route

NEW_CHAT = body_of_route("POST /chats").type
NEW_MODEL = body_of_route("POST /models").type
NEW_SHARES = body_of_route("PUT /chats/{chat_id}/shares").type
STDIN = body_of_route("POST /chats/{chat_id}/processes/{process_id}/stdin").type

OWN_ID = "00000000-0000-0000-0000-000000000001"
BODIES = list(
    dict.fromkeys(
        route.body
        for route in every_route()
        if isinstance(route, UserRoute) and route.body is not None
    )
)
VALUES: tuple[object, ...] = (
    None,
    True,
    7,
    -1,
    2**70,
    1.5,
    "",
    "x",
    " ",
    "a" * 300_000,
    "A B\n",
    "text",
    "MDEy",
    "12345678-1234-1234-1234-123456789abc",
    [],
    ["x"],
    [None],
    [7] * 5000,
    [{}],
    [{"type": "text", "text": "hi"}],
    [{"type": "file"}],
    [{"type": 7}],
    {},
    {"-": "x"},
    {"a": 1, "b": "x"},
    {f"k{index}": "v" for index in range(2000)},
)
# Words of the decoder and of Python, which mean nothing to a client.
PROGRAMMERS_WORDS = ("`", "regex", "Expected", "msgspec", "enum", "str ", "int ", "length >=")


def told(body: object, body_type: Any) -> list[dict[str, object]]:
    with pytest.raises(HttpProblem) as refused:
        decode(json.dumps(body).encode(), body_type)
    assert (refused.value.status, refused.value.code) == (422, "INVALID_REQUEST")
    return [error.document() for error in refused.value.errors]


def test_all_faults_of_a_body_are_told_at_once() -> None:
    body = {
        "content": [
            {"type": "text", "text": 7},
            {"type": "video"},
            {"text": "hi"},
            {"type": "text", "text": "  "},
            {"type": "file", "file_id": "report.pdf"},
            {"type": "file-reference", "file_name": "a.py", "start_line": 0, "end_line": 1.5},
        ],
        "titel": "x",
        "title": "t" * 201,
        "reasoning_effort": "huge",
        "workspace_id": "mine",
        "labels": {"-": "x", "b/c": ""},
        "client_tools": [{"name": "a b", "input_schema": []}],
        "system_prompt": 7,
    }

    assert told(body, NEW_CHAT) == [
        {
            "pointer": "/titel",
            "code": "UNKNOWN_FIELD",
            "detail": "Unknown field. Did you mean 'title'?",
        },
        {
            "pointer": "/content/0/text",
            "code": "WRONG_TYPE",
            "detail": "Give a text (more than spaces), not a number.",
        },
        {
            "pointer": "/content/1/type",
            "code": "NOT_A_CHOICE",
            "detail": "Give one of text, file, file-reference.",
        },
        {
            "pointer": "/content/2/type",
            "code": "MISSING_FIELD",
            "detail": "Give one of text, file, file-reference.",
        },
        {"pointer": "/content/3/text", "code": "WRONG_FORMAT", "detail": "Give more than spaces."},
        {"pointer": "/content/4/file_id", "code": "WRONG_FORMAT", "detail": "Give a UUID."},
        {
            "pointer": "/content/5/start_line",
            "code": "NOT_IN_RANGE",
            "detail": "Give a whole number from 1 to 2147483647.",
        },
        {
            "pointer": "/content/5/end_line",
            "code": "WRONG_TYPE",
            "detail": "Give a whole number, not one with a fraction or an exponent.",
        },
        {
            "pointer": "/content/5/content",
            "code": "MISSING_FIELD",
            "detail": "This field is required.",
        },
        {
            "pointer": "/title",
            "code": "TOO_LONG",
            "detail": "Give at most 200 characters; these are 201.",
        },
        {
            "pointer": "/reasoning_effort",
            "code": "NOT_A_CHOICE",
            "detail": "Give one of none, minimal, low, medium, high, xhigh, max.",
        },
        {
            "pointer": "/workspace_id",
            "code": "WRONG_FORMAT",
            "detail": 'Give a UUID, or "" for none.',
        },
        {
            "pointer": "/labels/-",
            "code": "WRONG_FORMAT",
            "detail": "As a name: Give letters, digits, '.', '_', '/' or '-', beginning with a "
            "letter or digit.",
        },
        {
            "pointer": "/labels/b~1c",
            "code": "TOO_SHORT",
            "detail": "Give 1 to 256 characters; these are 0.",
        },
        {"pointer": "/system_prompt", "code": "WRONG_TYPE", "detail": "Give a text, not a number."},
        {
            "pointer": "/client_tools/0/name",
            "code": "WRONG_FORMAT",
            "detail": "Give 1 to 64 letters, digits, '_' or '-'.",
        },
        {
            "pointer": "/client_tools/0/input_schema",
            "code": "WRONG_TYPE",
            "detail": "Give an object, not a list.",
        },
    ]


@pytest.mark.parametrize(
    ("body", "body_type", "error"),
    [
        (
            {"provider_id": "p", "name": "m", "prices": {"input": "3.75"}},
            NEW_MODEL,
            {
                "pointer": "/prices/input",
                "code": "WRONG_TYPE",
                "detail": "Give a number, not a text.",
            },
        ),
        (
            {"name": "t", "kind": "scratch", "ttl_ms": "60000"},
            body_of_route("POST /templates").type,
            {
                "pointer": "/ttl_ms",
                "code": "WRONG_TYPE",
                "detail": "Give a whole number, not a text.",
            },
        ),
        (
            {"data": "?"},
            STDIN,
            {
                "pointer": "/data",
                "code": "WRONG_FORMAT",
                "detail": "Give bytes as a text in base64.",
            },
        ),
        (
            {"text": "x", "end_of_input": "yes"},
            STDIN,
            {
                "pointer": "/end_of_input",
                "code": "WRONG_TYPE",
                "detail": "Give true or false, not a text.",
            },
        ),
        (
            [],
            STDIN,
            {"pointer": "", "code": "WRONG_TYPE", "detail": "Give an object, not a list."},
        ),
    ],
)
def test_a_fault_says_what_would_be_right(
    body: object, body_type: type, error: dict[str, object]
) -> None:
    assert told(body, body_type) == [error]


def test_a_body_full_of_faults_is_answered_with_a_bounded_list() -> None:
    errors = told({f"x{index}": 1 for index in range(5000)}, NEW_CHAT)

    assert len(errors) == FIELD_ERRORS_MAX


@pytest.mark.parametrize("body_type", BODIES, ids=lambda body_type: body_type.__name__)
def test_a_fault_is_found_exactly_where_the_decoder_finds_one(
    body_type: type[msgspec.Struct],
) -> None:
    """Put every value into every field, and compare with what the decoder accepts."""
    for field in msgspec.structs.fields(body_type):
        decoder = decoder_of(field.type)
        for value in VALUES:
            body = {field.encode_name: value}
            faults = [fault for fault in field_errors_of(body, body_type) if not is_absence(fault)]
            assert bool(faults) is not is_accepted(value, decoder), (field.name, value)
            assert {fault.code for fault in faults} <= set(FIELD_CODES)
            for fault in faults:
                assert not [word for word in PROGRAMMERS_WORDS if word in fault.detail], fault


def is_absence(fault: FieldError) -> bool:
    """Whether it is about another field, which the body would need."""
    is_outermost = (fault.pointer or "").count("/") <= 1
    is_about_choice = fault.detail.startswith("Give either")
    return is_outermost and (fault.code == "MISSING_FIELD" or is_about_choice)


def decoder_of(kind: Any) -> msgspec.json.Decoder[Any]:
    members = getattr(kind, "__args__", ())
    if msgspec.UnsetType in members:
        alone = msgspec.defstruct("Alone", [("value", kind, msgspec.UNSET)])
    else:
        alone = msgspec.defstruct("Alone", [("value", kind)])
    return msgspec.json.Decoder(alone)


def is_accepted(value: object, decoder: msgspec.json.Decoder[Any]) -> bool:
    try:
        decoder.decode(msgspec.json.encode({"value": value}))
    except msgspec.ValidationError:
        return False
    return True


@pytest.mark.parametrize("body_type", BODIES, ids=lambda body_type: body_type.__name__)
def test_every_pattern_is_described_in_words(body_type: type[msgspec.Struct]) -> None:
    assert [*undescribed(inspect.type_info(body_type), False)] == []


def undescribed(kind: Any, is_described: bool) -> list[Any]:
    """Return the texts below a type that have a pattern and no words for it."""
    match kind:
        case inspect.Metadata(type=inner, extra_json_schema=schema):
            return undescribed(inner, "description" in (schema or {}))
        case inspect.StrType(pattern=pattern):
            return [] if pattern is None or is_described else [kind]
        case inspect.UnionType(types=members):
            return [found for member in members for found in undescribed(member, False)]
        case inspect.StructType(fields=fields):
            return [found for field in fields for found in undescribed(field.type, False)]
        case inspect.VarTupleType(item_type=item):
            return undescribed(item, False)
        case inspect.DictType(key_type=key, value_type=value):
            return [*undescribed(key, False), *undescribed(value, False)]
        case _:
            return []


def test_shares_that_name_none_or_two_are_told_beside_other_faults() -> None:
    shares = [{}, {"user_id": "x"}, {"user_id": OWN_ID, "group_id": OWN_ID}]

    faults = field_errors_of({"shares": shares}, NEW_SHARES)

    assert [(each.pointer, each.code) for each in faults] == [
        ("/shares/0", "INVALID"),
        ("/shares/1/user_id", "WRONG_FORMAT"),
        ("/shares/2", "INVALID"),
    ]


def test_the_known_fields_of_a_part_have_its_type() -> None:
    body = {"content": [{"type": "text", "text": "a", "zzzz": 1}]}

    (fault,) = field_errors_of(body, NEW_CHAT)

    assert fault.detail == "Unknown field. Known: type, text."


class Bounded(msgspec.Struct):
    """A body with texts that have bounds of one character."""

    least: Annotated[str, msgspec.Meta(min_length=1)] = "x"
    most: Annotated[str, msgspec.Meta(max_length=1)] = "x"
    more: Annotated[str, msgspec.Meta(min_length=2)] = "xx"


def test_one_of_something_is_told_in_the_singular() -> None:
    errors = told({"least": "", "most": "xx", "more": "x"}, Bounded)
    assert [each["detail"] for each in errors] == [
        "Give at least 1 character; these are 0.",
        "Give at most 1 character; these are 2.",
        "Give at least 2 characters; these are 1.",
    ]
