"""`parley agents`: the tree of a chat's agents."""

from parley.cli.chats.agents import below


def chat(chat_id: str, parent_id: str) -> dict[str, str]:
    return {"id": chat_id, "parent_chat_id": parent_id}


def test_each_agent_comes_after_the_one_that_started_it() -> None:
    first, second, inner = chat("a", "root"), chat("b", "root"), chat("c", "a")
    children = (first, second, inner)
    assert list(below("root", children)) == [(0, first), (1, inner), (0, second)]
    assert list(below("a", children)) == [(0, inner)]
