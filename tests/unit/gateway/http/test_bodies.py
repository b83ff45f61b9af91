import pytest
from starlette.requests import Request

from gateway.api.parameters import read_query_into
from gateway.api.transcoded_route import query_of
from gateway.http.body_errors import FIELD_ERRORS_MAX
from gateway.http.preconditions import expected_version
from gateway.http.problems.errors import FieldError, HttpProblem
from gateway.http.request_body import decode, idempotency_key, int_parameter, read_query
from gateway.settings import GatewaySettings
from parley.api.chat.v1 import chat_service_pb2, message_pb2, usage_service_pb2
from parley.settings import describe
from support.gateway.bodies import binding
from support.gateway.bodies import body as body_of_route

NEW_CHAT = body_of_route("POST /chats")
NEW_MESSAGE = body_of_route("POST /chats/{chat_id}/messages")
NEW_SERVICE_TOKEN = body_of_route("POST /service-tokens")
SIGNAL = body_of_route("POST /chats/{chat_id}/processes/{process_id}/signal")


def request_with(*, query: str = "", headers: dict[str, str] | None = None) -> Request:
    raw = [(name.lower().encode(), text.encode()) for name, text in (headers or {}).items()]
    return Request(
        {
            "type": "http",
            "method": "GET",
            "path": "/",
            "query_string": query.encode(),
            "headers": raw,
        }
    )


def head_error(body: bytes) -> tuple[int, FieldError | None]:
    with pytest.raises(HttpProblem) as refused:
        decode(body, NEW_CHAT.type)
    errors = refused.value.errors
    return refused.value.status, errors[0] if errors else None


def test_a_body_becomes_its_message() -> None:
    body = b'{"content":[{"type":"text","text":"hi"}],"busy_behavior":"interrupt"}'
    asked = chat_service_pb2.SendMessageRequest()

    NEW_MESSAGE.fill(asked, decode(body, NEW_MESSAGE.type))

    assert asked == chat_service_pb2.SendMessageRequest(
        content=[message_pb2.Part(text=message_pb2.TextPart(text="hi"))],
        busy_behavior=chat_service_pb2.BUSY_BEHAVIOR_INTERRUPT,
    )


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (
            b'{"content":[{"type":"text","text":"x"}],"titel":"y"}',
            FieldError("UNKNOWN_FIELD", "Unknown field. Did you mean 'title'?", pointer="/titel"),
        ),
        (
            b'{"content":[{"type":"text","txt":"x"}]}',
            FieldError(
                "UNKNOWN_FIELD", "Unknown field. Did you mean 'text'?", pointer="/content/0/txt"
            ),
        ),
        (
            b'{"content":[{"type":"text","text":"x"}],"a/b~":1}',
            FieldError(
                "UNKNOWN_FIELD",
                "Unknown field. Known: content, title, model_id, reasoning_effort, mode, "
                "workspace_id, labels, system_prompt, client_tools, unattended, mcp_server_ids, "
                "fallback_model_id.",
                pointer="/a~1b~0",
            ),
        ),
        (b"{}", FieldError("MISSING_FIELD", "This field is required.", pointer="/content")),
        (
            b'{"content":[]}',
            FieldError("TOO_SHORT", "Give 1 to 100 items; these are 0.", pointer="/content"),
        ),
        (
            b'{"content":[{"type":"text","text":7}]}',
            FieldError(
                "WRONG_TYPE",
                "Give a text (more than spaces), not a number.",
                pointer="/content/0/text",
            ),
        ),
        (
            b'{"content":[{"type":"video"}]}',
            FieldError(
                "NOT_A_CHOICE", "Give one of text, file, file-reference.", pointer="/content/0/type"
            ),
        ),
        (
            b'{"content":[{"type":"text","text":"x"}],"labels":{"-":"x"}}',
            FieldError(
                "WRONG_FORMAT",
                "As a name: Give letters, digits, '.', '_', '/' or '-', beginning with a letter or "
                "digit.",
                pointer="/labels/-",
            ),
        ),
        (
            b'{"content":[{"type":"text","text":"x"}],"mode":"fast"}',
            FieldError("NOT_A_CHOICE", "Give one of plan.", pointer="/mode"),
        ),
        (b"[]", FieldError("WRONG_TYPE", "Give an object, not a list.", pointer="")),
        (
            b'{"content":[{"type":"text","text":"a\\u0000"}]}',
            FieldError("NUL", "Leave out the NUL character.", pointer="/content/0/text"),
        ),
    ],
)
def test_what_does_not_fit_is_pointed_at(body: bytes, error: FieldError) -> None:
    assert head_error(body) == (422, error)


