"""Shortened ids of chats, agents, races and workspaces, against a scripted gateway."""

from typing import Any

import pytest

from parley.cli.chats.id_prefixes import is_prefix
from parley.cli.invocation import Invocation
from parley.cli.main import run
from support.cli.fake_api import API_KEY, Answer, FakeApi, fake_api

ONE = "0190aaaa-bbbb-7ccc-8ddd-eeeeeeeeee01"
TWO = "0190aaaa-bbbb-7ccc-8ddd-eeeeeeeeee02"
AGENT = "0190ffff-bbbb-7ccc-8ddd-eeeeeeeeee03"
CHATS = "/api/v1/chats"
LISTS = [
    f"{CHATS}?limit=200",
    f"{CHATS}?archived=true&limit=200",
    f"{CHATS}?shared_with_me=true&limit=200",
]
TODOS = Answer(200, {"items": []})


def page(*items: dict[str, Any]) -> Answer:
    return Answer(200, {"items": list(items), "next_cursor": None})


def chat(chat_id: str, title: str = "", **fields: Any) -> dict[str, Any]:
    return {"id": chat_id, "title": title, "status": "waiting", "child_count": 0} | fields


def parley(api: FakeApi, *arguments: str) -> int:
    environment = {"HOME": "/", "PARLEY_URL": api.server.url, "PARLEY_API_KEY": API_KEY}
    return run(arguments, Invocation(environment, "parley"))


@pytest.mark.parametrize("given", ["0190aa", "0190AAAA-bb", TWO[:-1]])
def test_a_chat_is_found_by_a_prefix_of_its_id_that_only_it_has(given: str) -> None:
    with fake_api(page(chat(AGENT)), page(chat(TWO)), page(), TODOS) as api:
        assert parley(api, "todos", given) == 0
    assert [each.path for each in api.requests] == [*LISTS, f"{CHATS}/{TWO}/todos"]


@pytest.mark.parametrize("given", [ONE, "0190a", "no chat", "0190-aaaa"])
def test_whole_ids_and_what_is_no_prefix_are_passed_on_as_they_are(given: str) -> None:
    with fake_api(TODOS) as api:
        assert parley(api, "todos", given) == 0
    assert len(api.requests) == 1


def test_a_prefix_of_several_ids_is_refused_with_their_list(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with fake_api(page(chat(ONE, "First"), chat(AGENT)), page(chat(TWO, "Second")), page()) as api:
        assert parley(api, "show", "0190aaaa") == 2
    assert capsys.readouterr().err.splitlines() == [
        "parley: 2 chats have ids that begin with 0190aaaa: give more characters",
        f"parley:   {ONE}  First",
        f"parley:   {TWO}  Second",
    ]
    assert [each.path for each in api.requests] == LISTS


def test_a_prefix_that_no_id_has_is_refused_with_the_command_that_lists_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with fake_api(*[page()] * 6) as api:
        assert parley(api, "tail", "0190aaaa") == 1
    assert capsys.readouterr().err == (
        "parley: there is no chat 0190aaaa; `parley ls` shows what there is\n"
    )


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("agents", "diff", "zzzzzz"), "no agent zzzzzz; `parley agents CHAT`"),
        (("race", "show", "zzzzzz"), "no race zzzzzz; `parley race ls`"),
        (("schedule", "show", "zzzzzz"), "no schedule zzzzzz; `parley schedule ls`"),
        (
            ("schedule", "add", "hi", "--cron", "0 8 * * *", "--chat", "zzzzzz"),
            "no chat zzzzzz; `parley ls`",
        ),
    ],
)
def test_what_cannot_be_an_id_is_refused_with_the_right_noun(
    arguments: tuple[str, ...], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with fake_api() as api:
        assert parley(api, *arguments) == 1
    assert capsys.readouterr().err == f"parley: there is {error} shows what there is\n"
    assert api.requests == []


def test_a_workspace_is_chosen_by_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    models = ("--model", "a", "--model", "b")
    shop = {"id": ONE, "name": "Shop", "state": "stopped"}
    with fake_api(page(shop), Answer(201, {"id": TWO})) as api:
        assert parley(api, "race", "task", *models, "--workspace", "shop", "--no-wait") == 0
    assert api.requests[-1].body["workspace_id"] == ONE
    capsys.readouterr()
    with fake_api(page(shop)) as api:
        assert parley(api, "race", "task", *models, "--workspace", "zzz") == 1
    assert capsys.readouterr().err == (
        "parley: there is no workspace zzz; `parley workspace ls` shows what there is\n"
    )


def test_a_schedule_is_found_by_a_prefix() -> None:
    with fake_api(page({"id": ONE}, {"id": AGENT}), Answer(204)) as api:
        assert parley(api, "schedule", "rm", ONE[:8]) == 0
    assert api.requests[-1].path == f"/api/v1/schedules/{ONE}"


def test_an_agent_is_found_below_its_chat() -> None:
    root = chat(ONE, child_count=1)
    with_agent = Answer(200, root | {"children": [chat(AGENT)]})
    report = {"applied": False, "patches": [], "merged_paths": [], "conflicts": []}
    with fake_api(page(root), with_agent, page(), page(), Answer(200, report)) as api:
        assert parley(api, "agents", "diff", AGENT[:10]) == 0
    assert api.requests[-1].path == f"{CHATS}/{AGENT}/merge"


def test_a_chat_command_finds_an_agent_if_no_chat_has_the_prefix() -> None:
    root = chat(ONE, child_count=1)
    with_agent = Answer(200, root | {"children": [chat(AGENT)]})
    lists = (page(root), page(), page())
    with fake_api(*lists, page(root), with_agent, page(), page(), TODOS) as api:
        assert parley(api, "todos", AGENT[:8]) == 0
    assert api.requests[-1].path == f"{CHATS}/{AGENT}/todos"


def test_a_race_and_a_workspace_are_found_by_a_prefix(capsys: pytest.CaptureFixture[str]) -> None:
    race = {"id": ONE, "candidates": [], "check_command": ""}
    with fake_api(page(race, {"id": AGENT}), Answer(200, race)) as api:
        assert parley(api, "race", "show", ONE[:8]) == 0
    assert [each.path for each in api.requests] == ["/api/v1/races", f"/api/v1/races/{ONE}"]

    shop = {"id": ONE, "name": "shop", "state": "stopped"}
    other = {"id": TWO, "name": "0190bbbb", "state": "stopped"}
    with fake_api(page(shop, other), Answer(200, shop)) as api:
        assert parley(api, "workspace", "stop", ONE) == 0
    assert api.requests[-1].path == f"/api/v1/workspaces/{ONE}/stop"
    with fake_api(page(shop, other)) as api:
        assert parley(api, "workspace", "stop", "0190aaaa") == 2
    assert f"{TWO}  0190bbbb" in capsys.readouterr().err
    with fake_api(page(shop, other), Answer(200, other)) as api:
        assert parley(api, "workspace", "stop", "0190bbbb") == 0
    assert api.requests[-1].path == f"/api/v1/workspaces/{TWO}/stop"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0190aa", True),
        (ONE[:9], True),
        (ONE[:35], True),
        ("0190a", False),
        (ONE, False),
        ("0190-a", False),
        ("0190zz", False),
        ("", False),
    ],
)
def test_a_prefix_has_the_form_of_an_id(text: str, expected: bool) -> None:
    assert is_prefix(text) is expected
