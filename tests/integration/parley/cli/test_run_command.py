import json
from pathlib import Path
from typing import Any

import pytest

from parley.cli.invocation import Invocation
from parley.cli.main import run
from support.cli.fake_api import API_KEY, Answer, FakeApi, event, fake_api

CREATED = Answer(201, {"id": "chat-1", "status": "running"})


def part(text: str, cursor: str) -> bytes:
    data = {"message_part": {"role": "assistant", "part": {"type": "text", "text": text}}}
    return event("message_part", data, cursor)


def message(
    text: str, cursor: str, *, id_: int = 2, role: str = "assistant", reason: str = "stop"
) -> bytes:
    content = [{"type": "text", "text": text}]
    data = {"id": id_, "role": role, "content": content, "finish_reason": reason}
    return event("message", {"message": data}, cursor)


def status(value: str, cursor: str) -> bytes:
    return event("status", {"status": {"status": value}}, cursor)


def parley(api: FakeApi, *arguments: str) -> int:
    environment = {"HOME": "/", "PARLEY_URL": api.server.url, "PARLEY_API_KEY": API_KEY}
    return run(arguments, Invocation(environment, "parley"))


def test_the_answer_streams_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    tool = {"type": "tool-call", "tool_call_id": "c", "tool_name": "shell", "args": {}}
    stream = b"".join(
        (
            b"retry: 2000\n: hi\n\n",
            status("running", "1"),
            event("message_part", {"message_part": {"role": "assistant", "part": tool}}, "2"),
            part("hel", "3"),
            part("lo", "4"),
            message("hello", "5"),
            status("waiting", "6"),
        )
    )
    with fake_api(CREATED, Answer(stream=stream)) as api:
        assert parley(api, "run", "hi there") == 0
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("hello\n", "o shell\n")
    create, follow = api.requests
    assert (create.method, create.path, create.body) == (
        "POST",
        "/api/v1/chats",
        {"content": [{"type": "text", "text": "hi there"}], "unattended": True},
    )
    assert create.headers["Authorization"] == f"Bearer {API_KEY}"
    assert create.headers["Idempotency-Key"]
    assert follow.path == "/api/v1/chats/chat-1/events"


def test_a_dropped_stream_is_resumed_at_its_cursor(capsys: pytest.CaptureFixture[str]) -> None:
    first = status("running", "1") + part("hel", "2")
    second = part("lo", "3") + message("hello", "4") + status("waiting", "5")
    with fake_api(CREATED, Answer(stream=first), Answer(stream=second)) as api:
        assert parley(api, "run", "hi") == 0
    assert capsys.readouterr().out == "hello\n"
    assert [request.headers.get("Last-Event-ID") for request in api.requests[1:]] == [None, "2"]


def test_after_a_resync_the_stream_starts_anew(capsys: pytest.CaptureFixture[str]) -> None:
    first = part("hel", "2") + event("resync", {}, "2")
    second = message("hello", "4") + status("waiting", "5")
    with fake_api(CREATED, Answer(stream=first), Answer(stream=second)) as api:
        assert parley(api, "run", "hi") == 0
    assert capsys.readouterr().out == "hello\n"
    assert "Last-Event-ID" not in api.requests[2].headers


def test_the_same_key_is_sent_again_when_the_server_is_away() -> None:
    away = Answer(503, {"title": "Unavailable", "code": "UNAVAILABLE"})
    with fake_api(away, CREATED, Answer(stream=status("waiting", "1"))) as api:
        assert parley(api, "run", "hi") == 0
    keys = {request.headers["Idempotency-Key"] for request in api.requests[:2]}
    assert len(keys) == 1


def test_every_event_is_a_line_of_json_if_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    with fake_api(CREATED, Answer(stream=part("a", "1") + status("waiting", "2"))) as api:
        assert parley(api, "run", "hi", "--json") == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(line["type"], line["cursor"]) for line in lines] == [
        ("message_part", "1"),
        ("status", "2"),
    ]


def test_a_failed_turn_is_exit_code_1_with_its_reason(capsys: pytest.CaptureFixture[str]) -> None:
    stream = event("error", {"error": {"message": "no such model"}}, "1") + status("error", "2")
    with fake_api(CREATED, Answer(stream=stream)) as api:
        assert parley(api, "run", "hi") == 1
    assert capsys.readouterr().err == "parley: no such model (chat chat-1)\n"


GIVEN_UP = {
    "type": "tool-result",
    "tool_call_id": "c",
    "outcome": "cancelled",
    "result": {"error": "interrupted"},
}


