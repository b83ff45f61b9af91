"""`ls`, `show`, `send` and `interrupt` against a scripted gateway."""

import json
from typing import Any

import pytest

from parley.cli.invocation import Invocation
from parley.cli.main import run
from support.cli.fake_api import API_KEY, Answer, FakeApi, event, fake_api

CHAT = "0190-1"


def parley(api: FakeApi, *arguments: str) -> int:
    environment = {"HOME": "/", "PARLEY_URL": api.server.url, "PARLEY_API_KEY": API_KEY}
    return run(arguments, Invocation(environment, "parley"))


def chat(number: int, **fields: Any) -> dict[str, Any]:
    return {
        "id": f"chat-{number}",
        "status": "waiting",
        "updated_at": "2026-01-02T03:04:05.678Z",
        "title": f"Chat {number}",
        "has_unread": False,
        "pin_order": 0,
    } | fields


def message(number: int, role: str, *content: dict[str, Any]) -> dict[str, Any]:
    return {"id": number, "role": role, "content": list(content)}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def sent(**fields: Any) -> Answer:
    return Answer(202, {"message": None, "queued_message": None, "queued": False} | fields)


def test_chats_are_listed_page_by_page(capsys: pytest.CaptureFixture[str]) -> None:
    first = {"items": [chat(1, pin_order=1, has_unread=True)], "next_cursor": "a b"}
    second = {"items": [chat(2, title="\x1b[2Jlong\n" + "x" * 99)], "next_cursor": None}
    with fake_api(Answer(200, first), Answer(200, second)) as api:
        assert parley(api, "ls", "-q", 'title:"a b"', "--archived", "--shared", "-n", "3") == 0
    assert capsys.readouterr().out == (
        "id      status  changed              title\n"
        "chat-1  idle*^  2026-01-02 03:04:05  Chat 1\n"
        f"chat-2  idle    2026-01-02 03:04:05  [2Jlong {'x' * 51}…\n"
    )
    filters = "q=title%3A%22a+b%22&archived=true&shared_with_me=true"
    assert [request.path for request in api.requests] == [
        f"/api/v1/chats?{filters}&limit=3",
        f"/api/v1/chats?{filters}&limit=2&cursor=a+b",
    ]


def test_words_are_found_page_by_page(capsys: pytest.CaptureFixture[str]) -> None:
    excerpt = [
        {"text": "order\n\x1b[2J ", "match": False},
        {"text": "pens", "match": True},
        {"text": " now", "match": False},
    ]
    said = {"chat_id": "c-1", "title": "Invoice", "message_id": 7, "excerpt": excerpt}
    titled = {"chat_id": "c-2", "title": "Pens", "message_id": None, "excerpt": excerpt[1:2]}
    pages = ({"items": [said], "next_cursor": "x"}, {"items": [titled], "next_cursor": None})
    with fake_api(*(Answer(200, page) for page in pages)) as api:
        assert parley(api, "search", "--chat", "c-1", "-n", "60", "blue", "pens") == 0
    assert capsys.readouterr().out == (
        "c-1 message 7  Invoice\n    order [2J pens now\nc-2 title  Pens\n    pens\n"
    )
    assert [request.path for request in api.requests] == [
        "/api/v1/search?q=blue+pens&chat_id=c-1&limit=50",
        "/api/v1/search?q=blue+pens&chat_id=c-1&limit=50&cursor=x",
    ]


def test_a_search_without_a_hit_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    with fake_api(Answer(200, {"items": [], "next_cursor": None})) as api:
        assert parley(api, "search", "pens") == 0
    assert capsys.readouterr() == ("", "Nothing was found.\n")


def test_found_words_can_be_json(capsys: pytest.CaptureFixture[str]) -> None:
    with fake_api(Answer(200, {"items": [], "next_cursor": None})) as api:
        assert parley(api, "search", "--json", "pens") == 0
    assert json.loads(capsys.readouterr().out) == {"items": []}
    assert len(api.requests) == 1


def test_a_chat_is_copied_up_to_a_message(capsys: pytest.CaptureFixture[str]) -> None:
    with fake_api(Answer(201, chat(2)), Answer(201, chat(3))) as api:
        assert parley(api, "fork", "c-1", "7", "--workspace", "copy", "--title", "Other") == 0
        assert parley(api, "fork", "c-1", "--json") == 0
    out = capsys.readouterr().out
    assert out.startswith("chat-2\n{")
    assert json.loads(out.removeprefix("chat-2\n")) == chat(3)
    assert [(request.path, request.body) for request in api.requests] == [
        ("/api/v1/chats/c-1/fork", {"workspace": "copy", "message_id": 7, "title": "Other"}),
        ("/api/v1/chats/c-1/fork", {"workspace": "none"}),
    ]


