"""`parley agents`: the tree of a chat's agents."""

import pytest

from parley.cli.chats.agents import applied_line, below, row_of, show_merged

CONFLICT = {"kind": "content", "path": "b"}


def chat(chat_id: str, parent_id: str) -> dict[str, str]:
    return {"id": chat_id, "parent_chat_id": parent_id}


def test_each_agent_comes_after_the_one_that_started_it() -> None:
    first, second, inner = chat("a", "root"), chat("b", "root"), chat("c", "a")
    children = (first, second, inner)
    assert list(below("root", children)) == [(0, first), (1, inner), (0, second)]
    assert list(below("a", children)) == [(0, inner)]


def test_an_agent_is_shown_with_what_it_cost_alone() -> None:
    agent = {**chat("a", "root"), "status": "waiting", "title": "First"}
    assert row_of(1, {**agent, "own_cost_micros": 12_300}) == (
        "a",
        "idle",
        "general",
        "$0.0123",
        "  First",
    )
    assert row_of(0, {**agent, "own_cost_micros": None})[3] == "-"


@pytest.mark.parametrize(
    ("strategy", "merged", "conflicts", "said"),
    [
        ("report", ["a\x1b.txt"], [], ("a.txt\n", "")),
        ("report", [], [CONFLICT], ("conflict (content): b\n", "")),
        ("take_fork", ["b"], [CONFLICT], ("b\n", "")),
        ("keep_parent", ["a"], [CONFLICT], ("a\nkept as it was (content): b\n", "")),
        (
            "keep_parent",
            [],
            [CONFLICT],
            ("kept as it was (content): b\n", "Nothing else was left to apply.\n"),
        ),
        (
            "report",
            [],
            [],
            ("", "Nothing was left to apply: the changes are there already, or there are none.\n"),
        ),
    ],
)
def test_a_merge_with_nothing_left_says_so(
    strategy: str,
    merged: list[str],
    conflicts: list[dict[str, str]],
    said: tuple[str, str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    show_merged({"merged_paths": merged, "conflicts": conflicts}, strategy)
    assert capsys.readouterr() == said


@pytest.mark.parametrize(("omitted", "files"), [(0, "1 file"), (2, "3 files")])
def test_an_applied_merge_is_a_line_with_its_time_and_number_of_files(
    omitted: int, files: str
) -> None:
    applied = {"applied_at": "2026-01-02T03:04:05Z", "paths": ["a"], "omitted": omitted}
    assert applied_line(applied) == f"applied at 2026-01-02T03:04:05Z, {files}"