@pytest.mark.parametrize(
    "stopped",
    [
        message("hel", "2", reason="interrupted"),
        status("interrupting", "2"),
        event("message", {"message": {"id": 2, "role": "tool", "content": [GIVEN_UP]}}, "2"),
    ],
    ids=["in an answer", "before it", "in a call"],
)
@pytest.mark.parametrize(
    "following",
    [
        status("waiting", "3"),
        message("queued", "3", id_=3, role="user") + message("other", "4", id_=4),
    ],
    ids=["at rest", "queue"],
)
def test_a_turn_that_was_interrupted_elsewhere_is_exit_code_1(
    stopped: bytes, following: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    stream = message("hi", "1", id_=1, role="user") + stopped + following
    with fake_api(CREATED, Answer(stream=stream)) as api:
        assert parley(api, "run", "hi") == 1
    printed = capsys.readouterr()
    assert printed.out in ("hel\n", "")
    assert printed.err.splitlines()[-1] == (
        "parley: the turn was interrupted: the answer is not complete (chat chat-1); "
        "`parley send chat-1 ...` goes on with it"
    )


def test_the_answer_to_a_message_that_somebody_else_queued_is_not_shown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    own = message("hi", "1", id_=1, role="user") + message("hello", "2")
    queued = message("more", "3", id_=3, role="user") + message("other", "4", id_=4)
    with fake_api(CREATED, Answer(stream=own + queued + status("waiting", "5"))) as api:
        assert parley(api, "run", "hi") == 0
    assert capsys.readouterr().out == "hello\n"


def test_a_chat_that_requires_action_is_exit_code_3() -> None:
    waits = {"id": "chat-1", "required_action": {"actions": [{"kind": "client_tool"}]}}
    with fake_api(
        CREATED, Answer(stream=status("requires_action", "1")), Answer(200, waits)
    ) as api:
        assert parley(api, "run", "hi") == 3


def test_a_chat_that_waits_for_its_agents_is_followed_on() -> None:
    waits = {"id": "chat-1", "required_action": {"actions": [{"kind": "agents"}]}}
    stream = status("requires_action", "1") + status("running", "2") + status("waiting", "3")
    with fake_api(CREATED, Answer(stream=stream), Answer(200, waits)) as api:
        assert parley(api, "run", "hi") == 0


def test_what_a_chat_waits_for_is_read_again_while_services_restart() -> None:
    away = Answer(503, {"title": "Unavailable", "code": "UNAVAILABLE"})
    waits = {"id": "chat-1", "required_action": {"actions": [{"kind": "client_tool"}]}}
    stream = Answer(stream=status("requires_action", "1"))
    with fake_api(CREATED, stream, away, Answer(200, waits)) as api:
        assert parley(api, "run", "hi") == 3


def test_a_turn_that_takes_too_long_is_exit_code_124(capsys: pytest.CaptureFixture[str]) -> None:
    stream = Answer(stream=status("running", "1"), stays_open=True)
    with fake_api(CREATED, stream) as api:
        assert parley(api, "run", "hi", "--timeout", "0.3") == 124
    assert "chat-1 is still running" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("body", "line"),
    [
        (
            {"title": "Invalid request", "detail": "content is empty", "code": "INVALID"},
            "parley: Invalid request: content is empty (INVALID)\n",
        ),
        ({}, "parley: the server answered 422 Unprocessable Entity\n"),
    ],
)
def test_a_problem_document_is_one_line(
    body: dict[str, Any], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with fake_api(Answer(422, body)) as api:
        assert parley(api, "run", "hi") == 1
    assert capsys.readouterr().err == line


def test_a_refused_key_says_where_to_look(capsys: pytest.CaptureFixture[str]) -> None:
    with fake_api(Answer(401, {"title": "Unauthenticated"})) as api:
        assert parley(api, "run", "hi") == 1
    assert "PARLEY_API_KEY" in capsys.readouterr().err


def test_without_a_running_stack_the_remedy_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["run", "hi"], Invocation({"HOME": str(tmp_path)}, "parley")) == 1
    assert "start it with `parley up`" in capsys.readouterr().err


def test_a_remote_stack_needs_a_url_and_a_key(tmp_path: Path) -> None:
    for environment in ({"PARLEY_URL": "http://x"}, {"PARLEY_URL": "x", "PARLEY_API_KEY": "k"}):
        assert run(["run", "hi"], Invocation({"HOME": str(tmp_path)} | environment, "parley")) == 2