def test_a_list_can_be_json(capsys: pytest.CaptureFixture[str]) -> None:
    with fake_api(Answer(200, {"items": [chat(1)], "next_cursor": "more"})) as api:
        assert parley(api, "ls", "--json", "-n", "1") == 0
    assert json.loads(capsys.readouterr().out) == {"items": [chat(1)]}
    assert [request.path for request in api.requests] == ["/api/v1/chats?limit=1"]


def test_a_chat_is_shown_with_its_last_messages_oldest_first(
    capsys: pytest.CaptureFixture[str],
) -> None:
    call = {"type": "tool-call", "tool_call_id": "c", "tool_name": "shell", "args": {"a": 1}}
    result = {"type": "tool-result", "tool_name": "shell", "result": {"ok": 1}, "is_error": True}
    thought = {"type": "reasoning", "text": "hm"}
    file = {"type": "file", "file_id": "f", "name": "a.png"}
    newest = {
        "messages": [message(3, "tool", result), message(2, "assistant", thought, call)],
        "has_more": True,
        "queued_messages": [{"id": "q", "content": [text("later")]}],
    }
    oldest = {"messages": [message(1, "user", text("hi\nthere"), file)], "has_more": False}
    failed = chat(1, status="error", last_error={"message": "It broke."})
    with fake_api(Answer(200, failed), Answer(200, newest), Answer(200, oldest)) as api:
        assert parley(api, "show", CHAT, "-n", "9") == 0
    assert capsys.readouterr().out.splitlines() == [
        "Chat 1 (error)",
        "error: It broke.",
        "--- user 1",
        "hi",
        "there",
        "[file] a.png",
        "--- assistant 2",
        "> hm",
        'o shell {"a": 1}',
        "--- tool 3",
        '✗ shell {"ok": 1}',
        "--- queued q",
        "later",
    ]
    assert [request.path for request in api.requests] == [
        f"/api/v1/chats/{CHAT}",
        f"/api/v1/chats/{CHAT}/messages?limit=9",
        f"/api/v1/chats/{CHAT}/messages?limit=7&before_id=2",
    ]


def test_a_chat_can_be_shown_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    page = {"messages": [message(1, "user", text("hi"))], "has_more": True, "queued_messages": []}
    with fake_api(Answer(200, chat(1)), Answer(200, page)) as api:
        assert parley(api, "show", CHAT, "--json", "-n", "1") == 0
    assert json.loads(capsys.readouterr().out) == {
        "chat": chat(1),
        "messages": page["messages"],
        "queued_messages": [],
    }
    assert len(api.requests) == 2


def test_a_message_is_sent_and_its_answer_streams(capsys: pytest.CaptureFixture[str]) -> None:
    stream = event("message", {"message": message(5, "assistant", text("yes"))}, "1") + event(
        "status", {"status": {"status": "waiting"}}, "2"
    )
    with fake_api(sent(message={"id": 4}), Answer(stream=stream)) as api:
        assert parley(api, "send", CHAT, "well?", "--model", "m", "--effort", "high") == 0
    assert capsys.readouterr().out == "yes\n"
    asked, followed = api.requests
    assert (asked.method, asked.path, asked.body) == (
        "POST",
        f"/api/v1/chats/{CHAT}/messages",
        {
            "content": [text("well?")],
            "busy_behavior": "queue",
            "model_id": "m",
            "reasoning_effort": "high",
        },
    )
    assert asked.headers["Idempotency-Key"]
    assert followed.path == f"/api/v1/chats/{CHAT}/events?after_id=4"


def test_a_message_that_waits_is_told_and_not_waited_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    waiting = sent(queued=True, queued_message={"id": "q-1"})
    with fake_api(waiting, waiting) as api:
        assert parley(api, "send", CHAT, "hi", "--interrupt") == 0
        told = capsys.readouterr()
        assert parley(api, "send", CHAT, "hi", "--json") == 0
    assert (told.out, told.err) == ("", "Queued as q-1.\n")
    assert json.loads(capsys.readouterr().out)["queued_message"] == {"id": "q-1"}
    assert [request.body["busy_behavior"] for request in api.requests] == ["interrupt", "queue"]


