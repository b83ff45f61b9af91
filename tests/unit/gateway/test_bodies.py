import pytest
from starlette.requests import Request

from gateway.bodies import decode, idempotency_key, read_query, whole_number
from gateway.errors import FieldError, HttpRefusal
from gateway.inputs import BusyBehavior, NewChat, NewMessage, NewServiceToken, TextInput
from gateway.inputs_workspaces import SignalInput


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


def fault_of(body: bytes) -> tuple[int, FieldError | None]:
    with pytest.raises(HttpRefusal) as refused:
        decode(body, NewChat)
    errors = refused.value.errors
    return refused.value.status, errors[0] if errors else None


def test_a_body_becomes_its_type() -> None:
    body = b'{"content":[{"type":"text","text":"hi"}],"busy_behavior":"interrupt"}'

    assert decode(body, NewMessage) == NewMessage(
        content=(TextInput("hi"),), busy_behavior=BusyBehavior.INTERRUPT
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
                "workspace_id, mcp_server_ids, labels, system_prompt, client_tools.",
                pointer="/a~1b~0",
            ),
        ),
        (b"{}", FieldError("MISSING_FIELD", "This field is required.", pointer="/content")),
        (
            b'{"content":[]}',
            FieldError("INVALID", "Expected `array` of length >= 1.", pointer="/content"),
        ),
        (
            b'{"content":[{"type":"text","text":7}]}',
            FieldError("INVALID", "Expected `str`, got `int`.", pointer="/content/0/text"),
        ),
        (
            b'{"content":[{"type":"video"}]}',
            FieldError("INVALID", "Invalid value 'video'.", pointer="/content/0/type"),
        ),
        (
            b'{"content":[{"type":"text","text":"x"}],"labels":{"-":"x"}}',
            FieldError(
                "INVALID",
                "Expected `str` matching regex '^[a-zA-Z0-9][a-zA-Z0-9._/-]*$'.",
                pointer="/labels",
            ),
        ),
        (
            b'{"content":[{"type":"text","text":"x"}],"mode":"fast"}',
            FieldError(
                "INVALID",
                "Invalid enum value 'fast'. Give one of plan.",
                pointer="/mode",
            ),
        ),
        (b"[]", FieldError("INVALID", "Expected `object`, got `array`.", pointer="")),
        (
            b'{"content":[{"type":"text","text":"a\\u0000"}]}',
            FieldError("NUL", "Leave out the NUL character.", pointer="/content/0/text"),
        ),
    ],
)
def test_what_does_not_fit_is_pointed_at(body: bytes, error: FieldError) -> None:
    assert fault_of(body) == (422, error)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"nonsense",
        b'{"content":[{"type":"text","text":"\xff"}]}',
        b'{"content":[{"type":"text","text":"\\ud800"}]}',
        b'{"content":[{"type":"text","text":"x"}]} trailing',
    ],
)
def test_what_is_no_json_is_refused_as_such(body: bytes) -> None:
    assert fault_of(body) == (400, None)


def test_an_escaped_backslash_before_u0000_is_no_nul() -> None:
    body = b'{"content":[{"type":"text","text":"\\\\u0000"}]}'

    assert decode(body, NewChat).content == (TextInput("\\u0000"),)


def test_depth_cannot_hurt() -> None:
    for body in (b"[" * 100_000, b'{"content":' + b"[" * 100_000, b'{"x":' + b'{"x":' * 100_000):
        assert fault_of(body)[0] in (400, 422)


def test_a_token_may_live_no_longer_than_a_year() -> None:
    with pytest.raises(HttpRefusal):
        decode(b'{"name":"x","scopes":["a"],"lifetime_s":99999999}', NewServiceToken)


@pytest.mark.parametrize(
    ("header", "key"),
    [('"abc"', "abc"), ("abc", "abc"), ('"a\\"b c"', 'a"b c'), (None, None)],
)
def test_an_idempotency_key_may_be_quoted_or_not(header: str | None, key: str | None) -> None:
    headers = {} if header is None else {"Idempotency-Key": header}

    assert idempotency_key(request_with(headers=headers)) == key


@pytest.mark.parametrize("header", ["", '""', '"open', "a b", "x" * 129, "é"])
def test_what_cannot_be_an_idempotency_key_is_refused(header: str) -> None:
    with pytest.raises(HttpRefusal) as refused:
        idempotency_key(request_with(headers={"Idempotency-Key": header}))

    assert refused.value.code == "INVALID_IDEMPOTENCY_KEY"


@pytest.mark.parametrize("query", ["limt=1", "limit=1&limit=2", "limit=%00"])
def test_a_query_must_be_known_single_and_clean(query: str) -> None:
    with pytest.raises(HttpRefusal) as refused:
        read_query(request_with(query=query), "limit")

    assert refused.value.status == 422


@pytest.mark.parametrize("text", ["-1", "0", "201", "1.5", "x", "²", "9" * 40, ""])
def test_a_number_in_a_query_keeps_to_its_range(text: str) -> None:
    with pytest.raises(HttpRefusal):
        whole_number({"limit": text}, "limit", least=1, most=200)


def test_a_word_that_is_none_is_answered_with_those_that_are() -> None:
    with pytest.raises(HttpRefusal) as refused:
        decode(b'{"signal":"hup"}', SignalInput)

    assert refused.value.detail == (
        "/signal: Invalid enum value 'hup'. "
        "Give one of interrupt, terminate, kill, hangup, stop, continue."
    )
