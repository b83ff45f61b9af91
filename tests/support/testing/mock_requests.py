"""Requests to the mock, right but for what a test changes in them."""

import json
from typing import Any

from parley.testing.llm_mock.errors import Refused
from parley.testing.llm_mock.exchange.request import HttpRequest, ParsedRequest
from parley.testing.llm_mock.http.handler import dialect_at

Json = dict[str, Any]

ANTHROPIC_HEADERS = {"x-api-key": "k", "anthropic-version": "2023-06-01"}
OPENAI_HEADERS = {"authorization": "Bearer k"}


def asked(path: str, body: Json | bytes, headers: dict[str, str]) -> ParsedRequest:
    """Return what the mock takes a request for."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    plain = path.partition("?")[0]
    dialect = dialect_at(plain)
    assert dialect is not None
    return dialect.question(HttpRequest("POST", path, plain, {}, headers, data))


def refusal(path: str, body: Json | bytes, headers: dict[str, str]) -> Refused:
    """Return how the mock refuses a request."""
    try:
        question = asked(path, body, headers)
    except Refused as refused:
        return refused
    raise AssertionError(f"not refused: {question}")
