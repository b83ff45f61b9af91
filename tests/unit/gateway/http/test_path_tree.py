import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.http.path_tree import PathTree


def tree(*paths: str) -> PathTree[str]:
    made = PathTree[str]()
    for path in paths:
        made.add(path, path)
    return made


def test_a_path_is_found_with_the_values_of_its_variables() -> None:
    found = tree("/chats", "/chats/{chat_id}/messages/{message_id}")
    assert found.find("/chats") == ("/chats", {})
    assert found.find("/chats/7/messages/8") == (
        "/chats/{chat_id}/messages/{message_id}",
        {"chat_id": "7", "message_id": "8"},
    )


@pytest.mark.parametrize("path", ["", "/", "/chats/", "/chats//", "/chat", "/chats/7/x", "chats"])
def test_other_paths_are_not_found(path: str) -> None:
    assert tree("/chats", "/chats/{chat_id}").find(path) is None


def test_a_fixed_segment_is_preferred_to_a_variable() -> None:
    assert tree("/users/{user_id}", "/users/me").find("/users/me") == ("/users/me", {})


def test_a_variable_is_tried_where_the_fixed_segment_leads_nowhere() -> None:
    found = tree("/users/{user_id}/keys", "/users/me").find("/users/me/keys")
    assert found == ("/users/{user_id}/keys", {"user_id": "me"})


@pytest.mark.parametrize("path", ["/chats/{chat_id}x", "/chats/{}", "/{a}{b}", "/{a:path}"])
def test_a_segment_that_is_partly_a_variable_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="has the segment"):
        tree(path)


def test_two_entries_for_the_same_paths_are_refused() -> None:
    with pytest.raises(ValueError, match="same paths"):
        tree("/chats/{chat_id}", "/chats/{id}")


SEGMENTS = st.sampled_from(["a", "b", "{x}", "{y}"])
PATHS = st.lists(SEGMENTS, min_size=1, max_size=4).map(lambda found: "/" + "/".join(found))
ASKED = st.lists(st.sampled_from(["a", "b", "c", ""]), min_size=1, max_size=4)


@given(st.lists(PATHS, max_size=12), ASKED.map(lambda found: "/" + "/".join(found)))
def test_it_finds_what_a_scan_of_all_expressions_finds(paths: list[str], asked: str) -> None:
    by_shape = {re.sub(r"\{.\}", "{}", path): path for path in paths}
    scanned = sorted(
        by_shape.values(), key=lambda path: [part.startswith("{") for part in path.split("/")]
    )
    expected = next((p for p in scanned if re.fullmatch(re.sub(r"\{.\}", "[^/]+", p), asked)), None)
    found = tree(*by_shape.values()).find(asked)
    assert (found and found[0]) == expected