def test_who_does_not_wait_is_told_where_the_message_is(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with fake_api(sent(message={"id": 4})) as api:
        assert parley(api, "send", CHAT, "hi", "--no-wait") == 0
    assert capsys.readouterr().err == "Sent as message 4.\n"


def test_a_message_is_sent_again_under_its_key_when_the_server_is_away() -> None:
    away = Answer(503, {"title": "Unavailable", "code": "UNAVAILABLE"})
    with fake_api(away, sent(message={"id": 4})) as api:
        assert parley(api, "send", CHAT, "hi", "--no-wait") == 0
    assert len({request.headers["Idempotency-Key"] for request in api.requests}) == 1


def test_a_turn_is_interrupted(capsys: pytest.CaptureFixture[str]) -> None:
    stopping = Answer(202, chat(1, status="interrupting"))
    with fake_api(stopping, stopping) as api:
        assert parley(api, "interrupt", CHAT) == 0
        assert capsys.readouterr().out == "The chat is interrupting.\n"
        assert parley(api, "interrupt", CHAT, "--json") == 0
    assert json.loads(capsys.readouterr().out) == chat(1, status="interrupting")
    assert {request.path for request in api.requests} == {f"/api/v1/chats/{CHAT}/interrupt"}


@pytest.mark.parametrize(
    "arguments", [("show", "no/such chat"), ("send", "no/such chat", "hi"), ("interrupt", "x?y")]
)
def test_a_chat_that_is_not_there_is_one_line(
    arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    problem = {"title": "Chat not found", "detail": "There is none.", "code": "CHAT_NOT_FOUND"}
    with fake_api(Answer(404, problem)) as api:
        assert parley(api, *arguments) == 1
    expected = "parley: Chat not found: There is none. (CHAT_NOT_FOUND)\n"
    assert capsys.readouterr().err == expected
    assert api.requests[0].path.count("/") <= 5
    assert "?" not in api.requests[0].path


def test_a_spend_limit_says_in_words_when_it_ends(capsys: pytest.CaptureFixture[str]) -> None:
    problem = {
        "title": "The spending limit is reached.",
        "detail": "Go on after 2026-12-01 00:00 UTC.",
        "code": "USAGE_LIMIT",
        "retry_after_ms": 3 * 3_600_000,
    }
    with fake_api(Answer(429, problem)) as api:
        assert parley(api, "interrupt", CHAT) == 1
    assert "Go on after 2026-12-01 00:00 UTC. Try again in 3 hours." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("days", "said"),
    [
        (
            (0, 0, 7),
            ["Chats are archived: never.", "Archived chats are deleted: never."],
        ),
        (
            (30, 1, 7),
            [
                "Chats are archived: after 30 days without a change.",
                "Archived chats are deleted: 1 day after they were archived.",
                "Owners are told: 7 days before.",
            ],
        ),
    ],
)
def test_the_retention_of_chats_is_told_in_words(
    days: tuple[int, int, int], said: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    names = ("auto_archive_days", "retention_days", "retention_notice_days")
    policy = dict(zip(names, days, strict=True))
    with fake_api(Answer(200, {**policy, "days": [], "counts": [], "items": []})) as api:
        assert parley(api, "retention") == 0
    *lines, last = capsys.readouterr().out.splitlines()
    assert lines == said
    assert last == "No chat has been archived or deleted by age."


@pytest.mark.parametrize(
    ("command", "prompt", "instead"),
    [
        (("send", CHAT), "/goal mend the tests", f"`parley goal set {CHAT} TEXT --check COMMAND`"),
        (("send", CHAT), "/export", f"`parley show {CHAT}`"),
        (("run",), "/goal mend the tests", "`parley goal set CHAT TEXT --check COMMAND`"),
        (("run",), "/compact", "a new chat has no history"),
    ],
)
def test_a_command_of_the_page_is_not_sent_to_the_model(
    command: tuple[str, ...], prompt: str, instead: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with fake_api() as api:
        assert parley(api, *command, prompt) == 2
    assert instead in capsys.readouterr().err
    assert api.requests == []


def test_a_chat_is_summarised_by_the_command_of_the_page(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with fake_api(Answer(202, chat(1))) as api:
        assert parley(api, "send", CHAT, "/compact") == 0
    assert capsys.readouterr().err == "The history is being summarised.\n"
    assert [(each.method, each.path) for each in api.requests] == [
        ("POST", f"/api/v1/chats/{CHAT}/compact")
    ]


def test_a_path_is_a_prompt_like_any_other() -> None:
    with fake_api(sent(message={"id": 4})) as api:
        assert parley(api, "send", CHAT, "--no-wait", "/etc/hosts says what?") == 0
    assert api.requests[0].path == f"/api/v1/chats/{CHAT}/messages"
