"""`actions`, `answer` and `run --plan` against a scripted gateway."""

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from parley.cli.invocation import Invocation
from parley.cli.main import run
from support.cli.fake_api import API_KEY, Answer, FakeApi, event, fake_api

CREATED = Answer(201, {"id": "chat-1", "status": "running"})
ANSWERED = Answer(202, {"action": {"id": "a-1"}, "chat": {"id": "chat-1", "status": "running"}})
ONE = {"question": "Which database?", "options": [{"label": "PostgreSQL"}, {"label": "SQLite"}]}
MANY = {
    "header": "Parts",
    "question": "Which parts?",
    "options": [{"label": "api", "description": "the routes"}, {"label": "cli"}, {"label": "web"}],
    "multiple": True,
}


def parley(api: FakeApi, *arguments: str) -> int:
    environment = {"HOME": "/", "PARLEY_URL": api.server.url, "PARLEY_API_KEY": API_KEY}
    return run(arguments, Invocation(environment, "parley"))


class Terminal(io.StringIO):
    """Standard input at which somebody types."""

    def isatty(self) -> bool:
        return True


def action(kind: str, args: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {
        "id": "a-1",
        "chat_id": "chat-1",
        "chat_title": "A chat",
        "kind": kind,
        "tool_name": "execute",
        "tool_call_id": "c",
        "args": args,
        "reason": None,
        "state": "open",
        "asked_at": "2026-01-02T03:04:05.678Z",
        "deadline_at": None,
    } | fields


QUESTION = action("question", {"questions": [ONE]})
NUMBERS = action(
    "question",
    {"questions": [{"question": "How many?", "options": [{"label": "3"}, {"label": "1"}]}]},
)
QUESTIONS = action("question", {"questions": [ONE, MANY]})
PLAN = action("plan", {"title": "Write it", "plan": "# Write it\n\n1. Write."})
APPROVAL = action("approval", {"command": "rm -r build"}, reason="it deletes")
LOOP = action("loop", {"path": "a", "line": 1}, tool_name="read_file")
CLIENT = action("client_tool", {}, tool_name="look_up")
FORM = action(
    "elicitation",
    {
        "message": "Which branch?",
        "schema": {
            "properties": {
                "branch": {"type": "string", "description": "its name"},
                "depth": {"type": "integer"},
            },
            "required": ["branch"],
        },
    },
    tool_name="git__clone",
)
LOGIN = action(
    "login", {"message": "Sign in.", "url": "https://example.com/login"}, tool_name="git__clone"
)


def listed(*actions: dict[str, Any], cursor: str | None = None) -> Answer:
    return Answer(200, {"items": list(actions), "next_cursor": cursor})


def chat(*actions: dict[str, Any]) -> Answer:
    required = {"tool_calls": [], "deadline_at": None, "actions": list(actions)}
    return Answer(200, {"id": "chat-1", "required_action": required if actions else None})


def status(value: str, cursor: str) -> bytes:
    return event("status", {"status": {"status": value}}, cursor)


def test_what_waits_is_listed_in_one_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    until = {"deadline_at": "2026-01-03T03:04:05Z"}
    with fake_api(
        listed(QUESTIONS, PLAN, cursor="more"), listed(APPROVAL | until, LOOP, CLIENT)
    ) as api:
        assert parley(api, "actions") == 0
    rows = [re.split(r"  +", line) for line in capsys.readouterr().out.splitlines()]
    since = "2026-01-02 03:04:05"
    assert rows == [
        ["chat", "action", "title", "kind", "asked", "reason", "since", "until"],
        ["chat-1", "a-1", "A chat", "question", "Which database? (and 1 more)", "-", since, "-"],
        ["chat-1", "a-1", "A chat", "plan", "Write it", "-", since, "-"],
        [
            "chat-1",
            "a-1",
            "A chat",
            "approval",
            "execute: rm -r build",
            "it deletes",
            since,
            "2026-01-03 03:04:05",
        ],
        ["chat-1", "a-1", "A chat", "loop", 'read_file {"path": "a", "line": 1}', "-", since, "-"],
        ["chat-1", "a-1", "A chat", "client_tool", "look_up {}", "-", since, "-"],
    ]
    assert [request.path for request in api.requests] == [
        "/api/v1/actions?limit=200",
        "/api/v1/actions?limit=200&cursor=more",
    ]


def test_what_waits_can_be_json_and_may_be_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with fake_api(listed(PLAN), listed()) as api:
        assert parley(api, "actions", "--json") == 0
        assert json.loads(capsys.readouterr().out) == {"items": [PLAN]}
        assert parley(api, "actions") == 0
    assert capsys.readouterr() == ("", "No chat waits.\n")


@pytest.mark.parametrize(
    ("asked", "options", "body"),
    [
        (QUESTION, ("--option", "2"), {"answers": [{"selected": ["SQLite"]}]}),
        (QUESTION, ("--option", "postgresql"), {"answers": [{"selected": ["PostgreSQL"]}]}),
        (QUESTION, ("--text", "none"), {"answers": [{"text": "none"}]}),
        (
            QUESTION,
            ("--option", "1", "--text", "15", "--remark", "well"),
            {"answers": [{"selected": ["PostgreSQL"], "text": "15"}], "remark": "well"},
        ),
        (
            QUESTIONS,
            ("--option", "1", "--option", "1,web", "--text", "soon"),
            {
                "answers": [{"selected": ["PostgreSQL"]}, {"selected": ["api", "web"]}],
                "remark": "soon",
            },
        ),
        (QUESTIONS, ("--text", "as you like"), {"remark": "as you like"}),
        (PLAN, ("--accept",), {"decision": "accept"}),
        (
            PLAN,
            ("--refuse", "--remark", "smaller"),
            {"decision": "refuse", "remark": "smaller"},
        ),
        (APPROVAL, ("--accept",), {"decision": "accept"}),
        (LOOP, ("--refuse",), {"decision": "refuse"}),
        (LOGIN, ("--accept",), {"decision": "accept"}),
        (
            FORM,
            ("--field", "branch=a=b", "--field", "depth=3"),
            {"decision": "accept", "content": {"branch": "a=b", "depth": 3}},
        ),
        (
            APPROVAL | {"arguments_digest": "d1"},
            ("--accept", "--remember"),
            {"decision": "accept", "remember": True, "arguments_digest": "d1"},
        ),
    ],
)
def test_the_only_action_that_waits_needs_no_name(
    asked: dict[str, Any],
    options: tuple[str, ...],
    body: dict[str, Any],
    capsys: pytest.CaptureFixture[str],
) -> None:
    with fake_api(listed(asked, CLIENT), ANSWERED) as api:
        assert parley(api, "answer", *options) == 0
    assert capsys.readouterr().out == (
        "Answered; the chat is running. `parley tail chat-1` follows it.\n"
    )
    sent = api.requests[1]
    assert (sent.method, sent.path) == ("POST", "/api/v1/chats/chat-1/actions/a-1/answer")
    assert sent.body == body
    assert sent.headers["Idempotency-Key"]


def test_a_plan_is_accepted_as_a_file_has_it(tmp_path: Path) -> None:
    file = tmp_path / "plan.md"
    file.write_text("# mine\n")
    with fake_api(chat(PLAN), ANSWERED) as api:
        assert parley(api, "answer", "chat-1", "--plan", str(file), "--json") == 0
    assert [request.path for request in api.requests] == [
        "/api/v1/chats/chat-1",
        "/api/v1/chats/chat-1/actions/a-1/answer",
    ]
    assert api.requests[1].body == {"decision": "accept", "plan": "# mine\n"}


@pytest.mark.parametrize(
    ("asked", "options", "problem"),
    [
        (QUESTION, (), "the answer is missing: give --option N, or --text TEXT"),
        (FORM, (), "give --field branch=VALUE --field depth=VALUE, or --refuse"),
        (FORM, ("--field", "name=x"), "'name=x' is no field of the form (branch, depth)"),
        (FORM, ("--field", "depth=x"), "depth is no integer: 'x'"),
        (FORM, ("--refuse", "--field", "depth=1"), "--field is for a form that is accepted"),
        (PLAN, ("--field", "a=b"), "--field is for a form that is accepted"),
        (QUESTION, ("--accept",), "--accept, --refuse and --plan are not for questions"),
        (
            QUESTION,
            ("--option", "3"),
            "'3' is none of the options (1 PostgreSQL, 2 SQLite): own words go into --text",
        ),
        (QUESTION, ("--option", "1,2"), "'1,2' is none of the options"),
        (QUESTIONS, ("--option", "1"), "2 questions are asked and 1 options are given"),
        (
            PLAN,
            ("--option", "1"),
            "--option and --text are for questions, and this is of kind plan",
        ),
        (PLAN, ("--refuse", "--accept"), "Choose --accept or --refuse."),
        (APPROVAL, ("--accept", "--refuse"), "Choose --accept or --refuse."),
        (NUMBERS, ("--option", "1"), "'1' fits several of the options (1 3, 2 1)"),
        (PLAN, ("--remark", "no"), "the decision is missing: give --accept, --plan FILE"),
        (PLAN, ("--plan", "/nowhere"), "/nowhere cannot be read (No such file or directory)"),
        (APPROVAL, (), "the answer is missing: give --accept or --refuse"),
    ],
)
def test_an_answer_that_does_not_fit_is_refused_with_the_options_that_do(
    asked: dict[str, Any],
    options: tuple[str, ...],
    problem: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with fake_api(chat(asked)) as api:
        assert parley(api, "answer", "chat-1", *options) == 2
    assert problem in capsys.readouterr().err


def test_an_edited_plan_is_only_for_plans_that_are_accepted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, empty = tmp_path / "plan.md", tmp_path / "empty.md"
    file.write_text("# mine")
    empty.write_text(" \n")
    with fake_api(chat(PLAN), chat(APPROVAL)) as api:
        assert parley(api, "answer", "chat-1", "--refuse", "--plan", str(file)) == 2
        assert parley(api, "answer", "chat-1", "--plan", str(file)) == 2
        assert parley(api, "answer", "chat-1", "--plan", str(empty)) == 2
    assert capsys.readouterr().err.splitlines() == [
        "parley: --plan and --refuse contradict: leave one out",
        "parley: --plan is for plans: leave it out",
        f"parley: {empty} is empty: a plan has text",
    ]


def test_several_actions_are_listed_and_one_must_be_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    other = APPROVAL | {"id": "a-2"}
    with fake_api(chat(PLAN, other), Answer(200, other), ANSWERED) as api:
        assert parley(api, "answer", "chat-1", "--accept") == 2
        assert capsys.readouterr().err.splitlines() == [
            "parley: 2 actions wait, name one of them:",
            "  chat-1 a-1  Write it",
            "  chat-1 a-2  execute: rm -r build",
        ]
        assert parley(api, "answer", "chat-1", "a-2", "--accept") == 0
    assert [request.path for request in api.requests[1:]] == [
        "/api/v1/chats/chat-1/actions/a-2",
        "/api/v1/chats/chat-1/actions/a-2/answer",
    ]


@pytest.mark.parametrize(
    ("arguments", "reply", "problem"),
    [
        ((), listed(), "no chat waits for an answer"),
        (("chat-1",), chat(), "chat chat-1 waits for nothing"),
        (("chat-1",), chat(CLIENT), "chat chat-1 waits for tools of a program only"),
        (
            ("chat-1", "a-1"),
            Answer(200, PLAN | {"state": "expired", "ended_at": "2026-01-02T03:04:05Z"}),
            "this is expired since 2026-01-02 03:04:05: it cannot be answered any more",
        ),
        (
            ("chat-1", "a-1"),
            Answer(200, CLIENT),
            "this waits for the program that declared the tool, not for a person",
        ),
        (
            ("chat-1", "a-9"),
            Answer(404, {"title": "No such action.", "code": "ACTION_NOT_FOUND"}),
            "No such action. (ACTION_NOT_FOUND)",
        ),
    ],
)
def test_what_cannot_be_answered_is_told(
    arguments: tuple[str, ...], reply: Answer, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with fake_api(reply) as api:
        assert parley(api, "answer", *arguments, "--accept") == 1
    assert capsys.readouterr().err == f"parley: {problem}\n"


@pytest.mark.parametrize(
    ("asked", "typed", "body"),
    [
        (QUESTION, "2\n", {"answers": [{"selected": ["SQLite"]}]}),
        (QUESTION, "neither\n", {"answers": [{"text": "neither"}]}),
        (
            QUESTIONS,
            "sqlite\n1,3\n",
            {"answers": [{"selected": ["SQLite"]}, {"selected": ["api", "web"]}]},
        ),
        (NUMBERS, "1\n", {"answers": [{"selected": ["3"]}]}),
        (PLAN, "y\n", {"decision": "accept"}),
        (PLAN, "maybe\nn\nsmaller\n", {"decision": "refuse", "remark": "smaller"}),
        (APPROVAL, "y\n", {"decision": "accept"}),
        (APPROVAL, "a\n", {"decision": "accept", "remember": True}),
        (APPROVAL, "n\n\n", {"decision": "refuse"}),
        (LOOP, "a\ny\n", {"decision": "accept"}),
        (LOGIN, "y\n", {"decision": "accept"}),
        (LOGIN, "n\n", {"decision": "refuse"}),
        (FORM, "y\nmain\n\n", {"decision": "accept", "content": {"branch": "main"}}),
    ],
)
def test_on_a_terminal_it_asks(
    asked: dict[str, Any],
    typed: str,
    body: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal(typed))
    with fake_api(listed(asked), ANSWERED) as api:
        assert parley(api, "answer") == 0
    assert api.requests[1].body == body
    assert capsys.readouterr().err != ""


def test_run_asks_on_the_terminal_and_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal("1\ny\n"))
    stream = b"".join(
        (
            status("requires_action", "1"),
            status("running", "2"),
            status("requires_action", "3"),
            status("waiting", "4"),
        )
    )
    with fake_api(
        CREATED, Answer(stream=stream), chat(QUESTION), ANSWERED, chat(PLAN), ANSWERED
    ) as api:
        assert parley(api, "run", "--plan", "make it") == 0
    assert api.requests[0].body == {
        "content": [{"type": "text", "text": "make it"}],
        "mode": "plan",
    }
    assert [request.body for request in api.requests if request.path.endswith("/answer")] == [
        {"answers": [{"selected": ["PostgreSQL"]}]},
        {"decision": "accept"},
    ]
    shown = capsys.readouterr().err
    assert "Which database?\n  1. PostgreSQL\n  2. SQLite\n" in shown
    assert "The plan: Write it\n  # Write it\n\n  1. Write.\n" in shown


def test_run_answers_questions_and_plans_in_advance_and_no_approval(
    capsys: pytest.CaptureFixture[str],
) -> None:
    steps = ("requires_action", "running") * 5
    asking = b"".join(status(each, str(place)) for place, each in enumerate(steps))
    asked = (QUESTION, QUESTION, PLAN)
    answered = (each for one in asked for each in (chat(one), ANSWERED))
    # "accept" is for the plan that follows, not for a call that no person has seen.
    last = (chat(APPROVAL), chat(PLAN), ANSWERED)
    end = status("requires_action", "10") + status("waiting", "11")
    words = ("sqlite", "neither", "smaller", "accept")
    given = [option for each in words for option in ("--answer", each)]
    with fake_api(CREATED, Answer(stream=asking + end), *answered, *last, chat(PLAN)) as api:
        assert parley(api, "run", *given, "make it") == 0
    assert "unattended" not in api.requests[0].body
    assert [request.body for request in api.requests if request.path.endswith("/answer")] == [
        {"answers": [{"selected": ["SQLite"]}]},
        {"answers": [{"text": "neither"}]},
        {"decision": "refuse", "remark": "smaller"},
        {"decision": "accept"},
    ]
    told = capsys.readouterr().err
    assert "Answered: neither\n" in told
    assert told.count("Waiting. Answer with:") == 1


def test_a_number_that_no_option_has_is_not_taken_for_own_words(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = Answer(stream=status("requires_action", "1"))
    with fake_api(CREATED, stream, chat(QUESTION)) as api:
        assert parley(api, "run", "--answer", "7", "make it") == 2
    assert not [each for each in api.requests if each.path.endswith("/answer")]
    told = capsys.readouterr().err
    assert "'7' is none of the options" in told
    assert "the chat waits; answer with: parley answer chat-1 a-1 --option N" in told

    monkeypatch.setattr("sys.stdin", Terminal("7\n2\n"))
    stream = Answer(stream=status("requires_action", "1") + status("waiting", "2"))
    with fake_api(CREATED, stream, chat(QUESTION), ANSWERED) as api:
        assert parley(api, "run", "make it") == 0
    assert api.requests[-1].body == {"answers": [{"selected": ["SQLite"]}]}


def test_run_that_is_no_terminal_tells_how_to_answer_and_waits(
    capsys: pytest.CaptureFixture[str],
) -> None:
    stream = status("requires_action", "1") + status("requires_action", "2")
    later = status("running", "3") + status("waiting", "4")
    with fake_api(
        CREATED, Answer(stream=stream), chat(PLAN), chat(PLAN), Answer(stream=later)
    ) as api:
        assert parley(api, "run", "--plan", "make it") == 0
    assert "unattended" not in api.requests[0].body
    assert capsys.readouterr().err.splitlines() == [
        "The plan: Write it",
        "  # Write it",
        "",
        "  1. Write.",
        "Waiting. Answer with: parley answer chat-1 a-1 --accept, --plan FILE, or --refuse "
        "--remark TEXT",
    ]


def test_a_chat_that_was_answered_elsewhere_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", Terminal("y\n"))
    ended = Answer(409, {"title": "It was answered.", "code": "ACTION_ENDED"})
    stream = status("requires_action", "1") + status("waiting", "2")
    with fake_api(CREATED, Answer(stream=stream), chat(APPROVAL), ended) as api:
        assert parley(api, "run", "make it") == 0
    assert "unattended" not in api.requests[0].body


def test_who_leaves_the_question_leaves_the_chat_waiting(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal(""))
    with fake_api(CREATED, Answer(stream=status("requires_action", "1")), chat(PLAN)) as api:
        assert parley(api, "run", "--plan", "make it") == 130
    assert "The chat waits: `parley answer chat-1` answers it." in capsys.readouterr().err
    assert not any(request.path.endswith("/interrupt") for request in api.requests)


def test_a_chat_is_shown_with_what_it_waits_for(capsys: pytest.CaptureFixture[str]) -> None:
    waiting = {
        "id": "chat-1",
        "title": "A chat",
        "status": "requires_action",
        "required_action": {"tool_calls": [], "actions": [QUESTION, APPROVAL | {"id": "a-2"}]},
    }
    page = {"messages": [], "has_more": False, "queued_messages": []}
    with fake_api(Answer(200, waiting), Answer(200, page)) as api:
        assert parley(api, "show", "chat-1") == 0
    assert capsys.readouterr().out.splitlines() == [
        "A chat (requires_action)",
        "waits for question a-1: Which database?",
        "waits for approval a-2: execute: rm -r build",
    ]


def test_a_message_that_answers_a_question_shows_what_follows(
    capsys: pytest.CaptureFixture[str],
) -> None:
    sent = {"message": None, "queued_message": None, "queued": False, "answered_action_id": "a-1"}
    call = {"type": "tool-call", "tool_call_id": "c", "tool_name": "ask_user_question"}
    page = {"messages": [{"id": 7, "role": "assistant", "content": [call]}], "has_more": False}
    with fake_api(
        Answer(202, sent),
        Answer(200, QUESTION),
        Answer(200, page),
        Answer(stream=status("waiting", "2")),
    ) as api:
        assert parley(api, "send", "chat-1", "PostgreSQL") == 0
    assert api.requests[-1].path == "/api/v1/chats/chat-1/events?after_id=7"