@pytest.mark.parametrize(
    ("body", "line", "column"),
    [
        (b"", 1, 1),
        (b"{", 1, 2),
        (b'{"title": NaN}', 1, 11),
        (b"nonsense", 1, 1),
        (b'{\n  "content": [1,]}', 2, 17),
        (b'{\n  "title": "\xc3\xa9",\n  content: 1}', 3, 3),
        (b'{"content":[{"type":"text","text":"\xff"}]}', 1, 36),
        (b'{"content":[{"type":"text","text":"x"}]} trailing', 1, 42),
    ],
)
def test_what_is_no_json_is_refused_with_line_and_column(
    body: bytes, line: int, column: int
) -> None:
    with pytest.raises(HttpProblem) as refused:
        decode(body, NEW_CHAT.type)

    assert (refused.value.status, refused.value.code) == (400, "INVALID_JSON")
    assert refused.value.facts == {"line": line, "column": column}
    assert refused.value.detail == (
        f"The body is not one JSON document in UTF-8; see line {line}, column {column}."
    )


def test_half_of_a_surrogate_pair_is_no_json() -> None:
    assert head_error(b'{"content":[{"type":"text","text":"\\ud800"}]}') == (400, None)


def test_an_escaped_backslash_before_u0000_is_no_nul() -> None:
    body = b'{"content":[{"type":"text","text":"\\\\u0000"}]}'

    asked = chat_service_pb2.CreateChatRequest()
    NEW_CHAT.fill(asked, decode(body, NEW_CHAT.type))
    assert asked.content[0].text.text == "\\u0000"


def test_depth_cannot_hurt() -> None:
    for body in (b"[" * 100_000, b'{"content":' + b"[" * 100_000, b'{"x":' + b'{"x":' * 100_000):
        assert head_error(body)[0] in (400, 422)


def test_a_token_may_live_no_longer_than_a_year() -> None:
    with pytest.raises(HttpProblem):
        decode(b'{"name":"x","scopes":["a"],"lifetime_s":99999999}', NEW_SERVICE_TOKEN.type)


@pytest.mark.parametrize(
    ("header", "key"),
    [('"abc"', "abc"), ("abc", "abc"), ('"a\\"b c"', 'a"b c'), (None, None)],
)
def test_an_idempotency_key_may_be_quoted_or_not(header: str | None, key: str | None) -> None:
    headers = {} if header is None else {"Idempotency-Key": header}

    assert idempotency_key(request_with(headers=headers)) == key


@pytest.mark.parametrize("header", ["", '""', '"open', "a b", "x" * 129, "é"])
def test_what_cannot_be_an_idempotency_key_is_refused(header: str) -> None:
    with pytest.raises(HttpProblem) as refused:
        idempotency_key(request_with(headers={"Idempotency-Key": header}))

    assert refused.value.code == "INVALID_IDEMPOTENCY_KEY"


@pytest.mark.parametrize("query", ["limt=1", "limit=1&limit=2", "limit=%00"])
def test_a_query_must_be_known_single_and_clean(query: str) -> None:
    with pytest.raises(HttpProblem) as refused:
        read_query(request_with(query=query), "limit")

    assert refused.value.status == 422


def test_all_that_is_wrong_with_a_query_is_told_at_once() -> None:
    with pytest.raises(HttpProblem) as refused:
        read_query(request_with(query="limt=1&cursor=a&cursor=b&q=%00"), "limit", "cursor", "q")

    assert [error.document() for error in refused.value.errors] == [
        {
            "parameter": "limt",
            "code": "UNKNOWN_PARAMETER",
            "detail": "Unknown. Did you mean 'limit'? Known: limit, cursor, q.",
        },
        {"parameter": "cursor", "code": "REPEATED", "detail": "Give it once."},
        {"parameter": "q", "code": "NUL", "detail": "Leave out the NUL character."},
    ]


