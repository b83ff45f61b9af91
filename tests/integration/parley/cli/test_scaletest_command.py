"""`parley scaletest` before its first chat: the model it makes, and what it refuses."""

from typing import Any

import pytest

from parley.cli.api.client import Api
from parley.cli.errors import CliError
from parley.cli.invocation import Invocation
from parley.cli.load_test.models import (
    TRIALS,
    MockedAnswer,
    ScaleModel,
    find_or_create,
    forget,
    try_out,
)
from parley.cli.main import run
from parley.clock import SystemClock
from support.cli.fake_api import API_KEY, Answer, FakeApi, fake_api

MOCK = "http://127.0.0.1:9/v1"
ANSWER = MockedAnswer(deltas=40, delta_interval_ms=0)
PROVIDER = {
    "id": "p",
    "name": "scaletest",
    "display_name": "Load test",
    "type": "openai_compatible",
    "base_url": MOCK,
    "enabled": True,
    "keys": [{"id": "k"}],
}
MODEL = {"id": "m", "provider_id": "p", "name": "mock:deltas=40", "enabled": True}


def parley(api: FakeApi, *arguments: str) -> int:
    environment = {"HOME": "/nowhere", "PARLEY_API_KEY": API_KEY}
    command = ("scaletest", "--url", api.server.url, "--chats", "2", *arguments)
    return run(command, Invocation(environment, "parley"))


def listed(*items: dict[str, Any]) -> Answer:
    return Answer(200, {"items": list(items), "next_cursor": None})


def asked_of(api: FakeApi) -> list[tuple[str, str]]:
    return [(request.method, request.path.partition("?")[0]) for request in api.requests]


def test_a_provider_its_key_and_a_model_are_made_when_there_are_none() -> None:
    made = {**PROVIDER, "keys": []}
    answers = (listed(), Answer(201, made), Answer(201, {}), listed(), Answer(201, MODEL))
    with fake_api(*answers) as api:
        found = find_or_create(Api(api.server), MOCK, ANSWER)
    assert found == ScaleModel("m", "m", "p")
    assert asked_of(api) == [
        ("GET", "/api/v1/providers"),
        ("POST", "/api/v1/providers"),
        ("POST", "/api/v1/provider-keys"),
        ("GET", "/api/v1/models"),
        ("POST", "/api/v1/models"),
    ]
    assert api.requests[-1].body["name"] == "mock:deltas=40"


def test_what_somebody_else_made_is_used_and_stays() -> None:
    theirs = {**PROVIDER, "display_name": "Theirs"}
    with fake_api(listed(theirs), listed(MODEL)) as api:
        found = find_or_create(Api(api.server), MOCK, ANSWER)
        forget(Api(api.server), found)
    assert found == ScaleModel("m")
    assert len(api.requests) == 2


def test_what_another_run_left_is_used_and_taken_away() -> None:
    with fake_api(listed(PROVIDER), listed(MODEL), Answer(204)) as api:
        forget(Api(api.server), find_or_create(Api(api.server), MOCK, ANSWER))
    assert asked_of(api)[-1] == ("DELETE", "/api/v1/providers/p")


def test_a_provider_that_points_elsewhere_is_pointed_at_the_mock() -> None:
    moved = {**PROVIDER, "base_url": "http://127.0.0.1:8/v1"}
    with fake_api(listed(moved), Answer(200, PROVIDER), listed(MODEL)) as api:
        find_or_create(Api(api.server), MOCK, ANSWER)
    assert (api.requests[1].method, api.requests[1].body) == (
        "PATCH",
        {"base_url": MOCK, "key": "scaletest"},
    )


def test_the_name_of_a_model_says_how_it_answers() -> None:
    answer = MockedAnswer(3, 20, 2, "execute", '{"command":"echo"}')
    assert answer.model_name == (
        'mock:deltas=3,delay=20ms,tools=1,rounds=2,tool_like=execute,args={"command":"echo"}'
    )


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Answer(403, {"title": "No"}), "administrator"),
        (listed({**PROVIDER, "type": "anthropic"}), "of type anthropic"),
        (listed({**PROVIDER, "enabled": False}), "switched off"),
    ],
)
def test_a_provider_that_cannot_be_used_is_a_matter_of_configuration(
    answer: Answer, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with fake_api(answer) as api:
        assert parley(api, "--llm-mock-url", MOCK) == 2
    assert words in capsys.readouterr().err


def test_a_model_that_is_not_there_is_a_matter_of_configuration(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with fake_api(listed(MODEL)) as api:
        assert parley(api, "--model", "other") == 2
    assert "other" in capsys.readouterr().err


def test_more_open_files_than_are_allowed_are_a_matter_of_configuration(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with fake_api() as api:
        assert parley(api, "--chats", "1000000000", "--clients", "1") == 2
    assert "ulimit -Hn" in capsys.readouterr().err


def test_a_mock_on_this_machine_is_not_offered_to_another(
    capsys: pytest.CaptureFixture[str],
) -> None:
    environment = {"HOME": "/nowhere", "PARLEY_API_KEY": API_KEY}
    command = ("scaletest", "--url", "http://192.0.2.1", "--chats", "1")
    assert run(command, Invocation(environment, "parley")) == 2
    assert "--llm-mock-url" in capsys.readouterr().err


async def test_a_trial_waits_until_every_process_knows_the_model() -> None:
    unknown = Answer(404, {"title": "Model not found", "code": "MODEL_NOT_FOUND"})
    trial = (Answer(201, {"id": "c"}), Answer(200, {"status": "waiting"}), Answer(204))
    with fake_api(*(each for _ in range(TRIALS) for each in (unknown, *trial))) as api:
        await try_out(Api(api.server), ScaleModel("m"), SystemClock())
    assert len(api.requests) == TRIALS * 4


async def test_a_trial_that_fails_says_why_and_leaves_no_chat() -> None:
    failed = {"status": "error", "last_error": {"message": "no route", "detail": None}}
    answers = (Answer(201, {"id": "c"}), Answer(200, failed), Answer(204))
    with fake_api(*answers) as api, pytest.raises(CliError, match="no route"):
        await try_out(Api(api.server), ScaleModel("m"), SystemClock())
    assert asked_of(api)[-1] == ("DELETE", "/api/v1/chats/c")