def test_tokens_are_issued_listed_and_revoked(capsys: pytest.CaptureFixture[str]) -> None:
    issued = {"id": "t1", "name": "bot", "token": "secret", "expires_at": "2027"}
    listed = {"items": [{"id": "t1", "name": "bot", "scopes": ["chat:read"], "expires_at": "2027"}]}
    with fake_api(Answer(201, issued), Answer(200, listed), Answer(204)) as api:
        assert parley(api, "token", "issue", "bot", "--scope", "chat:read", "--days", "1") == 0
        assert capsys.readouterr().out == "secret\n"
        assert parley(api, "token", "ls") == 0
        assert capsys.readouterr().out.splitlines()[1].split() == [
            "t1",
            "bot",
            "chat:read",
            "2027",
            "-",
        ]
        assert parley(api, "token", "revoke", "t1") == 0
    assert [(request.method, request.path) for request in api.requests] == [
        ("POST", "/api/v1/service-tokens"),
        ("GET", "/api/v1/service-tokens"),
        ("DELETE", "/api/v1/service-tokens/t1"),
    ]
    assert api.requests[0].body == {"name": "bot", "scopes": ["chat:read"], "lifetime_s": 86400}


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("http://host:notaport", "pk_secret"),
        ("http://host:99999", "pk_secret"),
        ("http://[::1", "pk_secret"),
        ("http://", "pk_secret"),
        ("http://a..b", "pk_secret"),
        ("http://ho st", "pk_secret"),
        ("http://user:pk_secret@host", "pk_secret"),
        ("pk_secret", "pk_secret"),
        ("http://127.0.0.1:1", "pk_secret\nX-Other: 1"),
        ("http://127.0.0.1:1", "pk_secret\u00e9"),
    ],
)
def test_a_bad_url_or_key_is_one_line_and_the_key_is_not_in_it(
    url: str, key: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    environment = {"HOME": str(tmp_path), "PARLEY_URL": url, "PARLEY_API_KEY": key}
    assert run(["run", "hi"], Invocation(environment, "parley")) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("parley: PARLEY_")
    assert "secret" not in line


def test_blanks_around_the_url_and_the_key_do_not_matter() -> None:
    with fake_api(CREATED, Answer(stream=status("waiting", "1"))) as api:
        environment = {
            "HOME": "/",
            "PARLEY_URL": f" {api.server.url}/\n",
            "PARLEY_API_KEY": f"{API_KEY}\n",
        }
        assert run(["run", "hi"], Invocation(environment, "parley")) == 0
    assert api.requests[0].headers["Authorization"] == f"Bearer {API_KEY}"


def test_a_damaged_key_file_is_named_and_not_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "endpoints.json").write_text('{"http": "http://127.0.0.1:1"}')
    (tmp_path / "api_key").write_text("pk_secret and more")
    assert run(["run", "hi", "--home", str(tmp_path)], Invocation({}, "parley")) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert str(tmp_path / "api_key") in line
    assert "secret" not in line


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ((Answer(302, headers={"Location": "/sign-in"}),), "answered 302 and points to '/sign-in'"),
        ((Answer(200, page="<html>"),), "answered 'text/html' that is not JSON"),
        ((Answer(200, ["a list"]),), "answered without 'id'"),
        ((CREATED, Answer(200, page="<html>")), "answered 'text/html' and no events"),
    ],
)
def test_what_is_not_parley_is_told_by_its_answer(
    answers: tuple[Answer, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with fake_api(*answers) as api:
        assert parley(api, "run", "hi") == 1
    expected = f"parley: {api.server.url} {said}: that is not Parley; check PARLEY_URL\n"
    assert capsys.readouterr().err == expected


def test_the_time_given_also_bounds_creating_the_chat(capsys: pytest.CaptureFixture[str]) -> None:
    with fake_api(Answer(is_silent=True)) as api:
        assert parley(api, "run", "hi", "--timeout", "0.3") == 124
    assert "no chat could be created in time" in capsys.readouterr().err


def test_a_check_needs_a_directory(capsys: pytest.CaptureFixture[str]) -> None:
    with fake_api() as api:
        assert parley(api, "run", "--check", "true", "hi") == 2
    assert capsys.readouterr().err == ("parley: --check and --apply need --directory: add -C .\n")
    assert api.requests == []


def test_a_script_is_appended_to_the_prompt(tmp_path: Path) -> None:
    script = tmp_path / "steps"
    script.write_text("run: ls\n")
    with fake_api(CREATED, Answer(stream=status("waiting", "1"))) as api:
        assert parley(api, "run", "--script", str(script), "--model", "scripted", "do it") == 0
    assert api.requests[0].body == {
        "content": [{"type": "text", "text": "do it\n\nrun: ls\n"}],
        "unattended": True,
        "model_id": "scripted",
    }