def test_names_and_values_of_a_query_are_checked_together() -> None:
    request = request_with(query="colour=red&limit=0&archived=maybe&cursor=%00")
    with pytest.raises(HttpProblem) as refused:
        read_query_into(
            chat_service_pb2.ListChatsRequest(), request, query_of(binding("GET /chats"))
        )

    told = [(error.parameter, error.code) for error in refused.value.errors]
    assert told == [
        ("colour", "UNKNOWN_PARAMETER"),
        ("cursor", "NUL"),
        ("limit", "NOT_IN_RANGE"),
        ("archived", "INVALID"),
    ]


@pytest.mark.parametrize("number", [b"1e400", b"9" * 5000])
def test_a_number_that_is_too_large_is_told_as_one(number: bytes) -> None:
    with pytest.raises(HttpProblem) as refused:
        decode(b'{"rows":%b}' % number, dict[str, float])

    assert refused.value.detail == ("The body has a number beyond 1.8e+308; give a smaller one.")


@pytest.mark.parametrize("text", ["-1", "0", "201", "1.5", "x", "²", "9" * 40, ""])
def test_a_number_in_a_query_keeps_to_its_range(text: str) -> None:
    with pytest.raises(HttpProblem):
        int_parameter({"limit": text}, "limit", least=1, most=200)


def test_a_word_that_is_none_is_answered_with_those_that_are() -> None:
    with pytest.raises(HttpProblem) as refused:
        decode(b'{"signal":"hup"}', SIGNAL.type)

    assert refused.value.detail == (
        "/signal: Give one of interrupt, terminate, kill, hangup, stop, continue."
    )


def test_a_new_chat_takes_null_for_no_model_and_no_workspace() -> None:
    body = b'{"content":[{"type":"text","text":"a"}],"model_id":null,"workspace_id":null}'

    asked = chat_service_pb2.CreateChatRequest()
    NEW_CHAT.fill(asked, decode(body, NEW_CHAT.type))

    assert (asked.model_id, asked.workspace_id) == ("", "")


def test_the_share_of_the_access_log_is_described_in_words() -> None:
    kinds = {line.name: line.type for line in describe(GatewaySettings, prefix="GATEWAY")}

    assert kinds["GATEWAY_ACCESS_LOG"] == "on, off or a share from 0 to 1"


@pytest.mark.parametrize("value", [b'"\xff\xfe"', b'"\xed\xa0\x80"', b"1e400", b'"\\ud800"'])
def test_what_is_no_json_is_refused_in_an_embedded_document_too(value: bytes) -> None:
    schema = b'{"type":"object","x":%b}' % value
    tools = b'"client_tools":[{"name":"t","input_schema":%b}]' % schema

    assert head_error(b'{"content":[{"type":"text","text":"a"}],%b}' % tools)[0] == 400


@pytest.mark.parametrize(
    "moment", ["0001-01-01T00:00:00%2B23:59", "9999-12-31T23:59:59-23:59", "2026-01-31T12:00:00"]
)
def test_a_time_that_does_not_exist_in_utc_is_refused(moment: str) -> None:
    request = request_with(query=f"start={moment}")
    with pytest.raises(HttpProblem) as refused:
        read_query_into(
            usage_service_pb2.GetUserUsageRequest(), request, query_of(binding("GET /me/usage"))
        )

    assert [(each.parameter, each.code) for each in refused.value.errors] == [("start", "INVALID")]


def test_as_many_unknown_parameters_are_told_as_errors_may_be() -> None:
    request = request_with(query="lim=&" * 5000)
    with pytest.raises(HttpProblem) as refused:
        read_query_into(
            chat_service_pb2.ListChatsRequest(), request, query_of(binding("GET /chats"))
        )

    assert len(refused.value.errors) == FIELD_ERRORS_MAX


def test_a_version_that_no_resource_can_have_matches_none() -> None:
    assert [expected_version(tag) for tag in ("", "7", "9" * 20, "²", "x")] == [0, 7, -1, -1, -1]
