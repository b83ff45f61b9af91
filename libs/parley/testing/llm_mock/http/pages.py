"""The mock's own endpoints: help, models, counts and the last requests."""

from collections.abc import Callable, Mapping

import msgspec

from parley.testing.llm_mock.behaviour.grammar import grammar_help
from parley.testing.llm_mock.exchange.request import HttpRequest
from parley.testing.llm_mock.http.statistics import RequestCounters
from parley.testing.llm_mock.playback.encoded import http_head
from parley.testing.llm_mock.providers.openai.completions import CREATED

REQUESTS_SHOWN = 20
MODELS = ("mock", "mock:tools=1", "mock:reasoning=4", "mock:deltas=40,delay=20ms")
TEXT = {"content-type": "text/plain; charset=utf-8"}
JSON = {"content-type": "application/json"}

Page = Callable[[], tuple[Mapping[str, str], bytes]]


def own_page(request: HttpRequest, tally: RequestCounters, reset: Callable[[], None]) -> bytes:
    """Return the answer to a request that is not for a model."""

    def forget() -> tuple[Mapping[str, str], bytes]:
        reset()
        return JSON, b"{}"

    pages: dict[tuple[str, str], Page] = {
        ("GET", "/"): lambda: (TEXT, f"{grammar_help()}\n".encode()),
        ("GET", "/v1/models"): lambda: (JSON, _models(request)),
        ("GET", "/openai/v1/models"): lambda: (JSON, _models(request)),
        ("GET", "/mock/stats"): lambda: (JSON, tally.statistics().json()),
        ("GET", "/mock/requests"): lambda: (JSON, _requests(request, tally)),
        ("POST", "/mock/reset"): forget,
    }
    page = pages.get((request.method, request.path))
    if page is None:
        body = f"No {request.method} {request.path} here: GET / tells what there is.\n".encode()
        return http_head(404, TEXT, len(body)) + body
    headers, body = page()
    return http_head(200, headers, len(body)) + body


def _requests(request: HttpRequest, tally: RequestCounters) -> bytes:
    last = request.query.get("last", "")
    wanted = int(last) if last.isdecimal() else REQUESTS_SHOWN
    return msgspec.json.encode([each.document() for each in tally.served(wanted)])


def _models(request: HttpRequest) -> bytes:
    """Return some models, in the format of the provider that the request expects."""
    if "anthropic-version" in request.headers:
        data: list[dict[str, object]] = [
            {
                "type": "model",
                "id": name,
                "display_name": name,
                "created_at": "2026-01-01T00:00:00Z",
            }
            for name in MODELS
        ]
        page = {"data": data, "has_more": False, "first_id": MODELS[0], "last_id": MODELS[-1]}
        return msgspec.json.encode(page)
    data = [
        {"id": name, "object": "model", "created": CREATED, "owned_by": "parley"} for name in MODELS
    ]
    return msgspec.json.encode({"object": "list", "data": data})
