import json
from time import monotonic

import pytest

from parley.cli.api.client import Api
from parley.cli.api.events import follow
from parley.cli.invocation import Invocation
from parley.cli.main import run
from support.cli.fake_api import API_KEY, Answer, FakeApi, event, fake_api

TIMED_OUT = 124


def part(text: str, cursor: str) -> bytes:
    data = {"message_part": {"role": "assistant", "part": {"type": "text", "text": text}}}
    return event("message_part", data, cursor)


def message(number: int, role: str, text: str, cursor: str) -> bytes:
    content = [{"type": "text", "text": text}]
    return event("message", {"message": {"id": number, "role": role, "content": content}}, cursor)


def status(value: str, cursor: str) -> bytes:
    return event("status", {"status": {"status": value}}, cursor)


def tail(api: FakeApi, *arguments: str) -> int:
    environment = {"HOME": "/", "PARLEY_URL": api.server.url, "PARLEY_API_KEY": API_KEY}
    return run(("tail", "chat-1", *arguments), Invocation(environment, "parley"))


def test_a_chat_is_followed_beyond_the_end_of_its_turn(capsys: pytest.CaptureFixture[str]) -> None:
    stream = b"".join(
        (
            message(1, "user", "hi", "1"),
            message(2, "assistant", "hello", "2"),
            status("waiting", "3"),
            message(3, "user", "more", "4"),
            part("ye", "5"),
            message(4, "assistant", "yes", "6"),
        )
    )
    with fake_api(Answer(stream=stream, stays_open=True)) as api:
        assert tail(api, "--timeout", "0.5") == TIMED_OUT
    printed = capsys.readouterr()
    assert printed.out == "hello\nyes\n"
    assert printed.err.startswith("> hi\n> more\n")
    assert "go on with: parley tail chat-1 --from 6" in printed.err


def test_following_begins_behind_the_cursor_that_was_given() -> None:
    with fake_api(Answer(stream=status("waiting", "8"), stays_open=True)) as api:
        assert tail(api, "--from", "7", "--timeout", "0.3") == TIMED_OUT
    (request,) = api.requests
    assert (request.path, request.headers["Last-Event-ID"]) == ("/api/v1/chats/chat-1/events", "7")


def test_events_are_printed_as_they_came_and_a_lost_stream_is_resumed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with fake_api(
        Answer(stream=part("a", "1")),
        Answer(stream=event("resync", {"type": "resync"}, "")),
        Answer(stream=status("waiting", "2"), stays_open=True),
    ) as api:
        assert tail(api, "--json", "--timeout", "2") == TIMED_OUT
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(line["type"], line["cursor"]) for line in lines] == [
        ("message_part", "1"),
        ("resync", ""),
        ("status", "2"),
    ]
    resumed = [request.headers.get("Last-Event-ID") for request in api.requests]
    assert resumed == [None, "1", None]


def test_a_chat_that_is_not_there_is_told_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    problem = {"title": "Not Found", "status": 404, "code": "CHAT_NOT_FOUND"}
    with fake_api(Answer(404, problem)) as api:
        assert tail(api) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "CHAT_NOT_FOUND" in line


def test_a_chat_that_may_no_longer_be_read_ends_it(capsys: pytest.CaptureFixture[str]) -> None:
    error = {"code": "permission_revoked", "message": "This chat is gone."}
    with fake_api(Answer(stream=event("error", {"error": error}, "1"))) as api:
        assert tail(api) == 1
    assert "This chat is gone." in capsys.readouterr().err


def test_a_server_that_is_busy_is_asked_again_when_it_wants_to_be() -> None:
    busy = {"title": "Busy", "code": "UPSTREAM_UNAVAILABLE", "retry_after_ms": 3000}
    answers = (
        Answer(503, busy),
        Answer(429, {"title": "Busy", "retry_after_ms": 10**9}),
        Answer(502, page="bad gateway"),
        Answer(stream=event("status", {"status": "waiting"}, "7")),
    )
    waited_s: list[float] = []
    with fake_api(*answers) as api:
        told = follow(Api(api.server), "/events", deadline=monotonic() + 60, pause=waited_s.append)
        assert next(told).cursor == "7"
    assert waited_s == [3.0, 10.0, 0.5]
